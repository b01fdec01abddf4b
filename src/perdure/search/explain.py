"""Why a fact came back, or why it did not. Nothing here runs unless a caller asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perdure.base.instants import to_datetime
from perdure.errors import QueryLimit
from perdure.lexical.marking import TextMarking
from perdure.log.records import FactRecord
from perdure.model.hit import ChainLink, Explanation, Neighbour, Part, Reason
from perdure.model.node import NodeReference
from perdure.model.status import Status
from perdure.policies.scoring import sum_of
from perdure.search.context import PERIOD_TAIL_DAYS, Neighbours, distances, named_actor, told_times
from perdure.search.eligibility import eligibility, is_filtered
from perdure.search.flags import flags_of
from perdure.search.governed import find_node_reference
from perdure.search.hydration import View, find_source
from perdure.search.periods import named_periods, within
from perdure.search.pipeline import Ranked
from perdure.search.query import Question
from perdure.search.semantic import cosines_of
from perdure.search.standing import is_known, standing, status_of
from perdure.space.state import SpaceState
from perdure.temporal.columns import BEGINNING, FOREVER
from perdure.temporal.links import component, effective_time
from perdure.temporal.status import is_during, status_at, within_validity

WEIGHTS = {"lexical": 1.0, "semantic": 0.0}
SEMANTIC = {"lexical": 0.0, "semantic": 1.0}


def _weights(question: Question) -> dict[str, float]:
    if question.mode == "hybrid":
        return {"lexical": question.fusion.lexical, "semantic": question.fusion.semantic}
    return WEIGHTS if question.mode == "lexical" else SEMANTIC


class Explainer:
    """Explains the facts of one read; what they share is worked out once."""

    def __init__(self, view: View, question: Question, secret: bytes, *, labels: bool) -> None:
        """`labels`: the ranking searched the words of tags and kind too."""
        self._labels = view.state.labels if labels else None
        self._view, self._question, self._secret = view, question, secret
        profile = view.state.profile
        self._terms = profile.query_terms(question.text)
        self._asked, self._profile = tuple(self._terms), profile.name
        asked = set(self._terms)
        self._words = [
            (word, terms) for word, terms in profile.query_words(question.text) if not asked.isdisjoint(terms)
        ]
        self._holders: dict[str, set[int]] = {}
        self._labelled: dict[str, set[int]] = {}  # who holds a word in tags or kind
        self._looked_up: set[int] = set()
        self._eligible: NDArray[np.bool_] | None = None
        self._components: dict[int, tuple[dict[int, int], list[ChainLink]]] = {}
        self._chained = 0  # chain links made for this read: one unit of work each
        self._plain = question.known_at is None and question.scope.is_open and question.is_plain
        self._weights = _weights(question)
        self._periods = () if question.context is None else named_periods(question.text)
        self._actor = None if question.context is None else named_actor(view.state, self._terms)
        self._as_of = to_datetime(question.as_of)
        self._known_at = None if question.known_at is None else to_datetime(question.known_at)

    def returned(self, ranked: Sequence[Ranked]) -> list[Explanation]:
        """Explain the results of a recall, given in their order."""
        self._look_up([one.row for one in ranked])
        return [
            self._explanation(one.number, one.row, "returned", rank, one)
            for rank, one in enumerate(ranked, 1)
        ]

    def candidate(self, ranked: Ranked, rank: int, reason: Reason) -> Explanation:
        """Explain a candidate that was ranked."""
        return self._explanation(ranked.number, ranked.row, reason, rank, ranked)

    def absent(self, number: int, reason: Reason) -> Explanation:
        """Explain a fact that was not ranked."""
        return self._explanation(number, number, reason, None, None)

    def reason_unranked(self, number: int) -> Reason:
        """Return the first reason that keeps an unranked fact from the results."""
        state, question = self._view.state, self._question
        if not is_known(state, number, question.known_at):
            return "not-known"
        if is_filtered(state, number, question.scope, self._secret):
            return "filtered"
        if question.during is not None:
            if not is_during(*standing(state, number, question.known_at), question.during):
                return "not-current"
        elif question.history != "all":
            current = status_of(state, number, question.as_of, question.known_at) is Status.CURRENT
            if current != (question.history == "current"):
                return "not-current"
        if self._matches(number):
            return "below-candidates"
        return "no-match" if question.vector is None else "no-vector"

    def _matches(self, number: int) -> bool:
        """Whether anything but the number of candidates kept the fact from being one."""
        if self._question.mode != "lexical" and self._cosine(number) is not None:
            return True
        if self._question.mode == "semantic":
            return False
        return self.lexical_score(number) > 0.0 or bool(self._neighbours(number))

    def lexical_score(self, number: int) -> float:
        """Return the fact's own lexical score whoever else is asked about; 0 where no term matches."""
        state = self._view.state
        rows = list(range(number, number + state.unit_counts.get(number, 1)))
        score = max(state.index.scores(self._terms, rows))
        return score + self._label_score(self._terms, number)

    def _cosine(self, number: int) -> float | None:
        found = cosines_of(self._view.state, self._view.reader, self._question, [number])
        return found[number][2] if number in found else None

    def _neighbours(self, number: int) -> tuple[Neighbour, ...]:
        """Return the eligible neighbours that hold a word of the query, in order of position."""
        question, state = self._question, self._view.state
        if question.context is None or not self._terms:
            return ()
        if self._eligible is None:
            eligible = eligibility(state, question, self._secret)
            self._eligible = flags_of(state, eligible, question.as_of)
        places = Neighbours.of(state)
        found = [
            (distance, weight, row)
            for distance, weight in sorted(distances(question.context))
            for row in places.around(number, distance)
            if self._eligible[row]
        ]
        self._look_up([row for _, _, row in found])
        records = self._view.reader.get_many(state, [row for _, _, row in found])
        return tuple(
            Neighbour(record.id, distance, weight, words)
            for (distance, weight, row), record in zip(found, records, strict=True)
            if (words := self._held(row))
        )

    def _period(self, number: int) -> str | None:
        if not self._periods:
            return None
        time = told_times(self._view.state, np.array([number]))
        for period in self._periods:
            if within(time, [period], PERIOD_TAIL_DAYS)[0]:
                return str(period)
        return None

    def _label_score(self, terms: list[str], number: int) -> float:
        labels = self._labels
        row = None if labels is None else labels.row_of.get(number)
        return 0.0 if labels is None or row is None else labels.index.scores(terms, [row])[0]

    def _explanation(
        self, number: int, row: int, reason: Reason, rank: int | None, ranked: Ranked | None
    ) -> Explanation:
        state, question = self._view.state, self._question
        record = self._view.reader.get(state, number)
        if self._plain and ranked is not None and ranked.addends is None and _stands_alone(state, number):
            return self._simple(record, row, reason, rank, ranked.score)
        known = is_known(state, number, question.known_at)
        start, end, superseded = standing(state, number, question.known_at)
        status = status_at(start, end, superseded, question.as_of) if known else None
        filtered = () if question.scope.is_open else is_filtered(state, number, question.scope, self._secret)
        retrieval = () if ranked is None else ranked.retrieval
        cosine = self._cosine(number) if ranked is None or ranked.cosine is None else ranked.cosine
        around = self._question.context is not None
        recency, historical = (1.0, 1.0) if ranked is None else (ranked.recency, ranked.historical)
        # By position: naming two dozen fields would take longer than finding their values.
        return Explanation(
            record.id,
            reason,
            reason == "returned",
            rank,
            retrieval[0].value
            if ranked is not None and ranked.addends is None
            else self.lexical_score(number),
            cosine,
            None if ranked is None else sum_of(retrieval),
            dict(self._weights),
            question.fusion.name if question.mode == "hybrid" else None,
            self._matched(row),
            recency,
            historical,
            None if ranked is None else ranked.score,
            retrieval if ranked is None or ranked.parts is None else ranked.parts,
            status,
            self._as_of,
            self._known_at,
            None if start == BEGINNING else to_datetime(start),
            None if end in (FOREVER, BEGINNING) else to_datetime(end),
            within_validity(start, end, question.as_of),
            filtered,
            () if status is None else self._chain(number, record, status),
            find_source(self._view.state, self._view.reader, record),
            self._marking(record, row),
            self._neighbours(number) if around else (),
            self._actor if around and number in state.actors.get(self._actor or "", ()) else None,
            self._period(number) if around else None,
            *self._uses(number),
            self._node(number),
        )

    def _node(self, number: int) -> NodeReference | None:
        return find_node_reference(self._view.state, self._view.reader, number)

    def _uses(self, number: int) -> tuple[int, datetime | None]:
        count, last = self._view.state.uses.get(number, (0, BEGINNING))
        return count, to_datetime(last) if count else None

    def _marking(self, record: FactRecord, row: int) -> TextMarking:
        text = self._view.unit_text(record.number, row)
        return TextMarking(record.text if text is None else text, self._asked, self._profile)

    def _simple(
        self, record: FactRecord, row: int, reason: Reason, rank: int | None, score: float
    ) -> Explanation:
        """The common case: a fact without window, end or link, found by search alone, nothing narrowed."""
        at = self._instant(self._view.state.eff(record.number))
        return Explanation(
            record.id,
            reason,
            reason == "returned",
            rank,
            score,
            None,
            score,
            dict(WEIGHTS),
            None,
            self._matched(row),
            1.0,
            1.0,
            score,
            (Part("lexical", score),),
            Status.CURRENT,
            self._as_of,
            None,
            None,
            None,
            True,
            (),
            (ChainLink(record.id, record.text, "self", False, at, Status.CURRENT),),
            find_source(self._view.state, self._view.reader, record),
            self._marking(record, row),
            (),
            None,
            None,
            *self._uses(record.number),
            self._node(record.number),
        )

    def _look_up(self, rows: Sequence[int]) -> None:
        """Find out which of the rows hold which of the query's words: a term's own score tells."""
        index = self._view.state.index
        for word, terms in self._words:
            held = self._holders.setdefault(word, set())
            for term in terms:
                held.update(
                    [
                        row
                        for row, score in zip(rows, index.scores([term], list(rows)), strict=True)
                        if score > 0.0
                    ]
                )
            if self._labels is not None:
                named = self._labelled.setdefault(word, set())
                named.update(row for row in rows if self._label_score(list(terms), row) > 0.0)
        self._looked_up.update(rows)

    def _matched(self, row: int) -> tuple[str, ...]:
        """Return the query's words that the fact holds in its text or, under relevance, in its labels."""
        held = self._held(row)
        if not self._labelled:
            return held
        return tuple([word for word in self._holders if word in held or row in self._labelled[word]])

    def _held(self, row: int) -> tuple[str, ...]:
        """Return the query's words that the fact holds in its text: what it gives to its neighbours."""
        if row not in self._looked_up:
            self._look_up([row])
        return tuple([word for word, held in self._holders.items() if row in held])

    def _chain(self, number: int, record: FactRecord, status: Status) -> tuple[ChainLink, ...]:
        state = self._view.state
        if not state.above(number) and not state.below(number):
            at = self._instant(state.eff(number))
            return (ChainLink(record.id, record.text, "self", False, at, status),)
        places, related = self._component(number)
        self._chained += len(related)
        if self._chained > self._question.budget.work:
            raise QueryLimit("work", self._question.budget.work)
        chain = list(related)
        for link in state.below(number):
            self._relate(chain, places, link.older, "supersedes", effective_time(link, state))
        for link in state.above(number):
            self._relate(chain, places, link.newer, "superseded-by", effective_time(link, state))
        at = self._instant(state.eff(number))
        chain[places[number]] = ChainLink(record.id, record.text, "self", False, at, status)
        return tuple(chain)

    def _component(self, number: int) -> tuple[dict[int, int], list[ChainLink]]:
        """Return where each known member of the fact's component stands, and all of them as mere relatives.

        Results of one recall often share a component, so it is walked once.
        """
        kept = self._components.get(number)
        if kept is not None:
            return kept
        view, state, question = self._view, self._view.state, self._question
        whole = component(number, state, frontier_limit=question.budget.frontier)
        known = (n for n in whole if is_known(state, n, view.known_at))
        members = sorted(known, key=lambda n: (state.eff(n), n))
        related = [
            ChainLink(
                record.id,
                record.text,
                "related",
                False,
                None,
                status_of(state, member, question.as_of, question.known_at),
            )
            for member, record in zip(members, view.reader.get_many(state, members), strict=True)
        ]
        found = ({member: place for place, member in enumerate(members)}, related)
        for member in members:
            self._components[member] = found
        return found

    def _relate(
        self,
        chain: list[ChainLink],
        places: dict[int, int],
        other: int,
        relation: Literal["supersedes", "superseded-by"],
        at: int,
    ) -> None:
        place = places.get(other)
        if place is not None:
            seen = chain[place]
            chain[place] = ChainLink(seen.id, seen.text, relation, True, self._instant(at), seen.status)

    def _instant(self, millis: int) -> datetime | None:
        return None if millis == BEGINNING else to_datetime(millis)


def _stands_alone(state: SpaceState, number: int) -> bool:
    links = state.links
    return number not in state.timed and number not in links.above and number not in links.below
