"""Reindexing: a space takes other settings, and with them other terms for all that it holds.

Terms are derived and never stored in the log; only record 1 of the space says how they are made. It is
replaced by a purge, the one rewriting that is all or nothing on every backend and that every process notices:
the epoch grows, so whoever has the space loaded loads it again, and snapshots of the old terms are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from perdure.errors import Corrupt, PerdureError
from perdure.log.protocol import Log, Progress, Read, Rewritten
from perdure.log.records import SpaceRecord, VectorRecord, decode, encode
from perdure.model.namespace import Namespace
from perdure.space.folding import fold
from perdure.space.purging import between_purges
from perdure.space.settings import Settings, settings_of, with_settings
from perdure.space.space import Space
from perdure.space.state import TOLD


class Reindexing(NamedTuple):
    """What came of it. `pending`: the old files are still to be overwritten; a later operation does it."""

    settings: Settings
    changed: bool
    pending: bool


def reindex(
    space: Space, told: dict[str, Any], progress: Progress | None, *, drop_vectors: bool = False
) -> Reindexing:
    """Give the space the settings that are told, of profile, k1 and b; the others stay.

    `drop_vectors`: leave out the vectors that an embedder made; those that callers gave stay.

    Nothing is rewritten where that changes nothing. A space without facts keeps no settings: the next write
    through this handle makes it with these.

    Raises:
        InvalidRequest: a policy asks for it, inside a write of the space.
        Busy, StorageFull, Corrupt: nothing was changed.
        Unavailable: nothing was, or a database did not confirm it: the message says so.
    """
    space.refuse_planner()
    held = between_purges(space.log, partial(_held, space))
    settings = (held or space.usual)._replace(**told)
    if held is None or (held == settings and not drop_vectors):
        with space.log.writer():  # what another made it with is to be as safe as what this would have
            space.log.epoch()
        space.usual = settings
        return Reindexing(settings, changed=False, pending=False)
    rewritten = partial(_rewritten, space, told, drop_vectors)
    purged = space.log.purge(rewritten, progress)
    space.usual = settings
    # The change is made; whatever is in the way of analysing now is told to the next read.
    with suppress(PerdureError):
        space.read(lambda state, reader: None)
        space.save_snapshot()
    return Reindexing(settings, changed=True, pending=purged.pending)


def _held(space: Space) -> Settings | None:
    """Return what the log has the space made with, None where there is no such space. Analyses nothing, so
    that a space of a profile that this build does not know can be given another."""
    log: Log = space.log
    number = log.find_space(space.name)
    first = None if number is None else next(iter(log.read(number, 0, 1)), None)
    if first is None or first.data is None:
        return None
    record = decode(first.data, space=number, seq=1)
    if not isinstance(record, SpaceRecord):
        raise Corrupt("the first record of the space is damaged: run a verify", space=number, seq=1)
    return settings_of(record)


def _rewritten(
    space: Space, told: dict[str, Any], drop_vectors: bool, number: int, read: Read
) -> Iterator[Rewritten]:
    ours = False
    for record in fold(number, read, space.log.secret):
        if isinstance(record, SpaceRecord):
            ours = Namespace(record.principal, record.scope) == space.namespace
        if ours and drop_vectors and isinstance(record, VectorRecord) and record.model != TOLD:
            continue
        if ours and isinstance(record, SpaceRecord):
            # What others changed since it was looked at stays, unless it is told.
            record = with_settings(record, settings_of(record)._replace(**told))  # noqa: PLW2901
        yield Rewritten(encode(record))
