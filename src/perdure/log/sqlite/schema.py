"""The tables of a generation and of store.lock, and the rule for their versions."""

from __future__ import annotations

from struct import Struct

import apsw

from perdure.base.sqlite.driver import rows_of
from perdure.errors import Corrupt, Unavailable
from perdure.log.protocol import ADVICE

FORMAT_VERSION = 1  # user_version; a library opens its own version and older ones
APPLICATION_ID = 0x50455244  # "PERD": tells a store's files from any other SQLite file
PAGE_SIZE_BYTES = 4096

# Pinned, and always in this order: equal content must give equal bytes when a generation is rebuilt.
PINNED = (
    f"PRAGMA page_size={PAGE_SIZE_BYTES}",
    "PRAGMA encoding='UTF-8'",
    "PRAGMA auto_vacuum=NONE",
    "PRAGMA secure_delete=ON",
    f"PRAGMA application_id={APPLICATION_ID}",
    f"PRAGMA user_version={FORMAT_VERSION}",
)

# rid only ever grows and rows are never resized: that alone keeps erased bytes out of page gaps.
GENERATION = (
    "CREATE TABLE rec(rid INTEGER PRIMARY KEY, space INTEGER NOT NULL, seq INTEGER NOT NULL, "
    "data BLOB NOT NULL, ck BLOB NOT NULL)",
    "CREATE UNIQUE INDEX rec_place ON rec(space, seq)",
    "CREATE TABLE vec(rid INTEGER PRIMARY KEY, space INTEGER NOT NULL, seq INTEGER NOT NULL, "
    "e BLOB NOT NULL, ck BLOB NOT NULL)",
    "CREATE INDEX vec_place ON vec(space, seq)",
    "CREATE TABLE key(h BLOB PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE head(space INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, "
    "erasures INTEGER NOT NULL, digest BLOB NOT NULL, ck BLOB NOT NULL)",
)

LOCK = (
    "CREATE TABLE state(id INTEGER PRIMARY KEY CHECK (id = 1), gen INTEGER NOT NULL, dirty INTEGER NOT NULL, "
    "secret BLOB, verifier BLOB NOT NULL, ck BLOB NOT NULL)",
)

CACHE = (
    "CREATE TABLE IF NOT EXISTS snap(id INTEGER PRIMARY KEY, space INTEGER NOT NULL, name TEXT NOT NULL, "
    "epoch INTEGER NOT NULL, seq INTEGER NOT NULL, erasures INTEGER NOT NULL, digest BLOB NOT NULL, "
    "parts INTEGER NOT NULL, ck BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS part(snap INTEGER NOT NULL, n INTEGER NOT NULL, blob BLOB NOT NULL, "
    "PRIMARY KEY (snap, n))",
)

head_place = Struct("<QQQQ").pack  # space, epoch, seq, erasures


def check_version(
    db: apsw.Connection, schema: str, name: str, *, oldest: int = 1, newest: int = FORMAT_VERSION
) -> None:
    """Raise unless the database attached as `schema` is a store's file of a version that we read.

    Raises:
        Corrupt: it is another program's file, or of a version that there never was.
        Unavailable: it has a newer format.
    """
    version = _pragma(db, schema, "user_version")
    if _pragma(db, schema, "application_id") != APPLICATION_ID:
        raise Corrupt(f"{name} is damaged, or no file of a Perdure store: {ADVICE}")
    if version > newest:
        raise Unavailable(f"{name} has format {version}, this library reads up to {newest}: upgrade perdure")
    if version < oldest:
        raise Corrupt(f"{name} has format {version}, which there never was: {ADVICE}")


def _pragma(db: apsw.Connection, schema: str, name: str) -> int:
    return int(rows_of(db, f"PRAGMA {schema}.{name}")[0][0])
