"""Facts as lines that an import reads back as new facts."""

from __future__ import annotations

from collections.abc import Iterator
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


def export_facts(memory: Memory) -> Iterator[dict[str, Any]]:
    """Yield every visible fact as an object of `NewFact` fields, what it supersedes before it.

    An end that was told later becomes the fact's `validTo`; a fact that was retracted, or ended as it
    began, holds at no moment and is left out, as are links to such a fact. Recorded times, reasons and
    the difference between a correction and a change of the world are not in the lines.
    """
    facts = {fact.id: fact for fact in _all(memory)}
    spans = {id_: _valid_to(fact) for id_, fact in facts.items() if not _never(fact)}
    order = TopologicalSorter({id_: [o for o in facts[id_].supersedes if o in spans] for id_ in spans})
    for id_ in order.static_order():
        told = fact_object(facts[id_])
        told["validTo"] = spans[id_]
        told["supersedes"] = [other for other in told["supersedes"] if other in spans]
        yield {name: told[name] for name in KEPT if told[name] not in (None, [], {}, False)}


def _all(memory: Memory) -> Iterator[Fact]:
    cursor = None
    while True:
        page = memory.list(limit=limits.LIST_MAX, cursor=cursor)
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
