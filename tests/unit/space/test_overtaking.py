"""A purge gives spaces other numbers: whoever is overtaken by one at any moment stays in the space that he named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from perdure import Busy, ManualClock, Memory, Store
from perdure.log.memory import MemoryLog
from scenarios.stores import NOW, texts
from unit.space.logs import in_a_thread

NAMES = "abcdefg"
CALLS_MAX = 60
PAUSE_S = 0.05  # a reader that waits for the one who was overtaken goes on only after him


class OvertakenLog:
    """Passes everything on, and calls `meanwhile` after the n-th call of the thread that made it."""

    def __init__(self) -> None:
        self._log, self._thread = MemoryLog(b"s" * 32, timeout_s=PAUSE_S), threading.get_ident()
        self.left = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        return self._passing(found) if callable(found) and name != "writer" else found

    def close(self) -> None:
        """Several stores share it: nobody closes it."""

    def _passing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def passed(*args: Any, **named: Any) -> Any:
            reply = call(*args, **named)
            if threading.get_ident() == self._thread and self.left > 0:
                self.left -= 1
                if self.left == 0:
                    self.meanwhile()
            return reply

        return passed


def opened(log: OvertakenLog) -> Store:
    return Store.open(log=log, clock=ManualClock(NOW))


def purged_meanwhile(log: OvertakenLog, name: str) -> None:
    """Have another store tell a new space something, so that a purge puts the others in another order.

    While the one who is overtaken has the writer's turn, that cannot be.
    """
    with suppress(Busy), opened(log) as other:
        other.memory("x" + name).remember_many([f"told to x{name}: {n}" for n in range(5)])
        other.purge()


def overtaken(name: str, work: Callable[[Memory], object], *, reads: bool) -> None:
    """Do the work on the memory of this name again and again, each time overtaken one call of the log later."""
    for moment in range(1, CALLS_MAX):
        log = OvertakenLog()
        with opened(log) as store:
            for told in NAMES:
                store.memory(told).remember_many([f"told to {told}: {n}" for n in range(3)])
        with opened(log) as store:
            memory = store.memory(name)
            reader = threading.Thread(target=memory.list, daemon=True)

            def meanwhile(log: OvertakenLog = log, reader: threading.Thread = reader) -> None:
                in_a_thread(lambda: purged_meanwhile(log, name))
                if reads:
                    reader.start()
                    reader.join(PAUSE_S)

            log.meanwhile, log.left = meanwhile, moment
            work(memory)
            came, log.left = log.left == 0, 0
            if reads and came:
                reader.join()
        with opened(log) as store:
            for space in store.spaces():
                told_there = texts(store.memory(space.principal).list(limit=100).items)
                assert all(text.startswith(f"told to {space.principal}:") for text in told_there)
        if not came:
            return


def read(memory: Memory) -> None:
    assert len(memory.list().items) == 3


def write(memory: Memory) -> None:
    assert memory.remember(f"told to {memory.list().items[0].text[8]}: 3").created


@pytest.mark.parametrize("work", [read, write])
@pytest.mark.parametrize("name", NAMES)
def test_a_purge_at_any_moment_mixes_no_spaces_and_is_no_damage(name, work):
    overtaken(name, work, reads=False)


@pytest.mark.parametrize("work", [read, write])
@pytest.mark.parametrize("name", ["a", "b"])
def test_nor_does_it_where_a_reader_of_the_same_process_is_faster(name, work):
    overtaken(name, work, reads=True)


def erased_by_another(log: OvertakenLog, name: str) -> None:
    with suppress(Busy), opened(log) as other:
        other.erase(name)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "there"])
@pytest.mark.parametrize("overtake", [purged_meanwhile, erased_by_another])
def test_a_write_that_is_overtaken_by_a_purge_before_its_append_is_planned_again(
    is_new: bool, overtake: Callable[[OvertakenLog, str], None]
) -> None:
    log = OvertakenLog()
    # As that of another server, which reaches no process but its own.
    log.writer = lambda *_, **__: nullcontext()  # type: ignore[attr-defined]
    with opened(log) as store:
        store.memory("z").remember("tea")
        if not is_new:
            store.memory("a").remember("tea")
        append, left = log._log.append, [1]

        def overtaken(*told: Any) -> Any:
            if left:
                left.pop()
                overtake(log, "a")
            return append(*told)

        log._log.append = overtaken  # type: ignore[method-assign]
        assert store.memory("a").remember("milk").outcome == "created"
        assert not left
        assert "milk" in texts(store.memory("a").list().items)
