"""The reads of a memory: each one consistent view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perdure.base.haste import refuse_to_wait
from perdure.contract.wire import fact_json
from perdure.errors import NotFound
from perdure.log.records import decode
from perdure.memory.asking import Asking
from perdure.memory.feed import change_of
from perdure.memory.listing import Listing, list_facts
from perdure.memory.tracing import Differing, traced
from perdure.model.fact import Fact
from perdure.model.hit import Explanation, Hit
from perdure.model.replies import Change, Changes, Page
from perdure.model.status import Status
from perdure.model.trace import Diff, Trace
from perdure.search.cursors import CursorCodec
from perdure.search.eligibility import spend_on_filter
from perdure.search.explain import Explainer
from perdure.search.hydration import View, with_unit_texts
from perdure.search.pipeline import Ranked, find, rank, rank_candidates
from perdure.search.query import Question, Scope
from perdure.search.semantic import check_vector
from perdure.search.standing import is_known
from perdure.search.units import Unit
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import SpaceState
from perdure.temporal.links import component

Times = tuple[int | None, int | None]  # as_of (None: the present), known_at (None: everything)


class Reading:
    """Questions to one space."""

    def __init__(self, space: Space, asking: Asking) -> None:
        self._space, self._asking = space, asking
        self._secret = space.log.secret

    def recall(self, question: Question, times: Times, *, explain: bool) -> list[Hit]:
        if not explain:
            return self._space.read(lambda state, reader: self._hits(state, reader, question, times))
        weighing = self._asking.weighing

        def work(state: SpaceState, reader: FactReader) -> list[Hit]:
            asked = self._placed(question, state, times)
            view = View(state, reader, asked.as_of, asked.known_at)
            ranked = rank(state, reader, asked, weighing, self._secret)
            facts = with_unit_texts(view, ranked)
            explainer = Explainer(view, asked, self._secret, labels=not weighing.ranking.is_identity)
            return [
                Hit(fact, one.score, fact.status, why)
                for fact, one, why in zip(facts, ranked, explainer.returned(ranked), strict=True)
            ]

        return self._space.read(work)

    def recall_as_json(self, question: Question, times: Times) -> list[tuple[bytes, float, Status]]:
        """Return the hits of `recall`, without explanations, each as its fact on the wire, score and status."""

        def work(state: SpaceState, reader: FactReader) -> list[tuple[bytes, float, Status]]:
            if state.unit_counts:  # a document is shown by the unit that matched, not as it is kept
                hits = self._hits(state, reader, question, times)
                return [(fact_json(hit.fact), hit.score, hit.status) for hit in hits]
            view, ranked = self._ranked(state, reader, question, times)
            facts = view.facts_as_json([one[0] for one in ranked])
            return [(fact, one[2], status) for (fact, status), one in zip(facts, ranked, strict=True)]

        return self._space.read(work)

    def _hits(self, state: SpaceState, reader: FactReader, question: Question, times: Times) -> list[Hit]:
        view, ranked = self._ranked(state, reader, question, times)
        facts = with_unit_texts(view, ranked)
        return [Hit(fact, one[2], fact.status) for fact, one in zip(facts, ranked, strict=True)]

    def _ranked(
        self, state: SpaceState, reader: FactReader, question: Question, times: Times
    ) -> tuple[View, Sequence[Unit | Ranked]]:
        """Return number, row and score of each hit, best first, and the view that they are seen in."""
        asked = self._placed(question, state, times)
        view = View(state, reader, asked.as_of, asked.known_at)
        if self._asking.searches_alone[asked.history] and asked.is_plain and asked.min_score is None:
            return view, find(state, asked, self._secret)
        return view, rank(state, reader, asked, self._asking.weighing, self._secret)

    def explain(self, question: Question, times: Times, id_: str) -> Explanation:
        def work(state: SpaceState, reader: FactReader) -> Explanation:
            asked = self._placed(question, state, times)
            number = reader.find_number(state, id_)
            if number is None or not state.is_live(number):
                raise NotFound("no fact of this space has that id", field="id")
            weighing = self._asking.weighing
            view = View(state, reader, asked.as_of, asked.known_at)
            explainer = Explainer(view, asked, self._secret, labels=not weighing.ranking.is_identity)
            ranked = rank_candidates(state, reader, asked, weighing, self._secret)
            for place, one in enumerate(ranked, 1):
                if one.number != number:
                    continue
                if asked.min_score is not None and one.score < asked.min_score:
                    return explainer.candidate(one, place, "below-min-score")
                if place > asked.k:
                    return explainer.candidate(one, place, "below-k")
                return explainer.candidate(one, place, "returned")
            return explainer.absent(number, explainer.reason_unranked(number))

        return self._space.read(work)

    def trace(self, question: Question, times: Times, told: tuple[str, Mapping[str, Any], int]) -> Trace:
        def work(state: SpaceState, reader: FactReader) -> Trace:
            asked = self._placed(question, state, times)
            view = View(state, reader, asked.as_of, asked.known_at)
            return traced(view, asked, self._asking.weighing, self._secret, told)

        return self._space.read(work)

    def diff(self, known_at: tuple[int, int], as_of: int | None, scope: Scope) -> Diff:
        def work(state: SpaceState, reader: FactReader) -> Diff:
            at = self._space.now(state) if as_of is None else as_of
            return Differing(state, reader, known_at, at).diff(scope, self._secret, self._asking.budget)

        return self._space.read(work)

    def get(self, id_: str, times: Times) -> Fact | None:
        def work(state: SpaceState, reader: FactReader) -> Fact | None:
            number = reader.find_number(state, id_)
            if number is None or not is_known(state, number, times[1]):
                return None
            return self._view(state, reader, times).fact(number)

        return self._space.read(work)

    def history(self, id_: str, times: Times) -> list[Fact]:
        def work(state: SpaceState, reader: FactReader) -> list[Fact]:
            number = reader.find_number(state, id_)
            if number is None or not is_known(state, number, times[1]):
                return []
            members = component(number, state, frontier_limit=self._asking.budget.frontier)
            known = [n for n in members if is_known(state, n, times[1])]
            return self._view(state, reader, times).facts(sorted(known, key=lambda n: (state.eff(n), n)))

        return self._space.read(work)

    def list(self, listing: Listing) -> Page[Fact]:
        def work(state: SpaceState, reader: FactReader) -> Page[Fact]:
            now, name = self._space.now(state), self._space.namespace.key()
            budget, rows = self._asking.budget, state.next_number
            budget.spend(rows)  # each row once
            if listing.scope.filter is not None:
                spend_on_filter(budget, state, listing.scope.filter, looked_at=rows)
            return list_facts(state, reader, listing, now=now, secret=self._secret, namespace=name)

        return self._space.read(work)

    def changes(self, since: str | None, limit: int) -> Changes:
        def work(state: SpaceState, reader: FactReader) -> Changes:
            name, number = self._space.namespace.key(), self._space.number
            codec = CursorCodec(self._secret, name, state, b"changes")
            after = 0 if since is None else codec.decode_record(since, field="since")
            items: list[Change] = []
            last = after
            if number is not None:
                for entry in self._space.log.read(number, after, state.head.seq):
                    if entry.data is not None:
                        reader.check(state, entry.seq, entry.data)
                    record = None if entry.data is None else decode(entry.data, space=number, seq=entry.seq)
                    change = change_of(state, reader, entry.seq, record)
                    if change is not None and len(items) == limit:
                        return Changes(tuple(items), True, codec.encode_record(last))
                    last = entry.seq
                    if change is not None:
                        items.append(change)
            return Changes(tuple(items), False, codec.encode_record(last))

        return self._space.read(work)

    def _placed(self, question: Question, state: SpaceState, times: Times) -> Question:
        as_of, known_at = times
        if as_of is None:
            as_of = self._space.now(state)
        if not question.is_plain:
            refuse_to_wait()  # as many rows are looked at as there are vectors, or neighbours
            check_vector(state, question)
            return msgspec.structs.replace(question, as_of=as_of, known_at=known_at)
        # By position, and without what a plain question leaves alone: this is on the way of every recall.
        return Question(
            question.text,
            question.k,
            as_of,
            known_at,
            question.history,
            question.scope,
            question.min_score,
            question.candidate_limit,
            question.budget,
        )

    def _view(self, state: SpaceState, reader: FactReader, times: Times) -> View:
        as_of = self._space.now(state) if times[0] is None else times[0]
        return View(state, reader, as_of, times[1])
