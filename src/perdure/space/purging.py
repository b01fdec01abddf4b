"""Purging a store: every space is folded, and the log keeps what is left and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from perdure.errors import Busy, Moved
from perdure.log.protocol import Log, Progress, Purged, Read, Rewrite, Rewritten
from perdure.log.records import encode
from perdure.space.folding import fold

T = TypeVar("T")
ATTEMPTS = 3  # a reading that purges overtook so often in a row gives up with Busy


def purge_store(log: Log, progress: Progress | None = None) -> Purged:
    """Rewrite the store so that nothing of what was forgotten is left; see `Log.purge` for what is raised."""
    return log.purge(rewriting(log.secret), progress)


def rewriting(secret: bytes) -> Rewrite:
    """Return what a purge keeps of each space of a log of this secret."""
    return partial(_rewritten, secret)


def _rewritten(secret: bytes, space: int, read: Read) -> Iterator[Rewritten]:
    for record in fold(space, read, secret):
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
