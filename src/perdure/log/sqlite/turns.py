"""The writer's turn across processes: a lock that waits in line and can give up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from perdure.base.disk import create_private, open_private
from perdure.base.text import counted
from perdure.errors import Busy, Unavailable
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import StoreFiles
from perdure.log.turns import ThreadTurn

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

POLL_S_MIN = 0.0002  # about the time of a small commit on a fast disk
POLL_S_MAX = 0.002


class ProcessLock(Protocol):
    """Mutual exclusion between processes, released by the system when its holder dies."""

    def acquire(self, timeout_s: float) -> bool: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


class FlockLock:
    """flock on two files: whoever wants the turn first becomes the next writer, then waits for the turn.

    Only the next writer tries the turn itself, so a process that writes again and again cannot overtake it.
    """

    def __init__(self, turn: Path, next_writer: Path) -> None:
        self._turn = open_private(turn)
        self._next = open_private(next_writer)
        self._holder = 0  # the process that has the turn by this object

    def acquire(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        if not _poll(self._next, deadline, POLL_S_MAX):
            return False
        try:
            taken = _poll(self._turn, deadline, POLL_S_MIN)  # one process at most: it may look often
            self._holder = os.getpid()
            return taken
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def release(self) -> None:
        if (
            os.getpid() == self._holder
        ):  # a forked child shares the lock, and must not give its parent's turn away
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._turn)
        os.close(self._next)


class ExclusiveLock:
    """BEGIN EXCLUSIVE on an empty SQLite file, where there is no flock."""

    def __init__(self, turn: Path) -> None:
        create_private(turn)
        self._db = apsw.Connection(str(turn), flags=apsw.SQLITE_OPEN_READWRITE)

    def acquire(self, timeout_s: float) -> bool:
        self._db.set_busy_timeout(max(0, int(timeout_s * 1000)))
        try:
            self._db.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise translated(error) from error
        return True

    def release(self) -> None:
        self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close(True)


def process_lock(files: StoreFiles) -> ProcessLock:
    """Return the lock of this platform. All processes of a store must use the same kind."""
    if fcntl is None:
        return ExclusiveLock(files.writer)
    return FlockLock(files.writer, files.next_writer)


class WriterTurn:
    """The turn among threads, then among processes; it knows whether the calling thread has it."""

    def __init__(self, lock: ProcessLock, timeout_s: float) -> None:
        self._threads = ThreadTurn()
        self._lock = lock
        self._timeout_s = timeout_s
        self._closed = False  # nobody takes the turn any more
        self._shut = False  # the lock is closed

    @contextmanager
    def held(self, timeout_s: float | None = None) -> Iterator[None]:
        """Hold the turn; raises Busy past the time-out, the log's own when None, Unavailable once closed."""
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        if not self._take(wait_s):
            if self._closed:
                raise Unavailable("the log was closed; open it again")
            raise Busy(f"other writers kept the turn for {counted(wait_s, 'second')}; try again")
        try:
            yield
        finally:
            self._give()

    @contextmanager
    def shared_with_caller(self) -> Iterator[None]:
        """As `held`, or nothing at all when the calling thread has the turn."""
        if self._threads.mine:
            yield
            return
        with self.held():
            yield

    @contextmanager
    def tried(self, timeout_s: float) -> Iterator[bool]:
        """Yield whether the turn is the caller's, having waited at most this long."""
        if self._threads.mine:
            yield True
            return
        taken = self._take(timeout_s)
        try:
            yield taken
        finally:
            if taken:
                self._give()

    def close(self) -> None:
        """Close the lock, now or when the thread that has the turn gives it back. Idempotent."""
        self._closed = True
        self._shut_if_free()

    def _take(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        if not self._threads.take(timeout_s):
            return False
        taken = False
        try:
            # Once the lock is closed, its descriptors may be those of somebody else's files.
            taken = not self._closed and self._lock.acquire(deadline - time.monotonic())
        except OSError as error:
            raise translated(error) from error
        finally:
            if not taken:
                self._end()
        return taken

    def _give(self) -> None:
        try:
            self._lock.release()
        finally:
            self._end()

    def _end(self) -> None:
        self._threads.give()
        if self._closed:
            self._shut_if_free()

    def _shut_if_free(self) -> None:
        if self._threads.mine or not self._threads.take(0):
            return  # whoever has the turn does it
        try:
            if not self._shut:
                self._shut = True
                self._lock.close()
        finally:
            self._threads.give()


def _poll(descriptor: int, deadline: float, pause_s_max: float) -> bool:
    pause = POLL_S_MIN
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, pause_s_max)
        else:
            return True
