"""Collapsing duplicates: one fact in the place of several current ones that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from perdure.base.text import folded_space
from perdure.contract.limits import ENTITIES_MAX, SUPERSEDES_MAX, TAGS_MAX
from perdure.model.status import Status
from perdure.policies.consolidation import Consolidation
from perdure.policies.forgetting import FactSummary, Superseder
from perdure.policies.uniting import united_importance, united_kind, united_tags


@dataclass(frozen=True)
class CollapseDuplicates:
    """Merge current facts of the same subject, text and validity; at every `as_of` the same is said as before.

    Texts are the same when they differ by white space only. Facts that supersede one another, at once or through
    others, are left alone. The merged fact has the text, source and vector of the earliest one, all their entities and
    tags, what their metadata share, the strongest kind, the highest importance; it is pinned where one of them is.
    It takes effect by now, and where all of them are to be superseded later, so is it.

    At most 256 facts, or as many as together have 256 entities and tags, are merged at once: the first by arrival,
    and the rest with what came of them at the next call.
    """

    reads_content: ClassVar[bool] = True

    def plan(self, facts: Sequence[FactSummary], now: int) -> Sequence[Consolidation]:
        by_number = {fact.number: fact for fact in facts}
        groups: dict[Any, list[FactSummary]] = {}
        for fact in facts:
            if fact.status is Status.CURRENT and fact.text is not None:
                said = (fact.subject, folded_space(fact.text), fact.valid_from, fact.valid_to)
                groups.setdefault(said, []).append(fact)
        found = (_fitting(_apart(group, by_number)) for group in groups.values() if len(group) > 1)
        return [_merged(group, by_number, now) for group in found if len(group) > 1]


def _apart(group: Sequence[FactSummary], by_number: Mapping[int, FactSummary]) -> list[FactSummary]:
    """Return the members that no link leads to another member from, nor to from another; by arrival."""
    numbers = {fact.number for fact in group}
    joined: set[int] = set()
    for fact in group:
        reached = numbers.intersection(_above(fact, by_number))
        if reached:
            joined |= reached | {fact.number}
    apart = [fact for fact in group if fact.number not in joined]
    return sorted(apart, key=lambda fact: (fact.ingest_time, fact.number))


def _above(fact: FactSummary, by_number: Mapping[int, FactSummary]) -> Iterator[int]:
    """Yield every fact that supersedes this one, directly or through others."""
    seen: set[int] = set()
    waiting = [link.number for link in fact.superseders]
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        yield number
        if number in by_number:
            waiting += [link.number for link in by_number[number].superseders]


def _fitting(group: Sequence[FactSummary]) -> list[FactSummary]:
    """Return the first members, as many as one fact can take the place of."""
    taken: list[FactSummary] = []
    entities: set[str] = set()
    tags: set[str] = set()
    for fact in group[:SUPERSEDES_MAX]:
        if len(entities | set(fact.entities)) > ENTITIES_MAX or len(tags | set(fact.tags)) > TAGS_MAX:
            break
        entities.update(fact.entities)
        tags.update(fact.tags)
        taken.append(fact)
    return taken


def _merged(group: Sequence[FactSummary], by_number: Mapping[int, FactSummary], now: int) -> Consolidation:
    first = group[0]
    assert first.text is not None
    end = _end(group)
    return Consolidation(
        text=first.text,
        sources=tuple(fact.id for fact in group),
        subject=first.subject,
        entities=tuple(sorted({entity for fact in group for entity in fact.entities})),
        metadata=_shared(group),
        event_time=_event(group, now),
        valid_from=first.valid_from,
        valid_to=first.valid_to,
        tags=united_tags(fact.tags for fact in group),
        kind=united_kind(fact.kind for fact in group),
        importance=united_importance(fact.importance for fact in group),
        pinned=any(fact.pinned for fact in group),
        source=next((fact.source for fact in group if fact.source is not None), None),
        superseded_by=None if end is None else by_number[end.number].id,
        superseded_from=None if end is None else end.since,
        keeps_vector=True,
    )


def _event(group: Sequence[FactSummary], now: int) -> int | None:
    """Return the earliest event time where all have one and it has come, so that the merged fact holds by now."""
    told = [fact.event_time for fact in group if fact.event_time is not None]
    return min(told) if len(told) == len(group) and min(told) <= now else None


def _end(group: Sequence[FactSummary]) -> Superseder | None:
    """Return the last of the first superseders of each; None where one of them has none."""
    if not all(fact.superseders for fact in group):
        return None
    return max((fact.superseders[0] for fact in group), key=lambda link: (link.since, link.number))


def _shared(group: Sequence[FactSummary]) -> dict[str, Any]:
    """Return the pairs of metadata that all have; true is not 1, and 1 is 1.0."""
    return {
        key: value
        for key, value in group[0].metadata.items()
        if all(key in fact.metadata and _same(fact.metadata[key], value) for fact in group)
    }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
