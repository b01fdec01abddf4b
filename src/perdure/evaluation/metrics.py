"""How good one answer is, and how good many are on average."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

CUTS = (1, 5, 10)
NDCG_CUT = 10
METRICS = (
    *(f"R@{k}" for k in CUTS),
    *(f"hit@{k}" for k in CUTS),
    f"nDCG@{NDCG_CUT}",
    "MRR",
    "exact",
    "order",
    "absent",
)


def score(
    returned: Sequence[str],
    expect: Sequence[str] | None,
    absent: Sequence[str] = (),
    *,
    ordered: bool = False,
) -> dict[str, float]:
    """Return the metrics that the case has, each from 0 (worst) to 1.

    Args:
        returned: distinct ids, best first.
        expect: the distinct ids that answer the question; empty where nothing may come back, None where only
            `absent` says something.
        absent: ids that must not come back.
        ordered: the order of `expect` counts.

    Returns:
        R@k: the share of the expected ids among the first k. hit@k: 1 if any of them is there.
        nDCG@10: gain 1 for each, discounted by 1 / log2(1 + place), over the best that is possible.
        MRR: 1 / the place of the first one. These need an expected id.
        exact: 1 if exactly the expected ids came back (in their order, where it counts).
        order: of ordered cases: 1 if all came back, one after the other in their order; others may stand between.
        absent: 1 if nothing came back that must not. With nothing expected that is whatever came back.
    """
    found: dict[str, float] = {}
    if expect:
        found |= _ranking_scores(returned, set(expect))
    if expect is not None:
        alike = list(returned) == list(expect) if ordered else set(returned) == set(expect)
        found["exact"] = float(alike)
    if expect and ordered:
        wanted = set(expect)
        found["order"] = float([id_ for id_ in returned if id_ in wanted] == list(expect))
    if absent or (expect is not None and not expect):
        found["absent"] = float(not unwanted(returned, expect, absent))
    return found


def unwanted(
    returned: Iterable[str], expect: Sequence[str] | None, absent: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return what came back and must not have, in the order of the results."""
    if expect is not None and not expect:
        return tuple(returned)
    refused = set(absent)
    return tuple(id_ for id_ in returned if id_ in refused)


def mean_scores(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the rows that have it, in the order of METRICS."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {name: math.fsum(columns[name]) / len(columns[name]) for name in METRICS if name in columns}


def _ranking_scores(returned: Sequence[str], wanted: set[str]) -> dict[str, float]:
    places = [place for place, id_ in enumerate(returned, 1) if id_ in wanted]
    found: dict[str, float] = {}
    for k in CUTS:
        there = sum(place <= k for place in places)
        found[f"R@{k}"] = there / len(wanted)
        found[f"hit@{k}"] = float(there > 0)
    best = _gain(range(1, min(len(wanted), NDCG_CUT) + 1))
    found[f"nDCG@{NDCG_CUT}"] = _gain(place for place in places if place <= NDCG_CUT) / best
    found["MRR"] = 1 / places[0] if places else 0.0
    return found


def _gain(places: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(1 + place) for place in places)
