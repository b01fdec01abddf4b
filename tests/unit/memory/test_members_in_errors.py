"""A member of a list that cannot be taken is named with its place, on the surface's own path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governed import activate, change, create, create_active, evidence, revise
from perdure import ManualClock, Store
from perdure.errors import PerdureError
from perdure.model.node import Evidence, Relation
from perdure.model.node_change import AddRelation

BAD = "\ud800"  # a text that no store takes


@pytest.fixture
def store():
    with Store.open(":memory:", clock=ManualClock(1_770_000_000_000)) as opened:
        yield opened


def field_of(call):
    """Return the field that a refusal names, after checking that its message begins with it or with its member."""
    with pytest.raises(PerdureError) as refused:
        call()
    told = refused.value
    assert told.field is not None
    assert told.message.startswith((told.field, told.field.rpartition(".")[0] + ": "))
    return told.field


@pytest.mark.parametrize("name", ["supersedes", "entities", "tags"])
@given(place=st.integers(0, 3))
def test_a_bad_member_of_a_facts_list_is_named_alone_and_in_a_batch(name, place):
    members = ["fine"] * place + [BAD]
    with Store.open(":memory:") as store:
        memory = store.memory()
        assert field_of(lambda: memory.remember("x", **{name: members})) == f"{name}[{place}]"
        batch = ["y", {"text": "x", name: members}]
        assert field_of(lambda: memory.remember_many(batch)) == f"facts[1].{name}[{place}]"


@pytest.mark.parametrize(
    ("op", "request_", "field"),
    [
        ("forget", {"scope": {"kind": "ids", "ids": ["a", ""]}}, "scope.ids[1]"),
        ("restore", {"ids": ["a", ""]}, "ids[1]"),
        ("unblock", {"texts": ["a", BAD]}, "texts[1]"),
        ("merge", {"keep": "a", "ids": ["b", ""]}, "ids[1]"),
        ("recordUse", {"ids": [""]}, "ids[0]"),
        ("recall", {"query": "x", "tags": ["a", ""]}, "tags[1]"),
        ("annotate", {"id": "a", "tags": [""]}, "tags[0]"),
    ],
)
def test_a_bad_member_of_a_requests_list_is_named(store, op, request_, field):
    memory = store.memory()
    memory.remember("x", id="a")
    assert field_of(lambda: memory.call(op, request_)) == field


def test_evidence_and_relations_are_named_by_their_place_in_the_change_set(store):
    repository = store.repository()
    bad = Evidence("", "d", "manual", 0)
    drafted = change("k", create("a"), create("b", evidence=[evidence(), bad]))
    assert field_of(lambda: repository.apply(drafted)) == "operations[1].draft.evidence[1].uri"
    related = change("k", create("a", relations=[Relation("likes", "b")]))
    assert field_of(lambda: repository.apply(related)) == "operations[0].draft.relations[0].kind"
    decided = change("k", activate("a", 1, evidence(), bad))
    assert field_of(lambda: repository.apply(decided)) == "operations[0].evidence[1].uri"
    assert field_of(lambda: repository.forget(["a", ""])) == "ids[1]"


@pytest.mark.parametrize(
    ("operations", "field", "kind"),
    [
        ([create("new"), create("known")], "operations[1].draft.id", "node_already_exists"),
        ([create("new"), activate("known", 7)], "operations[1].expected_revision", "revision_conflict"),
        ([create("new"), activate("known", 1)], "operations[1].status", "invalid_transition"),
        ([create("new"), activate("nobody", 1)], "operations[1].node_id", "node_not_found"),
        (
            [create("new"), create("off", relations=[Relation("related_to", "nobody")])],
            "operations[1].draft.relations",
            "relation_target_not_found",
        ),
        (
            [
                revise("known", 1, "other words"),
                AddRelation(
                    node_id="known",
                    expected_revision=2,
                    evidence=[evidence()],
                    relation=Relation("related_to", "nobody"),
                ),
            ],
            "operations[1].relations",
            "relation_target_not_found",
        ),
    ],
)
def test_what_disagrees_in_a_change_set_is_placed_at_its_operation(store, operations, field, kind):
    repository = store.repository()
    repository.apply(change("first", create_active("known")))
    with pytest.raises(PerdureError) as refused:
        repository.apply(change("k", *operations))
    told = refused.value
    assert (told.field, told.details["kind"]) == (field, kind)
    assert told.message.startswith(field.partition(".")[0])
