"""Derived snapshots in cache-N.db: written and read in parts, checked, dropped at the first doubt.

A cache file is only touched inside a transaction that holds store.lock, so that a scrub, which takes
store.lock alone, never overwrites a file that somebody has open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from perdure.base.disk import create_private
from perdure.base.sqlite.ciphers import Cipher
from perdure.base.sqlite.driver import DriverError, open_file, rows_of, run
from perdure.errors import WrongKey
from perdure.log.protocol import CHECK_BYTES, Cached, Finding, Head
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.reading import read_head
from perdure.log.sqlite.schema import CACHE
from perdure.log.sqlite.scrubbing import drop_caches
from perdure.log.sqlite.state import read_state

WAIT_S = 0.05  # rather no cache than store.lock held while another process writes one
PART_BYTES = 4 << 20  # about 10 ms of writing: no lock is held over 50 ms
_NEW = (
    "INSERT INTO snap(space, name, epoch, seq, erasures, digest, parts, ck) VALUES(?, ?, ?, ?, ?, ?, 0, ?) "
    "RETURNING id"
)
_NEWEST = (
    "SELECT id, seq, digest, parts, ck FROM snap WHERE space = ? AND name = ? AND epoch = ? AND erasures = ? "
    "AND parts > 0 ORDER BY id DESC LIMIT 1"
)
_PUBLISHED = (
    "SELECT id, space, name, epoch, seq, erasures, digest, parts, ck FROM snap WHERE parts > 0 ORDER BY id"
)

Result = TypeVar("Result")

_HARMLESS = "nothing is lost, it is dropped and made anew when it is used next"


class _Snapshot(NamedTuple):
    number: int
    head: Head
    parts: int
    check: bytes


def put(access: Access, space: int, name: str, cached: Cached) -> None:
    """Write a snapshot; in silence nothing, when the space moved on or the cache cannot be used."""
    with suppress(WrongKey):  # others changed the key: their generation has caches of its own
        _put(access, space, name, cached)


def _put(access: Access, space: int, name: str, cached: Cached) -> None:
    head, blob = cached
    check = _check(space, name, head, blob)
    parts = max(1, -(-len(blob) // PART_BYTES))
    begin = partial(_begin, row=(space, name, head.epoch, head.seq, head.erasures, head.digest, check))
    number = _at_head(access, space, head, begin, write=True)
    for position in range(parts):
        if number is None:
            return
        part = blob[position * PART_BYTES : (position + 1) * PART_BYTES]
        publish = parts if position == parts - 1 else 0
        step = partial(_put_part, row=(number, position, part), parts=publish)
        number = _at_head(access, space, head, step, write=True)


def get(access: Access, space: int, name: str) -> Cached | None:
    """Return the newest whole snapshot of the space's present epoch and erasures."""
    head = access.view(lambda db, generation: read_head(db, space, generation))
    snapshot = _at_head(access, space, head, lambda db: _find(db, space, name, head))
    if snapshot is None:
        return None
    parts: list[bytes] = []
    for position in range(snapshot.parts):
        part = _at_head(access, space, head, partial(_get_part, place=(snapshot.number, position)))
        if part is None:
            return None
        parts.append(part)
    blob = b"".join(parts)
    if _check(space, name, snapshot.head, blob) != snapshot.check:
        drop_caches(access.files)
        return None
    return Cached(snapshot.head, blob)


def findings(access: Access) -> Iterator[Finding]:
    """Yield what is damaged among the snapshots of the present generation; nothing is dropped for it.

    A cache that another process has in use is passed over.
    """
    for row in _published(access):
        if isinstance(row, Finding):
            yield row
        # A newer snapshot, an erasure or a purge may take parts away while they are read, and the row with them.
        elif not _is_whole(access, row) and row in _published(access):
            yield Finding(f"a kept state of space {row[1]} is damaged: {_HARMLESS}", row[1])


def _published(access: Access) -> list[Any]:
    return _seen(access, lambda db: rows_of(db, _PUBLISHED)) or []


def _is_whole(access: Access, row: Sequence[Any]) -> bool:
    number, space, name, epoch, seq, erasures, digest, parts, check = row
    blob: list[bytes] = []
    for position in range(parts if type(parts) is int else 0):
        part = _seen(access, partial(_get_part, place=(number, position)))
        blob.append(part if isinstance(part, bytes) else b"")
    return bool(_check(space, name, Head(epoch, seq, erasures, digest), b"".join(blob)) == check)


def whole_blobs(path: Path, cipher: Cipher, space: int) -> list[bytes]:
    """Return the snapshots of a space whose checksum holds, the newest first; of a store that nobody uses."""
    found = []
    with _opened(path, cipher, write=False) as cache:
        for number, place, name, epoch, seq, erasures, digest, parts, check in reversed(
            rows_of(cache, _PUBLISHED)
        ):
            if place != space or type(parts) is not int:
                continue
            pieces = [_get_part(cache, (number, position)) or b"" for position in range(parts)]
            blob = b"".join(pieces)
            if _check(space, name, Head(epoch, seq, erasures, digest), blob) == check:
                found.append(blob)
    return found


def _seen(access: Access, work: Callable[[apsw.Connection], Result]) -> Result | list[Finding] | None:
    """Run `work` on the cache file; None where there is none or it is in use, a finding where it is damaged."""

    def guarded(db: apsw.Connection, generation: int) -> Result | list[Finding] | None:
        path = access.files.cache(generation)
        if not path.exists():
            return None
        try:
            with _opened(path, access.keyring.present(db, read_state(db)), write=False) as cache:
                return work(cache)
        except apsw.BusyError:
            return None
        except DriverError:
            return [Finding(f"{path.name} is damaged: {_HARMLESS}")]

    return access.look(guarded)


def _at_head(
    access: Access, space: int, head: Head, work: Callable[[apsw.Connection], Result], *, write: bool = False
) -> Result | None:
    """Run `work` on the cache file while the space's content is still that of `head`, else return None."""
    damaged = False

    def guarded(db: apsw.Connection, generation: int) -> Result | None:
        nonlocal damaged
        now = read_head(db, space, generation)
        path = access.files.cache(generation)
        if now.seq == 0 or (now.epoch, now.erasures) != (head.epoch, head.erasures):
            return None
        try:
            if write:
                create_private(path)
            elif not path.exists():
                return None
            with _opened(path, access.keyring.present(db, read_state(db)), write=write) as cache:
                return work(cache)
        except (apsw.BusyError, apsw.FullError, apsw.SQLError, OSError):
            return None  # SQLError: another process has created the file but not yet its tables
        except DriverError:
            damaged = True
            return None

    result = access.view(guarded)
    if damaged:
        drop_caches(access.files)
    return result


@contextmanager
def _opened(path: Path, cipher: Cipher, *, write: bool) -> Iterator[apsw.Connection]:
    db = open_file(path, cipher, WAIT_S)
    try:
        # A cache may be lost but must leave no journal file behind; a scrub overwrites this file only.
        run(db, "PRAGMA journal_mode=MEMORY", "PRAGMA synchronous=OFF")
        run(db, *(("BEGIN IMMEDIATE", *CACHE) if write else ("BEGIN",)))
        yield db
        run(db, "COMMIT")
    finally:
        db.close(True)


def _begin(db: apsw.Connection, row: tuple[int, str, int, int, int, bytes, bytes]) -> int:
    return int(rows_of(db, _NEW, row)[0][0])


def _put_part(db: apsw.Connection, row: tuple[int, int, bytes], parts: int) -> int | None:
    """Write (snapshot, position, bytes); with the last one tell the number of parts, which publishes it.

    Returns None when a newer snapshot of the place was published meanwhile and took this one away.
    """
    number = row[0]
    found = rows_of(db, "SELECT space, name FROM snap WHERE id = ?", (number,))
    if not found:
        return None
    db.execute("INSERT INTO part VALUES(?, ?, ?)", row)
    if parts:
        db.execute("UPDATE snap SET parts = ? WHERE id = ?", (parts, number))
        db.execute("DELETE FROM snap WHERE space = ? AND name = ? AND id < ?", (*found[0], number))
        db.execute("DELETE FROM part WHERE snap NOT IN (SELECT id FROM snap)")
    return number


def _find(db: apsw.Connection, space: int, name: str, now: Head) -> _Snapshot | None:
    rows = rows_of(db, _NEWEST, (space, name, now.epoch, now.erasures))
    if not rows:
        return None
    number, seq, digest, parts, check = rows[0]
    return _Snapshot(number, Head(now.epoch, seq, now.erasures, digest), parts, check)


def _get_part(db: apsw.Connection, place: tuple[int, int]) -> bytes | None:
    rows = rows_of(db, "SELECT blob FROM part WHERE snap = ? AND n = ?", place)
    return rows[0][0] if rows and type(rows[0][0]) is bytes else None


def _check(space: int, name: str, head: Head, blob: bytes) -> bytes:
    hashed = blake2b(repr((space, name, tuple(head))).encode(), digest_size=CHECK_BYTES)
    hashed.update(blob)
    return hashed.digest()
