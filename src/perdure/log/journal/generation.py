"""One generation of a journal: written whole, then appended to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perdure.base.disk import erase, open_private, sync, sync_directory
from perdure.errors import Corrupt, Unavailable
from perdure.log.content import Change, Content
from perdure.log.journal.files import Acknowledged, JournalFiles, Mark, write_all
from perdure.log.journal.lines import Writer, head_line, store_line, whole_space_head
from perdure.log.journal.replay import Place
from perdure.log.protocol import ADVICE

_BLOCK_BYTES = 1 << 20  # how much is gathered before it is written
_ZEROS = bytes(1 << 20)


def write_generation(files: JournalFiles, number: int, content: Content, *, kept: bool) -> Place:
    """Write a content as a generation of its own, durable when it returns; return where it ends.

    Equal contents give equal bytes, whatever the generation's number and the content's epoch. A failure
    leaves nothing, unless the system refuses that too.
    """
    try:
        erase_generation(files, number)
        end = _write(files.generation(number), content, kept=kept)
        beside = Mark(files.mark(number))
        try:
            beside.write(Acknowledged(end.lines))
            beside.sync()
        finally:
            beside.close()
        sync_directory(files.directory)
    except BaseException:  # raised again: what was written is nobody's
        with suppress(OSError):
            erase_generation(files, number)
        raise
    return end


def erase_generation(files: JournalFiles, number: int) -> None:
    """Overwrite and unlink what there is of a generation that is not the store."""
    for leftover in (files.generation(number), files.mark(number)):
        erase(leftover)


def _write(path: Path, content: Content, *, kept: bool) -> Place:
    lines = size = 0
    block = bytearray()
    descriptor = open_private(path)
    try:
        for line in _whole(content, kept=kept):
            lines, size = lines + 1, size + len(line)
            block += line
            if len(block) >= _BLOCK_BYTES:
                write_all(descriptor, bytes(block))
                block.clear()
        write_all(descriptor, bytes(block))
        sync(descriptor)
    finally:
        os.close(descriptor)
    return Place(lines, size)


def _whole(content: Content, *, kept: bool) -> Iterator[bytes]:
    """Yield the lines of a content, one batch for each space."""
    yield store_line(content.secret, kept=kept)
    writer = Writer(content.secret, after=1)
    names = {number: name for name, number in content.names.items()}
    for number, space in enumerate(content.spaces, 1):
        for seq, row in enumerate(space.rows, 1):
            if row.data is not None:
                yield writer.record(number, seq, row.data)
        yield writer.head(number, space.head, whole_space_head(space, names.get(number)))


def batch_lines(secret: bytes, after: int, change: Change) -> tuple[bytes, int]:
    """Return the lines of a change that erases nothing, for a journal of `after` lines, and how many they are."""
    writer = Writer(secret, after)
    begun = change.head.seq - len(change.rows)
    lines = [
        writer.record(change.space, seq, row.data)
        for seq, row in enumerate(change.rows, begun + 1)
        if row.data is not None
    ]
    said = head_line(change.head, name=change.name, erased=[], keys=list(change.keys))
    lines.append(writer.head(change.space, change.head, said))
    return b"".join(lines), len(lines)


class Generation:
    """The generation that is the store, open for appending."""

    def __init__(self, files: JournalFiles, number: int, end: Place, marked: Acknowledged) -> None:
        """Open a generation of which a replay told the end, and its mark what is acknowledged."""
        self.number = number
        self.end = end
        self._marked = marked
        self._path = files.generation(number)
        self._descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            self._mark = Mark(files.mark(number))
        except BaseException:  # raised again: no file stays open
            os.close(self._descriptor)
            raise

    def acknowledge(self) -> None:
        """Make durable what may only have been written, and mark it, where the mark does not say so yet."""
        # What was torn while nothing was synced stays so until it is cut off.
        torn = os.fstat(self._descriptor).st_size > self.end.bytes
        wanted = Acknowledged(self.end.lines, synced=self._marked.synced or not torn)
        if self._marked != wanted:
            sync(self._descriptor)
            self._put_mark(wanted)

    def append(self, block: bytes, lines: int, *, synced: bool) -> None:
        """Append a batch, whole or not at all; what lies past the end is overwritten and cut off first.

        Raises:
            OSError: the system refuses; nothing was appended.
            Corrupt: the file is not the one that was written so far.
        """
        self.check()
        if not synced and self._marked.synced:
            self._put_mark(Acknowledged(self.end.lines, synced=False))
        os.lseek(self._descriptor, self.end.bytes, os.SEEK_SET)
        try:
            write_all(self._descriptor, block)
            if synced:
                sync(self._descriptor)
        except BaseException:  # raised again: a batch that was refused may not come back at the next opening
            with suppress(OSError):
                self._cut()
            raise
        self.end = Place(self.end.lines + lines, self.end.bytes + len(block))
        if synced:
            with suppress(OSError):  # the batch is durable; a mark that lags is no error
                self._put_mark(Acknowledged(self.end.lines))

    def _put_mark(self, wanted: Acknowledged) -> None:
        self._mark.write(wanted)
        if wanted.synced != self._marked.synced:
            self._mark.sync()
        self._marked = wanted

    def close(self) -> None:
        """Close the files. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._mark.close()
            self._descriptor = -1

    def check_place(self) -> None:
        """Raise unless the file that is open is the one under its path: others find no write elsewhere."""
        if not os.path.samestat(os.fstat(self._descriptor), os.stat(self._path)):
            raise Unavailable(
                "the journal's directory was moved or replaced while the journal was open: close it, and open it where "
                "it is now"
            )

    def check(self) -> None:
        """Raise unless the file under our name is ours and as long as we made it, having cut off what is more."""
        ours = os.fstat(self._descriptor)
        if not os.path.samestat(ours, os.stat(self._path)) or ours.st_size < self.end.bytes:
            raise Corrupt(
                f"{self._path.name} was replaced or cut while it was open: close the store; {ADVICE}"
            )
        if ours.st_size > self.end.bytes:
            self._cut()

    def _cut(self) -> None:
        left = os.fstat(self._descriptor).st_size - self.end.bytes
        os.lseek(self._descriptor, self.end.bytes, os.SEEK_SET)
        while left > 0:
            left -= os.write(self._descriptor, _ZEROS[:left] if left < len(_ZEROS) else _ZEROS)
        sync(self._descriptor)
        os.ftruncate(self._descriptor, self.end.bytes)
        sync(self._descriptor)
