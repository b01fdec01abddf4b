"""Finding rows of `rec` in the bytes of a plain database file, where SQLite no longer finds its way to them.

What is found is a guess until its checksum proves it: the checksum covers the row's place and its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from perdure.log.sqlite.schema import PAGE_SIZE_BYTES

WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
FILE_HEADER_BYTES = 100  # at the begin of page 1
_LEAF = 0x0D  # a leaf of a table, whose cells are rows
_OTHERS = (0x02, 0x05, 0x0A)  # the other kinds of b-tree pages
_CHECK_SERIAL = 44  # SQLite's type number of 16 bytes
_COLUMNS = 5
_ROOM = PAGE_SIZE_BYTES - 35  # SQLite's file format: a longer payload goes on in overflow pages
_LEAST = (PAGE_SIZE_BYTES - 12) * 32 // 255 - 23
_OVERFLOW_ROOM = PAGE_SIZE_BYTES - 4
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class FilePages:
    """The pages of a file by number, from 1, read as they are asked for; some may lie over those of the file."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._count = os.fstat(self._descriptor).st_size // PAGE_SIZE_BYTES
        self._over: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> bytes:
        found = self._over.get(number)
        if found is not None:
            return found
        if not 1 <= number <= self._count:
            return b""
        os.lseek(self._descriptor, (number - 1) * PAGE_SIZE_BYTES, os.SEEK_SET)
        try:
            return os.read(self._descriptor, PAGE_SIZE_BYTES)
        except OSError:  # a bad sector
            return b""

    def overlay(self, pages: dict[int, bytes]) -> None:
        """Let these pages stand for those of the file."""
        self._over = pages

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class Carved(NamedTuple):
    """What looks like a row: unproven."""

    rid: int
    space: int
    seq: int
    data: bytes
    check: bytes


def frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (page number, page) of all frames of a write-ahead log, in order, whatever their checksums say."""
    size = FRAME_HEADER_BYTES + PAGE_SIZE_BYTES
    for at in range(WAL_HEADER_BYTES, len(log) - size + 1, size):
        yield int.from_bytes(log[at : at + 4], "big"), log[at + FRAME_HEADER_BYTES : at + size]


def carved(number: int, page: bytes, pages: FilePages) -> Iterator[Carved]:
    """Yield what looks like rows in a page; where the page's list of its cells does not hold, at any place in it.

    Args:
        number: the page's own, from 1.
        pages: where overflow pages are looked up.
    """
    start = FILE_HEADER_BYTES if number == 1 else 0
    if len(page) < PAGE_SIZE_BYTES or page[start] in _OTHERS:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    listed = [
        int.from_bytes(page[at : at + 2], "big")
        for at in range(start + 8, start + 8 + 2 * count, 2)
        if at < len(page)
    ]
    rows = [_cell(page, at, pages) for at in listed]
    if page[start] != _LEAF or None in rows or len(set(listed)) < len(listed) or not rows:
        rows = [_cell(page, at, pages) for at in range(start + 8, len(page) - 8)]
    yield from (row for row in rows if row is not None)


def _cell(page: bytes, at: int, pages: FilePages) -> Carved | None:
    size, at = _varint(page, at)
    rid, at = _varint(page, at)
    local = size
    if size > _ROOM:
        local = _LEAST + (size - _LEAST) % _OVERFLOW_ROOM
        local = local if local <= _ROOM else _LEAST
    if not 0 < local <= len(page) - at or rid < 1:
        return None
    payload = page[at : at + local]
    columns = _columns(payload)
    if columns is None or columns.end != size:
        return None
    if size > local:
        payload += _overflow(int.from_bytes(page[at + local : at + local + 4], "big"), size - local, pages)
        if len(payload) != size:
            return None
    space = (
        int.from_bytes(payload[columns.space : columns.seq], "big")
        if columns.small is None
        else columns.small
    )
    seq = int.from_bytes(payload[columns.seq : columns.data], "big") if columns.one is None else columns.one
    return Carved(rid, space, seq, payload[columns.data : columns.check], payload[columns.check :])


class _Columns(NamedTuple):
    """Where each column of a payload begins; `small` and `one` are space and seq where the header says them."""

    space: int
    seq: int
    data: int
    check: int
    end: int
    small: int | None
    one: int | None


def _columns(payload: bytes) -> _Columns | None:
    header, at = _varint(payload, 0)
    serials: list[int] = []
    while at < header and len(serials) < _COLUMNS:
        serial, at = _varint(payload, at)
        serials.append(serial)
    if at != header or len(serials) < _COLUMNS:
        return None
    rid, space, seq, data, check = serials
    if rid != 0 or data < 12 or data % 2 or check != _CHECK_SERIAL:
        return None
    told = [{8: 0, 9: 1}.get(serial) for serial in (space, seq)]
    sizes = [
        0 if value is not None else _INTEGER_SIZES.get(serial)
        for serial, value in zip((space, seq), told, strict=True)
    ]
    if sizes[0] is None or sizes[1] is None:
        return None
    first = header + sizes[0]
    second = first + sizes[1]
    third = second + (data - 12) // 2
    return _Columns(header, first, second, third, third + 16, told[0], told[1])


def _overflow(number: int, size: int, pages: FilePages) -> bytes:
    """Return the bytes of a chain of overflow pages; fewer than asked for where it breaks off."""
    parts = []
    while size > 0 and (page := pages[number]):
        parts.append(page[4 : 4 + min(size, _OVERFLOW_ROOM)])
        size -= _OVERFLOW_ROOM
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return SQLite's variable-length integer at a place and the place after it; 0 where the bytes end."""
    value = 0
    for used in range(9):
        if at + used >= len(data):
            return 0, len(data)
        byte = data[at + used]
        if used == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + used + 1
    return 0, len(data)
