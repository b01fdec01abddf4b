"""Where vectors lie in memory: in blocks of slots, and a table that leads from a row number to its slot.

A slot is taken when a row is first put and freed, overwritten with zeros, when it is erased. Blocks are never
moved or copied, so growing costs the new block only; each is as large as all before it together, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from perdure.vectors.cosine import Floats, Scores

RowNumbers = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int64]

ROW_MAX = 2**31 - 1
FIRST_BLOCK_SLOTS = 256
BLOCK_SLOTS_MAX = 16_384
"""At 384 dimensions 6 MB of codes: long enough a scan that what is done once per block does not show."""

PAGE_ROWS = 8192
NO_ROW = -1
NO_SLOT = -1


class Block:
    """Columns of some slots: slot start + i is at place i of each."""

    def __init__(self, start: int, size: int, dimension: int) -> None:
        self.start, self.size = start, size
        self.rows = np.full(size, NO_ROW, dtype=np.int64)
        self.vectors = np.zeros((size, dimension), dtype=np.float32)
        self.norms = np.zeros(size)
        self.visible = np.zeros(size, dtype=np.bool_)

    def memory_bytes(self) -> int:
        return sum(column.nbytes for column in (self.rows, self.vectors, self.norms, self.visible))


class Storage:
    """Blocks, free slots and the slot of each row."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.blocks: list[Block] = []
        self.count = 0
        self._starts: list[int] = []
        self._free: list[int] = []
        self._used = 0
        self._pages: dict[int, npt.NDArray[np.int64]] = {}

    def find_slot(self, row: int) -> int:
        """Return the slot of a row, or NO_SLOT."""
        page = self._pages.get(row // PAGE_ROWS)
        return NO_SLOT if page is None else int(page[row % PAGE_ROWS])

    def find_slots(self, rows: RowNumbers) -> Slots:
        """Return the slot of each row, NO_SLOT where there is none; rows may come in any order."""
        slots = np.full(len(rows), NO_SLOT, dtype=np.int64)
        pages = rows // PAGE_ROWS
        for number in np.unique(pages):
            page = self._pages.get(int(number))
            if page is not None:
                chosen = pages == number
                slots[chosen] = page[rows[chosen] % PAGE_ROWS]
        return slots

    def place(self, slot: int) -> tuple[Block, int]:
        """Return the block of a slot and the place in it."""
        number = int(np.searchsorted(self._starts, slot, side="right")) - 1
        block = self.blocks[number]
        return block, slot - block.start

    def by_block(self, slots: Slots) -> Iterator[tuple[Block, npt.NDArray[np.intp], Slots]]:
        """Yield each block that holds some of the slots, which of them it holds, and their places in it."""
        numbers = np.searchsorted(self._starts, slots, side="right") - 1
        for number in np.unique(numbers):
            block = self.blocks[number]
            chosen = np.flatnonzero(numbers == number)
            yield block, chosen, slots[chosen] - block.start

    def take_slot(self, row: int) -> int:
        """Return a slot for a row that has none."""
        slot = self._free.pop() if self._free else self._next_slot()
        page = self._pages.get(row // PAGE_ROWS)
        if page is None:
            page = self._pages[row // PAGE_ROWS] = np.full(PAGE_ROWS, NO_SLOT, dtype=np.int64)
        page[row % PAGE_ROWS] = slot
        self.count += 1
        return slot

    def free_slot(self, row: int) -> None:
        """Overwrite what a row's slot holds and let another row have it."""
        slot = self.find_slot(row)
        block, at = self.place(slot)
        block.visible[at] = False
        block.vectors[at] = 0.0
        block.norms[at] = 0.0
        block.rows[at] = NO_ROW
        self._pages[row // PAGE_ROWS][row % PAGE_ROWS] = NO_SLOT
        self._free.append(slot)
        self.count -= 1

    def gather(self, slots: Slots) -> tuple[Floats, Scores]:
        """Return copies of the vectors in some slots, and their norms, in the order of the slots."""
        vectors = np.empty((len(slots), self.dimension), dtype=np.float32)
        norms = np.empty(len(slots))
        for block, chosen, places in self.by_block(slots):
            vectors[chosen] = block.vectors[places]
            norms[chosen] = block.norms[places]
        return vectors, norms

    def memory_bytes(self) -> int:
        pages = sum(page.nbytes for page in self._pages.values())
        return pages + 8 * len(self._free) + sum(block.memory_bytes() for block in self.blocks)

    def _next_slot(self) -> int:
        if not self.blocks or self._used == self.blocks[-1].start + self.blocks[-1].size:
            size = min(max(self._used, FIRST_BLOCK_SLOTS), BLOCK_SLOTS_MAX)
            self.blocks.append(Block(self._used, size, self.dimension))
            self._starts.append(self._used)
        self._used += 1
        return self._used - 1
