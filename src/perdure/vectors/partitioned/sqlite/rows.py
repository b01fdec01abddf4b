"""The tables of an index, and what is read of them and written to them.

    meta    one row: what the index is, its revision, what it holds in all
    part    one row for each partition: 88 bytes of fixed size
    block   the bytes of partitions, cut into blocks of fixed size

A row of part or block is never resized or deleted. What is free is overwritten with zeros and used again: so
nothing of a removed record stays in a gap of a page, where SQLite would leave what it moves or shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import apsw

from perdure.base.sqlite.driver import rows_of, run
from perdure.base.text import counted
from perdure.vectors.partitioned.errors import StorageCorrupted
from perdure.vectors.partitioned.sqlite.mark import Point

PROFILE = "perdure.sqlite-vector-index.v1"
APPLICATION_ID = 0x50455256  # "PERV": tells an index from any other SQLite file
FORMAT_VERSION = 1
PAGE_BYTES = 4096
BLOCK_BYTES = 4000  # with its place and SQLite's own, a page holds one, also where it is encrypted
SETTINGS = (
    "PRAGMA secure_delete=ON",
    "PRAGMA synchronous=EXTRA",
    "PRAGMA fullfsync=ON",
    "PRAGMA journal_mode=PERSIST",  # so that the journal is there to be overwritten
    "PRAGMA journal_size_limit=-1",
)
TABLES = (
    f"PRAGMA application_id={APPLICATION_ID}",
    f"PRAGMA user_version={FORMAT_VERSION}",
    "CREATE TABLE meta(id INTEGER PRIMARY KEY, profile TEXT NOT NULL, identity BLOB NOT NULL, max_records INTEGER "
    "NOT NULL, max_bytes INTEGER NOT NULL, nonce BLOB NOT NULL, revision INTEGER NOT NULL, partitions INTEGER NOT "
    "NULL, records INTEGER NOT NULL, bytes INTEGER NOT NULL, head BLOB NOT NULL)",
    "CREATE TABLE part(n INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    "CREATE TABLE block(n INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
)
_STORED = [
    *(("table", sql.split("(")[0].removeprefix("CREATE TABLE "), sql) for sql in TABLES[2:]),
    ("index", "sqlite_autoindex_block_1", None),
]
_META = (
    "SELECT id, profile, identity, max_records, max_bytes, nonce, revision, partitions, records, bytes, head "
    "FROM meta"
)
_PUT_META = "INSERT OR REPLACE INTO meta VALUES(1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_part = Struct("<QQQQ32s24x")
_place = Struct(">QI")
_FREE_PART = bytes(_part.size)
_ZEROS = bytes(BLOCK_BYTES)
_FIRST_USED = _place.pack(1, 0)


class Meta(NamedTuple):
    """What the one row of meta says."""

    identity: bytes
    max_records: int
    max_bytes: int
    nonce: bytes
    revision: int
    partition_count: int
    record_count: int
    byte_count: int
    head: bytes

    @property
    def point(self) -> Point:
        return Point(self.nonce, self.revision, self.head)


class Part(NamedTuple):
    """What the directory says of a partition."""

    revision: int
    size: int  # of its encoded form, in bytes
    record_count: int
    byte_count: int
    digest: bytes

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK_BYTES)


def is_made(db: apsw.Connection) -> bool:
    """Whether the file is an index; False for one without any page. StorageCorrupted for any other file."""
    if rows_of(db, "PRAGMA page_count")[0][0] == 0:
        return False
    found = [rows_of(db, f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version")]
    if found != [APPLICATION_ID, FORMAT_VERSION]:
        raise StorageCorrupted("its file is no vector index, or one of another format")
    if rows_of(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY rowid") != _STORED:
        raise StorageCorrupted("its tables are not defined as an index defines them")
    return True


def check_file(db: apsw.Connection, size: int) -> None:
    """Raise StorageCorrupted unless the file of this size is what its pages say, in the transaction that is open."""
    pages, page = (rows_of(db, f"PRAGMA {name}")[0][0] for name in ("page_count", "page_size"))
    if pages * page != size:
        raise StorageCorrupted(f"its file has {size} bytes, and its pages take {pages * page}")
    if rows_of(db, "PRAGMA integrity_check(1)") != [("ok",)]:
        raise StorageCorrupted("its tables and what orders them do not fit together")


def read_meta(db: apsw.Connection) -> Meta:
    """Return the row of meta, its types and ranges checked; StorageCorrupted where it is not as written."""
    rows = rows_of(db, _META)
    if len(rows) != 1:
        raise StorageCorrupted(f"it has {counted(len(rows), 'row')} of metadata")
    number, profile, *told = rows[0]
    if number != 1 or profile != PROFILE:
        raise StorageCorrupted("its metadata are of another profile")
    meta = Meta(*told)
    whole = [type(value) for value in meta] == [bytes, int, int, bytes, int, int, int, int, bytes]
    if not whole or len(meta.nonce) != 32 or len(meta.head) != 32:
        raise StorageCorrupted("its metadata are malformed")
    if min(meta.revision, meta.partition_count, meta.record_count, meta.byte_count) < 0:
        raise StorageCorrupted("its metadata hold a negative number")
    return meta


def write_meta(db: apsw.Connection, meta: Meta) -> None:
    db.execute(_PUT_META, (PROFILE, *meta))


def read_parts(db: apsw.Connection) -> dict[int, Part]:
    """Return what the directory says, by number; StorageCorrupted for a row that is malformed."""
    parts = {}
    for number, data in db.execute("SELECT n, data FROM part"):
        is_whole = type(number) is int and number > 0 and type(data) is bytes
        if not is_whole or len(data) != _part.size:
            raise StorageCorrupted(f"row {number} of its directory is malformed")
        if data != _FREE_PART:
            parts[number] = Part(*_part.unpack(data))
    return parts


def read_content(db: apsw.Connection, number: int, part: Part) -> bytes:
    """Return the encoded form of a partition; StorageCorrupted unless all its blocks are there."""
    found = rows_of(
        db, "SELECT place, data FROM block WHERE place BETWEEN ? AND ? ORDER BY place", _range(number)
    )
    if [place for place, _ in found] != [_place.pack(number, at) for at in range(part.blocks)]:
        raise StorageCorrupted(f"blocks of partition {number} are missing or too many")
    if any(type(data) is not bytes or len(data) != BLOCK_BYTES for _, data in found):
        raise StorageCorrupted(f"a block of partition {number} has another length")
    return b"".join(data for _, data in found)[: part.size]


def check_blocks(db: apsw.Connection, parts: dict[int, Part]) -> None:
    """Raise StorageCorrupted where there are blocks of no partition."""
    used = rows_of(db, "SELECT count(*) FROM block WHERE place >= ?", (_FIRST_USED,))[0][0]
    if used != sum(part.blocks for part in parts.values()):
        raise StorageCorrupted("it has blocks that belong to no partition")


def free_content(db: apsw.Connection, number: int) -> None:
    """Overwrite a partition's blocks and its row of the directory, and let others use them."""
    numbers = rows_of(db, "SELECT n FROM block WHERE place BETWEEN ? AND ?", _range(number))
    db.executemany(
        "UPDATE block SET place = ?, data = ? WHERE n = ?",
        [(_place.pack(0, at), _ZEROS, at) for (at,) in numbers],
    )
    db.execute("UPDATE part SET data = ? WHERE n = ?", (_FREE_PART, number))


def add_content(db: apsw.Connection, part: Part, content: bytes) -> int:
    """Write a partition into free rows, and new ones; return its number."""
    number = _free_part(db)
    db.execute("INSERT OR REPLACE INTO part VALUES(?, ?)", (number, _part.pack(*part)))
    taken = rows_of(
        db, "SELECT n FROM block WHERE place < ? ORDER BY place LIMIT ?", (_FIRST_USED, part.blocks)
    )
    pieces = list(_pieces(number, content))
    reused = [(place, data, at) for (place, data), (at,) in zip(pieces, taken, strict=False)]
    db.executemany("UPDATE block SET place = ?, data = ? WHERE n = ?", reused)
    db.executemany("INSERT INTO block(place, data) VALUES(?, ?)", pieces[len(reused) :])
    return number


def _pieces(number: int, content: bytes) -> Iterator[tuple[bytes, bytes]]:
    for at, start in enumerate(range(0, len(content), BLOCK_BYTES)):
        yield (
            _place.pack(number, at),
            content[start : start + BLOCK_BYTES].ljust(BLOCK_BYTES, b"\0"),
        )


def _free_part(db: apsw.Connection) -> int:
    free = rows_of(db, "SELECT n FROM part WHERE data = ? LIMIT 1", (_FREE_PART,))
    return int(free[0][0] if free else rows_of(db, "SELECT coalesce(max(n), 0) + 1 FROM part")[0][0])


def _range(number: int) -> tuple[bytes, bytes]:
    return _place.pack(number, 0), _place.pack(number, (1 << 32) - 1)


def make_tables(db: apsw.Connection) -> None:
    """Write the tables, within a transaction on an empty file."""
    run(db, *TABLES)
