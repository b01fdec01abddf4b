"""How often the facts of a store's spaces were in memory when they were asked for."""

from __future__ import annotations


class StateUses:
    """Counts of one store in this process. Without a lock: a read must not wait, and a lost count does no harm."""

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        self.hits = 0  # the state was there, as new as the log
        self.misses = 0  # it was made from a snapshot or from the log
