"""Any JSON is a filter or refused with a place; a filter is decided, and its negation matches the other rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest
from perdure.contract.limits import METADATA_BYTES_MAX
from perdure.filters.evaluate import matches
from perdure.filters.grammar import CONDITIONS_MAX, FirstClass, Operator, parse_filter

law = settings(deadline=None, max_examples=examples(120))
KEYS = [
    *(
        "a",
        "b",
        "a.b",
        "a[0]",
        "a\\.b",
        "",
        "[",
        "a[",
        "a..b",
        "~~",
        "@x",
        "$x",
        "$ne",
        "$nin",
        "$and",
        "$or",
        "$not",
    ),
    *Operator,
    *FirstClass,
]
names = st.one_of(st.sampled_from(KEYS), st.text(max_size=6))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["semantic", "1970-01-01"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
rows = st.fixed_dictionaries({}, optional={"a": values, "b": values, "a.b": values, "": values})
OWN: dict[str, Any] = {
    "@tags": ["a"],
    "@kind": "semantic",
    "@importance": 0.5,
    "@eventTime": 5,
    "@subject": "s",
}


@given(st.one_of(st.dictionaries(names, values, min_size=1, max_size=3), values), rows)
@law
def test_any_json_is_a_filter_or_refused_with_its_place(value, row):
    try:
        tree = parse_filter(value, "where")
    except InvalidRequest as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.field == "where"
        assert str(refused).startswith(("where", "…"))
        return
    assert parse_filter(value) == tree
    negated = parse_filter({"$not": value})
    for fields in ({}, OWN):
        assert matches(tree, row, fields) is not matches(negated, row, fields)


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x" * METADATA_BYTES_MAX},
        {"$or": [{"a": n} for n in range(CONDITIONS_MAX + 1)]},
        {"a": {"$in": [*range(METADATA_BYTES_MAX)]}},
        {".".join("a" * 33): 1},
        {"a" + "[0]" * 20_000: 1},
        {"a\\." * 10_000 + "\\": 1},
    ],
)
def test_what_is_too_large_is_refused(value):
    with pytest.raises(InvalidRequest) as caught:
        parse_filter(value)
    assert caught.value.field == "filter"
    assert len(str(caught.value)) < 500


def test_a_filter_nested_a_thousand_deep_is_refused():
    value: Any = {"a": 1}
    for _ in range(1_000):
        value = {"$not": value}
    with pytest.raises(InvalidRequest):
        parse_filter(value)
