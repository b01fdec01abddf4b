"""Logs that wrap a real one, to look at what passes and to step in between; and threads that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from perdure import Memory
from perdure.log.protocol import Batch, Head, Log

T = TypeVar("T")
PATIENCE_S = 60.0  # a thread that has not come to its end by then never will


class WrappedLog:
    """Passes everything on; calls `before_append` and `after_append` around each append."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.batches: list[Batch] = []
        self.before_append: Callable[[], None] = lambda: None
        self.after_append: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        self.before_append()
        head = self._log.append(space, expected, batch)
        self.batches.append(batch)
        self.after_append()
        return head


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """Run work(0) … work(count - 1) on threads that start at one moment; return what each returned, in order."""
    start = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            start.wait(PATIENCE_S)
            results[index] = work(index)
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)
    return results


def in_a_thread(work: Callable[[], T]) -> T:
    """Run the work on another thread and return what it returned."""
    return together(1, lambda _: work())[0]


def check_told(memory: Memory, text: str) -> None:
    """Tell a fact; it is read and found at once."""
    reply = memory.remember(text)
    assert memory.get(reply.id).text == text
    assert text in [hit.text for hit in memory.recall(text, k=50)]
