"""A resolved question: every option decided, every value checked."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from perdure.base.canonical import canonical_json
from perdure.base.haste import refuse_to_wait
from perdure.errors import QueryLimit
from perdure.filters.grammar import Filter
from perdure.model.context import Context
from perdure.policies.recency import RecencyPolicy
from perdure.policies.relevance import RankingPolicy
from perdure.search.fusion import Fusion

History = Literal["current", "all", "historical"]
Mode = Literal["lexical", "semantic", "hybrid"]
HURRIED_ROWS = 1_000  # that a thread in a hurry looks at one by one, which takes it about a millisecond


class Scope(msgspec.Struct, frozen=True):
    """Which facts may be seen at all; None (or empty) leaves a dimension open. Compared exactly."""

    subject: str | None = None
    entity: str | None = None
    tags: tuple[str, ...] = ()
    kind: str | None = None
    filter: Filter | None = None
    pinned: bool | None = None
    plain: bool = False  # nothing that a node or a turn is seen as

    @property
    def is_open(self) -> bool:
        return (
            self.subject is None
            and self.entity is None
            and not self.tags
            and self.kind is None
            and self.filter is None
            and self.pinned is None
            and not self.plain
        )

    def key(self) -> bytes:
        """Return bytes that equal scopes share and no others."""
        filter_ = None if self.filter is None else self.filter.key().decode()
        told = [self.subject, self.entity, list(self.tags), self.kind, filter_, self.pinned]
        return canonical_json([*told, "plain"] if self.plain else told)


OPEN = Scope()


class Budget(msgspec.Struct, frozen=True):
    """What one read may spend: units of work, links of one component, bytes of eligible ids."""

    work: int
    frontier: int
    bytes: int

    def spend(self, units: int, advice: str = "") -> None:
        """Raise QueryLimit when so many units of work are more than there are.

        `advice`: what helps beside a larger budget, ending in "or ".
        """
        if units > self.work:
            raise QueryLimit("work", self.work, advice=advice)
        if units > HURRIED_ROWS:
            refuse_to_wait()

    def keep(self, size: int) -> None:
        """Raise QueryLimit when so many bytes of eligible ids are more than there may be."""
        if size > self.bytes:
            raise QueryLimit("bytes", self.bytes)


class Question(msgspec.Struct, frozen=True):
    """What is asked of one space. Times are milliseconds; `as_of` is always decided."""

    text: str
    k: int
    as_of: int
    known_at: int | None
    history: History
    scope: Scope
    min_score: float | None
    candidate_limit: int
    budget: Budget
    mode: Mode = "lexical"
    vector: NDArray[np.float32] | None = None  # of the query; there unless the mode is lexical
    model: str = ""  # the embedder that made it; empty where the caller gave it
    fusion: Fusion = Fusion()
    context: Context | None = None
    during: tuple[int, int] | None = None  # in place of the history: current at some instant of it

    @property
    def is_plain(self) -> bool:
        """Whether words alone are searched, each fact by its own."""
        return self.mode == "lexical" and self.context is None and self.during is None


class Weighing(msgspec.Struct, frozen=True):
    """How retrieval scores become final ones."""

    recency: RecencyPolicy
    ranking: RankingPolicy
    historical_weight: float

    def is_identity(self, history: History) -> bool:
        """Whether recall is plain search: scores unmodified, exactly k asked."""
        return (
            (history == "current" or self.historical_weight == 1.0)
            and self.ranking.is_identity
            and self.recency.is_identity
        )
