"""Who leads the writes of a space, who need not wait for it, and who is told that a transaction failed."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from perdure import Busy, MemoryConfig, StorageFull, Store
from perdure.log.memory import MemoryLog
from perdure.space.requests import Lead, Request
from unit.space.logs import WrappedLog


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


def test_a_transaction_that_fails_is_told_to_those_alone_who_were_not_stored_by_one_before_it():
    log = WrappedLog(MemoryLog())
    store = Store.open(log=log, audit="off", config=MemoryConfig(on_id_conflict="replace"))
    memory, appends = store.memory(), 0
    leads, goes_on = threading.Event(), threading.Event()
    memory.remember("first")

    def before_append():
        nonlocal appends
        appends += 1
        if appends == 1:
            leads.set()
            goes_on.wait()
        if appends == 3:
            raise StorageFull("there is no room")

    log.before_append = before_append
    with ThreadPoolExecutor() as threads:
        asked: list[Future[object]] = [threads.submit(memory.remember, "of the leader")]
        leads.wait()
        for id_, text in (("same", "one"), ("c", "of c"), ("same", "two"), ("d", "of d")):
            asked.append(threads.submit(memory.remember, text, id=id_))
            while len(memory._space._queue) < len(asked) - 1:  # it comes into the group in this order
                pass
        goes_on.set()
        errors = [one.exception() for one in asked]
    assert appends == 3
    told = [fact.text for fact in memory.list().items]
    assert [error is None for error in errors] == [True, True, True, False, True]
    assert sorted(told) == ["first", "of c", "of d", "of the leader", "one"]
    with pytest.raises(StorageFull):
        raise errors[3]
    store.close()


def test_a_snapshot_that_cannot_be_kept_is_logged_and_the_write_is_told_as_stored(monkeypatch, caplog):
    monkeypatch.setattr("perdure.space.keeping.SNAPSHOT_RECORDS", 1)
    monkeypatch.setattr("perdure.space.keeping.SNAPSHOT_MIN", 1)
    log = WrappedLog(MemoryLog())

    def put_cache(*_):
        raise Busy("others keep all writers out: nothing was changed")

    log.put_cache = put_cache
    with caplog.at_level("WARNING", logger="perdure.space"), Store.open(log=log, audit="off") as store:
        assert store.memory().remember("the kettle is blue").created
        assert "a snapshot could not be kept (busy)" in caplog.text
        del log.put_cache
