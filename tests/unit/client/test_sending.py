"""Arguments become requests without being bent: what JSON cannot hold is refused, by name, before it is sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Context, InvalidRequest, Memory, Namespace, NewFact, Source
from perdure.base.instants import to_millis
from perdure.client import Client
from perdure.client.sending import cleared, fact_of, names_of, recall_options, request_of, scope_of
from perdure.contract.decoding import decode_request
from perdure.contract.operations import OPERATIONS
from unit.client.stub import RECALLED, answer, serving

NOON = datetime(2024, 5, 31, 12, tzinfo=timezone(timedelta(hours=2)))


@given(
    st.datetimes(
        datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.sampled_from([None, UTC, NOON.tzinfo])
    )
)
def test_moments_are_sent_as_milliseconds(moment):
    assert request_of(as_of=moment) == {"asOf": to_millis(moment, field="as_of")}


@pytest.mark.parametrize("moment", [NOON, 1_717_149_600_000, "2024-05-31T12:00:00+02:00", "2024-05-31 10:00"])
def test_all_spellings_of_a_moment_are_sent_alike(moment):
    assert request_of(valid_from=moment, valid_during=(moment, NOON), known_at=[moment, NOON]) == {
        "validFrom": 1_717_149_600_000,
        "validDuring": [1_717_149_600_000] * 2,
        "knownAt": [1_717_149_600_000] * 2,
    }


def test_what_is_none_is_left_out():
    assert request_of(text="x", subject=None, pinned=False) == {"text": "x", "pinned": False}


def test_values_of_the_model_are_sent_as_objects():
    told = request_of(
        source=Source(uri="chat/1", position=4),
        context=Context(actor=2.0),
        spaces=["home", Namespace("bob", "work"), {"principal": "eve"}],
    )
    assert told == {
        "source": {"uri": "chat/1", "position": 4},
        "context": {"neighbours": [0.5, 0.25], "actor": 2.0, "period": 1.5},
        "spaces": ["home", {"principal": "bob", "scope": "work"}, {"principal": "eve"}],
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("valid_from", "tomorrow"),
        ("valid_from", True),
        ("valid_during", 5),
        ("valid_during", "2024-01-01"),
        ("metadata", {"when": NOON}),
        ("metadata", {1: "a"}),
        ("metadata", {"n": float("nan")}),
        ("metadata", {"n": 2**53}),
        ("metadata", {"b": b"bytes"}),
        ("filter", {"a": {1, 2}}),
        ("entities", "Ann"),
        ("entities", 5),
        ("tags", {"a": 1}),
        ("ids", "one"),
        ("text", "lone \ud800"),
        ("importance", float("inf")),
        ("embedding", "AAAA"),
        ("embedding", [1.0, float("nan")]),
        ("k", np.int64(3)),
    ],
)
def test_what_json_would_bend_is_refused_by_name(field, value):
    with pytest.raises(InvalidRequest) as refused:
        request_of(**{field: value})
    assert refused.value.field == field


def test_a_fact_of_a_batch_may_be_a_value_an_object_or_a_text():
    wanted = {"text": "x", "validFrom": 0, "pinned": False, "reassert": False}
    assert fact_of(NewFact(text="x", valid_from=0), 0, None) == wanted
    assert fact_of({"text": "x", "valid_from": "1970-01-01"}, 0, None) == {"text": "x", "validFrom": 0}
    assert fact_of("x", 0, None) == {"text": "x"}


@pytest.mark.parametrize(
    "told", [5, None, ["x"], {"text": "x", "validFrom": 0}, {"text": "x", "valid_to": "!"}]
)
def test_a_wrong_member_of_a_batch_is_named_by_its_index(told):
    with pytest.raises(InvalidRequest, match=r"facts\[7\]") as refused:
        fact_of(told, 7, None)
    assert refused.value.details["index"] == 7


def test_what_is_cleared_is_told_apart_from_what_is_not_given():
    told = {"kind": None, "tags": [], "subject": msgspec.UNSET, "event_time": None, "pinned": None}
    assert request_of(**cleared(told)) == {"tags": [], "clear": ["kind", "eventTime"]}


SCOPES = {
    "ids": (["a"], {"ids": ["a"]}),
    "subject": ("s", {"subject": "s"}),
    "entity": ("e", {"entity": "e"}),
    "ingested_before": ("1970-01-01", {"before": 0}),
    "event_before": (NOON, {"before": 1_717_149_600_000}),
    "matching": ({"a": 1}, {"metadata": {"a": 1}}),
    "tag": ("t", {"tag": "t"}),
    "text": ("x", {"text": "x"}),
    "containing": ("x", {"containing": "x"}),
    "kind": ("semantic", {"factKind": "semantic"}),
    "filter": ({"a": 1}, {"filter": {"a": 1}}),
    "session": ("monday", {"session": "monday"}),
    "all": (True, {}),
}


@pytest.mark.parametrize("name", SCOPES)
def test_every_scope_of_a_forget_is_told_as_the_contract_has_it(name):
    value, wanted = SCOPES[name]
    told = {**dict.fromkeys(SCOPES), "all": False, name: value}
    scope = scope_of(told)
    assert {key: item for key, item in scope.items() if key != "kind"} == wanted
    decode_request(OPERATIONS["forget"], {"scope": scope})


@pytest.mark.parametrize("told", [{}, {"all": False}, {"ids": ["a"], "tag": "t"}, {"all": 1}])
def test_a_forget_needs_exactly_one_scope_before_anything_is_sent(told):
    with serving(answer(RECALLED)) as stub, Client(stub.url) as client:
        with pytest.raises(InvalidRequest) as refused:
            client.memory().forget(**told)
        with Memory.open(":memory:") as memory, pytest.raises(InvalidRequest) as wanted:
            memory.forget(**told)
        assert refused.value.field == wanted.value.field
        assert stub.asked == []


def test_an_option_that_there_is_not_is_refused_as_a_memory_refuses_it():
    with pytest.raises(InvalidRequest) as refused:
        recall_options({"asOf": 0})
    with Memory.open(":memory:") as memory, pytest.raises(InvalidRequest) as wanted:
        memory.recall("x", asOf=0)
    assert refused.value.field == wanted.value.field


@pytest.mark.parametrize("told", ["alice", [("alice", "")], ["alice"]])
def test_spaces_of_a_store_are_named_by_namespaces(told):
    with pytest.raises(InvalidRequest) as refused:
        names_of(told)
    assert refused.value.field == "spaces"
