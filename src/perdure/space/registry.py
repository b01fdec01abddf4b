"""One Space per namespace in a process, and a bound on the memory that their states take together."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakValueDictionary

from perdure.base.clock import Clock
from perdure.base.forking import OwnProcess
from perdure.errors import Unavailable
from perdure.log.protocol import Log
from perdure.model.namespace import Namespace
from perdure.space.background import Folder
from perdure.space.names import Names
from perdure.space.settings import Settings
from perdure.space.space import Space
from perdure.space.uses import StateUses


class _Loaded(NamedTuple):
    space: Space
    size_bytes: int  # as last measured


class Loaded(NamedTuple):
    """What the spaces of a process hold in memory, and how often that was found there, or had to be read."""

    spaces: int
    facts: int
    hits: int
    misses: int


class Registry:
    """Spaces by name. Over the budget the ones that are idle drop their state, never the object that a
    handle holds."""

    def __init__(self, log: Log, clock: Clock, bytes_max: int, *, fold: bool = True) -> None:
        """Use a log.

        Args:
            bytes_max: what all states may take; of a log that several machines share, also what one alone may.
            fold: whether snapshots of such a log are kept by a thread of their own.
        """
        self._log, self._clock, self._max = log, clock, bytes_max
        # Whose spaces another server may have room for; an embedded store serves what it holds, whatever it takes.
        self._is_shared = bool(getattr(log, "is_shared", False))
        self.folder = Folder() if self._is_shared and fold else None
        # A database's own index loses no name; another log's loss is noticed by what the spaces say.
        self.find_number = log.find_space if getattr(log, "keeps_names", False) else Names(log).find
        # A name that was only asked for is forgotten with its last handle; what is loaded stays for the next.
        self._spaces: WeakValueDictionary[Namespace, Space] = WeakValueDictionary()
        self._loaded: OrderedDict[Namespace, _Loaded] = OrderedDict()  # idle ones first
        self._total = 0
        self._lock = threading.Lock()
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
                found.room.bytes_max = self._max if self._is_shared else None
                self._spaces[namespace] = found
        return found

    def forget(self, namespaces: Iterable[Namespace]) -> None:
        """Let go of spaces that were erased: whoever asks for the name from now on asks for a new one.

        A handle that somebody has goes on with what it has, as one of another process would, and would make the
        space anew with the settings it was made with.
        """
        with self._lock:
            for namespace in namespaces:
                self._spaces.pop(namespace, None)
                loaded = self._loaded.pop(namespace, None)
                self._total -= 0 if loaded is None else loaded.size_bytes

    def _shrink(self, active: Space, writing: bool) -> None:
        """Called by a space that has loaded or grown: drop the states of others while over the budget.

        Only a writer keeps snapshots of what it drops: a read does not write.
        """
        with self._lock:
            if self._spaces.get(active.namespace) is not active:
                return  # a handle kept one that was erased: the name is another's now
            before = self._loaded.pop(active.namespace, None)
            self._total += active.memory_bytes - (0 if before is None else before.size_bytes)
            self._loaded[active.namespace] = _Loaded(active, active.memory_bytes)
            idle = self._take_idle(active)
        for space in idle:
            if writing and self.folder is None:
                space.save_snapshot()
            space.drop_state()

    def _take_idle(self, active: Space) -> list[Space]:
        # A space that was used since it was last looked at gets a second chance, once.
        idle: list[Space] = []
        chances = len(self._loaded)
        while self._total > self._max and len(self._loaded) > 1:
            namespace = next(iter(self._loaded))
            space = self._loaded[namespace].space
            if space is active or (space.used and chances > 0):
                space.used = False
                chances -= 1
                self._loaded.move_to_end(namespace)
                continue
            self._total -= self._loaded.pop(namespace).size_bytes
            idle.append(space)
        return idle

    def loaded(self) -> Loaded:
        """Return what is in memory now; reads nothing. Raises as `space`."""
        self._process.check()
        with self._lock:
            spaces = [loaded.space for loaded in self._loaded.values()]
        # Without the lock: a space that grows waits for it, and has its own.
        there = [count for space in spaces if (count := space.loaded_facts) is not None]
        return Loaded(len(there), sum(there), self._uses.hits, self._uses.misses)

    def folds(self) -> tuple[int, int]:
        """Return how many snapshots were kept in the background, and how many could not be."""
        return (0, 0) if self.folder is None else (self.folder.folds, self.folder.failures)

    def abandon(self) -> None:
        """End what works in the background, and keep nothing."""
        if self.folder is not None and not self._process.is_parent:
            self.folder.close()

    def close(self) -> None:
        """End what works in the background, and keep a snapshot of every loaded space that has changed since its last.

        In a child of the process that opened the store do nothing: what works there has the locks, and is not here.
        """
        if self._process.is_parent:
            return
        self.abandon()
        with self._lock:
            spaces = [loaded.space for loaded in self._loaded.values()]
        for space in spaces:
            try:
                space.fold()
            except Unavailable as error:
                if error.details.get("kind") != "gone":  # else there is nothing to keep it beside
                    raise
