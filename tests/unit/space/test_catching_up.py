"""A reader and a writer of one process may both meet the same new records: each is applied once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from perdure import InvalidRequest, ManualClock, Memory, MemoryConfig, NotFound, Store
from perdure.log.memory import MemoryLog
from perdure.policies import SupersessionDecision
from scenarios.stores import NOW, OpenStore, texts
from unit.space.logs import PATIENCE_S, WrappedLog, in_a_thread, together


@pytest.fixture
def log():
    return WrappedLog(MemoryLog())


@pytest.fixture
def store(log):
    with Store.open(log=log, clock=ManualClock(NOW)) as store:
        yield store


def test_a_reader_that_comes_between_append_and_apply_sees_the_write_and_spoils_nothing(store, log):
    memory = store.memory()
    memory.remember("first", id="1", subject="s", tags=["t"])
    seen = []
    log.after_append = lambda: seen.append(in_a_thread(lambda: len(memory.list().items)))
    memory.remember("second", id="2", subject="s", tags=["t"])
    memory.end("1")
    memory.forget(ids=["2"])
    log.after_append = lambda: None
    assert seen == [2, 2, 1]
    assert texts(memory.list().items) == ["first"]
    assert memory.list(tags=["t"], subject="s").total == 1
    assert memory.recall("first second", history="all")[0].score == _alone("first")
    assert [change.kind for change in memory.changes().items] == ["remembered", "ended", "forgotten"]


def _alone(text: str) -> float:
    with Store.open(":memory:") as store:
        store.memory().remember(text)
        return store.memory().recall(text)[0].score


def test_a_reader_never_meets_a_space_that_is_only_half_loaded(open_store: OpenStore, backend: str):
    big = [f"fact number {n}" for n in range(300)]
    # Every other space is dropped whenever one has loaded; a shared store serves none that does not fit at all.
    store = open_store(memory_bytes={"postgres": 100_000}.get(backend, 0))
    first, other = store.memory("a"), store.memory("b")
    first.remember_many(big)
    other.remember_many(big)

    def work(index: int) -> None:
        memory = (first, other)[index % 2]
        for _ in range(15):
            assert len(memory.recall("fact", k=300)) == 300
            assert memory.list(limit=1).total == 300

    together(4, work)


class Meddling:
    """A policy that calls the memory while it decides."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.refusals: list[Exception] = []

    def decide(self, arrival, slot):
        for call in (lambda: self.memory.recall("x"), lambda: self.memory.remember("y")):
            try:
                call()
            except InvalidRequest as error:
                self.refusals.append(error)
        return SupersessionDecision()


def test_a_policy_that_calls_the_memory_while_it_decides_is_refused_and_not_deadlocked(store):
    policy = Meddling()
    policy.memory = store.memory(config=MemoryConfig(supersession=policy))
    assert policy.memory.remember("x", subject="s").outcome == "created"
    assert len(policy.refusals) == 2
    assert texts(policy.memory.list().items) == ["x"]


class Failing:
    """A policy that fails on the facts that say so, in its own way."""

    class Oops(Exception):
        pass

    def decide(self, arrival, slot):
        if "bad" in arrival.text:
            raise self.Oops(arrival.text)
        return SupersessionDecision()


def test_one_transaction_takes_many_requests_and_each_gets_its_own_answer(store, log):
    memory = store.memory(config=MemoryConfig(supersession=Failing()))
    memory.remember("zero")
    queued = threading.Event()
    # The first append waits, so that the others are written together when it is through.
    log.before_append = lambda: queued.wait(PATIENCE_S)
    entered = threading.Semaphore(0)

    def work(index: int) -> str | None:
        if index == 24:
            for _ in range(24):
                assert entered.acquire(timeout=PATIENCE_S)
            queued.set()
            return None
        text = f"bad {index}" if index % 3 == 0 else f"good {index}"
        entered.release()
        try:
            return memory.remember(text, subject="s", idempotency_key=f"key {index}").id
        except Failing.Oops as error:
            return None if str(error) == text else "the error of another caller"

    ids = together(25, work)
    kept = [index for index in range(24) if index % 3]
    assert [index for index in range(25) if ids[index]] == kept
    for index in kept:
        assert memory.get(ids[index]).text == f"good {index}"
        again = memory.remember(f"good {index}", subject="s", idempotency_key=f"key {index}")
        assert again.id == ids[index]
    assert sorted(texts(memory.list().items)) == sorted(["zero", *(f"good {index}" for index in kept)])


def test_what_is_said_of_a_fact_goes_with_it_when_it_is_replaced_in_the_same_transaction(log):
    marker = "XQZ-canary"
    with Store.open(log=log, clock=ManualClock(NOW)) as store:
        memory = store.memory(config=MemoryConfig(on_id_conflict="replace"))
        shared = 0
        for turn in range(40):
            memory.remember(f"old {turn}", id="a")
            before = len(log.batches)
            _all_at_once(
                log,
                memory,
                lambda turn=turn: memory.remember(f"new {turn}", id="a"),
                lambda: _unless_gone(lambda: memory.annotate("a", metadata={"m": marker})),
                lambda: _unless_gone(lambda: memory.end("a", reason=marker)),
            )
            shared += len(log.batches) - before < 4
            fact = memory.get("a")
            assert fact is not None
            assert fact.text == f"new {turn}"
            if (
                "m" not in fact.metadata and not fact.ends
            ):  # said before it was replaced: nothing is left of it
                assert not _holds(log, marker)
            memory.annotate("a", metadata={})
            memory.forget(ids=["a"])
            assert not _holds(log, marker)
        assert shared, "no two requests ever shared a transaction"


def _all_at_once(log: WrappedLog, memory: Memory, *calls: Callable[[], object]) -> None:
    """Make the calls on threads of their own while another write is being appended, so that they queue."""
    appending, queued, entered = threading.Event(), threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        appending.set()
        assert queued.wait(PATIENCE_S)

    def work(index: int) -> None:
        if index == 0:
            memory.remember("a write to wait for", reassert=True)
        elif index == 1:
            for _ in calls:
                assert entered.acquire(timeout=PATIENCE_S)
            queued.set()
        else:
            assert appending.wait(PATIENCE_S)
            entered.release()
            calls[index - 2]()

    log.before_append = hold
    together(2 + len(calls), work)
    log.before_append = lambda: None


def _unless_gone(call: Callable[[], object]) -> None:
    with suppress(NotFound):
        call()


def _holds(log: WrappedLog, marker: str) -> bool:
    return any(marker.encode() in (entry.data or b"") for entry in log.read(1, 0, 10**6))
