"""Facts as lines that an import reads back as new facts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from perdure.contract import limits
from perdure.contract.wire import fact_object

if TYPE_CHECKING:
    from perdure.memory.facade import Memory
    from perdure.model.fact import Fact

KEPT = (
    "id",
    "text",
    "subject",
    "entities",
    "metadata",
    "tags",
    "kind",
    "importance",
    "pinned",
    "eventTime",
    "validFrom",
    "validTo",
    "source",
    "supersedes",
)


def export_facts(
    memory: Memory,
    *,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
) -> Iterator[dict[str, Any]]:
    """Yield every visible fact that a filter matches as an object of `NewFact` fields, what it supersedes before it.

    What was superseded by way of facts that the filter leaves out is superseded directly.

    An end that was told later becomes the fact's `validTo`; a fact that was retracted, or ended as it
    began, holds at no moment and is left out, as are links to such a fact. Recorded times, reasons and
    the difference between a correction and a change of the world are not in the lines.
    """
    facts = {fact.id: fact for fact in _all(memory)}
    chosen = facts.keys() if filter is None else {fact.id for fact in _all(memory, filter)} & facts.keys()
    spans = {id_: _valid_to(facts[id_]) for id_ in facts if id_ in chosen and not _never(facts[id_])}
    passed = {id_ for id_ in facts if id_ not in chosen and not _never(facts[id_])}
    older = {id_: _superseded(id_, facts, passed, spans.keys()) for id_ in spans}
    for id_ in TopologicalSorter(older).static_order():
        told = fact_object(facts[id_])
        told["validTo"] = spans[id_]
        told["supersedes"] = older[id_]
        yield {name: told[name] for name in KEPT if told[name] not in (None, [], {}, False)}


def _superseded(
    id_: str, facts: Mapping[str, Fact], passed: Collection[str], wanted: Collection[str]
) -> list[str]:
    """Return the wanted facts that a fact supersedes, directly or by way of passed ones, in order of their ids."""
    waiting, seen = [id_], set()
    while waiting:
        for other in facts[waiting.pop()].supersedes:
            if other not in seen:
                seen.add(other)
                waiting += [other] if other in passed else []
    return sorted(other for other in seen if other in wanted)


def _all(memory: Memory, filter_: Mapping[str, Any] | None = None) -> Iterator[Fact]:
    cursor = None
    while True:
        page = memory.list(filter=filter_, limit=limits.LIST_MAX, cursor=cursor)
        yield from page.items
        if not page.has_more:
            return
        cursor = page.cursor


def _never(fact: Fact) -> bool:
    if any(end.at is None for end in fact.ends):
        return True
    return fact.valid_from is not None and any(
        end.at is not None and end.at <= fact.valid_from for end in fact.ends
    )


def _valid_to(fact: Fact) -> int | None:
    told: int | None = fact_object(fact)["validTo"]
    ends = [end["at"] for end in fact_object(fact)["ends"] if end["at"] is not None]
    return min([*ends, *([] if told is None else [told])], default=None)
