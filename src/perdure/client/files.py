"""Exports and imports at the client's end: lines counted, files written whole or not at all, sources read in parts."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, ParamSpec, Self, TypeVar

import msgspec

from perdure.errors import InvalidRequest, StorageFull, Unavailable
from perdure.model.stores import Exported

P = ParamSpec("P")
T = TypeVar("T")

STEP_BYTES = 1 << 16
NO_ROOM = frozenset({28, 122})  # ENOSPC, EDQUOT
_SPACE_END, _TOTAL = b'{"type":"space-end"', b'{"type":"total"'

Source = str | Path | BinaryIO | Iterable[bytes]


def apart(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what may take a while."""
    return call(*args, **kwargs)


async def apart_async(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what may take a while in a thread, so that the event loop goes on."""
    return await asyncio.to_thread(call, *args, **kwargs)


class Lines:
    """Makes whole lines of the bytes of an export as they come, and counts what they tell."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._spaces = self._facts = self._records = self._size = 0
        self._is_whole = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that the bytes complete, each with its line feed."""
        self._size += len(chunk)
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest = []
        if rest:
            self._rest.append(rest)
        for line in lines:
            self._count(line)
        return [line + b"\n" for line in lines]

    def counted(self) -> Exported:
        """Return what came.

        Raises:
            Unavailable: it was cut off: the last line of an export says that it is the last.
        """
        if self._rest or not self._is_whole:
            raise Unavailable("the export broke off before its end; export again")
        return Exported(self._spaces, self._facts, self._records, self._size)

    def _count(self, line: bytes) -> None:
        self._is_whole = line.startswith(_TOTAL)
        try:
            if line.startswith(_SPACE_END):
                told = msgspec.json.decode(line)
                self._facts += told["facts"] + told["documents"]
            elif self._is_whole:
                told = msgspec.json.decode(line)
                self._spaces, self._records = told["spaces"], told["records"]
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise Unavailable("the export is not in the format of this build; check url") from error


class Partial:
    """A file that comes into being when all of it is written; until then it lies beside its place, readable by its
    owner alone."""

    def __init__(self, path: str | Path, *, force: bool) -> None:
        """Choose the place.

        Raises:
            InvalidRequest: it is none, or is taken and not to be written over. A link, a folder or a device never is.
            StorageFull, Unavailable: (here and later) it cannot be written.
        """
        if not isinstance(path, str | Path) or str(path) in ("", "."):
            raise InvalidRequest("path must name a file", field="path")
        if not isinstance(force, bool):
            raise InvalidRequest(f"force must be True or False, got {type(force).__name__}", field="force")
        self._target, self._force = Path(path), force
        self._check_target()
        with _outside():
            descriptor, name = tempfile.mkstemp(
                prefix=".perdure-", suffix=".partial", dir=self._target.parent
            )
        self._partial, self._stream = Path(name), os.fdopen(descriptor, "wb")

    def write(self, chunk: bytes) -> None:
        with _outside():
            self._stream.write(chunk)

    def finish(self) -> None:
        """Bring the file to its place, once it is on the disk."""
        with _outside():
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
        self._check_target()  # what came into being meanwhile is somebody's as well
        with _outside():
            self._partial.replace(self._target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # of a failed export: what made it fail is what is told
            self._stream.close()
            self._overwrite()
        self._partial.unlink(missing_ok=True)

    def _overwrite(self) -> None:
        """Leave nothing of an unfinished export in the blocks that its file had."""
        with self._partial.open("r+b") as stream:
            for _ in range(0, self._partial.stat().st_size, STEP_BYTES):
                stream.write(bytes(STEP_BYTES))
            os.fsync(stream.fileno())

    def _check_target(self) -> None:
        if os.path.lexists(self._target) and (
            not self._force or self._target.is_symlink() or not self._target.is_file()
        ):
            raise InvalidRequest(
                "path is taken; name another, or give force=True where it is a file that may go", field="path"
            )


class _outside:  # noqa: N801 - read as a statement
    """Tells failures of the disk as errors of ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            if error.errno in NO_ROOM:
                raise StorageFull("there is no room for the file; make some, and export again") from error
            raise Unavailable(
                f"the file cannot be written ({error.strerror}); check its place and its rights"
            ) from error


def parts_of(source: Source) -> Iterator[bytes]:
    """Return the bytes of an import in parts: of a file's path, a binary stream, or an iterable of bytes.

    Raises:
        InvalidRequest: it is none of them.
        Unavailable: a file cannot be read.
    """
    if isinstance(source, str | Path):
        try:
            stream: Any = Path(source).open("rb")  # noqa: SIM115 - closed when it was read
        except OSError as error:
            raise Unavailable(
                f"the file cannot be read ({error.strerror}); check its place and its rights"
            ) from error
        return _read(stream, closes=True)
    if callable(getattr(source, "read", None)):
        return _read(source, closes=False)
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise InvalidRequest(
            f"source must be a path, a binary stream or an iterable of bytes, got {type(source).__name__}",
            field="source",
        )
    return _members(source)


def _read(stream: Any, *, closes: bool) -> Iterator[bytes]:
    try:
        while part := stream.read(STEP_BYTES):
            if not isinstance(part, bytes):
                raise InvalidRequest("source must be opened in binary mode", field="source")
            yield part
    finally:
        if closes:
            stream.close()


def _members(source: Iterable[Any]) -> Iterator[bytes]:
    for part in source:
        if not isinstance(part, bytes):
            raise InvalidRequest(f"source must give bytes, got {type(part).__name__}", field="source")
        yield part
