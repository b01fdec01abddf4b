"""What spaces may hold in memory together: answers never depend on it, work does."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import ManualClock, Memory, Store
from perdure.log.memory import MemoryLog
from scenarios.stores import NOW, OpenStore, ids
from unit.space.logs import check_told, together

SPACES = 12
# Where others serve the spaces too, one that does not fit is refused: there the budget holds one or two, else none.
LEAST = {"postgres": 16_000}


class CountingLog:
    """Passes everything on and counts the times that a space was read from its first record."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self.loads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, space: int, after: int, upto: int) -> Any:
        self.loads += (after, upto) == (0, 1)
        return self._log.read(space, after, upto)


def fill(memory: Memory, name: int) -> None:
    memory.remember(f"colour of {name} is red", id="1", subject="colour", metadata={"n": name}, tags=["t"])
    memory.remember(f"colour of {name} is blue", id="2", subject="colour", supersedes=["1"])
    memory.remember(f"{name} is hidden", id="3")
    memory.forget(ids=["3"], soft=True)
    memory.end("2", at="2030-01-01")


def seen(memory: Memory) -> tuple[Any, ...]:
    hits = memory.recall("colour red blue", history="all", explain=True)
    return (
        [(hit.fact, hit.score, hit.explanation) for hit in hits],
        memory.list().items,
        memory.list(hidden=True).items,
        memory.history("1"),
        memory.list(subject="colour", as_of="2031-01-01").items,
        memory.recall("colour", filter={"n": 3}),
        memory.changes(),
    )


def test_with_no_budget_at_all_every_answer_is_the_same(open_store: OpenStore, backend: str):
    ample = open_store("ample", secret=b"s" * 32)
    tight = open_store("tight", memory_bytes=LEAST.get(backend, 0), secret=b"s" * 32)
    for store in (ample, tight):
        for n in range(SPACES):
            fill(store.memory(f"user {n}"), n)
    handles = [tight.memory(f"user {n}") for n in range(SPACES)]
    for _ in range(2):
        for n, handle in enumerate(handles):
            assert seen(handle) == seen(ample.memory(f"user {n}"))
    for n, handle in enumerate(handles):
        handle.remember("a later fact", id="later")
        assert handle.forget(subject="colour").forgotten == ("1", "2")
        assert ids(handle.list().items) == ["later"]
        assert tight.memory(f"user {n}").restore(["3"]) == ("3",)


@pytest.mark.parametrize(("budget", "reloads"), [(0, SPACES), (1 << 30, 0)])
def test_small_spaces_count_too_and_idle_ones_are_let_go(budget, reloads):
    log = CountingLog()
    with Store.open(log=log, clock=ManualClock(NOW), memory_bytes=budget) as store:
        handles = [store.memory(f"user {n}") for n in range(SPACES)]
        for n, handle in enumerate(handles):
            fill(handle, n)
        before = log.loads
        for handle in handles:
            assert len(handle.recall("colour")) == 1
        assert log.loads - before == reloads


def test_the_space_that_is_in_use_stays_while_others_come_and_go():
    # The largest power of two of bytes that does not hold all spaces holds the busy one and a few others.
    for power in range(24, 0, -1):
        log = CountingLog()
        with Store.open(log=log, clock=ManualClock(NOW), memory_bytes=1 << power) as store:
            busy, idle = store.memory("busy"), store.memory("idle")
            fill(busy, 0)
            fill(idle, 0)
            for n in range(SPACES):
                fill(store.memory(f"user {n}"), n)
                busy.recall("colour")
            before = log.loads
            busy.recall("colour")
            assert log.loads == before
            assert len(idle.recall("colour")) == 1
            if log.loads > before:
                return
    pytest.fail("no budget made an idle space go")


def test_threads_over_many_spaces_and_no_budget_get_right_answers(open_store: OpenStore, backend: str):
    store = open_store(memory_bytes=LEAST.get(backend, 0))

    def work(index: int) -> None:
        for turn in range(12):
            memory = store.memory(f"user {(index + turn) % 4}")
            text = f"thread {index} turn {turn}"
            check_told(memory, text)

    together(6, work)
    assert sum(store.memory(f"user {n}").list().total for n in range(4)) == 72
    assert store.stats().facts == 72
