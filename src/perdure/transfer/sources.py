"""Where the bytes of an import come from, and how they are read a second time."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from perdure.errors import InvalidRequest, Unavailable

STEP_BYTES = 1 << 16

Source = str | Path | BinaryIO | Iterable[bytes]


class Rereadable:
    """A stream that can be read from its start again; of one that cannot seek, a copy is made as it is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._copy: BinaryIO | None = None
        self._start = 0
        if _seeks(stream):
            self._start = stream.tell()
            self._stream = stream
        else:
            self._copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed by close()
            self._stream = io.BufferedReader(_Copying(stream, self._copy))

    @property
    def first(self) -> BinaryIO:
        """The stream, to be read once."""
        return self._stream

    def again(self) -> BinaryIO:
        """Return what was read the first time, from the start."""
        found = self._stream if self._copy is None else self._copy
        found.seek(self._start)
        return found

    def close(self) -> None:
        """Overwrite the copy and let go of it; the caller's own stream stays open."""
        if self._copy is not None:
            size = self._copy.seek(0, os.SEEK_END)
            self._copy.seek(0)
            for done in range(0, size, STEP_BYTES):
                self._copy.write(bytes(min(STEP_BYTES, size - done)))
            self._copy.flush()
            os.fsync(self._copy.fileno())
            self._copy.close()


class _Copying(io.RawIOBase):
    def __init__(self, stream: BinaryIO, copy: BinaryIO) -> None:
        self._stream, self._copy = stream, copy

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._copy.write(data)
        return len(data)


class _Joined(io.RawIOBase):
    """Pieces of bytes, one after the other, as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """Give the source as a stream of bytes; a path is opened and closed again.

    Raises:
        InvalidRequest: it is no path, no open binary stream and no pieces of bytes, or the path cannot be opened.
        Unavailable: it cannot be read on.
    """
    try:
        if isinstance(source, str | Path):
            with _open(Path(source)) as stream:
                yield stream
        elif hasattr(source, "readline"):
            yield _checked(source)
        elif isinstance(source, Iterable):
            yield io.BufferedReader(_Joined(_pieces(source)))
        else:
            raise _no_source(source)
    except OSError as error:
        raise Unavailable(f"the file cannot be read: {error.strerror}") from error


def joined(head: bytes, stream: BinaryIO) -> BinaryIO:
    """Return a stream of what was read already and of what follows."""
    return io.BufferedReader(_Joined(chain([head], iter(lambda: stream.read(STEP_BYTES), b""))))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidRequest(f"the file cannot be opened: {error.strerror}", field="source") from error
    except ValueError as error:
        raise InvalidRequest("source has a character that no path may have", field="source") from error


def _checked(stream: Any) -> BinaryIO:
    try:
        if isinstance(stream.read(0), bytes):
            return cast(BinaryIO, stream)
    except ValueError as error:  # also what an object raises that cannot be read
        raise InvalidRequest(
            "source is a stream that is closed, or not open to be read", field="source"
        ) from error
    raise _no_source(stream)


def _pieces(source: Iterable[bytes]) -> Iterator[bytes]:
    for piece in source:
        if not isinstance(piece, bytes):
            raise _no_source(piece)
        yield piece


def _no_source(told: object) -> InvalidRequest:
    return InvalidRequest(
        f"source must be a path, a binary stream or pieces of bytes, got {type(told).__name__}",
        field="source",
    )


def size_of(stream: BinaryIO) -> int:
    """Return how many bytes are left to read, 0 where that cannot be told."""
    if not _seeks(stream):
        return 0
    here = stream.tell()
    size = stream.seek(0, os.SEEK_END) - here
    stream.seek(here)
    return size


def _seeks(stream: BinaryIO) -> bool:
    return stream.seekable()
