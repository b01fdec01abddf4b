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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.base.instants import EARLIEST
from perdure.errors import QueryLimit
from perdure.lexical.bm25 import idf
from perdure.model.context import Context
from perdure.model.hit import Part
from perdure.search.periods import named_periods, within
from perdure.search.query import Question
from perdure.search.standing import column
from perdure.space.state import NO_TIME, NOWHERE, SpaceState
from perdure.temporal.columns import BEGINNING

NONE = -1  # no place
# A month is often spoken of until the end of the next one, and a week more; fewer or more days do as well on the LoCoMo dev
# conversations (`bench.quality --sensitivity`).
PERIOD_TAIL_DAYS = 38

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class Held(NamedTuple):
    """A term of the query: its idf, the eligible rows that hold it, and tf / (tf + K) of each."""

    weight: float
    rows: Rows
    shares: Scores


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

    def ranked(self, count: int) -> Rows:
        """Return the best rows that score at all, best first, ties by row: `count` of them and all that tie with the
        last."""
        rows: Rows = np.flatnonzero(self.total)
        if len(rows) > count:
            scores = self.total[rows]
            rows = rows[scores >= np.partition(scores, -count)[-count]]
        return rows[np.argsort(-self.total[rows], kind="stable")]


def in_context(
    state: SpaceState,
    terms: Sequence[str],
    question: Question,
    eligible: NDArray[np.bool_],
) -> InContext:
    """Return the lexical scores of all eligible rows with what stands around them.

    Args:
        eligible: one flag a row; only such rows are neighbours, and only such rows score.

    Raises:
        QueryLimit: the terms stand in more rows than the budget's work.
    """
    context = question.context
    assert context is not None
    held = _held(state, terms, question, eligible)
    lexical = np.zeros(state.next_number)
    for term in held:
        lexical[term.rows] += term.weight * term.shares
    smoothing = _smoothing(state, held, context, eligible, lexical)
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


def _held(
    state: SpaceState, terms: Sequence[str], question: Question, eligible: NDArray[np.bool_]
) -> list[Held]:
    """Return the terms in the order in which a search adds them up."""
    index = state.index
    counts = sorted((count, term) for term in set(terms) if (count := index.document_frequency(term)))
    if sum(count for count, _ in counts) > question.budget.work:
        raise QueryLimit("work", question.budget.work)
    found = []
    for count, term in counts:
        places, values = index.shares(term)
        rows, shares = np.frombuffer(places, dtype=np.int32), np.frombuffer(values, dtype=np.float64)
        chosen = eligible[rows]
        weight = idf(index.document_count, count)
        found.append(Held(weight, rows[chosen].astype(np.int64), shares[chosen]))
    return found


def named_actor(state: SpaceState, terms: Sequence[str]) -> str | None:
    """Return the one actor of the space all of whose name's terms are asked for; None if there are several."""
    key = ("actors",)
    known: dict[str, frozenset[str]] | None = state.kept.get(key)
    if known is None:
        known = {
            name: frozenset(state.profile.document_terms(name))
            for name, numbers in state.actors.items()
            if not numbers.issubset(state.hidden)
        }
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
    # BEGINNING lies before every year that has a name, and so does this, without leaving the calendar.
    return np.maximum(times, EARLIEST - 1)


class Neighbours:
    """Finds the rows at a distance in the same source. Rows of one source and position are one turn."""

    def __init__(self, state: SpaceState) -> None:
        places = np.frombuffer(memoryview(state.places).cast("B"), dtype=np.uint64)
        rows = np.flatnonzero(places != NOWHERE)
        self._places, index = np.unique(places[rows], return_inverse=True)
        self._place_of = np.full(len(places), NONE, dtype=np.int64)
        self._place_of[rows] = index
        self._is_simple = len(self._places) == len(rows)  # every turn is one row
        self._row_at = rows[np.argsort(index, kind="stable")]  # by place, where they are simple
        self._shifted: dict[int, Rows] = {}

    @classmethod
    def of(cls, state: SpaceState) -> Neighbours:
        """Return the neighbours of a state's rows, worked out once between two writes."""
        kept: Neighbours | None = state.kept.get(("places",))
        if kept is None:
            kept = cls(state)
            state.keep(("places",), kept)
        return kept

    def __bool__(self) -> bool:
        return len(self._places) > 0

    def spread(self, rows: Rows, values: Scores, steps: Sequence[tuple[int, float]], onto: Scores) -> Rows:
        """Add each turn's value, weighted, to the rows of the turns at those distances; return these rows.

        Of several rows of one turn the greatest value counts, once.
        """
        places = self._place_of[rows]
        if not self._is_simple:
            order = np.lexsort((-values, places))
            places, values = places[order], values[order]
            first = np.ones(len(places), dtype=np.bool_)
            first[1:] = places[1:] != places[:-1]
            places, values = places[first], values[first]
        placed = places != NONE
        places, values = places[placed], values[placed]
        sums = np.zeros(len(self._places))
        for distance, weight in steps:
            near = self._shift(-distance)[places]
            there = near != NONE
            sums[near[there]] += (
                weight * values[there]
            )  # places are there once, and so are the ones beside them
        touched: Rows = np.flatnonzero(sums)
        if self._is_simple:
            rows_met = self._row_at[touched]
            onto[rows_met] += sums[touched]
            return rows_met
        placed_rows = np.flatnonzero(self._place_of != NONE)
        gains = sums[self._place_of[placed_rows]]
        rows_met = placed_rows[gains > 0.0]
        onto[rows_met] += gains[gains > 0.0]
        return rows_met

    def around(self, row: int, distance: int) -> list[int]:
        """Return the rows at a distance from one row, ascending; none where it has no place."""
        place = self._place_of[row]
        near = NONE if place == NONE else self._shift(distance)[place]
        if near == NONE:
            return []
        if self._is_simple:
            return [int(self._row_at[near])]
        return [int(found) for found in np.flatnonzero(self._place_of == near)]

    def _shift(self, distance: int) -> Rows:
        """Return for each place the one at a distance, or NONE."""
        found = self._shifted.get(distance)
        if found is None:
            with np.errstate(over="ignore"):  # places are numbers modulo 2**64
                wanted = self._places + np.array(distance, dtype=np.int64).astype(np.uint64)
            at = np.minimum(np.searchsorted(self._places, wanted), len(self._places) - 1)
            found = np.where(self._places[at] == wanted, at, NONE)
            self._shifted[distance] = found
        return found


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
    held: Sequence[Held],
    context: Context,
    eligible: NDArray[np.bool_],
    lexical: Scores,
) -> Scores:
    """Return what neighbours' words add to each row's own score, at least 0."""
    steps = distances(context)
    neighbours = Neighbours.of(state) if steps else None
    if not neighbours:
        return np.zeros_like(lexical)
    whole, share = np.zeros_like(lexical), np.zeros_like(lexical)
    met = np.zeros(len(lexical), dtype=np.bool_)
    for weight, rows, shares in held:
        own = _occurrences(shares)
        share[rows] = own
        touched = neighbours.spread(rows, own, steps, share)
        met[touched] = True
        holders = np.flatnonzero(share)
        with np.errstate(divide="ignore"):
            whole[holders] += weight / (1.0 + 1.0 / share[holders])
        share[holders] = 0.0
    return np.where(met & eligible, np.maximum(whole - lexical, 0.0), 0.0)


def _occurrences(shares: Scores) -> Scores:
    """Return tf / K, from tf / (tf + K); infinite where k1 is 0."""
    with np.errstate(divide="ignore"):
        found: Scores = shares / (1.0 - shares)
    return found
