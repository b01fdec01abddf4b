"""Exact search of one snapshot: which places are asked, and which of them are nearest."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from perdure.base.text import shown_kind
from perdure.errors import InvalidRequest
from perdure.vectors.coding import GROUP, Bounds, Coding
from perdure.vectors.cosine import Floats, Scores
from perdure.vectors.eligible import Part
from perdure.vectors.nearest import Positions, Query, Scorer, nearest
from perdure.vectors.partitioned.admission import checked_query, is_text
from perdure.vectors.partitioned.errors import InvalidLabel, InvalidPartition, InvalidSearch
from perdure.vectors.partitioned.partition import Partition
from perdure.vectors.partitioned.snapshot import Snapshot
from perdure.vectors.partitioned.types import (
    LabelFilter,
    VectorHit,
    VectorSearchRequest,
    VectorSearchResult,
)
from perdure.vectors.storage import RowNumbers

ROUNDING = 1e-6  # more than float32 adds to a bound that is multiplied by two lengths


def search(snapshot: Snapshot, request: VectorSearchRequest, coding: Coding) -> VectorSearchResult:
    """Return the nearest records of the snapshot, as `VectorIndex.search` says."""
    if not isinstance(request, VectorSearchRequest):
        raise InvalidRequest(
            f"request must be a VectorSearchRequest, got {type(request).__name__}", field="request"
        )
    labels = checked_filter(request.labels)
    partitions = chosen_partitions(snapshot, request.partitions)
    _check_limits(request)
    vector = checked_query(request.embedding, snapshot.descriptor)
    found = [(partition, part) for partition in partitions if (part := eligible(partition, labels)).size]
    searched = sum(part.size for _, part in found)
    # One more than is wanted says whether the limit leaves out a hit.
    hits = _nearest(snapshot, found, vector, coding, min(request.limit + 1, searched))
    if request.min_score is not None:
        hits = [hit for hit in hits if hit.score >= request.min_score]
    return VectorSearchResult(
        hits=tuple(hits[: request.limit]),
        status=snapshot.status,
        searched_records=searched,
        truncated=len(hits) > request.limit,
    )


def checked_filter(labels: Mapping[str, LabelFilter]) -> dict[str, LabelFilter]:
    """Return the labels that are asked for. InvalidLabel for a key that is blank, or a value that is no text."""
    if not isinstance(labels, Mapping):
        raise InvalidLabel("labels must be a mapping")
    checked: dict[str, LabelFilter] = {}
    for key, wanted in labels.items():
        if not is_text(key) or not key.strip():
            raise InvalidLabel("labels has a key that is blank or no text")
        checked[key] = wanted if wanted is None or isinstance(wanted, str) else _any_of(wanted)
        values = (checked[key],) if isinstance(wanted, str) else checked[key] or ()
        if not all(map(is_text, values)):
            raise InvalidLabel("labels asks for a value that is no text")
    return checked


def _any_of(wanted: Sequence[str]) -> tuple[str, ...]:
    try:
        values = tuple(wanted)
    except TypeError as error:
        raise InvalidLabel("labels must ask for a text, some texts, or None for no such label") from error
    if not values:
        raise InvalidLabel("labels asks for any of no values, which no record has: leave the label out")
    return values


def chosen_partitions(snapshot: Snapshot, names: Sequence[str]) -> list[Partition]:
    """Return the partitions of these names that are there, or all for none, ascending by name."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InvalidPartition(
            f"partitions must be a list of names, got {shown_kind(names)}: [] stands for all",
            field="partitions",
        )
    wanted = set()
    for name in names:
        if not is_text(name) or not name.strip():
            raise InvalidPartition(
                "partitions has a name that is blank or no text: name partitions, or leave it empty for all",
                field="partitions",
            )
        wanted.add(name)
    return [kept.partition for name, kept in snapshot.kept.items() if not wanted or name in wanted]


def _check_limits(request: VectorSearchRequest) -> None:
    if type(request.limit) is not int or request.limit < 1:
        raise InvalidSearch("limit must be a whole number of at least 1", field="limit")
    score = request.min_score
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (is_number and math.isfinite(score)):
        raise InvalidSearch("min_score must be a finite number, or None", field="min_score")


def eligible(partition: Partition, labels: Mapping[str, LabelFilter]) -> Part:
    """Return the places of a partition whose labels are as wanted."""
    flags = None
    for key, wanted in labels.items():
        these = partition.flags(key, wanted)
        flags = these if flags is None else flags & these
    if flags is None or flags.all():
        return Part(partition.block, None)
    return Part(partition.block, np.flatnonzero(flags))


def _nearest(
    snapshot: Snapshot, found: Sequence[tuple[Partition, Part]], vector: Floats, coding: Coding, count: int
) -> list[VectorHit]:
    if not count:
        return []
    query = Query(coding, vector) if vector.any() else _Nowhere(coding, vector)
    kind = _Ordered if snapshot.descriptor.metric == "cosine" else _Products
    scorer = kind(coding, query, [part for _, part in found])
    if isinstance(query, _Nowhere):
        # Every product is 0: the first places are the nearest.
        positions, scores = scorer.visible()[:count], np.zeros(count)
    else:
        with np.errstate(over="ignore"):  # a product may be beyond float32, in which bounds are compared
            positions, scores = nearest(scorer, count)
    hits = []
    for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
        at = bisect_right(scorer.starts, position) - 1
        partition, part = found[at]
        place = position - scorer.starts[at]
        hits.append(partition.hit(place if part.places is None else int(part.places[place]), score))
    return hits


class _Nowhere(Query):
    """A query of zeros, which has no direction."""


class _Ordered(Scorer):
    """Cosines by position: parts stand by partition and their places by id, so that positions break ties."""

    def scores(self, positions: Positions) -> tuple[RowNumbers, Scores]:
        return positions, super().scores(positions)[1]


class _Products(_Ordered):
    """Products in the place of cosines."""

    def scores(self, positions: Positions) -> tuple[RowNumbers, Scores]:
        folded = np.empty(len(positions))
        edges = np.searchsorted(positions, self.starts).tolist()
        for part, start, low, high in zip(self.parts, self.starts, edges, edges[1:], strict=False):
            if low < high:
                places = positions[low:high] - start
                if part.places is not None:
                    places = part.places[places]
                self.coding.products(self.query.wide, part.block.vectors, places, folded[low:high])
        return positions, folded + 0.0  # no negative zero

    def upper_bounds(self) -> Bounds:
        """Return the bounds of cosines, multiplied by both lengths and rounded up."""
        bounds = super().upper_bounds()
        for part, start in zip(self.parts, self.starts, strict=False):
            block, places = part.block, slice(start, start + part.size)
            lengths = block.norms[: block.used] if part.places is None else block.norms[part.places]
            with np.errstate(over="ignore", invalid="ignore"):
                wide = bounds.each[places].astype(np.float64) * (lengths * self.query.norm)
                wide += np.abs(wide) * ROUNDING
                wide[np.isnan(wide)] = 0.0  # a vector of zeros whose bound is infinite
                bounds.each[places] = np.nextafter(wide.astype(np.float32), np.float32(np.inf))
        np.maximum.reduceat(bounds.each, np.arange(0, len(bounds.each), GROUP), out=bounds.peaks)
        return bounds
