"""Who leads the writes of a space, and who need not wait for it."""

from __future__ import annotations

import threading

from perdure.space.requests import Lead, Request


def request() -> Request[object]:
    return Request(lambda _: None, ())


def test_whoever_finds_his_request_done_leaves_while_another_leads():
    lead, own, other, left = Lead(), request(), request(), threading.Event()

    def wait() -> None:
        with lead.of(other):
            left.set()

    thread = threading.Thread(target=wait)
    with lead.of(own):
        thread.start()
        assert not left.wait(0.05)
        other.done = True
    with lead.of(request()):
        assert left.wait(10)
    thread.join()


def test_one_leads_at_a_time_and_a_failure_hands_the_lead_on():
    lead, inside, most = Lead(), list[int](), list[int]()

    def work(number: int) -> None:
        try:
            with lead.of(request()):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)
                if number % 2:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 16
