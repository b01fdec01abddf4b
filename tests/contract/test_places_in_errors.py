"""A refused member is named by its place: of an object with keys of the caller's own as of a list, and never by the key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.stores import caller_of, shared_store
from contract.test_http import over_http
from perdure.contract.wire import error_object
from perdure.errors import InvalidRequest, PerdureError

KEYS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
GOOD = st.dictionaries(KEYS, st.text("abc", min_size=1, max_size=4), max_size=4)
bad = st.sampled_from([5, 0.5, True, {"a": "b"}, " ", ""])


def with_bad(good: dict[str, str], place: int, key: str, value: Any) -> tuple[dict[str, Any], int]:
    """Return the object with one more entry, and where that is."""
    entries = [(name, one) for name, one in good.items() if name != key]
    place = min(place, len(entries))
    return dict([*entries[:place], (key, value), *entries[place:]]), place


def refusals(op: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the error over HTTP, where a body of bytes is decoded, and in the process."""
    with pytest.raises(PerdureError) as refused:
        caller_of(shared_store("full")).call(op, request)
    case = {"store": "full", "op": op, "request": request, "reply": {"error": {}}}
    return [over_http(case).json()["error"], error_object(refused.value)["error"]]


@given(GOOD, st.integers(0, 4), KEYS, bad)
def test_a_label_that_is_none_is_named_by_its_place(good, place, key, value):
    labels, place = with_bad(good, place, key, value)
    for told in refusals("queryNodes", {"labels": labels}):
        assert told["field"] == f"labels[{place}].value"
        assert told["message"].startswith(f"labels[{place}].value ")


@given(GOOD, st.integers(0, 4), KEYS, st.integers(0, 2), st.sampled_from([5, None, [], " "]))
def test_a_member_of_a_list_of_labels_is_named_by_both_places(good, place, key, index, value):
    values: list[Any] = ["a", "b"]
    values.insert(index, value)
    labels, place = with_bad(good, place, key, values)
    for told in refusals("queryNodes", {"labels": labels}):
        assert told["field"] == f"labels[{place}].value[{index}]"


@given(GOOD, st.integers(0, 4), KEYS, bad.filter(lambda value: value != {"a": "b"}))
def test_a_label_of_a_draft_is_named_by_its_place(good, place, key, value):
    labels, place = with_bad(good, place, key, value)
    evidence = {"uri": "u", "digest": "d", "kind": "manual", "occurredAt": 0}
    draft = {"id": "x", "content": "c", "kind": "semantic", "evidence": [evidence], "labels": labels}
    asked = {"idempotencyKey": "k", "occurredAt": 0, "operations": [{"operation": "create", "draft": draft}]}
    for told in refusals("applyChanges", asked):
        assert told["field"] == f"operations[0].draft.labels[{place}].value"


def test_a_key_that_is_no_text_is_refused_by_the_object_that_it_is_in():
    with pytest.raises(InvalidRequest) as refused:
        caller_of(shared_store("full")).call("queryNodes", {"labels": {"a": "b", 5: "c"}})
    assert refused.value.field == "labels"
    assert "keys" in refused.value.message
