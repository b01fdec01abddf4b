"""How the driver is called: a file opened, statements run to their end, what the system said of a failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from perdure.base.disk import FULL
from perdure.base.sqlite.ciphers import Cipher

DriverError = (apsw.Error, UnicodeDecodeError, OSError)
"""What the driver and the system may raise; text that is no UTF-8 comes from damaged pages."""


def open_file(path: Path, cipher: Cipher, timeout_s: float) -> apsw.Connection:
    """Open an existing SQLite file by itself."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    cipher.unlock(db)
    prepare(db, timeout_s)
    return db


def prepare(db: apsw.Connection, timeout_s: float) -> None:
    """Set what every connection to a file of ours has set."""
    db.set_busy_timeout(int(timeout_s * 1000))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # else bound values make SQLite plan again at every call
    run(db, "PRAGMA temp_store=2", "PRAGMA mmap_size=0")


@contextmanager
def using(db: apsw.Connection) -> Iterator[apsw.Connection]:
    """Close the connection at the end, rolling back what it has open."""
    try:
        yield db
    except apsw.Error as error:
        note(error, db)
        raise
    finally:
        db.close(True)


def rows_of(db: apsw.Connection, sql: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """Run one statement to its end and return all its rows."""
    return list(db.execute(sql, bindings))  # quicker than fetchall


def run(db: apsw.Connection, *statements: str) -> None:
    """Run statements to their end, ignoring the rows that pragmas return."""
    for statement in statements:
        rows_of(db, statement)


def note(error: Exception, db: apsw.Connection) -> None:
    """Keep with a driver's error what the system said, which only the connection knows, while it is open."""
    error.__dict__["system"] = db.system_errno


def is_full(error: Exception) -> bool:
    """Whether one of `DriverError` says that a disk or a quota is full."""
    if isinstance(error, OSError):
        return error.errno in FULL
    if not isinstance(error, apsw.IOError | apsw.CantOpenError):
        return isinstance(error, apsw.FullError)
    # SQLite calls a file that reached its limit a failed write, and forgets the system's number in a checkpoint.
    system, extended = (error.__dict__.get(name) for name in ("system", "extendedresult"))
    return system in FULL or (system == 0 and extended == apsw.SQLITE_IOERR_WRITE)
