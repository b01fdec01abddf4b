"""How much a purge of a store would give back."""

from __future__ import annotations

from functools import partial

import apsw

from perdure.base.disk import size_bytes
from perdure.base.sqlite.driver import rows_of
from perdure.log.sqlite.access import Access

CHUNK_ROWS = 20_000  # about 10 ms of reading: no lock is held over 50 ms
_ERASED = (
    "SELECT max(rid), sum(CASE WHEN ck = zeroblob(16) THEN length(data) ELSE 0 END) "
    "FROM (SELECT rid, data, ck FROM log.rec WHERE rid > ? ORDER BY rid LIMIT ?)"
)


def reclaimable_bytes(access: Access) -> int:
    """Return what a purge would free: the places of erased records, free pages, the write-ahead log, caches, and
    what an interrupted purge left. Records that a purge folds into others come on top; caches grow again.

    Reads every row's length and checksum where something was erased.
    """
    found, generation = access.look(_of_generation)
    files = access.files
    others = [files.write_ahead(generation), files.cache(generation), *files.strays(generation)]
    return found + sum(size_bytes(path) for path in others if path.is_file()) + _erased_bytes(access)


def _of_generation(db: apsw.Connection, generation: int) -> tuple[int, int]:
    pages, page_size = (rows_of(db, f"PRAGMA log.{name}")[0][0] for name in ("freelist_count", "page_size"))
    return int(pages * page_size), generation


def _erased_bytes(access: Access) -> int:
    if not access.look(lambda db, _: rows_of(db, "SELECT sum(erasures) FROM log.head")[0][0]):
        return 0
    after = total = 0
    while True:
        last, erased = access.look(partial(_chunk, after=after))
        if last is None:
            return total
        after, total = last, total + erased


def _chunk(db: apsw.Connection, _: int, after: int) -> tuple[int | None, int]:
    last, erased = rows_of(db, _ERASED, (after, CHUNK_ROWS))[0]
    return last, erased
