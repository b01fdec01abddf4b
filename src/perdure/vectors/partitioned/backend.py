"""Where the snapshots of an index are kept: the seam between the index and its backends."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Protocol

from perdure.errors import Unavailable
from perdure.vectors.partitioned.snapshot import Snapshot
from perdure.vectors.partitioned.types import VectorDescriptor

Plan = Callable[[Snapshot], Snapshot]


class Backend(Protocol):
    """Keeps one line of snapshots. Thread-safe."""

    def known(self) -> Snapshot:
        """Return the newest snapshot that this handle knows of; asks nobody."""

    def current(self) -> Snapshot:
        """Return a snapshot that is no older than the last change that returned before the call."""

    def observed(self) -> Snapshot:
        """Return what is stored now."""

    def publish(self, plan: Plan) -> Snapshot:
        """Let the plan make the next snapshot of the present one, alone, and store it before it is seen.

        A plan that returns the snapshot that it was given, or raises, changes nothing.
        """

    def close(self) -> None:
        """Give everything back. Idempotent."""


class MemoryBackend:
    """Snapshots in memory, of as many handles as share it; gone with the last of them."""

    def __init__(self, descriptor: VectorDescriptor) -> None:
        self._turn = Lock()
        self._snapshot: Snapshot | None = Snapshot.empty(descriptor)

    def known(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise Unavailable("the vector index was closed; make a new one")
        return snapshot

    current = known
    observed = known

    def publish(self, plan: Plan) -> Snapshot:
        with self._turn:
            following = plan(self.known())
            self._snapshot = following
            return following

    def close(self) -> None:
        with self._turn:
            self._snapshot = None
