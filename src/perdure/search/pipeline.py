"""How a question becomes ranked facts: read this from top to bottom.

analyse -> eligibility -> lexical candidates (with what stands around them) -> semantic candidates -> fusion ->
(importance, freshness, recency, history) -> floor -> ties -> top k. Hydration and explanation follow elsewhere.

A score is what its parts add up to, from first to last: the parts are made first, and the score of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import structs

from perdure.base.haste import WouldWait, is_hurried
from perdure.errors import QueryLimit
from perdure.lexical.bm25 import WorkExceeded
from perdure.model.hit import Part
from perdure.model.status import Status
from perdure.policies.recency import RecencyContext, age, checked_factor
from perdure.policies.scoring import combined_score, historical_factor, score_parts, sum_of
from perdure.search.context import in_context
from perdure.search.eligibility import EVERYTHING, Eligibility, eligibility
from perdure.search.flags import flags_of
from perdure.search.fusion import Candidate, fuse, semantic_score
from perdure.search.phrases import matched_label_rows, phrase_scores
from perdure.search.query import Question, Weighing
from perdure.search.semantic import cosines_of, most_similar
from perdure.search.standing import standing
from perdure.search.units import Unit, best_by_unit
from perdure.space.facts import FactReader
from perdure.space.state import NO_TIME, SpaceState
from perdure.temporal.columns import BEGINNING, FOREVER

HURRIED_POSTINGS = 200_000  # that a thread in a hurry looks at: about a millisecond of the compiled kernel


class Ranked(NamedTuple):
    """One ranked fact or document. `row` is its best unit.

    `addends` are the parts of what search gave, `parts` those of the score; None where both are the lexical
    score alone.
    """

    number: int
    row: int
    score: float
    addends: tuple[Part, ...] | None = None
    parts: tuple[Part, ...] | None = None
    recency: float = 1.0
    historical: float = 1.0
    cosine: float | None = None

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
    if weighing.is_identity(question.history) and question.is_plain:
        ranked = [Ranked(*one) for one in find(state, question, secret)]
    else:
        if question.mode != "hybrid" and weighing.is_identity(question.history):
            # Nothing reorders the candidates, so the first k are enough.
            question = structs.replace(question, candidate_limit=question.k)
        ranked = rank_candidates(state, reader, question, weighing, secret)[: question.k]
    return ranked if question.min_score is None else [one for one in ranked if is_within(one, question)]


def is_within(ranked: Ranked, question: Question) -> bool:
    """Whether a candidate scores enough."""
    return question.min_score is None or ranked.score >= question.min_score


def find(state: SpaceState, question: Question, secret: bytes) -> list[Unit]:
    """Return (number, row, score) of the k best eligible facts by search alone, best first."""
    terms = state.profile.query_terms(question.text)
    return best_units(state, terms, question.k, eligibility(state, question, secret), question)


def rank_candidates(
    state: SpaceState, reader: FactReader, question: Question, weighing: Weighing, secret: bytes
) -> list[Ranked]:
    """Return up to `candidate_limit` eligible candidates in their final order, before floor and k."""
    eligible = eligibility(state, question, secret)
    terms = state.profile.query_terms(question.text)
    if question.mode == "semantic":
        found = _semantic(state, reader, question, eligible)
    else:
        matches = _lexical(state, reader, question, weighing, terms, eligible)
        found = matches.best
        if question.mode == "hybrid":
            found = _fused(state, reader, question, eligible, matches)
    weighed = _weighed(state, found, question, weighing)
    # Sorting is stable, so equal final scores keep the order of search.
    return sorted(weighed, key=lambda one: -one.score)


class Found(NamedTuple):
    """A candidate: the parts of what search gave, the row of its best unit, and its cosine where it was asked for."""

    number: int
    row: int
    parts: tuple[Part, ...]
    cosine: float | None = None


class Matches(NamedTuple):
    """The best lexical candidates, best first, and the same for any other fact: its row and parts, none without a
    match."""

    best: list[Found]
    of: Callable[[Sequence[int]], list[tuple[int, tuple[Part, ...]]]]


def _limit(question: Question) -> int:
    return max(question.k, question.candidate_limit)


def _lexical(
    state: SpaceState,
    reader: FactReader,
    question: Question,
    weighing: Weighing,
    terms: Sequence[str],
    eligible: Eligibility,
) -> Matches:
    if question.context is not None:
        matches = _in_context(state, question, terms, eligible)
    else:
        units = best_units(state, terms, _limit(question), eligible, question)
        best = [Found(number, row, (Part("lexical", score),)) for number, row, score in units]
        matches = Matches(best, lambda numbers: _own_matches(state, terms, numbers))
    if weighing.ranking.is_identity:
        return matches
    return Matches(_with_labels_and_phrase(state, reader, question, terms, eligible, matches), matches.of)


def _own_matches(
    state: SpaceState, terms: Sequence[str], numbers: Sequence[int]
) -> list[tuple[int, tuple[Part, ...]]]:
    """Return the row of each one's best unit, the first of equals, and its score as a part, none without a match."""
    units = [range(number, number + state.unit_counts.get(number, 1)) for number in numbers]
    scores = state.index.scores(list(terms), [row for rows in units for row in rows])
    found: list[tuple[int, tuple[Part, ...]]] = []
    at = 0
    for rows in units:
        own = scores[at : at + len(rows)]
        at += len(rows)
        score = max(own)
        found.append((rows[own.index(score)], (Part("lexical", score),) if score > 0.0 else ()))
    return found


def _in_context(
    state: SpaceState, question: Question, terms: Sequence[str], eligible: Eligibility
) -> Matches:
    around = in_context(state, terms, question, flags_of(state, eligible, question.as_of))

    def of(numbers: Sequence[int]) -> list[tuple[int, tuple[Part, ...]]]:
        found = []
        for number in numbers:
            rows = range(number, number + state.unit_counts.get(number, 1))
            row = max(rows, key=lambda row: (around.total[row], -row))
            found.append((row, around.parts(row) if around.total[row] > 0.0 else ()))
        return found

    best: dict[int, Found] = {}
    # Units of one document share a place among the candidates, so that many rows may be too few.
    for place in around.ranked(state.next_number if state.unit_owner else _limit(question)):
        row = int(place)
        number = state.unit_owner.get(row, row)
        if number not in best:
            best[number] = Found(number, row, around.parts(row))
            if len(best) == _limit(question):
                break
    return Matches(list(best.values()), of)


def _semantic(
    state: SpaceState, reader: FactReader, question: Question, eligible: Eligibility
) -> list[Found]:
    similar = most_similar(state, reader, question, eligible, _limit(question))
    return [
        Found(number, row, (Part("semantic", semantic_score(cosine)),), cosine)
        for number, row, cosine in similar
    ]


def _fused(
    state: SpaceState, reader: FactReader, question: Question, eligible: Eligibility, matches: Matches
) -> list[Found]:
    """Return all candidates of either kind with their fused parts, best first, ties in order of arrival."""
    similar = {one[0]: one for one in most_similar(state, reader, question, eligible, _limit(question))}
    known = {one.number: (one.row, one.parts) for one in matches.best}
    missing = sorted(similar.keys() - known.keys())
    known.update(zip(missing, matches.of(missing), strict=True))
    similar |= cosines_of(state, reader, question, known.keys() - similar.keys())
    candidates = []
    for number in sorted(known):
        row, parts = known[number]
        _, unit, cosine = similar.get(number, (number, row, None))
        candidates.append(Candidate(number, row if parts else unit, parts, cosine))
    fused = fuse(candidates, question.fusion)
    found = [
        Found(one.number, one.row, parts, one.cosine) for one, parts in zip(candidates, fused, strict=True)
    ]
    return sorted(found, key=lambda one: -sum_of(one.parts))


def best_units(
    state: SpaceState, terms: Sequence[str], k: int, eligible: Eligibility, question: Question
) -> list[Unit]:
    """Return (number, row, score) of the k best documents, each by its best unit, best first."""
    return best_by_unit(state, k, lambda wanted: search_rows(state, terms, wanted, eligible, question))


def search_rows(
    state: SpaceState, terms: Sequence[str], k: int, eligible: Eligibility, question: Question
) -> tuple[list[int], list[float]]:
    """Ask the index, within the budget's work."""
    work = question.budget.work
    work_max = min(work, HURRIED_POSTINGS) if is_hurried() else work
    try:
        if eligible is EVERYTHING:
            rows, scores, _ = state.index.search(list(terms), k, work_max=work_max)
        else:
            rows, scores, _ = state.index.search(
                list(terms),
                k,
                times=eligible.times,
                at=question.as_of,
                mask=eligible.mask,
                rows=eligible.rows,
                work_max=work_max,
            )
    except WorkExceeded as error:
        if work_max < work:
            raise WouldWait from error
        raise QueryLimit("work", work) from error
    return rows, scores


def _with_labels_and_phrase(
    state: SpaceState,
    reader: FactReader,
    question: Question,
    terms: Sequence[str],
    eligible: Eligibility,
    matches: Matches,
) -> list[Found]:
    """Search the words of tags and kind too, and count the whole query as one more match."""
    limit = _limit(question)
    labelled = matched_label_rows(state, terms, limit, question, eligible)
    known = {one.number: (one.row, one.parts) for one in matches.best}
    missing = sorted(labelled.keys() - known.keys())
    known.update(zip(missing, matches.of(missing), strict=True))
    numbers = sorted(known)
    phrases = phrase_scores(state, reader, question.text, numbers)
    found = []
    for number in numbers:
        row, parts = known[number]
        own, *around = parts or (Part("lexical", 0.0),)
        parts = (Part("lexical", own.value + labelled.get(number, 0.0)), *around)
        if phrases.get(number):
            parts = (*parts, Part("phrase", phrases[number]))
        found.append(Found(number, row, parts))
    return sorted(found, key=lambda one: (-sum_of(one.parts), one.number))[:limit]


def _weighed(
    state: SpaceState,
    found: Sequence[Found],
    question: Question,
    weighing: Weighing,
) -> list[Ranked]:
    if weighing.is_identity(question.history):
        return [
            Ranked(number, row, sum_of(parts), parts, parts, cosine=cosine)
            for number, row, parts, cosine in found
        ]
    top = max((sum_of(one.parts) for one in found), default=0.0)
    weighed: list[Ranked] = []
    for number, row, addends, cosine in found:
        ranking = None
        if not weighing.ranking.is_identity:
            ranking = weighing.ranking.parts(
                sum_of(addends),
                top=top,
                importance=state.importance_of.get(number),
                age_ms=_age(state, number, "event", question.as_of),
            )
        status = standing(state, number, question.known_at).status(question.as_of)
        recency = _recency(state, number, status, question, weighing)
        historical = historical_factor(status, weighing.historical_weight)
        parts = score_parts(addends, ranking, recency_factor=recency, historical=historical)
        score = combined_score(parts)
        weighed.append(Ranked(number, row, score, addends, parts, recency, historical, cosine))
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
