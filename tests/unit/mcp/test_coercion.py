"""What clients send for an argument, and what the contract is asked then."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest
from perdure.mcp.arguments import form_for
from perdure.mcp.catalogue import TOOLS
from perdure.mcp.coercion import coerced

TOOL = {tool.name: tool for tool in TOOLS}


def asked(tool: str, **arguments):
    return coerced(arguments, form_for(TOOL[tool], "all"), of=tool)


def refused(tool: str, **arguments) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        asked(tool, **arguments)
    return caught.value


def test_names_become_those_of_the_contract():
    assert asked("recall", query="tea", as_of="2024-01-01", min_score=0.5) == {
        "query": "tea",
        "asOf": "2024-01-01",
        "minScore": 0.5,
    }


def test_null_is_absence_also_within_a_fact():
    assert asked("remember", facts=[{"text": "a", "valid_from": None}], idempotency_key=None) == {
        "facts": [{"text": "a"}]
    }


@given(st.text())
def test_a_text_field_takes_every_text_as_it_is(text):
    assert asked("remember", text=text) == {"text": text}


@pytest.mark.parametrize("text", ["[1,2]", '{"a":1}', "5", "true", "null", '"quoted"', "[not json"])
def test_what_looks_like_json_stays_text_in_a_text_field(text):
    assert asked("remember", text=text, subject=text) == {"text": text, "subject": text}


@given(st.lists(st.text()))
def test_a_list_may_be_json_text(texts):
    assert asked("remember", text="a", tags=json.dumps(texts)) == {"text": "a", "tags": texts}


@given(st.text().filter(lambda text: not text.lstrip().startswith("[")))
def test_one_text_stands_for_a_list_of_texts(text):
    assert asked("remember", text="a", tags=text)["tags"] == [text]


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(-99, 99) | st.text()))
def test_an_object_may_be_json_text_and_keeps_its_names_and_nulls(pairs):
    assert asked("remember", text="a", metadata=json.dumps(pairs))["metadata"] == pairs
    assert asked("remember", text="a", metadata=pairs)["metadata"] == pairs


@given(st.integers(-(10**9), 10**9))
def test_a_whole_number_may_be_text(number):
    assert asked("recall", query="a", k=str(number))["k"] == number


@given(st.floats(-1e9, 1e9))
def test_a_number_may_be_text(number):
    assert asked("recall", query="a", min_score=repr(number))["minScore"] == number


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("True", True), ("false", False), (" FALSE ", False)]
)
def test_a_boolean_may_be_text(text, value):
    assert asked("remember", text="a", pinned=text)["pinned"] is value


def test_facts_and_what_is_within_them_may_be_json_text():
    told = json.dumps([{"text": "[1]", "valid_from": "2024-01-01", "tags": "x", "importance": "0.5"}])
    assert asked("remember", facts=told) == {
        "facts": [{"text": "[1]", "validFrom": "2024-01-01", "tags": ["x"], "importance": 0.5}]
    }


def test_milliseconds_as_text_are_a_moment_but_a_year_is_left_to_be_refused():
    assert asked("recall", query="a", as_of="1700000000000")["asOf"] == 1_700_000_000_000
    assert asked("recall", query="a", as_of="2024")["asOf"] == "2024"
    assert asked("recall", query="a", as_of=5)["asOf"] == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": "many"}, "k must be a whole number"),
        ({"k": "5.0"}, "k must be a whole number"),
        ({"k": ""}, "k must be a whole number"),
        ({"min_score": "NaN"}, "min_score must be a number"),
        ({"pinned": "yes"}, "pinned must be true or false"),
        ({"tags": "[broken"}, "tags must be a list"),
        ({"filter": "team=a"}, "filter must be an object"),
        ({"filter": '{"a":1,"a":2}'}, "filter must be an object"),
        ({"filter": "[1]"}, "filter must be an object"),
        ({"embedding": "0.5"}, "embedding must be a list"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused_with_the_form_that_is_expected(arguments, words):
    error = refused("recall", query="a", **arguments)
    assert words in error.message
    assert error.field == next(iter(arguments))


def test_a_refused_text_is_not_repeated():
    assert "planted" not in refused("recall", query="a", k="planted").message


def test_json_text_that_is_nested_without_end_is_refused():
    assert refused("recall", query="a", filter='{"a":' * 5_000).field == "filter"


def test_an_unknown_argument_is_refused_and_the_known_ones_are_named():
    error = refused("recall", query="a", asOf=5)
    assert error.field == "asOf"
    assert "as_of" in error.message
    assert refused("remember", facts=[{"text": "a", "colour": "red"}]).field == "facts[0].colour"


def test_a_missing_argument_is_named():
    assert refused("recall").field == "query"
    assert refused("recall", query=None).field == "query"


def test_other_kinds_are_left_for_the_contract_to_refuse():
    assert asked("recall", query=5, k=True) == {"query": 5, "k": True}


@pytest.mark.parametrize("name", ["purge", "spaces"])
def test_no_tool_takes_a_purge_or_another_space(name):
    for tool in TOOLS:
        for profile in ("default", "all"):
            assert name not in form_for(tool, profile).fields


def test_a_text_that_says_which_kind_of_object_it_is_stays_as_it_is():
    relabel = {"operation": "relabel", "node_id": "a", "expected_revision": "1", "labels": '{"a": "b"}'}
    found = asked("apply_changes", idempotency_key="k", occurred_at="2024-01-01", operations=[relabel])
    assert found["operations"] == [
        {"operation": "relabel", "nodeId": "a", "expectedRevision": 1, "labels": {"a": "b"}}
    ]


def test_whatever_has_texts_to_choose_from_takes_a_text():
    for tool in TOOLS:
        for form in inner_forms(form_for(tool, "all")):
            assert not ("enum" in form.told and "string" not in form.kinds), (tool.name, form)


def test_the_name_of_a_field_as_a_value_becomes_that_of_the_contract():
    assert asked("correct", id="a", new_text="b", clear=["valid_from", "validTo", "tags"])["clear"] == [
        "validFrom",
        "validTo",
        "tags",
    ]


def inner_forms(form):
    for inner in (*form.fields.values(), *filter(None, [form.items])):
        yield inner
        yield from inner_forms(inner)
