"""The files of a journal: their names, the pointer to the present one, the secret, the mark of what was acknowledged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from perdure.base.disk import check_private, open_private, size_bytes, sync
from perdure.errors import Corrupt, Unavailable
from perdure.log.protocol import ADVICE, CHECK_BYTES, SECRET_BYTES

UNFINISHED = 0  # the generation while a store is being created
POINTER_VERSION = 1
_POINTER = re.compile(
    rb'(\{"v":(\d{1,9}),"generation":(\d{1,19}),"epoch":(\d{1,19}),"backups":\[([0-9,-]*)\],"sha":")'
    rb'([0-9a-f]{32})"\}\n'
)
_GENERATION = re.compile(r"journal-(\d{1,19})\.(?:jsonl|mark)")
_MARK = Struct("<Q")
_UNSYNCED = 1 << 63


@dataclass(frozen=True, slots=True)
class JournalFiles:
    """The names within a journal's directory. Generation numbers start at 1."""

    directory: Path

    @property
    def lock(self) -> Path:
        return self.directory / "journal.lock"

    @property
    def pointer(self) -> Path:
        return self.directory / "journal.current"

    @property
    def next_pointer(self) -> Path:
        return self.directory / "journal.current.new"

    @property
    def old_pointer(self) -> Path:
        return self.directory / "journal.current.old"

    @property
    def key(self) -> Path:
        return self.directory / "journal.key"

    def generation(self, number: int) -> Path:
        return self.directory / f"journal-{number}.jsonl"

    def mark(self, number: int) -> Path:
        return self.directory / f"journal-{number}.mark"

    def others(self, number: int) -> list[Path]:
        """Return the files of every generation but this one."""
        return [path for path, generation in self._generations() if generation != number]

    def numbers(self) -> list[int]:
        """Return the numbers of the generations that there are, ascending."""
        return sorted(number for path, number in self._generations() if path.suffix == ".jsonl")

    def any(self) -> bool:
        """Whether there is any file that only a journal has, however much of it is lost."""
        kept = (self.pointer, self.key)
        return any(os.path.lexists(path) for path in kept) or any(self._generations())

    def present(self, number: int) -> list[Path]:
        """Return the files of the store, where they are there."""
        named = (self.lock, self.pointer, self.key, self.generation(number), self.mark(number))
        return [path for path in named if path.is_file()]

    def size_bytes(self) -> int:
        kept = (self.pointer, self.key)
        return sum(map(size_bytes, kept)) + sum(size_bytes(path) for path, _ in self._generations())

    def _generations(self) -> Iterator[tuple[Path, int]]:
        for path in sorted(self.directory.glob("journal-*")):
            found = _GENERATION.fullmatch(path.name)
            if found is not None:
                yield path, int(found[1])


class Pointer(NamedTuple):
    """What is kept outside of the generations, so that their bytes do not depend on it."""

    generation: int  # the one that is the store
    epoch: int = 0
    backups: tuple[int, ...] = ()  # the moments (ms) at which copies were noted, in the order they were


def read_pointer(path: Path) -> Pointer:
    """Return what journal.current, or a copy of it, says.

    Raises:
        Corrupt: it is damaged.
        Unavailable: a newer build wrote it.
    """
    raw = path.read_bytes()
    found = _POINTER.fullmatch(raw)
    if found is None or not compare_digest(_pointer_digest(found[1]), found[6]):
        raise Corrupt(f"journal.current is damaged: {ADVICE}")
    if int(found[2]) != POINTER_VERSION:
        raise Unavailable(
            f"journal.current has format {int(found[2])}, this library reads up to {POINTER_VERSION}: upgrade "
            "perdure"
        )
    return Pointer(int(found[3]), int(found[4]), tuple(map(int, found[5].split(b",") if found[5] else ())))


def put_pointer(files: JournalFiles, pointer: Pointer, present: Pointer | None = None) -> None:
    """Put a pointer in place of the present one in one step: all is old before it and new after it.

    Durable only once the directory is synced. Until then `restore_pointer` undoes it and needs no room for that.
    """
    if present is not None:
        write_new(files.old_pointer, _pointer_bytes(present))
    write_new(files.next_pointer, _pointer_bytes(pointer))
    os.replace(files.next_pointer, files.pointer)


def restore_pointer(files: JournalFiles, present: Pointer) -> None:
    """Make sure that the pointer is the present one again, where another was being put in its place."""
    if read_pointer(files.pointer) != present:
        os.replace(files.old_pointer, files.pointer)


def _pointer_bytes(pointer: Pointer) -> bytes:
    backups = ",".join(map(str, pointer.backups)).encode()
    before = b'{"v":%d,"generation":%d,"epoch":%d,"backups":[%b],"sha":"' % (
        POINTER_VERSION,
        pointer.generation,
        pointer.epoch,
        backups,
    )
    return b'%b%b"}\n' % (before, _pointer_digest(before))


def _pointer_digest(before: bytes) -> bytes:
    return blake2b(before, digest_size=CHECK_BYTES, person=b"journal pointer").hexdigest().encode()


def write_key(files: JournalFiles, secret: bytes) -> None:
    """Keep the secret beside the journal."""
    write_new(files.key, secret.hex().encode() + b"\n")


def read_key(files: JournalFiles) -> bytes:
    """Return the secret that lies beside the journal.

    Raises:
        Corrupt: it is missing or damaged.
        InvalidRequest: others than the owner may read it.
    """
    try:
        check_private(files.key)
        raw = files.key.read_bytes()
    except FileNotFoundError as error:
        raise Corrupt("journal.key is missing beside its journal: restore it from a backup") from error
    try:
        secret = bytes.fromhex(raw.decode("ascii"))
    except ValueError as error:
        raise damaged_key() from error
    if secret.hex().encode() + b"\n" != raw or len(secret) != SECRET_BYTES:
        raise damaged_key()
    return secret


def find_key(files: JournalFiles) -> bytes | None:
    """Return the secret that lies beside the journal, however it is spaced; None where there is none.

    Raises:
        InvalidRequest: others than the owner may read it.
    """
    if not files.key.is_file():
        return None
    check_private(files.key)
    try:
        secret = bytes.fromhex(files.key.read_bytes().decode("ascii"))
    except ValueError:
        return None
    return secret if len(secret) == SECRET_BYTES else None


def damaged_key() -> Corrupt:
    return Corrupt("journal.key is damaged, or of another journal: restore it from a backup")


def missing_pointer() -> Corrupt:
    return Corrupt(f"journal.current is missing beside other files of a journal: {ADVICE}")


class Acknowledged(NamedTuple):
    """What a mark says of its generation."""

    lines: int  # how many there are at the least; 0 when there is no whole mark
    synced: bool = True  # whether each batch behind them was made durable before the next one was written


class Mark:
    """What was acknowledged of a generation, in 8 bytes beside it: the lines, and a bit for those that follow.

    A journal whose end was lost looks like one whose end was never written; this file is the witness. It is
    written after each sync and mostly not synced itself: it may lag behind the journal, never run ahead of it.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private(path)

    def write(self, acknowledged: Acknowledged) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, _MARK.pack(acknowledged.lines | (0 if acknowledged.synced else _UNSYNCED)))

    def sync(self) -> None:
        sync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def find_acknowledged(files: JournalFiles, number: int) -> Acknowledged:
    """Return what the mark of a generation says; no lines where it is missing or has not its bytes."""
    try:
        raw = files.mark(number).read_bytes()
    except FileNotFoundError:
        return Acknowledged(0)
    if len(raw) != _MARK.size:
        return Acknowledged(0)
    [value] = _MARK.unpack(raw)
    return Acknowledged(value % _UNSYNCED, value < _UNSYNCED)


def get_acknowledged(files: JournalFiles, number: int) -> Acknowledged:
    """Return what the mark of a generation says. Every generation is made with one, of its first line at the least.

    Raises:
        Corrupt: there is no whole mark, so that a lost end would not be noticed.
    """
    acknowledged = find_acknowledged(files, number)
    if not acknowledged.lines:
        raise Corrupt(
            f"{files.mark(number).name} is missing or damaged, so that lost lines would not be noticed: {ADVICE}"
        )
    return acknowledged


def write_new(path: Path, data: bytes) -> None:
    """Write a small file and sync it, over whatever was left there; its name is not durable yet."""
    path.unlink(missing_ok=True)
    descriptor = open_private(path)
    try:
        write_all(descriptor, data)
        sync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it where the file stands; on an error a part may have been written."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
