"""Observers: told what a memory has durably stored or removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.model.fact import Fact


class MemoryObserver(Protocol):
    """Called after the write is durable and unlocked, on the writer's own thread, in order.

    Not called for dry runs or for facts that were stored already. It may read the memory; a write
    from inside a call is refused. An exception is logged and goes no further, since the write stands.
    A crash can lose a call, and other processes are not told.
    """

    def remembered(self, fact: Fact) -> None:
        """Hear of one fact created or replaced; in a batch, one call each in list order."""
        ...

    def forgotten(self, ids: Sequence[str]) -> None:
        """Hear of the facts that one call removed: at least one id, sorted."""
        ...
