"""A process that dies at the n-th step of an operation.

Steps are the lines that it runs of the log's own code, or SQLite's calls that change a file: it dies before the call,
and of a write it does one half first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

from crash.children import Tell
from crash.kills import marker_of
from crash.power import VFS
from perdure.log.protocol import Batch, Read, Rewritten
from perdure.log.sqlite import SqliteLog

LOG = os.path.join("perdure", "log", "")
WATCHED = tuple(
    LOG + os.path.join(*place.split("/"))
    for place in (
        "disk.py",
        "sqlite/backup.py",
        "sqlite/creation.py",
        "sqlite/files.py",
        "sqlite/purging.py",
        "sqlite/scrubbing.py",
        "sqlite/state.py",
        "sqlite/writing.py",
    )
)
NAME = b"n" * 16
KEPT, GONE, BEFORE = ("kept-1", "kept-2"), "gone", "gone-before"
SIZE = 3


def texts_of(tag: str) -> list[bytes]:
    return [f"{tag} {marker_of(tag)} {place}".encode() for place in range(SIZE)]


def fill(directory: Path) -> None:
    """Make a store of four batches in two spaces, one of them erased, and a cache that holds all of them."""
    log = SqliteLog.open(directory)
    for number in (1, 2):
        log.create_space(bytes([number]) * 16, b"first")
    for tag, space in ((BEFORE, 1), (KEPT[0], 1), (GONE, 2), (KEPT[1], 2)):
        log.append(space, log.head(space), Batch(records=texts_of(tag)))
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=range(2, 2 + SIZE)))
    assert log.scrub()
    log.close()


def kept(space: int, read: Read) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data not in (None, b"removal"))


# The operations


def opening(directory: str, _: str) -> SqliteLog:
    return SqliteLog.open(Path(directory))


def append(log: SqliteLog) -> None:
    log.append(2, log.head(2), Batch(records=texts_of("new")))


def forget(log: SqliteLog) -> None:
    with log.writer():
        log.append(2, log.head(2), Batch(records=[b"removal"], erase=range(2, 2 + SIZE)))
        assert log.scrub()


def purge(log: SqliteLog) -> None:
    log.purge(kept)


OPERATIONS = {"append": append, "forget": forget, "purge": purge}


def run(tell: Tell, directory: str, operation: str, unit: str, step: int) -> None:
    """Run the operation and die at the step, counted from 1; with step 0 live, and tell how many there were.

    Args:
        unit: what a step is, "lines" or "calls".
    """
    place, traced = Path(directory), UNITS[unit]
    if unit == "calls":
        vfs = _Vfs()  # noqa: F841 - SQLite's default for as long as it is referred to
    if operation == "create":
        steps = traced(step, lambda: SqliteLog.open(place))
    else:
        log = SqliteLog.open(place)
        work = OPERATIONS.get(operation, lambda log: log.backup(place.parent / "backup"))
        steps = traced(step, lambda: work(log))
    tell("done", steps)


def by_lines(step: int, work: Any) -> int:
    count = 0

    def line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    def call(frame: FrameType, event: str, _: object) -> Any:
        return line if frame.f_code.co_filename.endswith(WATCHED) else None

    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def by_calls(step: int, work: Any) -> int:
    _Calls.last, _Calls.count = step, 0
    work()
    return _Calls.count


UNITS = {"lines": by_lines, "calls": by_calls}


class _Calls:
    """SQLite's calls that change a file, of this whole process."""

    last = 0
    count = -1_000_000  # until the operation begins

    @classmethod
    def pass_(cls, die: Any = None) -> None:
        cls.count += 1
        if cls.count == cls.last:
            if die is not None:
                die()
            os.kill(os.getpid(), signal.SIGKILL)


class _Vfs(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("dying", VFS, True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _VfsFile(name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        _Calls.pass_()
        super().xDelete(name, syncdir)


class _VfsFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        if flags[0] & apsw.SQLITE_OPEN_CREATE:
            _Calls.pass_()
        super().__init__(VFS, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        _Calls.pass_(lambda: super(_VfsFile, self).xWrite(data[: len(data) // 2], offset))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        _Calls.pass_()
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        _Calls.pass_()
        super().xSync(flags)
