"""Purging a store: every space is folded, and the log keeps what is left and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from perdure.errors import Busy, Moved
from perdure.log.protocol import Log, Progress, Purged, Read, Rewritten
from perdure.log.records import encode
from perdure.space.folding import fold

T = TypeVar("T")
ATTEMPTS = 3  # a reading that purges overtook so often in a row gives up with Busy


def purge_store(log: Log, progress: Progress | None = None) -> Purged:
    """Rewrite the store so that nothing of what was forgotten is left; see `Log.purge` for what is raised."""
    return log.purge(rewritten, progress)


def rewritten(space: int, read: Read) -> Iterator[Rewritten]:
    """Yield the folded records of a space as a log keeps them."""
    for record in fold(space, read):
        yield Rewritten(encode(record))


def between_purges(log: Log, read: Callable[[], T]) -> T:
    """Return read(), of a store that no purge numbered anew while it was read.

    Args:
        read: looks at several spaces by number; called again where a purge came in between.

    Raises:
        Busy: purges overtook it again and again.
    """
    for _ in range(ATTEMPTS):
        epoch = log.epoch()
        try:
            found = read()
        except Moved:
            continue
        if log.epoch() == epoch:
            return found
    raise Busy("the store is being purged again and again; retry")
