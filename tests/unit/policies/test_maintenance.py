"""What forgetting and consolidation policies choose."""

from __future__ import annotations

import pytest

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.policies import (
    Consolidation,
    ExpiredFor,
    FactSummary,
    KeepAll,
    MaxFacts,
    NoConsolidation,
    SupersededFor,
    reads_content,
)


def fact(
    name: str, status: Status = Status.CURRENT, *, ingest: int = 0, number: int = 0, **told
) -> FactSummary:
    return FactSummary(id=name, number=number, status=status, ingest_time=ingest, **told)


def test_keep_all_removes_nothing():
    assert list(KeepAll().select([fact("a", Status.EXPIRED, valid_to=1)], 10)) == []


def test_expired_for_waits_until_more_than_the_grace_has_passed():
    facts = [fact("a", valid_to=100)]
    assert list(ExpiredFor(10).select(facts, 110)) == []
    assert list(ExpiredFor(10).select(facts, 111)) == ["a"]


def test_expired_for_with_no_grace_keeps_a_fact_at_the_very_instant_of_its_end():
    facts = [fact("a", valid_to=100)]
    assert list(ExpiredFor(0).select(facts, 100)) == []
    assert list(ExpiredFor(0).select(facts, 101)) == ["a"]


def test_expired_for_leaves_open_facts_and_takes_a_retracted_one_at_once():
    facts = [fact("open"), fact("retracted", Status.EXPIRED, valid_to=-(2**63))]
    assert list(ExpiredFor(2**53 - 1).select(facts, 0)) == ["retracted"]


def test_expired_for_looks_at_the_interval_whatever_the_status_says():
    assert list(ExpiredFor(0).select([fact("a", Status.SUPERSEDED, valid_to=5)], 10)) == ["a"]


def test_superseded_for_counts_from_the_earliest_superseder_and_more_than_the_age():
    facts = [
        fact("never"),
        fact("old", Status.SUPERSEDED, superseded_since=89),
        fact("edge", Status.SUPERSEDED, superseded_since=90),
        fact("ahead", superseded_since=500),
    ]
    assert list(SupersededFor(10).select(facts, 100)) == ["old"]


def test_max_facts_removes_the_surplus_from_the_least_alive_on():
    facts = [
        fact("plan", Status.NOT_YET_VALID, ingest=1, number=0),
        fact("now", Status.CURRENT, ingest=2, number=1),
        fact("over", Status.EXPIRED, ingest=3, number=2),
        fact("past", Status.SUPERSEDED, ingest=4, number=3),
    ]
    orders = [list(MaxFacts(limit).select(facts, 9)) for limit in (4, 3, 2, 1)]
    assert orders == [[], ["past"], ["past", "over"], ["past", "over", "now"]]


def test_max_facts_takes_the_longest_stored_of_a_status_first_and_breaks_ties_by_number():
    facts = [fact("b", ingest=5, number=2), fact("c", ingest=4, number=3), fact("a", ingest=5, number=1)]
    assert list(MaxFacts(1).select(facts, 9)) == ["c", "a"]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ExpiredFor(-1), "grace_ms"),
        (lambda: ExpiredFor(True), "grace_ms"),
        (lambda: SupersededFor(-1), "age_ms"),
        (lambda: SupersededFor(2**53), "age_ms"),
        (lambda: MaxFacts(0), "limit"),
        (lambda: MaxFacts(2.0), "limit"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_parameter_is_refused_by_name(make, field):
    with pytest.raises(InvalidRequest, match=rf"^{field} must be a whole number") as caught:
        make()
    assert caught.value.field == field


def test_the_default_consolidation_plans_nothing():
    assert list(NoConsolidation().plan([fact("a"), fact("b")], 0)) == []


def test_only_built_in_policies_go_without_the_content_of_facts():
    class MyPolicy:
        def select(self, facts, now):
            return [found.id for found in facts if found.text == "x"]

    assert reads_content(MyPolicy())
    assert not any(
        reads_content(policy)
        for policy in (KeepAll(), ExpiredFor(1), SupersededFor(1), MaxFacts(1), NoConsolidation())
    )


def test_the_repr_of_summaries_and_plans_shows_no_text():
    shown = repr(
        fact("secret-id", text="secret text", subject="secret", tags=("secret",), metadata={"k": "secret"})
    )
    shown += repr(Consolidation(text="secret text", sources=("secret-id",), subject="secret"))
    assert "secret" not in shown
    assert "number=0" in shown
