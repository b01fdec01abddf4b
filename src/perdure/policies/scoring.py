"""Scores: how a retrieval score becomes a final one, and how its named parts give it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.model.hit import Part
from perdure.model.status import Status
from perdure.policies.relevance import RankingParts


def historical_factor(status: Status, historical_weight: float) -> float:
    """Return 1 for a current fact, otherwise the weight."""
    return 1.0 if status is Status.CURRENT else historical_weight


def final_score(ranking: float, recency_factor: float, historical: float) -> float:
    """Return ranking * recency_factor * historical, multiplied in this order."""
    return ranking * recency_factor * historical


def score_parts(
    retrieval: Iterable[Part],
    ranking: RankingParts | None = None,
    *,
    recency_factor: float = 1.0,
    historical: float = 1.0,
) -> tuple[Part, ...]:
    """Return the named parts of one candidate's final score, in the order in which they combine.

    Args:
        retrieval: the addends of the retrieval score, such as `lexical`.
        ranking: the addends of a ranking that is no identity. The retrieval addends are then scaled
            to add up to its base, and `importance` and `recency` follow them.
        recency_factor: left out where it is 1.
        historical: left out where it is 1.
    """
    parts = list(retrieval)
    if ranking is not None:
        parts = [*scaled(parts, ranking.base)]
        parts += [Part("importance", ranking.importance), Part("recency", ranking.recency)]
    if recency_factor != 1.0:
        parts.append(Part("recency", recency_factor))
    if historical != 1.0:
        parts.append(Part("historical", historical))
    return tuple(parts)


def combined_score(parts: Iterable[Part]) -> float:
    """Return the score that the parts make, taken from first to last.

    `historical` multiplies what stands before it, and so does `recency`, except straight after
    `importance`, where it is the freshness that a ranking by relevance adds. Every other part adds.
    """
    score, previous = 0.0, ""
    for part in parts:
        multiplies = part.name == "historical" or (part.name == "recency" and previous != "importance")
        score = score * part.value if multiplies else score + part.value
        previous = part.name
    return score


def sum_of(parts: Sequence[Part]) -> float:
    """Return the parts' sum, added from first to last."""
    total = 0.0
    for part in parts:
        total += part.value
    return total


def scaled(parts: Sequence[Part], total: float) -> tuple[Part, ...]:
    """Return the parts in the same proportions, so that they add up to about `total`; a single one is it."""
    if len(parts) == 1:
        return (Part(parts[0].name, total),)
    before = sum_of(parts)
    return tuple(Part(part.name, part.value / before * total if before > 0.0 else 0.0) for part in parts)
