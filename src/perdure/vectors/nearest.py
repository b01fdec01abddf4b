"""The k nearest of the eligible places: bounds choose who is scored, scores decide.

The places with the greatest bounds are scored first. The k-th best score so far is one that every answer must
reach, so a place whose bound is below it is out; the others are scored, greatest bounds first, while that score
rises. What is left out is therefore proved to be no answer, and ties at the k-th place are all scored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import NEVER, Coding, Places
from perdure.vectors.cosine import Floats, Scores, cosines, norms
from perdure.vectors.eligible import Part
from perdure.vectors.storage import RowNumbers, Slots, Storage

Positions = npt.NDArray[np.intp]

GROUP = 32
"""Bounds of which one is the greatest: enough for finding the greatest of all without sorting them."""

SCORED_AT_ONCE = 256


class Query:
    """A checked query and its length."""

    def __init__(self, vector: Floats) -> None:
        self.vector = vector
        self.norm = float(norms(vector[np.newaxis])[0])

    def scores(self, storage: Storage, slots: Slots) -> tuple[RowNumbers, Scores]:
        """Return the rows in some slots and their scores, in the order of the slots."""
        rows, vectors, lengths = storage.gather(slots)
        return rows, cosines(self.vector, self.norm, vectors, lengths)


def nearest(
    storage: Storage, coding: Coding, query: Query, parts: Sequence[Part], k: int
) -> tuple[RowNumbers, Scores]:
    """Return the k best rows of the parts, or all if they are fewer: by score descending, then row ascending."""
    size = sum(part.size for part in parts)
    if size <= max(k, SCORED_AT_ONCE):
        slots = [part.block.start + _visible(part) for part in parts]
        return _best(*query.scores(storage, np.concatenate([*slots, np.empty(0, dtype=np.int64)])), k)
    bounds = _upper_bounds(coding, query, parts, size)
    chosen = _greatest(bounds, k)
    rows, scores = query.scores(storage, _slots(parts, chosen))
    bounds[chosen] = NEVER
    if len(rows) < k:
        return _best(rows, scores, k)
    rest = np.flatnonzero(bounds >= _at_most(_kth(scores, k)))
    rest = rest[np.argsort(-bounds[rest], kind="stable")]
    for start in range(0, len(rest), SCORED_AT_ONCE):
        some = rest[start : start + SCORED_AT_ONCE]
        if bounds[some[0]] < _at_most(_kth(scores, k)):
            break
        more_rows, more_scores = query.scores(storage, _slots(parts, some))
        rows, scores = _best(np.concatenate((rows, more_rows)), np.concatenate((scores, more_scores)), k)
    return _best(rows, scores, k)


def _visible(part: Part) -> Places:
    block, places = part
    if places is None:
        places = np.arange(block.used)
    return places[block.columns.errors[places] > NEVER]


def _upper_bounds(coding: Coding, query: Query, parts: Sequence[Part], size: int) -> Floats:
    """Return the bound of each place of the parts, one part after the other."""
    sought = coding.seek(query.vector, query.norm)
    bounds = np.empty(size, dtype=np.float32)
    start = 0
    for part in parts:
        block, out = part.block, bounds[start : start + part.size]
        columns = block.columns.first(block.used)
        coding.upper_bounds(sought, block.vectors[: block.used], columns, part.places, out)
        start += part.size
    return bounds


def _slots(parts: Sequence[Part], positions: Positions) -> Slots:
    """Return the slots of the places at some positions of the parts, one part after the other."""
    starts = np.cumsum([0, *(part.size for part in parts)])
    numbers = np.searchsorted(starts, positions, side="right") - 1
    offsets = np.array([part.block.start for part in parts]) - starts[:-1]
    slots: Slots = positions + offsets[numbers]
    for number in np.unique(numbers):
        block, places = parts[number]
        if places is not None:
            chosen = numbers == number
            slots[chosen] = block.start + places[positions[chosen] - starts[number]]
    return slots


def _greatest(bounds: Floats, k: int) -> Positions:
    """Return the positions of the k greatest bounds, or of more; of all that are not -inf if those are fewer."""
    count = len(bounds) // GROUP
    if count < 4 * k:
        least = np.partition(bounds, -k)[-k]
    else:
        # The k-th greatest of the groups' greatest: at least k bounds reach it.
        groups = bounds[: count * GROUP].reshape(GROUP, count).max(axis=0)
        least = np.partition(groups, -k)[-k]
    if least == NEVER:
        return np.flatnonzero(bounds > NEVER)
    reached = np.flatnonzero(bounds >= least)
    return reached if len(reached) <= 2 * k else reached[np.argpartition(-bounds[reached], k - 1)[:k]]


def _kth(scores: Scores, k: int) -> float:
    return float(np.partition(scores, -k)[-k])


def _at_most(score: float) -> np.float32:
    """Return a float32 that is not above the score, so that comparing stays in float32."""
    return np.float32(np.nextafter(np.float32(score), NEVER))


def _best(rows: RowNumbers, scores: Scores, k: int) -> tuple[RowNumbers, Scores]:
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]
