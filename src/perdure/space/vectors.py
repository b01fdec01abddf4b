"""The vectors of a space in memory: read from the records when a search first asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perdure.base.text import counted
from perdure.errors import Corrupt
from perdure.space.facts import FactReader
from perdure.space.state import HIDDEN, SpaceState

if TYPE_CHECKING:
    from perdure.vectors.exact import ExactIndex

BLOCK = 512  # records that are read at once; fewer, and an erasure is less often in the way


def loaded_vectors(state: SpaceState, reader: FactReader) -> ExactIndex | None:
    """Return the index over the space's vectors; None while it has none.

    Callers hold the space's shared lock. The first one reads the vectors, others wait for it; from then on
    `apply` keeps them up. What was erased since the caller's state is not in it.

    Raises:
        Moved: the store was purged.
        Corrupt: a vector is damaged, or was zeroed though nothing was erased.
    """
    if not state.dimension:
        return None
    if state.vectors is None or state.vectors.dimension != state.dimension:
        with state.vectors_lock:
            if state.vectors is None or state.vectors.dimension != state.dimension:
                state.vectors = _read(state, reader)
    count = sum(map(len, state.vector_models.values()))
    if state.vectors.count != count and not reader.is_overtaken(state):
        raise Corrupt(
            f"{counted(count - state.vectors.count, 'vector was', 'vectors were')} zeroed without a removal: run a verify"
        )
    return state.vectors


def _read(state: SpaceState, reader: FactReader) -> ExactIndex:
    # Here, since whoever asks for words alone needs none of it.
    from perdure.vectors.exact import ExactIndex  # noqa: PLC0415

    index = ExactIndex(state.dimension)
    rows = [row for row, seq in enumerate(state.vector_seqs) if seq]
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        found = zip(some, reader.find_vectors(state, some), strict=True)
        there = {row: record.data for row, record in found if record is not None}
        data = b"".join(there.values())
        index.put_many(list(there), np.frombuffer(data, dtype="<f4").reshape(len(there), state.dimension))
    for row in rows:
        if state.presence[row] == HIDDEN and row in index:
            index.hide(row)
    return index
