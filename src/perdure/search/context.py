"""What stands around a match: the words of its neighbours in the same source, and who and when is asked for.

A fact is often found by words that stand next to it: the question that it answers, the turn before. So its
neighbours' words count as its own do, only less, by BM25F (Robertson, Zaragoza and Taylor, 2004): for each
term of the query

    x = own tf / K + sum over neighbours of weight * tf / K        K = k1 * (1 - b + b * length / average)
    score = idf * x / (1 + x)

with each neighbour's tf and K its own. A fact without neighbours scores as BM25 alone. On top of that the
facts of an actor whom the question names, and those of a period that it names, count more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.lexical.bm25 import idf
from perdure.model.context import Context
from perdure.model.hit import Part
from perdure.search.periods import named_periods, within
from perdure.search.query import Question
from perdure.search.standing import column
from perdure.space.state import NO_TIME, NOWHERE, SpaceState
from perdure.temporal.columns import BEGINNING

PERIOD_TAIL_DAYS = 38  # a month is often spoken of until the end of the next one, and a week more

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Search = Callable[[Sequence[str]], tuple[list[int], list[float]]]
"""Returns all eligible rows that hold one of the terms, and their scores."""


class InContext(NamedTuple):
    """The addends of every row's lexical score, by row; all 0 where nothing matches in or around it."""

    lexical: Scores
    smoothing: Scores
    actor: Scores
    period: Scores
    total: Scores

    def parts(self, row: int) -> tuple[Part, ...]:
        """Return the addends of one row's score, in the order in which they add up to `total`."""
        parts = [Part("lexical", float(self.lexical[row]))]
        around = (Part(name, float(getattr(self, name)[row])) for name in ("smoothing", "actor", "period"))
        return (*parts, *(part for part in around if part.value))

    def ranked(self) -> list[int]:
        """Return the rows that score at all, best first, ties by row."""
        rows = np.flatnonzero(self.total)
        return [int(row) for row in rows[np.argsort(-self.total[rows], kind="stable")]]


def in_context(
    state: SpaceState,
    terms: Sequence[str],
    question: Question,
    search: Search,
    eligible: NDArray[np.bool_],
) -> InContext:
    """Return the lexical scores of all eligible rows with what stands around them.

    Args:
        eligible: one flag a row; only such rows are neighbours, and only such rows score.
    """
    context = question.context
    assert context is not None
    rows, scores = search(terms)
    lexical = np.zeros(state.next_number)
    lexical[rows] = scores
    smoothing = _smoothing(state, terms, context, search, eligible, lexical)
    base = lexical + smoothing
    actor, period = np.zeros_like(base), np.zeros_like(base)
    if context.actor != 1.0 and (name := named_actor(state, terms)) is not None:
        theirs = np.array(state.actors[name], dtype=np.int64)
        actor[theirs] = base[theirs] * (context.actor - 1.0)
    if context.period != 1.0 and (periods := named_periods(question.text)):
        met = np.flatnonzero(base)
        met = met[within(told_times(state, met), periods, PERIOD_TAIL_DAYS)]
        period[met] = (base[met] + actor[met]) * (context.period - 1.0)
    return InContext(lexical, smoothing, actor, period, base + actor + period)


def named_actor(state: SpaceState, terms: Sequence[str]) -> str | None:
    """Return the one actor of the space all of whose name's terms are asked for; None if there are several."""
    key = ("actors",)
    known: dict[str, frozenset[str]] | None = state.kept.get(key)
    if known is None:
        known = {name: frozenset(state.profile.document_terms(name)) for name in state.actors}
        state.keep(key, known)
    asked = set(terms)
    named = [name for name, words in known.items() if words and words <= asked]
    return named[0] if len(named) == 1 else None


def told_times(state: SpaceState, rows: Rows) -> NDArray[np.int64]:
    """Return when each row happened: event_time, else valid_from, else ingest_time; BEGINNING for documents."""
    event, start = column(state.event)[rows], column(state.valid_from)[rows]
    times = np.where(
        event != NO_TIME, event, np.where(start != BEGINNING, start, column(state.ingested)[rows])
    )
    # BEGINNING lies before every year that has a name.
    return np.maximum(times, -62_135_596_800_001)


class Neighbours:
    """Finds the rows at a distance in the same source. Rows of one source and position are one turn."""

    def __init__(self, state: SpaceState) -> None:
        places = np.frombuffer(memoryview(state.places).cast("B"), dtype=np.uint64).copy()
        rows = np.flatnonzero(places != NOWHERE)
        order = np.argsort(places[rows], kind="stable")
        self._places, self._rows, self._by_row = places[rows][order], rows[order], places

    @classmethod
    def of(cls, state: SpaceState) -> Neighbours:
        """Return the neighbours of a state's rows, worked out once between two writes."""
        kept: Neighbours | None = state.kept.get(("places",))
        if kept is None:
            kept = cls(state)
            state.keep(("places",), kept)
        return kept

    def __bool__(self) -> bool:
        return len(self._rows) > 0

    def strongest(self, rows: Rows, values: Scores) -> tuple[NDArray[np.uint64], Scores]:
        """Return the places of those rows that have one, ascending, each once with the greatest value there."""
        places = self._by_row[rows]
        placed = places != NOWHERE
        places, values = places[placed], values[placed]
        order = np.lexsort((-values, places))
        places, values = places[order], values[order]
        first = np.ones(len(places), dtype=np.bool_)
        first[1:] = places[1:] != places[:-1]
        return places[first], values[first]

    def at(self, places: NDArray[np.uint64], distance: int) -> tuple[Rows, Rows]:
        """Return the rows that stand `distance` after the places, and for each the index of its place."""
        with np.errstate(over="ignore"):  # places are numbers modulo 2**64
            wanted = places + np.array(distance, dtype=np.int64).astype(np.uint64)
        low = np.searchsorted(self._places, wanted, side="left")
        counts = np.searchsorted(self._places, wanted, side="right") - low
        index = np.repeat(np.arange(len(wanted)), counts)
        inside = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._rows[low[index] + inside], index

    def around(self, row: int, distance: int) -> list[int]:
        """Return the rows at a distance from one row, ascending; none where it has no place."""
        place = self._by_row[row : row + 1]
        return [] if place[0] == NOWHERE else sorted(int(found) for found in self.at(place, distance)[0])


def distances(context: Context) -> list[tuple[int, float]]:
    """Return each distance in positions with its weight, in the order in which they are added."""
    return [
        (sign * (step + 1), weight)
        for step, weight in enumerate(context.neighbours)
        if weight
        for sign in (-1, 1)
    ]


def _smoothing(
    state: SpaceState,
    terms: Sequence[str],
    context: Context,
    search: Search,
    eligible: NDArray[np.bool_],
    lexical: Scores,
) -> Scores:
    """Return what neighbours' words add to each row's own score, at least 0."""
    steps = distances(context)
    neighbours = Neighbours.of(state) if steps else None
    if not neighbours:
        return np.zeros_like(lexical)
    whole, met = np.zeros_like(lexical), np.zeros(len(lexical), dtype=np.bool_)
    for term in terms:
        rows, scores = search([term])
        if not rows:
            continue
        weight = idf(state.index.document_count, state.index.document_frequency(term))
        shares = _occurrences(np.array(scores), weight)
        share = np.zeros_like(lexical)
        share[rows] = shares
        places, values = neighbours.strongest(np.array(rows, dtype=np.int64), shares)
        for distance, factor in steps:
            # Each place is there once, so at one distance no row is met twice.
            near, index = neighbours.at(places, -distance)
            share[near] += factor * values[index]
            met[near] = True
        with np.errstate(divide="ignore"):
            whole += weight / (1.0 + 1.0 / share)
    return np.where(met & eligible, np.maximum(whole - lexical, 0.0), 0.0)


def _occurrences(scores: Scores, weight: float) -> Scores:
    """Return tf / K of each row, from its score weight * tf / (tf + K); infinite where k1 is 0."""
    with np.errstate(divide="ignore"):
        found: Scores = scores / (weight - scores)
    return found
