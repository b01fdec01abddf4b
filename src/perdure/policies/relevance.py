"""Ranking: whether importance and freshness decide between matches of about equal strength."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from perdure.errors import InvalidRequest
from perdure.policies.parameters import Parameter, Real, set_checked

RELEVANCE_SHARE = 0.1  # the most that relevance adds to a score whose maximum is 1
IMPORTANCE_ABSENT = 0.5  # the middle of 0 to 1: untold is neither important nor unimportant
DAY_MS = 86_400_000
WEIGHT_MAX = 1_000_000.0  # only the ratio of the weights counts; their sum must stay finite


class RankingParts(NamedTuple):
    """The addends of one candidate's ranking score, each at least 0."""

    base: float
    importance: float
    recency: float

    @property
    def score(self) -> float:
        """base + importance + recency, added in this order."""
        return self.base + self.importance + self.recency


class RankingPolicy(Protocol):
    """Turns retrieval scores into ranking scores, before any factor. Ages count by basis `event`."""

    @property
    def is_identity(self) -> bool:
        """True when the ranking score is the retrieval score itself."""
        ...

    def parts(
        self, retrieval: float, *, top: float, importance: float | None, age_ms: int | None
    ) -> RankingParts:
        """Return the addends for one candidate.

        Args:
            retrieval: the candidate's retrieval score, 0 to `top`.
            top: the highest retrieval score among the candidates of this call.
            importance: 0 to 1, or None where untold.
            age_ms: milliseconds, or None for a document without any time.
        """
        ...


@dataclass(frozen=True)
class ScoreOrder:
    """Rank by the retrieval score alone. The default."""

    @property
    def is_identity(self) -> bool:
        return True

    def parts(
        self,
        retrieval: float,
        *,
        top: float,
        importance: float | None,
        age_ms: int | None,
    ) -> RankingParts:
        return RankingParts(retrieval, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Relevance:
    """Add a small share for importance and freshness to the score relative to the best match.

        base       = retrieval / top                         (0 where top is 0)
        importance = 0.1 * importance * iw / (iw + rw)       (0.5 where importance is untold)
        recency    = 0.1 * exp(-age_days / decay_days) * rw / (iw + rw)

    with iw and rw the two weights. A future fact has age 0, and so has a document without any time.
    The additions lie in 0 to 0.1, so a match that is weaker by more than a tenth of the best one
    never overtakes.

    Args:
        importance_weight, recency_weight: how much of the addition each of the two may make, 0 to 1,000,000,
            not both 0; only their ratio counts.
        decay_days: above 0; the freshness of a fact falls to 1/e in that time.
    """

    importance_weight: float = 0.7
    recency_weight: float = 0.3
    decay_days: float = 30.0

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "importance_weight": Real(0.0, WEIGHT_MAX),
        "recency_weight": Real(0.0, WEIGHT_MAX),
        "decay_days": Real(0.0, above=True),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)
        if self.importance_weight + self.recency_weight == 0.0:
            raise InvalidRequest(
                "importance_weight and recency_weight are both 0; give at least one of them a weight, "
                "or use the ranking 'score'",
                field="importance_weight",
            )

    @property
    def is_identity(self) -> bool:
        return False

    def parts(
        self, retrieval: float, *, top: float, importance: float | None, age_ms: int | None
    ) -> RankingParts:
        weight = self.importance_weight / (self.importance_weight + self.recency_weight)
        rest = self.recency_weight / (self.importance_weight + self.recency_weight)
        return RankingParts(
            retrieval / top if top > 0.0 else 0.0,
            RELEVANCE_SHARE * (IMPORTANCE_ABSENT if importance is None else importance) * weight,
            RELEVANCE_SHARE * self.freshness(age_ms) * rest,
        )

    def freshness(self, age_ms: int | None) -> float:
        """Return exp(-age_days / decay_days), 0 to 1; 1 for no age and for ages below 0."""
        return 1.0 if age_ms is None else math.exp(-(max(age_ms, 0) / DAY_MS / self.decay_days))


def ranking_scores(
    policy: RankingPolicy,
    retrieval: Sequence[float],
    importance: Sequence[float | None],
    ages_ms: Sequence[int | None],
) -> list[float]:
    """Return the ranking scores of candidates given by three sequences of the same length."""
    top = max(retrieval, default=0.0)
    return [
        policy.parts(score, top=top, importance=weight, age_ms=age).score
        for score, weight, age in zip(retrieval, importance, ages_ms, strict=True)
    ]
