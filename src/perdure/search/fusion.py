"""Fusion: one retrieval score out of a lexical and a semantic one. Each candidate's parts add up to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from perdure.model.hit import Part
from perdure.policies.scoring import scaled, sum_of

Name = Literal["minmax", "rrf"]
# Chosen on the LoCoMo dev conversations: `python -m bench.quality FILE.zip --sensitivity` tries equal weights and the usual 60
# too. Both lose there to words alone, since a small model's order is much worse than that of the words.
WEIGHTS: dict[Name, tuple[float, float]] = {"minmax": (0.7, 0.3), "rrf": (1.0, 0.5)}
RRF_K = 10


class Fusion(NamedTuple):
    """How two scores become one."""

    name: Name = "minmax"
    lexical: float = WEIGHTS["minmax"][0]
    semantic: float = WEIGHTS["minmax"][1]


class Candidate(NamedTuple):
    """A fact or document with the addends of its lexical score (none: no match) and its cosine (None: no vector)."""

    number: int
    row: int
    lexical: tuple[Part, ...]
    cosine: float | None


def semantic_score(cosine: float) -> float:
    """Return (1 + cosine) / 2: 0 to 1, since scores are at least 0."""
    return (1.0 + cosine) / 2.0


def fuse(candidates: Sequence[Candidate], fusion: Fusion) -> list[tuple[Part, ...]]:
    """Return the parts of each candidate's fused score: those of the lexical share, then `semantic`.

    minmax: lexical * (L - min) / (max - min) + semantic * (S - min) / (max - min), each over all candidates that
    have such a score; 1 in place of a quotient where max = min, and 0 for a candidate that has no such score.
    rrf: lexical / (10 + rank) + semantic / (10 + rank), ranks from 1, ties by arrival.
    """
    words = {one.number: sum_of(one.lexical) for one in candidates if one.lexical}
    meanings = {one.number: one.cosine for one in candidates if one.cosine is not None}
    scale = _minmax if fusion.name == "minmax" else _reciprocal_ranks
    lexical, semantic = scale(_with_zeros(words, candidates, fusion)), scale(meanings)
    fused = []
    for one in candidates:
        share = fusion.lexical * lexical.get(one.number, 0.0)
        meaning = fusion.semantic * semantic.get(one.number, 0.0)
        fused.append((*scaled(one.lexical or (Part("lexical", 0.0),), share), Part("semantic", meaning)))
    return fused


def _with_zeros(words: dict[int, float], candidates: Sequence[Candidate], fusion: Fusion) -> dict[int, float]:
    """Return the scores with 0 for the candidates that match no word, since those are the least of all.

    Ranks are of matches only; and where nothing matches, words have no say.
    """
    if fusion.name != "minmax" or not words:
        return words
    return {one.number: words.get(one.number, 0.0) for one in candidates}


def _minmax(values: Mapping[int, float]) -> dict[int, float]:
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    if low == high:
        return dict.fromkeys(values, 1.0)
    return {number: (value - low) / (high - low) for number, value in values.items()}


def _reciprocal_ranks(values: Mapping[int, float]) -> dict[int, float]:
    order = sorted(values, key=lambda number: (-values[number], number))
    return {number: 1.0 / (RRF_K + rank) for rank, number in enumerate(order, 1)}
