"""Where vectors lie in memory: in blocks of slots, and a table that leads from a row number to its slot.

A slot is taken when a row is first put and freed, overwritten with zeros, when it is erased. The first block
doubles until it is as large as a block may be; from then on whole blocks are added, and nothing is copied. So a
few long scans cover a space, whatever its size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import NEVER, Columns, Places
from perdure.vectors.cosine import Floats, Scores

RowNumbers = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int64]
Column = npt.NDArray[Any]

ROW_MAX = 2**31 - 2
"""One less than what 32 bits hold, so that the number of rows fits as well."""

FIRST_BLOCK_SLOTS = 256
BLOCK_NUMBERS_MAX = 1 << 24
"""64 MB of vectors, 16 MB of codes: long enough a scan that what is done once per block does not show."""

PAGE_ROWS = 8192
NO_ROW = -1
NO_SLOT = -1


class Block:
    """Columns of some slots, of which the first `used` have held a row: slot start + i is at place i."""

    def __init__(self, start: int, size: int, dimension: int, width: int) -> None:
        self.start, self.size, self.used = start, size, 0
        self.rows = np.full(size, NO_ROW, dtype=np.int32)
        self.vectors = np.zeros((size, dimension), dtype=np.float32)
        self.norms = np.zeros(size)
        self.columns = Columns(
            np.zeros((size, width), dtype=np.int8),
            np.zeros(size, dtype=np.float32),
            np.full(size, NEVER, dtype=np.float32),
        )
        self._first: int | None = None
        self._in_step = True

    @property
    def first_row(self) -> int | None:
        """The row of place 0 if every place p was only ever given to row p more than that; else None."""
        return self._first if self._in_step else None

    def grow(self, size: int) -> None:
        """Make room for more slots; what was is overwritten, so that an erased vector has no older copy."""
        self.rows = _grown(self.rows, size, NO_ROW)
        self.vectors = _grown(self.vectors, size, 0)
        self.norms = _grown(self.norms, size, 0)
        codes, scales, errors = self.columns
        self.columns = Columns(_grown(codes, size, 0), _grown(scales, size, 0), _grown(errors, size, NEVER))
        self.size = size

    def write(self, places: Places, rows: RowNumbers, vectors: Floats, norms: Scores) -> None:
        self.vectors[places] = vectors
        self.norms[places] = norms
        self.rows[places] = rows
        self.used = max(self.used, int(places.max()) + 1)
        if self._first is None:
            self._first = int(rows[0] - places[0])
            self._in_step = self._first >= 0
        self._in_step = self._in_step and bool((rows - places == self._first).all())

    def conceal(self, place: int) -> None:
        """Let no scan choose a place."""
        self.columns.errors[place] = NEVER

    def is_concealed(self, place: int) -> bool:
        return bool(self.columns.errors[place] == NEVER)

    def wipe(self, place: int) -> None:
        """Overwrite all that is kept of a place's row."""
        self.conceal(place)
        for column in (self.vectors, self.norms, self.columns.codes, self.columns.scales):
            column[place] = 0
        self.rows[place] = NO_ROW

    def memory_bytes(self) -> int:
        return sum(column.nbytes for column in (self.rows, self.vectors, self.norms, *self.columns))


class Storage:
    """Blocks, free slots and the slot of each row; width is the number of codes of a vector."""

    def __init__(self, dimension: int, width: int) -> None:
        self.dimension, self.width = dimension, width
        self.blocks: list[Block] = []
        self.count = 0
        self._starts: list[int] = []
        self._free: list[int] = []
        self._used = 0
        self._pages: dict[int, npt.NDArray[np.int32]] = {}

    def find_slot(self, row: int) -> int:
        """Return the slot of a row, or NO_SLOT."""
        page = self._pages.get(row // PAGE_ROWS)
        return NO_SLOT if page is None else int(page[row % PAGE_ROWS])

    def find_slots(self, rows: RowNumbers) -> Slots:
        """Return the slot of each row, NO_SLOT where there is none; rows may come in any order."""
        slots = np.full(len(rows), NO_SLOT, dtype=np.int64)
        order = None if bool((rows[1:] >= rows[:-1]).all()) else np.argsort(rows, kind="stable")
        ordered = rows if order is None else rows[order]
        edges = np.flatnonzero(np.diff(ordered // PAGE_ROWS, prepend=-1, append=-1)).tolist()
        for start, stop in pairwise(edges):
            page = self._pages.get(int(ordered[start]) // PAGE_ROWS)
            if page is not None:
                part = slice(start, stop)
                slots[part if order is None else order[part]] = page[ordered[part] % PAGE_ROWS]
        return slots

    def slots_for(self, rows: RowNumbers) -> Slots:
        """Return the slot of each row, of which those that have none are given one."""
        if len(rows) == 1:
            slots = np.array([self.find_slot(int(rows[0]))], dtype=np.int64)
        else:
            slots = self.find_slots(rows)
        for at in np.flatnonzero(slots == NO_SLOT):
            row = int(rows[at])
            found = self.find_slot(row)  # a row that is given twice has got one by now
            slots[at] = self._take_slot(row) if found == NO_SLOT else found
        return slots

    def place(self, slot: int) -> tuple[Block, int]:
        """Return the block of a slot and the place in it."""
        block = self.blocks[bisect_right(self._starts, slot) - 1]
        return block, slot - block.start

    def by_block(self, slots: Slots) -> Iterator[tuple[Block, npt.NDArray[np.intp], Places]]:
        """Yield each block that holds some of the slots, which of them it holds, and their places in it."""
        order = np.argsort(slots, kind="stable")
        ordered = slots[order]
        edges = np.searchsorted(ordered, [*self._starts, self._used]).tolist()
        for block, (start, stop) in zip(self.blocks, pairwise(edges), strict=True):
            if start < stop:
                yield block, order[start:stop], ordered[start:stop] - block.start

    def free_slot(self, row: int) -> None:
        """Overwrite what a row's slot holds and let another row have it."""
        slot = self.find_slot(row)
        block, at = self.place(slot)
        block.wipe(at)
        self._pages[row // PAGE_ROWS][row % PAGE_ROWS] = NO_SLOT
        self._free.append(slot)
        self.count -= 1

    def memory_bytes(self) -> int:
        pages = sum(page.nbytes for page in self._pages.values())
        return pages + 40 * len(self._free) + sum(block.memory_bytes() for block in self.blocks)

    def _take_slot(self, row: int) -> int:
        slot = self._free.pop() if self._free else self._next_slot()
        page = self._pages.get(row // PAGE_ROWS)
        if page is None:
            page = self._pages[row // PAGE_ROWS] = np.full(PAGE_ROWS, NO_SLOT, dtype=np.int32)
        page[row % PAGE_ROWS] = slot
        self.count += 1
        return slot

    def _next_slot(self) -> int:
        most = max(BLOCK_NUMBERS_MAX // self.dimension, FIRST_BLOCK_SLOTS)
        last = self.blocks[-1] if self.blocks else None
        if last is not None and self._used == last.start + last.size and last.size < most:
            last.grow(min(2 * last.size, most))
        elif last is None or self._used == last.start + last.size:
            size = FIRST_BLOCK_SLOTS if last is None else most
            self.blocks.append(Block(self._used, size, self.dimension, self.width))
            self._starts.append(self._used)
        self._used += 1
        return self._used - 1


def _grown(column: Column, size: int, empty: float | np.float32) -> Column:
    # Zeros are not written: memory that is not used yet costs nothing.
    grown = np.zeros((size, *column.shape[1:]), dtype=column.dtype)
    if empty:
        grown[len(column) :] = empty
    grown[: len(column)] = column
    column.fill(0)
    return grown
