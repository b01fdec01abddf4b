"""Purging a store: every space is folded, and the log keeps what is left and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.log.protocol import Log, Progress, Purged, Read, Rewritten
from perdure.log.records import encode
from perdure.space.folding import fold


def purge_store(log: Log, progress: Progress | None = None) -> Purged:
    """Rewrite the store so that nothing of what was forgotten is left; see `Log.purge` for what is raised."""
    return log.purge(rewritten, progress)


def rewritten(space: int, read: Read) -> Iterator[Rewritten]:
    """Yield the folded records of a space as a log keeps them."""
    for record in fold(space, read):
        yield Rewritten(encode(record))
