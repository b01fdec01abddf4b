"""The vectors of a space in memory: read from the records when a search first asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perdure.space.facts import FactReader
from perdure.space.state import HIDDEN, SpaceState

if TYPE_CHECKING:
    from perdure.vectors.exact import ExactIndex

BLOCK = 4_096  # records that are read at once


def loaded_vectors(state: SpaceState, reader: FactReader) -> ExactIndex | None:
    """Return the index over the space's vectors; None while it has none.

    Callers hold the space's shared lock. The first one reads the vectors, others wait for it; from then on
    `apply` keeps them up. Raises Moved when an erasure overtook the caller's state.
    """
    if not state.dimension:
        return None
    if state.vectors is None or state.vectors.dimension != state.dimension:
        with state.vectors_lock:
            if state.vectors is None or state.vectors.dimension != state.dimension:
                state.vectors = _read(state, reader)
    return state.vectors


def _read(state: SpaceState, reader: FactReader) -> ExactIndex:
    # Here, since whoever asks for words alone needs none of it.
    from perdure.vectors.exact import ExactIndex  # noqa: PLC0415

    index = ExactIndex(state.dimension)
    rows = [row for row, seq in enumerate(state.vector_seqs) if seq]
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        data = b"".join(record.data for record in reader.vectors(state, some))
        index.put_many(some, np.frombuffer(data, dtype="<f4").reshape(len(some), state.dimension))
    for row in rows:
        if state.presence[row] == HIDDEN:
            index.hide(row)
    return index
