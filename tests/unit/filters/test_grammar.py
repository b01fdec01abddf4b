"""What is a filter, and where in it a mistake is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import InvalidRequest
from perdure.filters.evaluate import matches
from perdure.filters.grammar import CONDITIONS_MAX, DEPTH_MAX, parse_filter


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({}, "filter"),
        ({"$and": [{"a": 1}, {"prio": {"$gt": 1, "$above": 2}}]}, "filter.$and[1].prio.$above"),
        ({"prio": {"~~": 3, "$gt": 1}}, "filter.prio.~~"),
        ({"$or": {"a": 1}}, "filter.$or"),
        ({"$and": []}, "filter.$and"),
        ({"$or": []}, "filter.$or"),
        ({"$or": [{"a": 1}, {}]}, "filter.$or[1]"),
        ({"$or": [{"a": 1}, 5]}, "filter.$or[1]"),
        ({"$not": []}, "filter.$not"),
        ({"$not": {"$not": {}}}, "filter.$not.$not"),
        ({"$eq": 1}, "filter.$eq"),
        ({"$nor": [{"a": 1}]}, "filter.$nor"),
        ({"a": {"$not": {"$gt": 1}}}, "filter.a.$not"),
        ({"a": {"$in": "abc"}}, "filter.a.$in"),
        ({"a": {"$nin": {"b": 1}}}, "filter.a.$nin"),
        ({"a": {"$exists": 1}}, "filter.a.$exists"),
        ({"a": {"b": {"$gt": 1}}}, "filter.a.b.$gt"),
        ({"a": [1, {"b": {"$gt": 1}}]}, "filter.a[1].b.$gt"),
        ({"$not": {"@eventTime": {"$in": [1, "never"]}}}, "filter.$not.@eventTime.$in[1]"),
        ({"@validTo": None}, "filter.@validTo"),
        ({"@validTo": True}, "filter.@validTo"),
        ({"@ingestTime": {"$gt": 10**15}}, "filter.@ingestTime.$gt"),
        ({"@kind": "semantc"}, "filter.@kind"),
        ({"@kind": {"$ne": "Semantic"}}, "filter.@kind.$ne"),
        ({"@kind": {"$nin": ["semantic", 3]}}, "filter.@kind.$nin[1]"),
        ({"@kind": None}, "filter.@kind"),
        ({"@importance": {"$gt": "high"}}, "filter.@importance.$gt"),
        ({"@importance": {"$lte": None}}, "filter.@importance.$lte"),
        ({"@importance": {"$in": [0.5, True]}}, "filter.@importance.$in[1]"),
        ({"@importance": "1"}, "filter.@importance"),
        ({"@owner": 1}, "filter"),
        ({"@tags[0]": 1}, "filter"),
        ({"$and": [{"a[": 1}]}, "filter.$and[0]"),
    ],
)
def test_a_mistake_is_refused_with_its_place(told, place):
    with pytest.raises(InvalidRequest) as refused:
        parse_filter(told)
    assert refused.value.field == "filter"
    assert refused.value.details["place"] == place
    assert place in str(refused.value)


def test_a_value_that_no_field_of_a_fact_can_have_is_refused_with_what_to_write():
    with pytest.raises(InvalidRequest, match=r"episodic, semantic, procedural, working, got 'semantc'$"):
        parse_filter({"@kind": "semantc"})
    with pytest.raises(InvalidRequest, match=r"a number from 0 to 1, as an importance is, got text$"):
        parse_filter({"@importance": {"$gt": "high"}})
    for told in ({"@kind": None}, {"@importance": {"$gt": None}}):
        with pytest.raises(InvalidRequest, match=r"ask with \$exists"):
            parse_filter(told)


def test_what_can_match_a_part_of_a_kind_or_lies_between_kinds_is_no_mistake():
    for told in ({"$contains": "sem"}, {"$gt": "m"}, {"$exists": False}, {"$in": []}):
        parse_filter({"@kind": told})


@pytest.mark.parametrize("operator", ["$regex", "$EQ", "$", "$$eq", "$eq') OR 1=1 --", "$ne "])
def test_an_unknown_operator_is_named(operator):
    for told in ({operator: 1}, {"a": {operator: 1}}, {"$or": [{"a": {"b": {operator: 1}}}]}):
        with pytest.raises(InvalidRequest) as refused:
            parse_filter(told)
        assert refused.value.details["operator"] == operator
        assert repr(operator) in str(refused.value)


def nested(levels: int) -> dict:
    told: dict = {"a": 1}
    for _ in range(levels):
        told = {"$not": told}
    return told


def test_a_filter_has_a_depth_and_a_number_of_conditions_that_it_may_not_exceed():
    parse_filter(nested(DEPTH_MAX - 1))
    parse_filter({"$or": [{"a": n} for n in range(CONDITIONS_MAX)]})
    for told in (
        nested(DEPTH_MAX),
        {"$or": [{"a": n} for n in range(CONDITIONS_MAX + 1)]},
        {"a": {"$in": ["x" * 1_000] * 66}},
    ):
        with pytest.raises(InvalidRequest) as refused:
            parse_filter(told)
        assert refused.value.field == "filter"


def test_within_an_explicit_comparison_a_key_is_a_key_whatever_it_looks_like():
    told = parse_filter({"a": {"$eq": {"$gt": 1}}})
    assert matches(told, {"a": {"$gt": 1}}, {})
    assert not matches(told, {"a": 2}, {})


SAME = [
    ({"a": 1}, {"a": 1.0}, {"a": {"$eq": 1}}),
    (
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        {"$and": [{"b": 2}, {"a": 1}]},
        {"$and": [{"a": 1}, {"b": 2}, {"a": 1}]},
    ),
    ({"a": {"$in": [1, 2]}}, {"a": {"$in": [2, 1, 1.0]}}),
    ({"$or": [{"a": 1}, {"b": 1}]}, {"$or": [{"b": 1}, {"a": 1}]}),
    ({"a": {"$ne": 1}}, {"$not": {"a": 1}}),
    ({"@validFrom": {"$lt": 0}}, {"@validFrom": {"$lt": "1970-01-01"}}),
]


def test_equal_filters_have_equal_keys_and_others_have_not():
    keys = [{parse_filter(told).key() for told in group} for group in SAME]
    assert all(len(group) == 1 for group in keys)
    assert len(set.union(*keys)) == len(SAME)
    others = [{"a": {"$ne": 1}}, {"a": "1"}, {"a": True}, {"a": [1]}, {"a.b": 1}, {"a\\.b": 1}, {"a[0]": 1}]
    others += [
        {"a": {"$contains": 1}},
        {"$or": [{"a": 1}, {"b": 2}]},
        {"a": {"$in": [1]}},
        {"a": {"$in": [[1]]}},
    ]
    assert len({parse_filter(told).key() for told in others}) == len(others)
    assert len({parse_filter(told) for group in SAME for told in group}) == len(SAME)


pieces = st.sampled_from(
    [
        "$and",
        "$or",
        "$not",
        "$eq",
        "$gt",
        "$in",
        "$exists",
        "$contains",
        "$x",
        "a",
        "a.b",
        "a[0]",
        "a[",
        "",
        "@tags",
        "@",
    ]
) | st.text(max_size=3)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pieces, inner, max_size=3),
    max_leaves=10,
)


@given(anything | st.dictionaries(pieces, anything, max_size=3))
@settings(max_examples=300, deadline=None)
def test_whatever_is_told_is_a_filter_or_an_invalid_request(told):
    try:
        parsed = parse_filter(told)
    except InvalidRequest as error:
        refused = error
    else:
        assert matches(parsed, {}, {}) in (True, False)
        assert parse_filter(json.loads(json.dumps(told))) == parsed
        return
    assert refused.field == "filter"
