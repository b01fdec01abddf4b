"""The lock of a journal's directory: one process, and one log within it, at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

from perdure.base.disk import create_private, open_private
from perdure.base.text import counted
from perdure.errors import Busy, Unavailable

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

POLL_S = 0.02  # a journal is held for as long as it is open: there is nothing to hurry for


class DirectoryLock:
    """flock on a file, released by the system when the process dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private(path)

    def acquire(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        # Not unlocked: a forked child that closes its copy leaves the lock with its parent.
        os.close(self._descriptor)


class ExclusiveLock:
    """BEGIN EXCLUSIVE on an empty SQLite file, where there is no flock."""

    def __init__(self, path: Path) -> None:
        create_private(path)
        try:
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.Error as error:
            raise _unusable() from error

    def acquire(self) -> bool:
        try:
            self._db.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise _unusable() from error
        return True

    def close(self) -> None:
        self._db.close(True)


def lock_directory(path: Path, timeout_s: float) -> DirectoryLock | ExclusiveLock:
    """Return the lock once it is ours; raises Busy when others keep it for as long.

    All processes of a journal must use the same kind.
    """
    lock = ExclusiveLock(path) if fcntl is None else DirectoryLock(path)
    deadline = time.monotonic() + timeout_s
    try:
        while not lock.acquire():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Busy(
                    f"the journal is open elsewhere and was for {counted(timeout_s, 'second')}: one process uses it at a "
                    "time. Close it there, then try again"
                )
            time.sleep(min(POLL_S, left))
    except BaseException:  # raised again: no file stays open
        lock.close()
        raise
    return lock


def _unusable() -> Unavailable:
    return Unavailable("journal.lock cannot be used: check that this user may write in the directory")
