"""The k nearest of the eligible places: bounds choose who is scored, scores decide.

The places with the greatest bounds are scored first. The k-th best score so far is one that every answer must
reach, so a place whose bound is below it is out; the others are scored, greatest bounds first, while that score
rises. What is left out is therefore proved to be no answer, and ties at the k-th place are all scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import GROUP, NEVER, Bounds, Coding
from perdure.vectors.cosine import Floats, Scores, cosines
from perdure.vectors.eligible import Part
from perdure.vectors.storage import RowNumbers

Positions = npt.NDArray[np.intp]

SCORED_AT_ONCE = 256


class Query:
    """A checked query: as given, in float64, and its length."""

    def __init__(self, coding: Coding, vector: Floats) -> None:
        self.vector = vector
        self.wide = vector.astype(np.float64)
        square = np.empty(1)
        coding.products(self.wide, vector[np.newaxis], np.zeros(1, dtype=np.int64), square)
        self.norm = math.sqrt(square[0])


class Scorer:
    """Scores a query's cosines to the places of some parts, which are counted one part after the other.

    The places of a part start at a multiple of GROUP; no place is counted where the last group is not full.
    """

    def __init__(self, coding: Coding, query: Query, parts: Sequence[Part]) -> None:
        self.coding, self.query, self.parts = coding, query, parts
        self.starts = [0, *accumulate(-(-part.size // GROUP) * GROUP for part in parts)]

    def scores(self, positions: Positions) -> tuple[RowNumbers, Scores]:
        """Return the rows at some positions, which ascend, and their scores."""
        count = len(positions)
        rows = np.empty(count, dtype=np.int64)
        folded, lengths = np.empty(count), np.empty(count)
        edges = np.searchsorted(positions, self.starts).tolist()
        for part, start, low, high in zip(self.parts, self.starts, edges, edges[1:], strict=False):
            if low < high:
                block, places = part.block, positions[low:high] - start
                if part.places is not None:
                    places = part.places[places]
                rows[low:high] = block.rows[places]
                lengths[low:high] = block.norms[places]
                self.coding.products(self.query.wide, block.vectors, places, folded[low:high])
        return rows, cosines(folded, self.query.norm, lengths)

    def upper_bounds(self) -> Bounds:
        """Return the bound of each place; -inf for one that is free or whose row is hidden, and for none."""
        sought = self.coding.seek(self.query.vector, self.query.norm)
        size = self.starts[-1]
        bounds = Bounds(np.empty(size, dtype=np.float32), np.empty(size // GROUP, dtype=np.float32))
        for part, start, stop in zip(self.parts, self.starts, self.starts[1:], strict=False):
            block, end = part.block, start + part.size
            bounds.each[end:stop] = NEVER
            out = Bounds(bounds.each[start:end], bounds.peaks[start // GROUP : stop // GROUP])
            columns = block.columns.first(block.used)
            self.coding.upper_bounds(sought, block.vectors[: block.used], columns, part.places, out)
        return bounds

    def visible(self) -> Positions:
        """Return the positions of the places that are neither free nor hold a hidden row."""
        found = []
        for part, start in zip(self.parts, self.starts, strict=False):
            places = slice(part.block.used) if part.places is None else part.places
            found.append(start + np.flatnonzero(part.block.columns.errors[places] > NEVER))
        return np.concatenate(found)


def nearest(scorer: Scorer, k: int) -> tuple[RowNumbers, Scores]:
    """Return the k best rows of the parts, or all if they are fewer: by score descending, then row ascending."""
    size = scorer.starts[-1]
    if size <= max(k, SCORED_AT_ONCE):
        return _best(*scorer.scores(scorer.visible()), k)
    bounds = scorer.upper_bounds()
    chosen = _greatest(bounds, k)
    rows, scores = _best(*scorer.scores(chosen), k)
    if len(rows) < k:
        return rows, scores
    bounds.each[chosen] = NEVER
    rest = _reaching(bounds, _at_most(scores[-1]))
    if len(rest) > SCORED_AT_ONCE:
        rest = rest[np.argsort(-bounds.each[rest], kind="stable")]
    for start in range(0, len(rest), SCORED_AT_ONCE):
        some = np.sort(rest[start : start + SCORED_AT_ONCE])
        if bounds.each[some].max() < _at_most(scores[-1]):
            break
        more_rows, more_scores = scorer.scores(some)
        rows, scores = _best(np.concatenate((rows, more_rows)), np.concatenate((scores, more_scores)), k)
    return rows, scores


def _greatest(bounds: Bounds, k: int) -> Positions:
    """Return the positions, ascending, of the k greatest bounds and some more, or of all above -inf if fewer are."""
    # The k-th greatest of the peaks is reached by at least k bounds. Of few groups it would be too low a mark.
    marks = bounds.peaks if len(bounds.peaks) >= 4 * k else bounds.each
    least = np.partition(marks, -k)[-k]
    if least == NEVER:
        return np.flatnonzero(bounds.each > NEVER)
    reached = _reaching(bounds, least)
    if len(reached) > 2 * k:
        reached = np.sort(reached[np.argpartition(-bounds.each[reached], k - 1)[:k]])
    return reached


def _reaching(bounds: Bounds, least: np.float32) -> Positions:
    """Return the positions, ascending, of the bounds that are at least so great."""
    groups = np.flatnonzero(bounds.peaks >= least)
    positions: Positions = (groups[:, np.newaxis] * GROUP + np.arange(GROUP)).ravel()
    return positions[bounds.each[positions] >= least]


def _at_most(score: float) -> np.float32:
    """Return a float32 that is not above the score, so that comparing stays in float32."""
    return np.float32(np.nextafter(np.float32(score), NEVER))


def _best(rows: RowNumbers, scores: Scores, k: int) -> tuple[RowNumbers, Scores]:
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]
