"""Laws of the policies: slots, recency, relevance, scores."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.hit import Part
from perdure.model.status import Status
from perdure.policies import (
    Arrival,
    ExponentialRecency,
    LatestBySubject,
    NoRecency,
    RankingParts,
    RecencyContext,
    Relevance,
    SlotFact,
    age,
    checked_factor,
    combined_score,
    final_score,
    ranking_scores,
    score_parts,
)

DAY = 86_400_000
ages = st.integers(0, 400_000_000_000_000)
half_lives = st.integers(1, 10**13)
unit = st.floats(0.0, 1.0)
importances = st.none() | unit
scores = st.floats(0.0, 1e6)
weights = st.floats(0.0, 1e6)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def context(age_ms: int | None) -> RecencyContext:
    return RecencyContext(
        as_of=0,
        age_ms=age_ms,
        event_time=None,
        valid_from=None,
        valid_to=None,
        ingest_time=None,
        importance=None,
        kind=None,
        status=Status.CURRENT,
    )


# Supersession


@dataclass(frozen=True)
class Stored:
    number: int
    effective_at: int
    valid_to: int | None = None
    event_time: int | None = None
    ingest_time: int = 0

    @property
    def id(self) -> str:
        return str(self.number)

    @property
    def valid_from(self) -> int | None:
        return self.effective_at


@dataclass
class Subject:
    """Facts of one subject and the links that a policy decided."""

    stored: list[Stored] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)  # (newer, older)
    at: int = 0

    def tell(self, effective_at: int) -> None:
        self.at = effective_at
        new = Stored(len(self.stored), effective_at)
        arrival = Arrival(
            id=new.id,
            subject="s",
            text="t",
            effective_at=effective_at,
            valid_from=effective_at,
            valid_to=None,
            event_time=None,
            ingest_time=0,
            number=new.number,
        )
        decision = LatestBySubject().decide(arrival, self)
        self.links |= {(new.id, older.id) for older in decision.supersedes}
        self.links |= {(newer.id, new.id) for newer in decision.superseded_by}
        self.stored.append(new)

    def facts(self) -> Sequence[SlotFact]:
        return sorted(self.stored, key=lambda fact: (fact.effective_at, fact.number))

    def overtaken(self) -> Sequence[SlotFact]:
        return [fact for fact in self.facts() if fact.effective_at <= self.at][-1:]

    def overtaking(self) -> Sequence[SlotFact]:
        return [fact for fact in self.facts() if fact.effective_at > self.at][:1]

    def predecessor(self) -> SlotFact | None:
        return next(iter(self.overtaken()), None)

    def successor(self) -> SlotFact | None:
        return next(iter(self.overtaking()), None)

    def current_at(self, instant: int) -> list[str]:
        begins = {fact.id: fact.effective_at for fact in self.stored}
        over = {older for newer, older in self.links if begins[newer] <= instant}
        return [fact.id for fact in self.stored if fact.effective_at <= instant and fact.id not in over]


@pytest.mark.parametrize("order", list(itertools.permutations((10, 20, 30, 40))))
def test_in_every_order_of_arrival_the_current_fact_is_the_last_to_have_begun(order):
    subject = Subject()
    for effective_at in order:
        subject.tell(effective_at)
    begins = {fact.id: fact.effective_at for fact in subject.stored}
    for instant in (9, 10, 19, 20, 29, 30, 39, 40, 99):
        begun = [at for at in order if at <= instant]
        assert [begins[name] for name in subject.current_at(instant)] == ([max(begun)] if begun else [])


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(0, 7))
def test_of_facts_that_begin_together_the_later_arrival_is_current(times, instant):
    subject = Subject()
    for effective_at in times:
        subject.tell(effective_at)
    begun = [(at, number) for number, at in enumerate(times) if at <= instant]
    assert subject.current_at(instant) == ([str(max(begun)[1])] if begun else [])


# Recency


@given(half_lives, unit, st.lists(ages, max_size=30))
def test_the_vector_form_gives_the_bits_of_the_scalar_form(half_life, floor, told):
    policy = ExponentialRecency(half_life, floor=floor)
    vector = policy.factors(np.array(told, np.float64))
    assert vector.dtype == np.float64
    assert vector.shape == (len(told),)
    assert [bits(value) for value in vector.tolist()] == [bits(policy.factor(context(one))) for one in told]


@given(half_lives, unit, ages, ages)
def test_an_older_fact_never_weighs_more_and_every_factor_lies_between_the_floor_and_1(
    half_life, floor, one, other
):
    policy = ExponentialRecency(half_life, floor=floor)
    younger, older = policy.factor(context(min(one, other))), policy.factor(context(max(one, other)))
    assert floor <= older <= younger <= 1.0


@given(half_lives)
def test_one_half_life_weighs_exactly_half(half_life):
    assert ExponentialRecency(half_life).factor(context(half_life)) == 0.5


@given(half_lives, st.none() | ages)
def test_a_policy_that_says_it_is_an_identity_gives_1_for_every_age(half_life, age_ms):
    for policy in (NoRecency(), ExponentialRecency(half_life, floor=1.0)):
        assert policy.is_identity
        assert bits(policy.factor(context(age_ms))) == bits(1.0)


instants = st.none() | st.integers(-10, 10)


@given(st.sampled_from(["event", "ingest"]), st.integers(-10, 10), instants, instants, instants)
def test_age_equals_the_first_time_of_the_basis_by_brute_force(
    basis, as_of, event_time, valid_from, ingest_time
):
    times = [event_time, valid_from, ingest_time] if basis == "event" else [ingest_time]
    told = [time for time in times if time is not None]
    expected = max(0, as_of - told[0]) if told else None
    assert (
        age(basis, as_of, event_time=event_time, valid_from=valid_from, ingest_time=ingest_time) == expected
    )


@given(st.floats())
def test_a_factor_is_taken_unchanged_or_refused(value):
    if math.isfinite(value) and value >= 0:
        assert checked_factor(value) == value
    else:
        with pytest.raises(ValueError, match="finite and at least 0"):
            checked_factor(value)


# Ranking and scores

relevances = st.builds(
    Relevance,
    importance_weight=weights,
    recency_weight=st.floats(1e-300, 1e6),
    decay_days=st.floats(1e-300, 1e300),
)


@given(relevances, scores, scores, importances, st.none() | ages)
def test_relevance_adds_at_least_nothing_and_at_most_its_share(relevance, one, other, importance, age_ms):
    parts = relevance.parts(min(one, other), top=max(one, other), importance=importance, age_ms=age_ms)
    assert 0.0 <= parts.base <= 1.0
    assert parts.importance >= 0.0
    assert parts.recency >= 0.0
    assert parts.importance + parts.recency <= 0.1 * (1 + 1e-12)


@given(relevances, st.lists(st.tuples(scores, importances, st.none() | ages), min_size=1, max_size=12))
def test_relevance_never_lets_a_match_overtake_one_that_is_stronger_by_more_than_its_share(relevance, told):
    retrieval = [one[0] for one in told]
    ranked = ranking_scores(relevance, retrieval, [one[1] for one in told], [one[2] for one in told])
    for (strong, strong_rank), (weak, weak_rank) in itertools.permutations(
        zip(retrieval, ranked, strict=True), 2
    ):
        if strong - weak > 0.1001 * max(retrieval):
            assert strong_rank > weak_rank


@given(relevances, scores, importances, ages, ages)
def test_of_two_equal_matches_the_older_one_never_ranks_higher(relevance, score, importance, one, other):
    older, younger = ranking_scores(
        relevance, [score, score], [importance, importance], [max(one, other), min(one, other)]
    )
    assert older <= younger


@given(weights, st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), unit, ages)
def test_relevance_follows_its_formula(importance_weight, recency_weight, decay_days, importance, age_ms):
    relevance = Relevance(
        importance_weight=importance_weight, recency_weight=recency_weight, decay_days=decay_days
    )
    fresh = math.exp(-age_ms / DAY / decay_days)
    wanted = 0.1 * (importance * importance_weight + fresh * recency_weight)
    wanted /= importance_weight + recency_weight
    parts = relevance.parts(1.0, top=2.0, importance=importance, age_ms=age_ms)
    assert parts.importance + parts.recency == pytest.approx(wanted, rel=1e-9)


factors = st.just(1.0) | st.floats(0.0, 2.0)


@given(scores, factors, factors)
def test_one_retrieval_part_gives_back_the_bits_of_the_final_score(retrieval, recency, historical):
    parts = score_parts([Part("lexical", retrieval)], recency_factor=recency, historical=historical)
    assert bits(combined_score(parts)) == bits(final_score(retrieval, recency, historical))


@given(relevances, st.lists(scores, min_size=1, max_size=5), importances, ages, factors, factors)
def test_the_parts_combine_to_the_final_score(relevance, addends, importance, age_ms, recency, historical):
    retrieval = sum(addends)
    ranking = relevance.parts(retrieval, top=retrieval * 2, importance=importance, age_ms=age_ms)
    parts = score_parts(
        [Part(f"part-{index}", value) for index, value in enumerate(addends)],
        ranking,
        recency_factor=recency,
        historical=historical,
    )
    wanted = final_score(ranking.score, recency, historical)
    assert combined_score(parts) == pytest.approx(wanted, rel=1e-9, abs=1e-300)


@given(scores)
def test_factors_of_1_leave_no_part_behind(retrieval):
    assert score_parts([Part("lexical", retrieval)]) == (Part("lexical", retrieval),)


def test_freshness_adds_and_the_recency_factor_multiplies_though_both_are_named_recency():
    parts = score_parts([Part("lexical", 3.0)], RankingParts(0.5, 0.25, 0.125), recency_factor=0.5)
    assert [part.name for part in parts] == ["lexical", "importance", "recency", "recency"]
    assert combined_score(parts) == (0.5 + 0.25 + 0.125) * 0.5
