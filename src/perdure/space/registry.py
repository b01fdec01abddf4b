"""One Space per namespace in a process, and a bound on the memory that their states take together."""

from __future__ import annotations

import threading
from collections import OrderedDict

from perdure.base.clock import Clock
from perdure.log.protocol import Log
from perdure.model.namespace import Namespace
from perdure.space.space import Settings, Space


class Registry:
    """Spaces by name. Over the budget the least recently used ones drop their state, never the object
    that a handle holds."""

    def __init__(self, log: Log, clock: Clock, bytes_max: int) -> None:
        self._log, self._clock, self._max = log, clock, bytes_max
        self._spaces: OrderedDict[Namespace, Space] = OrderedDict()
        self._lock = threading.Lock()

    def space(self, namespace: Namespace, settings: Settings) -> Space:
        """Return the space of this name; `settings` count only if it has no records yet."""
        with self._lock:
            found = self._spaces.get(namespace)
            if found is None:
                found = Space(self._log, namespace, settings, self._clock)
                found.on_grown = self._shrink
                self._spaces[namespace] = found
            self._spaces.move_to_end(namespace)
        return found

    def _shrink(self, active: Space, writing: bool) -> None:
        """Called by a space that has loaded or grown: drop the states of others while over the budget.

        Only a writer keeps snapshots of what it drops: a read does not write.
        """
        with self._lock:
            if active.namespace in self._spaces:
                self._spaces.move_to_end(active.namespace)
            spaces = list(self._spaces.values())
        total = sum(space.memory_bytes for space in spaces)
        for space in spaces:
            if total <= self._max:
                return
            if space is not active and space.memory_bytes:
                total -= space.memory_bytes
                if writing:
                    space.save_snapshot()
                space.drop_state()

    def save_all(self) -> None:
        """Keep a snapshot of every loaded space that has changed since its last one."""
        with self._lock:
            spaces = list(self._spaces.values())
        for space in spaces:
            space.save_snapshot()
