"""Pruning: forget old and unimportant facts, then the least relevant over a number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from perdure.policies.forgetting import FactSummary
from perdure.policies.parameters import Parameter, Real, Whole, set_checked
from perdure.policies.recency import age
from perdure.policies.relevance import DAY_MS, IMPORTANCE_ABSENT, Relevance

USES_KEPT = 3  # a fact that was used so often is kept whatever its age
KEEPING_TAGS = frozenset({"keep", "pinned", "protected", "consolidated", "conflict"})
KEEPING_KEYS = ("keep", "pinned", "protected")  # of the metadata, with a value that says yes
RELATING_KEYS = ("supersedes", "conflicts_with")  # of the metadata, with any value
YES = frozenset({"1", "true", "yes", "keep", "pinned", "protected"})
_RELEVANCE = Relevance()


@dataclass(frozen=True, kw_only=True)
class Prune:
    """Remove facts that are old and unimportant; then, over `max_facts`, the least relevant.

    Ages count from event_time, else valid_from, else ingest_time; importance counts 0.5 where untold.

    1. What is older than `max_age_days` and less important than `min_importance` goes.
    2. While more than `max_facts` are left, the least relevant goes: 0.7 * importance +
       0.3 * exp(-age_days / 30) (the weights of `Relevance`), of equals the one that was stored first.

    Protected facts never go, so more than `max_facts` may stay (see `is_protected`).

    Args:
        max_age_days: how old an unimportant fact may get, 0 or more.
        min_importance: what is less important than this is unimportant, 0 to 1.
        max_facts: how many facts stay; 0 for no such limit.
    """

    max_age_days: float = 90.0
    min_importance: float = 0.5
    max_facts: int = 0

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "max_age_days": Real(0.0),
        "min_importance": Real(0.0, 1.0),
        "max_facts": Whole(0),
    }
    reads_content: ClassVar[bool] = True  # metadata may protect a fact

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        loose = [fact for fact in facts if not is_protected(fact)]
        leaving = [fact for fact in loose if self._is_spent(fact, now)]
        surplus = len(facts) - len(leaving) - self.max_facts
        if self.max_facts and surplus > 0:
            gone = {fact.number for fact in leaving}
            rest = [fact for fact in loose if fact.number not in gone]
            rest.sort(key=lambda fact: (relevance_of(fact, now), fact.ingest_time, fact.number))
            leaving += rest[:surplus]
        return [fact.id for fact in leaving]

    def _is_spent(self, fact: FactSummary, now: int) -> bool:
        # Not `age > limit * DAY_MS` in floats alone: the limit may be larger than any age.
        return _importance(fact) < self.min_importance and _age(fact, now) / DAY_MS > self.max_age_days


def is_protected(fact: FactSummary) -> bool:
    """Whether pruning leaves the fact alone.

    It is pinned, was used three times or more, is linked to another fact, is tagged keep, pinned, protected,
    consolidated or conflict, or its metadata says so: keep, pinned or protected with a value that says yes
    (true, a number other than 0, or one of 1, true, yes, keep, pinned, protected in any case), supersedes or
    conflicts_with with any value that is not blank.
    """
    return (
        fact.pinned
        or fact.linked
        or fact.uses >= USES_KEPT
        or not KEEPING_TAGS.isdisjoint(fact.tags)
        or any(_says_yes(fact.metadata.get(key)) for key in KEEPING_KEYS)
        or any(_is_there(fact.metadata.get(key)) for key in RELATING_KEYS)
    )


def relevance_of(fact: FactSummary, now: int) -> float:
    """Return how relevant a fact is by itself, 0 to 1: by its importance and its freshness."""
    return _RELEVANCE.importance_weight * _importance(
        fact
    ) + _RELEVANCE.recency_weight * _RELEVANCE.freshness(_age(fact, now))


def _importance(fact: FactSummary) -> float:
    return IMPORTANCE_ABSENT if fact.importance is None else fact.importance


def _age(fact: FactSummary, now: int) -> int:
    told = age(
        "event", now, event_time=fact.event_time, valid_from=fact.valid_from, ingest_time=fact.ingest_time
    )
    return 0 if told is None else told


def _says_yes(value: Any) -> bool:
    return value.strip().lower() in YES if isinstance(value, str) else bool(value)


def _is_there(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and value is not False and value not in ([], {})
