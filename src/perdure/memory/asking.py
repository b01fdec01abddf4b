"""From keyword arguments to a resolved question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from perdure.base.instants import Instant, find_millis
from perdure.base.text import shown_number
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.memory.config import HISTORIES, MemoryConfig
from perdure.planning import checks
from perdure.planning.questions import checked_filter, checked_query
from perdure.search.query import OPEN, Budget, History, Question, Scope, Weighing

NOW = (None, None)  # the present, and everything that is known


class Asking:
    """A configuration's defaults for questions, resolved once."""

    def __init__(self, config: MemoryConfig) -> None:
        self._k, self._history = config.default_k, config.default_history
        self.budget = Budget(config.limits.work, config.limits.frontier, config.limits.bytes)
        self.weighing = Weighing(config.recency_policy, config.ranking_policy, config.historical_weight)
        self.searches_alone = {history: self.weighing.is_identity(history) for history in HISTORIES}

    def options(
        self,
        query: str,
        *,
        k: int | None,
        history: str | None,
        scope: Scope,
        min_score: float | None,
        candidate_limit: int | None,
    ) -> Question:
        """Return the question with `as_of` and `known_at` still open (0 and None)."""
        query = checked_query(query)
        k = self._k if k is None else checks.checked_count(k, "k", 1, limits.K_MAX)
        history = self._history if history is None else checks.checked_choice(history, "history", HISTORIES)
        if candidate_limit is None:
            candidate_limit = max(limits.CANDIDATES_DEFAULT, k)
        else:
            candidate_limit = checks.checked_count(
                candidate_limit, "candidate_limit", k, limits.CANDIDATES_MAX
            )
        least = None if min_score is None else _checked_score(min_score)
        return Question(query, k, 0, None, cast(History, history), scope, least, candidate_limit, self.budget)


def checked_scope(
    *,
    subject: str | None = None,
    entity: str | None = None,
    tags: Iterable[str] | None = None,
    kind: str | None = None,
    pinned: bool | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
) -> Scope:
    """Return a read's scope, every value checked."""
    if (
        subject is None
        and entity is None
        and tags is None
        and kind is None
        and pinned is None
        and filter is None
    ):
        return OPEN
    return Scope(
        None if subject is None else checks.checked_name(subject, "subject"),
        None if entity is None else checks.checked_name(entity, "entity"),
        checks.checked_names(tags, "tags", limits.TAGS_MAX),
        checks.checked_kind(kind),
        None if filter is None else checked_filter(filter),
        None if pinned is None else checks.checked_flag(pinned, "pinned"),
    )


def checked_times(as_of: Instant | None, known_at: Instant | None) -> tuple[int | None, int | None]:
    if as_of is None and known_at is None:
        return NOW
    return find_millis(as_of, field="as_of"), find_millis(known_at, field="known_at")


def _checked_score(value: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    value = checks.plain_number(value) if number else value
    # Compared, not converted to a float: an integer may be too large for a float. NaN is in no range.
    if not number or not 0 <= value < math.inf:
        shown = shown_number(value) if number else type(value).__name__
        raise InvalidRequest(
            f"min_score must be a finite number of at least 0, got {shown}", field="min_score"
        )
    return value
