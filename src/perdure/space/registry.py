"""One Space per namespace in a process, and what is let go of where their states take more than the budget allows."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakValueDictionary

from perdure.base.clock import Clock
from perdure.base.forking import OwnProcess
from perdure.errors import Unavailable
from perdure.log.protocol import Log
from perdure.model.namespace import Namespace
from perdure.space.background import Folder, keep_snapshot
from perdure.space.budget import Loaded as Counted
from perdure.space.budget import MemoryBudget, counts_of
from perdure.space.names import Names
from perdure.space.settings import Settings
from perdure.space.space import Space
from perdure.space.uses import StateUses


class Loaded(NamedTuple):
    """What the spaces of a process hold in memory, and how often that was found there, or had to be read."""

    spaces: int
    facts: int
    hits: int
    misses: int


class Registry:
    """Spaces by name. Over the budget the ones that are idle drop their state, never the object that a
    handle holds."""

    def __init__(self, log: Log, clock: Clock, memory: int | MemoryBudget, *, fold: bool = True) -> None:
        """Use a log.

        Args:
            memory: what all states may take, in bytes, or what they share with other stores. Where others depend on it, of a
                log that several machines share or of such a budget, one space alone may not take more.
            fold: whether snapshots of such a log are kept by a thread of their own.
        """
        self._log, self._clock, self._memory = log, clock, counts_of(memory)
        self._memory.check()
        is_shared = bool(getattr(log, "is_shared", False))
        # An embedded store by itself serves what it holds, whatever it takes: nobody else would.
        self._refuses = is_shared or isinstance(memory, MemoryBudget)
        self.folder = Folder() if is_shared and fold else None
        # A database's own index loses no name; another log's loss is noticed by what the spaces say.
        self.find_number = log.find_space if getattr(log, "keeps_names", False) else Names(log).find
        # A name that was only asked for is forgotten with its last handle; what is loaded stays for the next.
        self._spaces: WeakValueDictionary[Namespace, Space] = WeakValueDictionary()
        self._loaded: Counted = {}
        self._closed = False
        self._lock = threading.Lock()  # the budget's comes after it
        self._process = OwnProcess()
        self._uses = StateUses()

    def space(self, namespace: Namespace, settings: Settings) -> Space:
        """Return the space of this name; `settings` count only if it has no records yet.

        Raises Unavailable, of the kind "forked", in a child of the process that opened the store.
        """
        self._process.check()
        with self._lock:
            found = self._spaces.get(namespace)
            if found is None:
                found = Space(self._log, namespace, settings, self._clock)
                found.find_number = self.find_number
                found.on_grown, found.uses = self._shrink, self._uses
                found.snapshots.folder = self.folder
                found.room.bytes_max = self._memory.bytes_max if self._refuses else None
                self._spaces[namespace] = found
        return found

    def forget(self, namespaces: Iterable[Namespace]) -> None:
        """Let go of spaces that were erased: whoever asks for the name from now on asks for a new one.

        A handle that somebody has goes on with what it has, as one of another process would, and would make the
        space anew with the settings it was made with.
        """
        with self._lock:
            for namespace in namespaces:
                space = self._spaces.pop(namespace, None)
                if space is not None:
                    self._memory.leave(space)

    def _shrink(self, active: Space, writing: bool) -> None:
        """Called by a space that has loaded or grown: drop the states of others while over the budget.

        Only a writer keeps snapshots of what it drops, and of its own store alone: a read does not write, and no write
        waits for another store's turn.
        """
        with self._lock:
            if self._closed or self._spaces.get(active.namespace) is not active:
                return  # a handle kept one that was erased: the name is another's now
            self._memory.count(active, self._loaded)
        for space in self._memory.idle(active):
            if writing and self.folder is None and space.log is self._log:
                keep_snapshot(space)
            self._memory.drop(space)

    def loaded(self) -> Loaded:
        """Return what is in memory now; reads nothing. Raises as `space`."""
        self._process.check()
        # Without a lock: a space that grows waits for it, and has its own.
        spaces = self._memory.spaces_of(self._loaded)
        there = [count for space in spaces if (count := space.loaded_facts) is not None]
        return Loaded(len(there), sum(there), self._uses.hits, self._uses.misses)

    def memory_bytes(self) -> int:
        """Return what of the budget the spaces of this store take."""
        return self._memory.bytes_of(self._loaded)

    def folds(self) -> tuple[int, int]:
        """Return how many snapshots were kept in the background, and how many could not be."""
        return (0, 0) if self.folder is None else (self.folder.folds, self.folder.failures)

    def abandon(self) -> None:
        """End what works in the background, keep nothing, and take nothing of the budget any more."""
        if self._process.is_parent:
            return
        if self.folder is not None:
            self.folder.close()
        with self._lock:
            self._closed = True
        self._memory.leave(*self._memory.spaces_of(self._loaded))

    def close(self) -> None:
        """Abandon all after a snapshot was kept of every loaded space that has changed since its last.

        In a child of the process that opened the store do nothing: what works there has the locks, and is not here.
        """
        if self._process.is_parent:
            return
        if self.folder is not None:
            self.folder.close()
        try:
            for space in self._memory.spaces_of(self._loaded):
                self._fold(space)
        finally:
            self.abandon()

    def _fold(self, space: Space) -> None:
        try:
            space.fold()
        except Unavailable as error:
            if error.details.get("kind") != "gone":  # else there is nothing to keep it beside
                raise
