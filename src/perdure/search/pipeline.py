"""How a question becomes ranked facts: read this from top to bottom.

analyse -> eligibility -> lexical candidates -> (importance, freshness, recency, history) -> floor ->
ties -> top k. Hydration and explanation follow elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from perdure.errors import QueryLimit
from perdure.lexical.bm25 import WorkExceeded
from perdure.model.hit import Part
from perdure.model.status import Status
from perdure.policies.recency import RecencyContext, age, checked_factor
from perdure.policies.relevance import RankingParts
from perdure.policies.scoring import final_score, historical_factor
from perdure.search.eligibility import EVERYTHING, Eligibility, eligibility
from perdure.search.phrases import matched_label_rows, phrase_scores
from perdure.search.query import Question, Weighing
from perdure.search.standing import standing
from perdure.space.facts import FactReader
from perdure.space.state import NO_TIME, SpaceState
from perdure.temporal.columns import BEGINNING, FOREVER


class Ranked(NamedTuple):
    """One ranked fact or document. `row` is its best unit.

    `addends` are the parts of what search gave; None where that is the lexical score alone, and final.
    """

    number: int
    row: int
    score: float
    addends: tuple[Part, ...] | None = None
    ranking: RankingParts | None = None
    recency: float = 1.0
    historical: float = 1.0

    @property
    def retrieval(self) -> tuple[Part, ...]:
        """The parts of the retrieval score, in the order in which they add."""
        return (Part("lexical", self.score),) if self.addends is None else self.addends


def rank(
    state: SpaceState, reader: FactReader, question: Question, weighing: Weighing, secret: bytes
) -> list[Ranked]:
    """Return the k best eligible facts, best first; ties in order of arrival.

    Without any weighing this is document search: its scores, its order, exactly k asked.

    Raises:
        QueryLimit: the budget does not cover the question; there is no partial answer.
    """
    if weighing.is_identity(question.history):
        ranked = [Ranked(*one) for one in find(state, question, secret)]
    else:
        ranked = rank_candidates(state, reader, question, weighing, secret)[: question.k]
    if question.min_score is not None:
        ranked = [one for one in ranked if one.score >= question.min_score]
    return ranked


def find(state: SpaceState, question: Question, secret: bytes) -> list[tuple[int, int, float]]:
    """Return (number, row, score) of the k best eligible facts by search alone, best first."""
    terms = state.profile.query_terms(question.text)
    return best_units(state, terms, question.k, eligibility(state, question, secret), question)


def rank_candidates(
    state: SpaceState, reader: FactReader, question: Question, weighing: Weighing, secret: bytes
) -> list[Ranked]:
    """Return up to `candidate_limit` eligible candidates in their final order, before floor and k."""
    eligible = eligibility(state, question, secret)
    terms = state.profile.query_terms(question.text)
    limit = max(question.k, question.candidate_limit)
    if weighing.ranking.is_identity:
        found: list[tuple[int, int, tuple[Part, ...]]] = [
            (number, row, (Part("lexical", score),))
            for number, row, score in best_units(state, terms, limit, eligible, question)
        ]
    else:
        found = _with_labels_and_phrase(state, reader, question, terms, eligible)[:limit]
    weighed = _weighed(state, found, question, weighing)
    # Sorting is stable, so equal final scores keep the order of search.
    return sorted(weighed, key=lambda one: -one.score)


def best_units(
    state: SpaceState, terms: Sequence[str], k: int, eligible: Eligibility, question: Question
) -> list[tuple[int, int, float]]:
    """Return (number, row, score) of the k best documents, each by its best unit, best first."""
    rows, scores = search_rows(state, terms, k, eligible, question)
    if not state.unit_owner:
        return list(zip(rows, rows, scores, strict=True))
    wanted = k
    while True:
        owners = [state.unit_owner.get(row, row) for row in rows]
        firsts: dict[int, tuple[int, int, float]] = {}
        for number, row, score in zip(owners, rows, scores, strict=True):
            firsts.setdefault(number, (number, row, score))
        if len(firsts) >= k or len(rows) < wanted:
            return list(firsts.values())[:k]
        wanted *= 2
        rows, scores = search_rows(state, terms, wanted, eligible, question)


def search_rows(
    state: SpaceState, terms: Sequence[str], k: int, eligible: Eligibility, question: Question
) -> tuple[list[int], list[float]]:
    """Ask the index, within the budget's work."""
    try:
        if eligible is EVERYTHING:
            rows, scores, _ = state.index.search(list(terms), k, work_max=question.budget.work)
        else:
            rows, scores, _ = state.index.search(
                list(terms),
                k,
                times=eligible.times,
                at=question.as_of,
                mask=eligible.mask,
                rows=eligible.rows,
                work_max=question.budget.work,
            )
    except WorkExceeded as error:
        raise QueryLimit("work", question.budget.work) from error
    return rows, scores


def _with_labels_and_phrase(
    state: SpaceState, reader: FactReader, question: Question, terms: Sequence[str], eligible: Eligibility
) -> list[tuple[int, int, tuple[Part, ...]]]:
    """Search the words of tags and kind too, and count the whole query as one more match."""
    limit = max(question.k, question.candidate_limit)
    text = {
        number: (row, score) for number, row, score in best_units(state, terms, limit, eligible, question)
    }
    labelled = matched_label_rows(state, terms, limit, question, eligible)
    numbers = sorted({*text, *labelled})
    missing = [number for number in numbers if number not in text]
    if missing:
        for number, score in zip(missing, state.index.scores(list(terms), missing), strict=True):
            text[number] = (number, score)
    phrases = phrase_scores(state, reader, question.text, numbers)
    found = []
    for number in numbers:
        row, score = text[number]
        parts = [Part("lexical", score + labelled.get(number, 0.0))]
        if phrases.get(number):
            parts.append(Part("phrase", phrases[number]))
        found.append((number, row, tuple(parts)))
    return sorted(found, key=lambda one: (-sum(part.value for part in one[2]), one[0]))


def _weighed(
    state: SpaceState,
    found: Sequence[tuple[int, int, tuple[Part, ...]]],
    question: Question,
    weighing: Weighing,
) -> list[Ranked]:
    top = max((sum(part.value for part in parts) for _, _, parts in found), default=0.0)
    weighed: list[Ranked] = []
    for number, row, parts in found:
        retrieval = sum(part.value for part in parts)
        ranking = None
        ranked_score = retrieval
        if not weighing.ranking.is_identity:
            ranking = weighing.ranking.parts(
                retrieval,
                top=top,
                importance=state.importance_of.get(number),
                age_ms=_age(state, number, "event", question.as_of),
            )
            ranked_score = ranking.score
        status = standing(state, number, question.known_at).status(question.as_of)
        recency = _recency(state, number, status, question, weighing)
        historical = historical_factor(status, weighing.historical_weight)
        score = final_score(ranked_score, recency, historical)
        weighed.append(Ranked(number, row, score, parts, ranking, recency, historical))
    return weighed


def _recency(state: SpaceState, number: int, status: Status, question: Question, weighing: Weighing) -> float:
    policy = weighing.recency
    if policy.is_identity:
        return 1.0
    plain = number in state.plain
    valid_to = state.valid_to[number]
    context = RecencyContext(
        as_of=question.as_of,
        age_ms=_age(state, number, policy.basis, question.as_of),
        event_time=told(state.event[number], NO_TIME),
        valid_from=told(state.valid_from[number], BEGINNING),
        valid_to=told(valid_to, FOREVER),
        ingest_time=None if plain else state.ingested[number],
        importance=state.importance_of.get(number),
        kind=state.kind_of.get(number),
        status=status,
    )
    return checked_factor(policy.factor(context))


def _age(state: SpaceState, number: int, basis: str, at: int) -> int | None:
    return age(
        "ingest" if basis == "ingest" else "event",
        at,
        event_time=told(state.event[number], NO_TIME),
        valid_from=told(state.valid_from[number], BEGINNING),
        ingest_time=None if number in state.plain else state.ingested[number],
    )


def told(value: int, absent: int) -> int | None:
    """Return None where a column holds its sentinel."""
    return None if value == absent else value
