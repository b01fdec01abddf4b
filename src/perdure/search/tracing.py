"""What a recall did with everything it looked at: counts, and why each thing was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from perdure.model.hit import Reason
from perdure.model.status import Status
from perdure.search.eligibility import eligibility, is_filtered
from perdure.search.explain import Explainer
from perdure.search.flags import flags_of
from perdure.search.hydration import View
from perdure.search.pipeline import Ranked, is_within, rank_candidates
from perdure.search.query import Question, Weighing
from perdure.search.standing import is_known, status_of


class Left(NamedTuple):
    """A fact or document that was left out."""

    number: int
    reason: Reason
    status: Status | None
    filter: tuple[str, ...]


class Traced(NamedTuple):
    """See `perdure.model.trace.Trace`."""

    seen: int
    eligible: int
    matched: int
    scored: int
    returned: list[Ranked]
    rejected: list[Left]


def trace(view: View, question: Question, weighing: Weighing, secret: bytes, limit: int) -> Traced:
    """Return what a recall gives and leaves out.

    Raises:
        QueryLimit: the budget does not cover the question, or one unit of work for each row.
    """
    state, reader = view.state, view.reader
    question.budget.spend(state.next_number)
    ranked = rank_candidates(state, reader, question, weighing, secret)
    returned = [one for one in ranked[: question.k] if is_within(one, question)]
    # All that match are candidates where as many may be.
    everyone = structs.replace(
        question, k=max(1, state.next_number), candidate_limit=max(1, state.next_number)
    )
    matched = rank_candidates(state, reader, everyone, weighing, secret)
    flags = flags_of(state, eligibility(state, question, secret), question.as_of)
    seen = state.numbers()
    rejected = _Rejections(view, question, secret, labels=not weighing.ranking.is_identity)
    return Traced(
        seen=len(seen),
        eligible=sum(1 for number in seen if flags[number]),
        matched=len(matched),
        scored=len(ranked),
        returned=returned,
        rejected=rejected.first(limit, ranked, {one.number for one in returned}, seen),
    )


class _Rejections:
    def __init__(self, view: View, question: Question, secret: bytes, *, labels: bool) -> None:
        self._view, self._question, self._secret = view, question, secret
        self._explainer = Explainer(view, question, secret, labels=labels)

    def first(
        self, limit: int, ranked: Sequence[Ranked], returned: set[int], seen: Sequence[int]
    ) -> list[Left]:
        found: list[Left] = []
        for left in self._all(ranked, returned, seen):
            if len(found) == limit:
                break
            found.append(left)
        return found

    def _all(self, ranked: Sequence[Ranked], returned: set[int], seen: Sequence[int]) -> Iterator[Left]:
        for one in ranked:
            if one.number not in returned:
                within = is_within(one, self._question)
                yield self._left(one.number, "below-k" if within else "below-min-score")
        known = {one.number for one in ranked}
        for number in seen:
            if number not in known:
                yield self._left(number, self._explainer.reason_unranked(number))

    def _left(self, number: int, reason: Reason) -> Left:
        state, question = self._view.state, self._question
        known = is_known(state, number, question.known_at)
        status = status_of(state, number, question.as_of, question.known_at) if known else None
        scope = question.scope
        return Left(
            number, reason, status, () if scope.is_open else is_filtered(state, number, scope, self._secret)
        )
