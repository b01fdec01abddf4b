"""The one place where SQLite's exceptions become Perdure's."""

from __future__ import annotations

import apsw

from perdure.errors import (
    Busy,
    Corrupt,
    InvalidRequest,
    PerdureError,
    StorageFull,
    Unavailable,
    WrongKey,
)

DriverError = (apsw.Error, UnicodeDecodeError)
"""What reading or writing through the driver may raise; text that is no UTF-8 comes from damaged pages."""


def translated(error: Exception, *, generation: int | None = None) -> PerdureError:
    """Return the Perdure error for a driver's one; raise it `from` the driver's."""
    where = "the store" if generation is None else f"generation {generation}"
    code = getattr(error, "result", None)
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Busy("another process holds the store past the time-out; try again")
        case apsw.FullError():
            return StorageFull("the disk or quota is full: nothing was written; make room and try again")
        case apsw.NotADBError() if generation is None:
            return WrongKey("store.lock is no file of a Perdure store: give the directory of a store")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.ConstraintError() | UnicodeDecodeError():
            return Corrupt(
                f"{where} is damaged (SQLite result {code}): keep the files, verify a copy, restore a backup",
                generation=generation,
            )
        case apsw.TooBigError():
            return InvalidRequest("a record is larger than SQLite stores (1 GB); split it", field="records")
        case _:
            return Unavailable(
                f"SQLite could not use {where} (result {code}): check that its directory exists, is writable "
                "and was not closed or moved"
            )
