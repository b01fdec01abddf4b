"""Whether a space may be served at all where others depend on the budget too: one whose state alone is over it may not."""

from __future__ import annotations

from collections.abc import Callable

from perdure.errors import Busy
from perdure.log.protocol import Head, Log
from perdure.space import snapshot
from perdure.space.heads import content_of


class Room:
    """What one space may take. It refuses by itself: another server may have room, and other spaces are to stay here."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.bytes_max: int | None = None  # None: as much as it needs
        self._refused: tuple[tuple[int, int], int] | None = None  # the content whose state took as many bytes

    def is_enough(self, head: Head, size: int) -> bool:
        """Whether a state at this head, of as many bytes, may stay; one that may not is remembered."""
        if self.bytes_max is None or size <= self.bytes_max:
            return True
        self._refused = content_of(head), size
        return False

    def check(self, head: Head) -> None:
        """Raise Busy where the state was found to be too large, and nothing was erased since: it only grows."""
        if self._refused is not None and self.bytes_max is not None:
            content, size = self._refused
            if content == content_of(head):
                raise _busy(size, self.bytes_max)
            self._refused = None

    def check_loading(self, number: int, head: Head) -> None:
        """Raise Busy where it can be told before it is loaded: what is read for it has to be in memory as well."""
        self.check(head)
        measure: Callable[[int, str], int] | None = getattr(self._log, "load_bytes", None)
        if self.bytes_max is not None and measure is not None:
            size = measure(number, snapshot.NAME)
            if size > self.bytes_max:
                raise _busy(size, self.bytes_max)


def _busy(size: int, bytes_max: int) -> Busy:
    return Busy(
        f"this space takes {size} bytes or more in memory, and memory_bytes allows {bytes_max} for all spaces "
        "together: raise memory_bytes (perdure serve --memory-bytes)"
    )
