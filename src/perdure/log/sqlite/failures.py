"""The one place where the driver's and the system's exceptions become Perdure's."""

from __future__ import annotations

import re
from pathlib import PurePath

import apsw

from perdure.base.sqlite.driver import is_full
from perdure.errors import Busy, Corrupt, InvalidRequest, PerdureError, StorageFull, Unavailable
from perdure.log.protocol import ADVICE

_OURS = re.compile(r"(store|backup)\.lock|writer\.(lock|next)|(gen|cache)-\d+\.\w+(-\w+)?")


def translated(error: Exception, *, generation: int | None = None) -> PerdureError:
    """Return the Perdure error for one of `DriverError`; raise it `from` that one."""
    where = "the store" if generation is None else f"generation {generation}"
    code = getattr(error, "result", None)
    if is_full(error):
        return StorageFull("the disk or quota is full: nothing was written; make room and try again")
    match error:
        case OSError():
            return Unavailable(
                f"the store's directory, or {_file(error)} in it, cannot be used ({error.strerror}): check that "
                "this user may write there, and that nothing else lies in a file's place"
            )
        case apsw.BusyError() | apsw.LockedError():
            return Busy("another process holds the store past the time-out; try again")
        # SQLError: a table is missing. The statements themselves are right.
        case (
            apsw.CorruptError()
            | apsw.NotADBError()
            | apsw.ConstraintError()
            | apsw.SQLError()
            | UnicodeDecodeError()
        ):
            return Corrupt(
                f"{where} is damaged (SQLite result {code}): {ADVICE}",
                generation=generation,
            )
        case apsw.TooBigError():
            return InvalidRequest("a record is larger than SQLite stores (1 GB); split it", field="records")
        case _:
            return Unavailable(_unusable(error, where, code))


def _unusable(error: Exception, where: str, code: object) -> str:
    if isinstance(error, apsw.ReadOnlyError):
        return (
            f"{where} is read-only (SQLite result {code}): check that this user may write its files and its "
            "directory, and that the disk is not mounted for reading only"
        )
    return (
        f"SQLite could not use {where} (result {code}): check that its directory exists, is writable and was not "
        "closed or moved"
    )


def _file(error: OSError) -> str:
    name = PurePath(str(error.filename)).name
    return name if _OURS.fullmatch(name) else "a file"
