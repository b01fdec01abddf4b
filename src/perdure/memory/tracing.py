"""Reads that say what was looked at: a recall with what it left out, and what came to be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perdure.base.instants import to_datetime
from perdure.log.records import EndRecord
from perdure.model.hit import Hit
from perdure.model.trace import Diff, Difference, Rejected, Trace
from perdure.search.eligibility import numbers_in
from perdure.search.hydration import View, with_unit_texts
from perdure.search.query import Budget, Question, Scope, Weighing
from perdure.search.standing import is_known, status_of
from perdure.search.tracing import trace
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState
from perdure.temporal.links import Link, LinkKind


def traced(
    view: View,
    question: Question,
    weighing: Weighing,
    secret: bytes,
    told: tuple[str, Mapping[str, Any], int],
) -> Trace:
    """Return the trace of a question; `told` is the query and options as asked, and how many rejections to list."""
    query, options, limit = told
    found = trace(view, question, weighing, secret, limit)
    facts = with_unit_texts(view, found.returned)
    ids = view.reader.get_many(view.state, [left.number for left in found.rejected])
    return Trace(
        query,
        dict(options),
        found.seen,
        found.eligible,
        found.matched,
        found.scored,
        len(found.returned),
        tuple(Hit(fact, one.score, fact.status) for fact, one in zip(facts, found.returned, strict=True)),
        tuple(
            Rejected(record.id, left.reason, left.status, left.filter)
            for record, left in zip(ids, found.rejected, strict=True)
        ),
    )


class Differing:
    """Compares what was known at two moments, for the facts of a scope. Documents have no times."""

    def __init__(self, state: SpaceState, reader: FactReader, known_at: tuple[int, int], as_of: int) -> None:
        self._state, self._known_at, self._as_of = state, known_at, as_of
        self._view = View(state, reader, as_of, known_at[1])

    def diff(self, scope: Scope, secret: bytes, budget: Budget) -> Diff:
        """Return what differs. QueryLimit where the budget's work is less than the rows."""
        state, (start, end) = self._state, self._known_at
        budget.spend(state.next_number)
        numbers = state.numbers() if scope.is_open else sorted(numbers_in(state, scope, secret))
        facts = [n for n in numbers if n not in state.plain and is_known(state, n, end)]
        return Diff(
            to_datetime(start),
            to_datetime(end),
            to_datetime(self._as_of),
            self._differences(n for n in facts if self._is_new(state.ingested[n])),
            self._differences(n for n in facts if any(e.at is not None for e in self._new_ends(n))),
            self._differences(n for n in facts if any(e.at is None for e in self._new_ends(n))),
            self._differences(n for n in facts if self._new_links(n, LinkKind.SUPERSEDES)),
            self._differences(n for n in facts if self._new_links(n, LinkKind.CORRECTS)),
        )

    def _is_new(self, at: int) -> bool:
        return self._known_at[0] < at <= self._known_at[1]

    def _new_ends(self, number: int) -> list[EndRecord]:
        return [end for end in self._state.ends.get(number, ()) if self._is_new(end.recorded_at)]

    def _links_known_at(self, number: int, at: int) -> list[Link]:
        """Return the links above the fact that were known then, which takes both of its ends."""
        state = self._state
        if not is_known(state, number, at):
            return []
        return [
            link for link in state.above(number) if link.known_from <= at and is_known(state, link.newer, at)
        ]

    def _new_links(self, number: int, kind: LinkKind) -> list[Link]:
        start, end = self._known_at
        before = self._links_known_at(number, start)
        return [
            link for link in self._links_known_at(number, end) if link.kind is kind and link not in before
        ]

    def _differences(self, numbers: Iterable[int]) -> tuple[Difference, ...]:
        chosen, state = list(numbers), self._state
        start = self._known_at[0]
        found = []
        for number, fact in zip(chosen, self._view.facts(chosen), strict=True):
            before = status_of(state, number, self._as_of, start) if is_known(state, number, start) else None
            newer = [link.newer for link in self._links_known_at(number, self._known_at[1])]
            by = sorted({record.id for record in self._view.reader.get_many(state, newer)})
            found.append(Difference(fact, before, fact.status, tuple(by)))
        return tuple(found)
