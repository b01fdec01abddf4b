"""What a new fact replaces, by each policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from perdure.errors import InvalidRequest
from perdure.policies import (
    Arrival,
    ExplicitOnly,
    LatestBySubject,
    SlotFact,
    SupersessionDecision,
    checked_decision,
)


@dataclass(frozen=True)
class Stored:
    number: int
    id: str
    effective_at: int
    valid_from: int | None = None
    valid_to: int | None = None
    event_time: int | None = None
    ingest_time: int = 0


@dataclass(frozen=True)
class ListedSlot:
    """A slot without corrections: every fact stands in order."""

    before: tuple[SlotFact, ...] = ()
    after: tuple[SlotFact, ...] = ()

    def predecessor(self) -> SlotFact | None:
        return self.before[-1] if self.before else None

    def successor(self) -> SlotFact | None:
        return self.after[0] if self.after else None

    def overtaken(self) -> Sequence[SlotFact]:
        return self.before[-1:]

    def overtaking(self) -> Sequence[SlotFact]:
        return self.after[:1]

    def facts(self) -> Sequence[SlotFact]:
        return self.before + self.after

    def holds(self, fact: object) -> bool:
        return fact in self.facts()


def arrival(at: int = 15) -> Arrival:
    return Arrival(
        id="new",
        subject="alice/city",
        text="Alice lives in Berlin",
        effective_at=at,
        valid_from=at,
        valid_to=None,
        event_time=None,
        ingest_time=99,
        number=7,
    )


PARIS, ROME, OSLO = Stored(0, "paris", 5), Stored(1, "rome", 10), Stored(2, "oslo", 20)
FULL = ListedSlot((PARIS, ROME), (OSLO,))


def test_explicit_only_links_nothing_of_its_own():
    assert ExplicitOnly().decide(arrival(), FULL) == SupersessionDecision()


def test_latest_by_subject_links_both_neighbours_and_no_others():
    decision = LatestBySubject().decide(arrival(), FULL)
    assert decision == SupersessionDecision(supersedes=(ROME,), superseded_by=(OSLO,))


def test_latest_by_subject_links_nothing_to_the_first_fact_of_a_subject():
    assert LatestBySubject().decide(arrival(), ListedSlot()) == SupersessionDecision()


def test_a_decision_that_names_facts_of_the_slot_is_taken_as_it_is():
    decision = SupersessionDecision(supersedes=(PARIS, ROME), superseded_by=(OSLO,))
    assert checked_decision(decision, FULL) is decision


def test_a_decision_that_names_a_fact_outside_the_slot_is_refused_without_showing_it():
    with pytest.raises(InvalidRequest, match="1 fact that its slot did not give") as caught:
        checked_decision(SupersessionDecision(supersedes=(Stored(9, "someone-else", 3), ROME)), FULL)
    assert caught.value.field == "supersession"
    assert "someone-else" not in str(caught.value)


def test_a_policy_that_returns_something_else_is_refused():
    with pytest.raises(InvalidRequest, match="must return a SupersessionDecision, got list"):
        checked_decision(["rome"], FULL)  # type: ignore[arg-type]


def test_the_repr_of_an_arrival_shows_no_text():
    shown = repr(arrival())
    assert "Alice" not in shown
    assert "alice" not in shown
    assert "effective_at=15" in shown
