"""The one place where the driver's and the system's exceptions become those of a vector index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from perdure.base.sqlite.driver import DriverError, is_full
from perdure.errors import Busy, PerdureError, StorageFull
from perdure.vectors.partitioned.errors import StorageCorrupted, StorageFailed


def translated(error: Exception) -> PerdureError:
    """Return the Perdure error for one of `DriverError`; raise it `from` that one."""
    if is_full(error):
        return StorageFull("the disk or quota is full: nothing was written; make room and try again")
    match error:
        case OSError():
            return StorageFailed(
                f"the files of the vector index cannot be used ({error.strerror}): check that this user may write "
                "there"
            )
        case apsw.BusyError() | apsw.LockedError():
            return Busy("another process holds the vector index past the time-out; try again")
        # SQLError: a table is missing. The statements themselves are right.
        case (
            apsw.CorruptError()
            | apsw.NotADBError()
            | apsw.ConstraintError()
            | apsw.SQLError()
            | UnicodeDecodeError()
        ):
            return StorageCorrupted(f"SQLite result {getattr(error, 'result', None)}")
        case _:
            return StorageFailed(
                f"SQLite could not use the vector index (result {getattr(error, 'result', None)}): check that its "
                "directory exists, is writable and was not moved"
            )


@contextmanager
def driver_errors() -> Iterator[None]:
    """Translate whatever the driver or the system raises within."""
    try:
        yield
    except DriverError as error:
        raise translated(error) from error
