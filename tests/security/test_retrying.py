"""What is asked twice, by many at once, or by somebody who left before the answer, is done once."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.server.keys import Grant, Keyring
from unit.server.running_server import Running, running

from .asking import code
from .site import Site

MANY = 32


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path / "store", auth=False) as served:
        yield served


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Keyring]]:
    """A server of two workers that asks for keys."""
    directory = tmp_path_factory.mktemp("workers") / "store"
    directory.mkdir(mode=0o700)
    with Keyring(directory) as keyring:
        keyring.create(Grant())
        with running(directory, workers=2, auth=True) as served:
            yield served, keyring


def together(work: Callable[[int], Any], count: int = MANY) -> list[Any]:
    """Return what the work gives in so many threads that begin at once."""
    found: list[Any] = [None] * count
    begin = threading.Barrier(count)

    def run(number: int) -> None:
        begin.wait()
        found[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_idempotency_key_from_many_at_once_is_one_fact(open_site):
    fact = {"text": "told once", "idempotencyKey": "k"}
    replies = open_site.calls(*[("remember", fact, None)] * MANY)
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert open_site.call("list").json()["total"] == 1
    assert len(open_site.call("changes").json()["items"]) == 1


def test_one_idempotency_key_for_different_facts_is_a_conflict_for_all_but_one(open_site):
    facts = [("remember", {"text": f"fact {number}", "idempotencyKey": "k"}, None) for number in range(MANY)]
    replies = open_site.calls(*facts)
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * (MANY - 1)
    assert open_site.call("list").json()["total"] == 1


def test_one_id_from_many_at_once_is_one_fact_and_the_others_are_told(open_site):
    replies = open_site.calls(*[("remember", {"text": f"fact {n}", "id": "f"}, None) for n in range(MANY)])
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * (MANY - 1)
    assert open_site.call("list").json()["total"] == 1


def test_of_many_who_write_a_page_at_one_version_one_wins(open_site):
    open_site.call("putDocument", {"id": "d", "text": "first"})
    pages = [
        ("putDocument", {"id": "d", "text": f"page {number}", "ifVersion": 1}, None) for number in range(MANY)
    ]
    replies = open_site.calls(*pages)
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * (MANY - 1)
    assert open_site.call("getDocument", {"id": "d"}).json()["document"]["version"] == 2


def test_an_idempotency_key_of_somebody_else_means_nothing_to_me(site):
    mine, theirs, foreign = (
        site.key("a", principal="u1"),
        site.key("a", principal="u2"),
        site.key("b", principal="u1"),
    )
    told = {
        site.call("remember", {"text": f"fact {n}", "idempotencyKey": "k"}, key).json()["outcome"]
        for n, key in enumerate((mine, theirs, foreign))
    }
    assert told == {"created"}
    assert code(site.call("remember", {"text": "another", "idempotencyKey": "k"}, mine)) == "conflict"


def test_one_idempotency_key_from_many_threads_to_two_workers_is_one_fact(workers):
    served, keyring = workers
    key = keyring.create(Grant(principal="many"))[1]
    fact = {"text": "told once", "idempotencyKey": "k"}
    replies = together(lambda _: served.post("memory/remember", fact, authorization=f"Bearer {key}"))
    assert {status for status, _ in replies} == {200}
    assert len({told["id"] for _, told in replies}) == 1
    assert served.post("memory/list", {}, authorization=f"Bearer {key}")[1]["total"] == 1


def test_a_write_whose_answer_was_lost_is_done_once_when_it_is_sent_again(workers):
    served, keyring = workers
    key = keyring.create(Grant(principal="lost"))[1]
    for number in range(10):
        fact = {"text": f"fact {number}", "idempotencyKey": f"k{number}"}
        body = json.dumps(fact).encode()
        head = f"POST /api/v1/memory/remember HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with served.connected() as link:
            # Closing resets the connection: no answer can be delivered, whether or not the write has begun.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.sendall(head.encode() + (body if number % 3 else body[:-1]))
        assert served.post("memory/remember", fact, authorization=f"Bearer {key}")[0] == 200
    assert served.post("memory/list", {}, authorization=f"Bearer {key}")[1]["total"] == 10


def test_a_revoked_key_is_refused_by_every_worker_from_the_next_request_on(workers):
    served, keyring = workers
    for _ in range(5):
        made, key = keyring.create(Grant(principal="revoked"))
        told = {"authorization": f"Bearer {key}"}
        assert {
            status for status, _ in together(lambda _, told=told: served.post("memory/list", {}, **told), 16)
        } == {200}
        keyring.revoke(made.id)
        assert {
            status for status, _ in together(lambda _, told=told: served.post("memory/list", {}, **told), 16)
        } == {401}


def test_a_key_that_is_revoked_while_many_use_it_stops_all_of_them(workers):
    served, keyring = workers
    made, key = keyring.create(Grant(principal="stopping"))
    stopped = threading.Event()

    def use(number: int) -> list[tuple[bool, int]]:
        if number == 0:
            keyring.revoke(made.id)
            stopped.set()
            return []
        seen = []
        while True:
            late = stopped.is_set()
            status = served.post("memory/list", {}, authorization=f"Bearer {key}")[0]
            seen.append((late, status))
            if late:
                return seen

    seen = [one for each in together(use, 8) for one in each]
    assert {status for late, status in seen if late} == {401}
    assert {status for _, status in seen} <= {200, 401}
