"""A small private file that processes share: read again when it changed, replaced whole, one writer at a time."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.base.disk import FULL, create_private, open_private, sync, sync_directory
from perdure.errors import Busy, Corrupt, InvalidRequest, PerdureError, StorageFull, Unavailable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILE_BYTES_MAX = 16 << 20  # some 50,000 keys
TIMEOUT_S = 10.0
POLL_S = 0.01
_BINARY = getattr(os, "O_BINARY", 0)
_TAKEN = (errno.EACCES, errno.EAGAIN)

Mark = tuple[int, ...]


class Sight:
    """What a file held when it was read, and how to tell that it holds so still.

    The file is kept open, so that its inode is given to no other one: whatever replaced it is seen, also within
    one tick of the clock and at the same size.
    """

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            FileNotFoundError: there is none.
            InvalidRequest: others than its owner may read it.
            Corrupt: it is too long for what it is.
            OSError: it cannot be read.
        """
        descriptor = os.open(path, os.O_RDONLY | _BINARY)
        try:
            self.mark = _mark(os.fstat(descriptor))
            _check_mode(path.name, os.fstat(descriptor).st_mode)
            self.content = _read(descriptor, path.name)
        except BaseException:  # raised again: no file stays open
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        if os.name != "posix":  # a file that is open could not be replaced there
            self.close()

    def is_current(self, path: Path) -> bool:
        """Whether the path still names this file, as it was. Costs one stat."""
        try:
            return _mark(os.stat(path)) == self.mark
        except OSError:
            return False

    def close(self) -> None:
        """Let the file go; after this `is_current` may be deceived. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def locked(path: Path, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of a file, which is a file of its own; the system frees it when its holder dies.

    Raises:
        Busy: another process keeps it for as long.
    """
    descriptor = open_private(path)
    try:
        deadline = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise Busy(f"{path.name} is held by another process; try again")
            time.sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes) -> None:
    """Put the content in the file's place, durably: a crash leaves the old file or the new one, and a failure
    the old one alone.

    Callers hold the lock: the new file has one name until it takes the other's place.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a process that was killed
    if not create_private(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
    try:
        _write(new, content)
        os.replace(new, path)
    except BaseException:  # raised again: what a full disk did not take lies about nowhere
        new.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextmanager
def system_errors(name: str) -> Iterator[None]:
    """Turn what the system raises about this file into Perdure's errors."""
    try:
        yield
    except OSError as error:
        raise translated(error, name) from error


def translated(error: OSError, name: str) -> PerdureError:
    if error.errno in FULL:
        return StorageFull("the disk or quota is full: nothing was written; make room and try again")
    return Unavailable(
        f"{name} cannot be used ({error.strerror}): check that this user may write in its directory"
    )


def _mark(found: os.stat_result) -> Mark:
    return (
        found.st_dev,
        found.st_ino,
        found.st_mtime_ns,
        found.st_size,
        found.st_mode,
        found.st_uid,
    )


def _check_mode(name: str, mode: int) -> None:
    if os.name == "posix" and mode & 0o077:
        raise InvalidRequest(
            f"{name} has mode {stat.S_IMODE(mode):04o}: nobody but its owner may read it. Run chmod 600 on it",
            field="store",
        )


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | _BINARY)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        sync(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int, name: str) -> bytes:
    parts, size = [], 0
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
        size += len(part)
        if size > FILE_BYTES_MAX:
            raise Corrupt(f"{name} takes more than {FILE_BYTES_MAX} bytes: it is no file that Perdure wrote")
    return b"".join(parts)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True
