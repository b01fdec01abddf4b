"""Many threads on one memory: nobody loses a write, meets another's error, or waits long."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig, NewFact, NotFound
from perdure.policies import SupersessionDecision
from scenarios.stores import texts
from unit.space.logs import PATIENCE_S, together

LONG_S = 5.0  # far beyond what any of these takes, far below a wait for what never comes


def test_thirty_two_threads_that_tell_the_identical_fact_make_one(memory):
    replies = together(32, lambda _: memory.remember("the same", subject="s", metadata={"a": 1}))
    assert len({reply.id for reply in replies}) == 1
    assert len({reply.ingest_time for reply in replies}) == 1
    assert sorted(reply.outcome for reply in replies) == ["created"] + ["existing"] * 31
    assert memory.list().total == 1
    assert [change.kind for change in memory.changes().items] == ["remembered"]


def test_thirty_two_threads_with_one_key_and_different_content_store_one(memory):
    def work(index: int) -> str | None:
        try:
            return memory.remember(f"content {index}", idempotency_key="key").id
        except Conflict as conflict:
            return conflict.kind

    answers = together(32, work)
    assert answers.count("idempotency") == 31
    assert memory.list().total == 1


def test_a_retry_with_the_same_key_gets_the_first_receipt_whatever_happened_since(memory, clock):
    first = memory.remember("content", id="a", valid_from=1, idempotency_key="key")
    clock.advance(1000)
    memory.remember("later", id="b", supersedes=["a"])
    assert memory.remember("content", id="a", valid_from=1, idempotency_key="key") == first
    for other in ({"valid_from": 2}, {"valid_from": 1, "tags": ["t"]}, {"valid_from": 1, "importance": 0.5}):
        with pytest.raises(Conflict) as caught:
            memory.remember("content", id="a", idempotency_key="key", **other)
        assert caught.value.kind == "idempotency"
    memory.forget(ids=["a"])
    with pytest.raises(NotFound):
        memory.remember("content", id="a", valid_from=1, idempotency_key="key")
    assert memory.get("a") is None


def test_thirty_two_threads_with_one_id_and_different_content_store_one(memory):
    def work(index: int) -> bool:
        try:
            return memory.remember(f"content {index}", id="a").created
        except Conflict:
            return False

    assert sum(together(32, work)) == 1
    assert memory.list().total == 1


def test_sixteen_threads_remember_recall_and_forget_and_each_finds_its_own(memory):
    def work(index: int) -> None:
        for turn in range(8):
            text = f"thread {index} turn {turn}"
            reply = memory.remember(text, subject=f"thread {index}")
            assert reply.outcome == "created"
            assert memory.get(reply.id).text == text
            assert text in texts(memory.recall(text, k=1000, subject=f"thread {index}"))
            if turn % 2:
                assert memory.forget(ids=[reply.id]).forgotten == (reply.id,)
                assert memory.get(reply.id) is None
                assert text not in texts(memory.recall(text, k=1000))

    together(16, work)
    kept = [f"thread {index} turn {turn}" for index in range(16) for turn in range(0, 8, 2)]
    assert sorted(texts(memory.list(limit=1000).items)) == sorted(kept)
    assert len(memory.recall("thread", k=1000)) == len(kept)


def test_threads_on_one_slot_leave_one_current_fact(slots):
    replies = together(16, lambda index: slots.remember(f"value {index}", subject="s", valid_from=index))
    assert [fact.text for fact in slots.list(status="current").items] == ["value 15"]
    for index, reply in enumerate(replies):
        at = slots.list(status="current", as_of=index).items
        assert [fact.id for fact in at] == [reply.id]
    assert len(slots.history(replies[0].id)) == 16


def test_batches_are_whole_to_every_reader(memory):
    stop = threading.Event()

    def work(index: int) -> None:
        if index == 0:
            for turn in range(15):
                memory.remember_many([f"batch {turn} member {n}" for n in range(20)])
                if turn % 3 == 2:
                    memory.forget(containing=f"batch {turn} ")
            stop.set()
        while not stop.is_set():
            assert memory.list(limit=1).total % 20 == 0
            assert len(memory.recall("member", k=1000)) % 20 == 0

    together(4, work)
    assert memory.list(limit=1).total == 200


WRITES = (
    lambda memory, id_, text: memory.annotate(id_, tags=[text]),
    lambda memory, id_, text: memory.forget(ids=[id_], soft=True),
    lambda memory, id_, text: memory.restore([id_]),
    lambda memory, id_, text: memory.end(id_, at="2026-06-01"),
    lambda memory, id_, text: memory.correct(text, id=id_),
    lambda memory, id_, text: memory.forget(ids=[id_]),
    lambda memory, id_, text: memory.remember(f"fact {id_}", id=id_),
)


def test_writers_of_the_same_facts_in_every_way_agree_in_the_end(memory):
    memory.remember_many([NewFact(text=f"fact {n}", id=f"{n}") for n in range(4)])

    def work(index: int) -> None:
        for turn in range(12):
            id_ = f"{(index + turn) % 4}"
            with suppress(NotFound, Conflict, InvalidRequest):
                WRITES[(index * 5 + turn) % len(WRITES)](memory, id_, f"fact {id_} of {index} at {turn}")

    together(8, work)
    shown, hidden = memory.list(limit=1000).items, memory.list(hidden=True, limit=1000).items
    assert not {fact.id for fact in shown} & {fact.id for fact in hidden}
    for fact in shown:
        assert memory.get(fact.id) == fact
        for other in fact.superseded_by:
            assert fact.id in memory.get(other).supersedes
    assert len(memory.recall("fact", k=1000, history="all")) == len(shown)


class Slow:
    """A recency policy that waits in the middle of a read until it is told to go on."""

    is_identity = False
    basis = "ingest"

    def __init__(self) -> None:
        self.reading, self.go_on = threading.Event(), threading.Event()

    def factor(self, context) -> float:
        self.reading.set()
        assert self.go_on.wait(PATIENCE_S)
        return 1.0


class Patient:
    """A supersession policy that waits in the middle of a write until it is told to go on."""

    def __init__(self) -> None:
        self.deciding, self.go_on = threading.Event(), threading.Event()

    def decide(self, arrival, slot):
        self.deciding.set()
        assert self.go_on.wait(PATIENCE_S)
        return SupersessionDecision()


def test_a_slow_write_keeps_no_reader_waiting(store):
    policy = Patient()
    memory = store.memory(config=MemoryConfig(supersession=policy))
    memory.remember("a fact that is there")

    def work(index: int) -> float:
        if index == 0:
            memory.remember("slow", subject="s")
            return 0.0
        assert policy.deciding.wait(PATIENCE_S)
        begun = time.perf_counter()
        assert texts(memory.recall("fact")) == ["a fact that is there"]
        assert memory.list().total == 1
        assert memory.get("nobody") is None
        took = time.perf_counter() - begun
        policy.go_on.set()
        return took

    assert together(2, work)[1] < LONG_S
    assert memory.list().total == 2


def test_a_slow_read_sees_one_view_and_keeps_no_other_reader_and_no_other_space_waiting(store):
    policy = Slow()
    slow, plain, other = (
        store.memory(config=MemoryConfig(recency=policy)),
        store.memory(),
        store.memory("other"),
    )
    plain.remember_many(["fact one", "fact two"])
    others = threading.Event()

    def work(index: int) -> object:
        if index == 0:
            return sorted(texts(slow.recall("fact")))
        assert policy.reading.wait(PATIENCE_S)
        if index == 1:
            begun = time.perf_counter()
            other.remember("fact of another space")
            assert len(plain.recall("fact")) == 2
            assert time.perf_counter() - begun < LONG_S
            others.set()
            policy.go_on.set()
            return other.list().total
        # A write of the same space waits for the reader before it shows; the reader never sees half of it.
        assert others.wait(PATIENCE_S)
        return plain.remember("fact three").outcome

    assert together(3, work) == [["fact one", "fact two"], 1, "created"]
    assert plain.list().total == 3


class Refusing:
    """A policy that fails for every second fact."""

    def decide(self, arrival, slot):
        if int(arrival.text.split()[-1]) % 2:
            raise ZeroDivisionError(arrival.text)
        return SupersessionDecision()


def test_what_a_policy_raises_reaches_the_caller_whose_fact_it_was_and_nobody_else(store):
    memory = store.memory(config=MemoryConfig(supersession=Refusing()))

    def work(index: int) -> str:
        try:
            memory.remember(f"fact {index}", subject="s")
        except ZeroDivisionError as error:
            return str(error)
        return "stored"

    outcomes = together(24, work)
    assert outcomes == [f"fact {index}" if index % 2 else "stored" for index in range(24)]
    assert sorted(texts(memory.list().items)) == sorted(f"fact {index}" for index in range(0, 24, 2))


class Listening:
    """An observer that notes what it hears and on which thread, fails when told, and tries to write."""

    def __init__(self) -> None:
        self.memory = None
        self.heard: list[tuple[int, str]] = []
        self.refused = 0

    def remembered(self, fact) -> None:
        self.heard.append((threading.get_ident(), fact.text))
        try:
            self.memory.remember("from inside")
        except InvalidRequest:
            self.refused += 1
        assert self.memory.get(fact.id) is not None
        raise ZeroDivisionError("observers may fail")

    def forgotten(self, ids) -> None:
        self.heard.append((threading.get_ident(), ",".join(ids)))


def test_observers_hear_on_the_callers_thread_in_order_and_their_failures_and_writes_go_nowhere(
    store, caplog
):
    observer = Listening()
    memory = store.memory(config=MemoryConfig(observers=(observer,)))
    observer.memory = memory

    def work(index: int) -> int:
        for turn in range(5):
            memory.remember(f"{index} {turn}", id=f"{index}-{turn}")
            memory.remember(f"{index} {turn}", id=f"{index}-{turn}")  # told again: nothing to hear
        memory.forget(ids=[f"{index}-0"], dry_run=True)
        memory.forget(ids=[f"{index}-0", f"{index}-1"])
        memory.forget(ids=[f"{index}-0"])
        return threading.get_ident()

    for index, thread in enumerate(together(4, work)):
        heard = [what for where, what in observer.heard if where == thread]
        assert heard == [*(f"{index} {turn}" for turn in range(5)), f"{index}-0,{index}-1"]
    assert observer.refused == 20
    assert memory.list().total == 12
    assert "observers may fail" not in caplog.text  # what it said could be people's text
    assert "ZeroDivisionError" in caplog.text
