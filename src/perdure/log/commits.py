"""How many commits a log made and how long they took: what waits for the disk, in one number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class Commits:
    """Counts the commits of one log. Only who has the log's turn, or its lock, adds to it."""

    __slots__ = ("count", "seconds")

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time the block as one commit; one that failed was none."""
        began = perf_counter()
        yield
        self.seconds += perf_counter() - began
        self.count += 1
