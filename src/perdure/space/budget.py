"""What the states of spaces may take in memory together: those of one store, or of all the stores that are given it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from perdure.base.forking import OwnProcess
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.space.space import Space

BYTES_MAX = 1 << 50  # more than any machine has

Loaded = dict["Space", None]
"""The spaces of one store that are counted, in the order of their loading; only the budget changes it."""


class _Counted(NamedTuple):
    size_bytes: int  # as last measured
    loaded: Loaded  # that it stands in


class Counts:
    """What is counted of a budget, by the spaces that have a state. Thread-safe.

    Over the bound, the spaces that nobody has used for longest let go of their state, whichever store they are of: what is
    counted is at most the bound, or one space alone. Its lock is the innermost: no other is waited for under it, so that
    no stores wait for each other.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._counted: OrderedDict[Space, _Counted] = OrderedDict()  # idle ones first
        self._total = 0
        self._lock = threading.Lock()
        self._process = OwnProcess()

    @property
    def bytes_now(self) -> int:
        """What the spaces of all its stores take now."""
        with self._lock:
            return self._total

    def check(self) -> None:
        """Raise Unavailable, of the kind "forked", in a child of the process that made it."""
        self._process.check()

    def bytes_of(self, loaded: Loaded) -> int:
        """Return what these spaces take."""
        with self._lock:
            return sum(self._counted[space].size_bytes for space in loaded if space in self._counted)

    def spaces_of(self, loaded: Loaded) -> list[Space]:
        with self._lock:
            return list(loaded)

    def count(self, space: Space, loaded: Loaded) -> None:
        """Count a space that has loaded or grown with what it takes now, as the last one used."""
        with self._lock:
            self._leave(space)
            size = space.memory_bytes  # which others may measure anew meanwhile
            self._counted[space] = _Counted(size, loaded)
            self._total += size
            loaded[space] = None

    def leave(self, *spaces: Space) -> None:
        """Count spaces no longer, whatever they hold."""
        with self._lock:
            for space in spaces:
                self._leave(space)

    def idle(self, active: Space) -> Iterator[Space]:
        """Yield, as long as all takes too much, the next space that is to be dropped for the active one."""
        passed: set[Space] = set()
        while True:
            with self._lock:
                found = self._find_idle(active, passed)
            if found is None:
                return
            passed.add(found)  # one that is being loaded stays, and makes room itself when it is
            yield found

    def drop(self, space: Space) -> None:
        """Have a space let go of its state, unless somebody is just loading it or bringing it up."""
        with self._lock:
            if space in self._counted and space.drop_state():
                self._leave(space)

    def _find_idle(self, active: Space, passed: set[Space]) -> Space | None:
        # A space that was used since it was last looked at gets a second chance, once.
        chances = len(self._counted)
        for _ in range(2 * chances + 1):
            if self._total <= self.bytes_max or len(self._counted) <= 1:
                return None
            space = next(iter(self._counted))
            if space is not active and space not in passed and not (space.used and chances > 0):
                return space
            space.used = False
            chances -= 1
            self._counted.move_to_end(space)
        return None

    def _leave(self, space: Space) -> None:
        counted = self._counted.pop(space, None)
        if counted is not None:
            self._total -= counted.size_bytes
            counted.loaded.pop(space, None)


class MemoryBudget:
    """What the spaces of several stores of a process may take in memory together: `Store.open` takes it as `memory_bytes`.

    Where they take more, the spaces that nobody has used for longest, of whichever store, make room and are read again
    when they are asked for. Thread-safe; of one process.
    """

    def __init__(self, bytes_max: int) -> None:
        """Raises InvalidRequest where `bytes_max` is no whole number of 0 or more."""
        if type(bytes_max) is not int or not 0 <= bytes_max <= BYTES_MAX:
            raise InvalidRequest(
                f"memory_bytes must be a whole number of 0 to {BYTES_MAX}", field="memory_bytes"
            )
        self._counts = Counts(bytes_max)

    @property
    def bytes_max(self) -> int:
        """What they may take."""
        return self._counts.bytes_max

    @property
    def bytes_now(self) -> int:
        """What they take now, as it was last measured."""
        return self._counts.bytes_now


def counts_of(memory: int | MemoryBudget) -> Counts:
    """Return those of a budget; counts of their own for a checked number of bytes."""
    return memory._counts if isinstance(memory, MemoryBudget) else Counts(memory)
