"""What is read from a generation inside one read transaction, and how it is verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice
from struct import error as StructError  # noqa: N812 - an exception's name
from typing import Any, NamedTuple

import apsw

from perdure.base.sqlite.driver import rows_of
from perdure.base.text import counted
from perdure.errors import Corrupt
from perdure.log.digests import ERASED_CHECK, checksum, new_check, place, stored_key
from perdure.log.protocol import ADVICE, CHECK_BYTES, DIGEST_BYTES, EMPTY, Entry, Head
from perdure.log.sqlite.schema import head_place

CHUNK_ROWS = 2000  # about 3 ms of reading: no lock is held over 50 ms
CHUNK_BYTES = 4 << 20
BLOCK_ROWS = 64  # rows read before their sizes are looked at: a record may be large
POINTS_MAX = 64  # seqs of one point read; a longer list is read in several

HEAD = (
    "SELECT s.gen, s.dirty, h.epoch, h.seq, h.erasures, h.digest, h.ck "
    "FROM main.state s LEFT JOIN log.head h ON h.space = ?"
)
HEAD_AND_LAST_ROW = (
    "SELECT s.gen, s.dirty, h.epoch, h.seq, h.erasures, h.digest, h.ck, "
    "(SELECT coalesce(max(rid), 0) FROM log.rec) FROM main.state s LEFT JOIN log.head h ON h.space = ?"
)
# The seqs come as a joined list of values: IN would first sort them into a table of its own.
POINTS = (
    "SELECT s.gen, s.dirty, h.epoch, h.seq, h.erasures FROM main.state s LEFT JOIN log.head h "
    "ON h.space = ?1 UNION ALL SELECT seq, data, ck, 0, 0 FROM (VALUES ?*) CROSS JOIN log.rec "
    "WHERE space = ?1 AND seq = column1"
)
ROWS = "SELECT seq, data, ck FROM log.rec WHERE space = ? AND seq > ? AND seq <= ? ORDER BY seq"
CHECKS = "SELECT seq, ck FROM log.rec WHERE space = ? AND seq > ? ORDER BY seq LIMIT ?"
LOOKED_UP = (
    "SELECT r.seq, r.data, r.ck, r.space FROM log.key k LEFT JOIN log.rec r ON r.rid = k.rid WHERE k.h = ?"
)
SPACE_OF_NAME = (
    "SELECT s.gen, s.dirty, k.h IS NOT NULL, r.seq, r.data, r.ck, r.space FROM main.state s "
    "LEFT JOIN log.key k ON k.h = ? LEFT JOIN log.rec r ON r.rid = k.rid"
)
HEADS = "SELECT space, epoch, seq, erasures, digest, ck FROM log.head ORDER BY space"

Row = tuple[int, bytes, bytes]


@cache
def points(count: int) -> str:
    """Return the statement that reads a head's counts, then `count` records; its bindings are space, seqs.

    The first row is (gen, dirty, epoch, seq, erasures) of the space, the others (seq, data, ck, 0, 0).
    """
    return POINTS.replace("?*", ",".join(f"(?{position})" for position in range(2, count + 2)))


def head_check(space: int, head: Head) -> bytes:
    """Return the checksum of a head's row."""
    fixed = head_place(space, head.epoch, head.seq, head.erasures)
    return blake2b(fixed + head.digest, digest_size=CHECK_BYTES).digest()


def parsed_head(space: int, generation: int, columns: Sequence[Any]) -> Head:
    """Return the head from (epoch, seq, erasures, digest, ck), verified; EMPTY where all are None.

    A purge is a new generation, so the generation is part of the reported epoch. Rows hold epochs without
    it: two stores of equal content stay equal byte for byte, whatever their generations' numbers.
    """
    epoch, seq, erasures, digest, check = columns
    if check is None and seq is None and digest is None:
        return EMPTY
    try:
        fixed = head_place(space, epoch, seq, erasures)
        whole = blake2b(fixed + digest, digest_size=CHECK_BYTES).digest() == check
    except (StructError, TypeError) as error:  # a damaged column may be of any type and size
        raise damaged_head(space, generation) from error
    if not whole or len(digest) != DIGEST_BYTES:
        raise damaged_head(space, generation)
    return Head(epoch + generation - 1, seq, erasures, digest)


class Found(NamedTuple):
    """Where a key leads."""

    space: int
    seq: int
    erased: bool


def find_space(db: apsw.Connection, generation: int, name: bytes) -> int | None:
    """Return the space of this hashed name; None also where it lost the name with its record 1."""
    found = find_record(db, generation, stored_key(0, name))
    return None if found is None or found.erased else found.space


def find_record(
    db: apsw.Connection, generation: int, key: bytes, *, within: int | None = None
) -> Found | None:
    """Return where the record is that a stored key points to, its row verified.

    Args:
        within: the space that the record must belong to; None means that it must be some space's first.
    """
    rows = rows_of(db, LOOKED_UP, (key,))
    return _found(generation, rows[0], within) if rows else None


def named_space(generation: int, columns: Sequence[Any]) -> int | None:
    """Return the space from (whether its name is known, seq, data, ck, space), verified, as `find_space` does."""
    found = _found(generation, columns[1:], None) if columns[0] else None
    return None if found is None or found.erased else found.space


def _found(generation: int, row: Sequence[Any], within: int | None) -> Found:
    seq, _, _, space = row
    right = seq == 1 if within is None else space == within
    if not right or type(space) is not int or space < 1:  # or the row is missing: then both are None
        raise Corrupt(
            f"a key of generation {generation} leads to a wrong record: {ADVICE}",
            generation=generation,
        )
    return Found(space, seq, verified(space, row, generation) is None)


def read_head(db: apsw.Connection, space: int, generation: int) -> Head:
    return parsed_head(space, generation, rows_of(db, HEAD, (space,))[0][2:])


def damaged_head(space: int, generation: int) -> Corrupt:
    return Corrupt(
        f"the head of space {space} in generation {generation} is damaged: {ADVICE}",
        generation=generation,
        space=space,
    )


def missing_row(space: int, seq: int, generation: int) -> Corrupt:
    return Corrupt(
        f"record {seq} of space {space} is missing in generation {generation}: {ADVICE}",
        generation=generation,
        space=space,
        seq=seq,
    )


def verified(space: int, row: Sequence[Any], generation: int) -> bytes | None:
    """Return the data of a (seq, data, ck, …) row, None for an erased one; raise Corrupt when it is damaged."""
    seq, data, check = row[:3]
    if type(data) is bytes and type(seq) is int and seq > 0:
        if checksum(space, seq, data) == check:
            return data
        if check == ERASED_CHECK and not data.strip(b"\0"):
            return None
    raise Corrupt(
        f"record {seq} of space {space} is damaged in generation {generation}: {ADVICE}",
        generation=generation,
        space=space,
        seq=seq,
    )


def verified_points(space: int, rows: Sequence[Any], generation: int) -> dict[int, bytes | None]:
    """Return the data of the rows that `points` read, by seq, as `verified`."""
    found: dict[int, bytes | None] = {}
    new, begin = new_check, place
    try:
        # The checksum in line: calling a function for it costs a tenth of a point read.
        for seq, data, check, _, _ in rows:
            hashed = new()
            hashed.update(begin(space, seq))
            hashed.update(data)
            if hashed.digest() == check:
                found[seq] = data
    except (TypeError, StructError):  # a damaged column may be of any type
        found = {}
    if len(found) < len(rows):  # erased, damaged or asked for twice
        return {row[0]: verified(space, row, generation) for row in rows}
    return found


def verified_rows(space: int, rows: Sequence[Row], after: int, generation: int) -> list[Entry]:
    """Return the entries of consecutive rows, the first at after + 1; raise Corrupt at a gap or damage."""
    entries: list[Entry] = []
    # As in `verified_points`; the tuple's own constructor takes a third of the time of the named one's.
    new_entry, new, begin = tuple.__new__, new_check, place
    for expected, (seq, data, check) in enumerate(rows, after + 1):
        if seq != expected:
            raise missing_row(space, expected, generation)
        try:
            hashed = new()
            hashed.update(begin(space, seq))
            hashed.update(data)
            whole = hashed.digest() == check
        except (TypeError, StructError):
            whole = False
        kept = data if whole else verified(space, (seq, data, check), generation)
        entries.append(new_entry(Entry, (seq, kept)))
    return entries


def read_rows(db: apsw.Connection, space: int, after: int, upto: int) -> list[Row]:
    """Return at most CHUNK_ROWS and about CHUNK_BYTES of the rows with after < seq <= upto."""
    cursor = db.execute(ROWS, (space, after, min(upto, after + CHUNK_ROWS)))
    rows: list[Row] = []
    size = 0
    while size <= CHUNK_BYTES and (block := list(islice(cursor, BLOCK_ROWS))):
        rows += block
        size += sum(len(data) for _, data, _ in block if type(data) is bytes)
    cursor.close()
    return rows


def check_whole(db: apsw.Connection, generation: int, witness: int, lost: Callable[[str], Exception]) -> None:
    """Raise unless rows, heads and the high-water mark agree: nothing was lost from either end.

    Costs one pass over the heads and over the index of rec, without its rows.
    """
    told = sum(parsed_head(space, generation, columns).seq for space, *columns in rows_of(db, HEADS))
    last, count = rows_of(
        db, "SELECT (SELECT coalesce(max(rid), 0) FROM log.rec), (SELECT count(*) FROM log.rec)"
    )[0]
    if last < witness:
        raise lost(f"records up to row {witness} were acknowledged, but the last row is {last}")
    if not last == count == told:
        raise lost(
            f"the heads tell of {counted(told, 'record')}, but there are {counted(count, 'row')} up to number {last}"
        )
