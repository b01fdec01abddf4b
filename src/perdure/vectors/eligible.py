"""Which places a search may look at, block by block, before anything is scored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import Places
from perdure.vectors.storage import NO_SLOT, Block, RowNumbers, Storage

Flags = npt.NDArray[np.uint8]


class Part(NamedTuple):
    """Some places of a block, ascending, or all that are used.

    Free places and those of hidden rows may be among them; their error of -inf keeps them out.
    """

    block: Block
    places: Places | None

    @property
    def size(self) -> int:
        return self.block.used if self.places is None else len(self.places)


def eligible_parts(storage: Storage, flags: Flags | None, rows: RowNumbers | None) -> list[Part]:
    """Return the parts that hold the wanted rows; flags are by row number, rows ascending, None means all."""
    if rows is not None:
        if flags is not None:
            rows = rows[: np.searchsorted(rows, len(flags))]
            rows = rows[flags[rows] != 0]
        slots = storage.find_slots(rows)
        found = slots[slots != NO_SLOT]
        return [Part(block, places) for block, _, places in storage.by_block(found)]
    if flags is None:
        return [Part(block, None) for block in storage.blocks]
    ended = np.append(flags, np.uint8(0))
    parts = [_flagged(block, ended) for block in storage.blocks]
    return [part for part in parts if part.size]


def _flagged(block: Block, flags: Flags) -> Part:
    """The last flag is a 0 for all rows past the end; free places, of row -1, may take it too."""
    first = block.first_row
    if first is not None:
        wanted = flags[first : first + block.used]
    else:
        wanted = flags[np.minimum(block.rows[: block.used], len(flags) - 1)]
    places = np.flatnonzero(wanted)
    return Part(block, None if len(places) == block.used else places)
