"""What pruning takes, and what it leaves alone."""

from __future__ import annotations

import pytest

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.policies import FactSummary, Prune

DAY_MS = 86_400_000
NOW = 1_000 * DAY_MS


def fact(name: str, *, days: float = 0, number: int = 0, **told) -> FactSummary:
    """A fact that was stored so many days ago."""
    return FactSummary(
        id=name, number=number, status=Status.CURRENT, ingest_time=NOW - int(days * DAY_MS), **told
    )


def taken(policy: Prune, *facts: FactSummary) -> list[str]:
    return list(policy.select(facts, NOW))


def test_what_is_old_and_unimportant_goes_and_what_is_only_one_of_both_stays():
    facts = (
        fact("old and unimportant", days=100, importance=0.3),
        fact("old and important", days=100, importance=0.8),
        fact("recent and unimportant", days=10, importance=0.3),
    )
    assert taken(Prune(), *facts) == ["old and unimportant"]


def test_a_fact_goes_only_when_it_is_older_than_the_age_and_below_the_importance():
    facts = (
        fact("at the age", days=90, importance=0.1),
        fact("past the age", days=90 + 1 / DAY_MS, importance=0.1),
        fact("at the importance", days=500, importance=0.5),
    )
    assert taken(Prune(), *facts) == ["past the age"]


def test_importance_that_was_not_told_counts_as_one_half():
    assert taken(Prune(), fact("untold", days=500)) == []
    assert taken(Prune(min_importance=0.51), fact("untold", days=500)) == ["untold"]


def test_ages_count_from_the_event_then_from_the_validity_then_from_the_recording():
    long_ago = NOW - 200 * DAY_MS
    facts = (
        fact("event", importance=0.1, event_time=long_ago, valid_from=NOW),
        fact("validity", importance=0.1, valid_from=long_ago),
        fact("recent event", days=200, importance=0.1, event_time=NOW),
        fact("future event", days=200, importance=0.1, event_time=NOW + 400 * DAY_MS),
    )
    assert taken(Prune(), *facts) == ["event", "validity"]


PROTECTED = [
    {"pinned": True},
    {"uses": 3},
    {"linked": True},
    *({"tags": ("other", tag)} for tag in ("keep", "pinned", "protected", "consolidated", "conflict")),
    *({"metadata": {key: value}} for key in ("keep", "pinned", "protected") for value in (True, 1, " YES ")),
    {"metadata": {"keep": "Protected"}},
    {"metadata": {"supersedes": "another"}},
    {"metadata": {"conflicts_with": ["another"]}},
    {"metadata": {"conflicts_with": 7}},
]
LOOSE = [
    {},
    {"uses": 2},
    {"tags": ("Keep", "keeper")},
    *({"metadata": {"keep": value}} for value in (False, 0, None, "", "no", "2", [])),
    *({"metadata": {"supersedes": value}} for value in ("", "  ", None, [], False)),
    {"metadata": {"duplicate_count": 4}},
]


@pytest.mark.parametrize("told", PROTECTED, ids=str)
def test_protected_facts_stay_however_old_and_however_many(told):
    old = fact("protected", days=9_000, importance=0.0, **told)
    assert taken(Prune(max_facts=1), old, fact("loose")) == ["loose"]


@pytest.mark.parametrize("told", LOOSE, ids=str)
def test_what_only_looks_like_protection_protects_nothing(told):
    assert taken(Prune(), fact("loose", days=9_000, importance=0.0, **told)) == ["loose"]


def test_over_the_limit_the_least_relevant_go():
    facts = (
        fact("fresh", importance=0.4),
        fact("stale", days=80, importance=0.4),
        fact("important", days=80, importance=0.9),
    )
    assert taken(Prune(max_facts=2), *facts) == ["stale"]
    assert taken(Prune(max_facts=1), *facts) == ["stale", "fresh"]
    assert taken(Prune(max_facts=3), *facts) == []


def test_of_equally_relevant_facts_the_one_that_was_stored_first_goes():
    facts = (fact("b", number=2), fact("a", number=1), fact("c", number=3))
    assert taken(Prune(max_facts=2), *facts) == ["a"]


def test_protected_facts_count_against_the_limit_and_may_stay_above_it():
    facts = (
        fact("pinned", pinned=True),
        fact("used", uses=3),
        fact("in conflict", metadata={"conflicts_with": "x"}),
        fact("stale"),
    )
    assert taken(Prune(max_facts=2), *facts) == ["stale"]


def test_without_a_limit_any_number_stays():
    assert taken(Prune(), *(fact(str(n), number=n) for n in range(50))) == []


def test_the_limit_counts_what_is_left_after_the_old_ones():
    facts = (fact("old", days=100, importance=0.1), fact("a"), fact("b"))
    assert taken(Prune(max_facts=2), *facts) == ["old"]


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"max_age_days": -1}, "max_age_days"),
        ({"max_age_days": float("inf")}, "max_age_days"),
        ({"min_importance": 1.1}, "min_importance"),
        ({"max_facts": -1}, "max_facts"),
        ({"max_facts": 2.5}, "max_facts"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(told, field):
    with pytest.raises(InvalidRequest, match=rf"^{field} must be") as caught:
        Prune(**told)
    assert caught.value.field == field
