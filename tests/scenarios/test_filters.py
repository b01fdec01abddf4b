"""Metadata filters: exact rows, one rule for types, and no value that is more than a value."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, Limits, Memory, MemoryConfig, QueryLimit, Store
from perdure.base.canonical import canonical_json
from perdure.filters.grammar import FirstClass
from scenarios.stores import ids

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.0,
    1.0,
    1.5,
    10,
    "",
    "1",
    "10",
    "true",
    "null",
    "a",
    "A",
    "é",
    "e\u0301",
]
VALUES += [
    [],
    [1],
    [1.0],
    [True],
    [1, 2],
    [2, 1],
    {},
    {"x": 1},
    {"x": 1.0},
    {"x": 1, "y": 2},
    {"y": 2, "x": 1},
]


def test_two_values_match_exactly_when_their_canonical_json_is_equal(memory):
    for n, value in enumerate(VALUES):
        memory.remember(f"row {n}", id=f"{n:02}", metadata={"k": value, "n": n})
    memory.remember("row without the key", id="none")
    for wanted in VALUES:
        same = [f"{n:02}" for n, v in enumerate(VALUES) if canonical_json(v) == canonical_json(wanted)]
        assert ids(memory.list(filter={"k": wanted}).items) == same
        assert sorted(ids(memory.recall("row", k=100, filter={"k": wanted}))) == same
        assert memory.forget(matching={"k": wanted}, dry_run=True).forgotten == tuple(same)
        assert memory.forget(filter={"k": wanted}, dry_run=True).forgotten == tuple(same)


@pytest.mark.parametrize(
    ("equal", "unequal"),
    [
        ((1, 1.0), (True, "1", [1], 1.5, None)),
        ((True,), (1, "true", False)),
        ((None,), (False, 0, "", "null", [], {})),
        (([1, 2], [1.0, 2.0]), ([2, 1], [1], [[1, 2]], {"0": 1, "1": 2})),
        (({"a": 1, "b": 2}, {"b": 2.0, "a": 1}), ({"a": 1}, {"a": 1, "b": 2, "c": 3})),
        (("é",), ("e\u0301", "É", "é ")),
        ((2**53 - 1,), (2**53 - 2, str(2**53 - 1))),
        ((0, -0.0, 0.0), (False, "", None)),
    ],
)
def test_equality_is_of_json_values_and_strict_in_type(memory, equal, unequal):
    for stored, asked in itertools.product(equal, repeat=2):
        memory.forget(all=True)
        memory.remember("row", metadata={"k": stored})
        assert len(memory.recall("row", filter={"k": asked})) == 1
        for other in unequal:
            assert memory.recall("row", filter={"k": other}) == []


SIX = [{"team": "abcabc"[n], "prio": n + 1, "done": n % 2 == 1} for n in range(6)] + [{"other": 1}]
ASKED = [
    ({"prio": {"$gte": 4}}, "456"),
    ({"team": {"$in": ["a", "c"]}}, "1346"),
    ({"$or": [{"team": "a"}, {"prio": 6}]}, "146"),
    ({"$not": {"team": "b"}}, "13467"),
    ({"team": {"$ne": "b"}}, "13467"),
    ({"$not": {"$or": [{"team": "a"}, {"team": "b"}]}}, "367"),
    ({"team": {"$nin": ["a", "b"]}}, "367"),
    ({"prio": {"$gt": 2, "$lt": 5}}, "34"),
    ({"$and": [{"prio": {"$gt": 2}}, {"prio": {"$lt": 5}}]}, "34"),
    ({"$not": {"lacking": 1}}, "1234567"),
    ({"$not": {"prio": {"$gt": 0}}}, "7"),
    ({"team": {"$exists": False}}, "7"),
    ({"team": {"$exists": True}, "done": True}, "246"),
    ({"team": {"$in": []}}, ""),
    ({"team": {"$nin": []}}, "1234567"),
    ({"$and": [{"prio": 1}, {"prio": 2}]}, ""),
    ({"prio": {"$eq": 1, "$lt": 1}}, ""),
    ({"prio": {"$gte": "4"}}, ""),
    ({"prio": "4"}, ""),
    ({"done": 1}, ""),
    ({"team": {"$gte": "b"}}, "2356"),
    ({"team": {"$eq": "$eq') OR 1=1 --"}}, ""),
    ({"prio') OR 1=1 --": 3}, ""),
]


@pytest.mark.parametrize(("asked", "right"), ASKED)
def test_every_operator_gives_the_exact_rows_on_every_surface(memory, store, asked, right):
    for n, row in enumerate(SIX, 1):
        memory.remember(f"row {n}", id=f"{n}", metadata=row)
    assert ids(memory.list(filter=asked).items) == list(right)
    assert sorted(ids(memory.recall("row", filter=asked))) == list(right)
    assert sorted(ids(store.documents().search("row", filter=asked))) == list(right)
    assert [document.id for document in store.documents().list(filter=asked).items] == list(right)
    assert memory.forget(filter=asked, dry_run=True).forgotten == tuple(right)
    told = [json.loads(line) for line in store.export_lines(filter=asked)]
    assert [line["id"] for line in told if line.get("type") == "fact"] == list(right)
    assert ids(memory.list().items) == list("1234567")


def test_several_keys_must_all_match_and_a_contradiction_is_not_possible(memory):
    for n in range(1, 7):
        memory.remember(f"row {n}", id=f"{n}", metadata={"team": "abc"[n % 3], "prio": n, "done": n % 2 == 0})
    assert ids(memory.list(filter={"team": "b"}).items) == ["1", "4"]
    assert ids(memory.list(filter={"team": "b", "done": True}).items) == ["4"]
    assert ids(memory.list(filter={"team": "b", "done": 1}).items) == []
    assert ids(memory.list(filter={"team": "b", "lacking": None}).items) == []
    memory.annotate("1", metadata={"team": "c"})
    assert ids(memory.list(filter={"team": "b"}).items) == ["4"]
    assert ids(memory.list(filter={"team": "c"}).items) == ["1", "2", "5"]


ODD_KEYS = [
    "', 1) OR 1=1 --",
    "%",
    "_",
    "k\0",
    "'; DROP TABLE facts; --",
    " ",
    "",
    "é",
    "{}",
]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_key_is_a_key_whatever_it_looks_like(memory, key):
    memory.remember("row", id="a", metadata={key: 1, "other": 2})
    memory.remember("row two", id="b", metadata={"other": 2})
    assert ids(memory.list(filter={key: 1}).items) == ["a"]
    assert ids(memory.list(filter={key: 2}).items) == []
    assert memory.forget(matching={key: 1}).forgotten == ("a",)
    assert ids(memory.list().items) == ["b"]


@pytest.mark.parametrize("key", ["a.b", "a[0]", "@subject"])
def test_a_key_written_like_a_path_or_a_field_means_that_and_is_matched_as_it_is_by_matching(memory, key):
    memory.remember("row", id="a", metadata={key: 1, "other": 2})
    memory.remember("row two", id="b", metadata={"a": {"b": "x"}, "other": 2}, subject="s")
    memory.remember("row three", id="c", metadata={"a": ["x"], "other": 3}, subject="t")
    wanted = {"a.b": ("x", ["b"]), "a[0]": ("x", ["c"]), "@subject": ("s", ["b"])}[key]
    assert ids(memory.list(filter={key: wanted[0]}).items) == wanted[1]
    assert ids(memory.list(filter={key: 1}).items) == []
    assert memory.list(filter={"other": {key: 1}}).items == ()
    assert memory.forget(matching={key: 1}).forgotten == ("a",)


@pytest.mark.parametrize("key", ["a\\b", "a]", ".", "@"])
def test_a_key_that_is_no_path_is_refused_by_name_but_for_matching(memory, store, key):
    memory.remember("row", id="a", metadata={key: 1, "other": 2})
    documents = store.documents()
    for asked in ({key: 1}, {"other": 2, key: 1}):
        for call in (
            lambda asked=asked: memory.recall("row", filter=asked),
            lambda asked=asked: memory.explain("row", "a", filter=asked),
            lambda asked=asked: memory.list(filter=asked),
            lambda asked=asked: memory.forget(filter=asked),
            lambda asked=asked: documents.search("row", filter=asked),
            lambda asked=asked: documents.list(filter=asked),
        ):
            with pytest.raises(InvalidRequest):
                call()
    assert memory.forget(matching={key: 1}).forgotten == ("a",)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a.b", "a\\.b"),
        ("a[0]", "a\\[0\\]"),
        ("a\\b", "a\\\\b"),
        ("$eq", "\\$eq"),
        ("@subject", "\\@subject"),
        ("]", "\\]"),
    ],
)
def test_a_backslash_makes_a_sign_a_part_of_the_key(memory, store, key, path):
    memory.remember("row", id="a", subject="s", metadata={key: 1, "deep": {key: [2]}})
    memory.remember("row two", id="b", subject="t", metadata={"a": {"b": 1}})
    documents = store.documents("documents")
    documents.put("d", "row", metadata={key: 1})
    for asked in ({path: 1}, {path: {"$lt": 2}}, {f"deep.{path}[0]": 2}):
        assert ids(memory.recall("row", filter=asked)) == ["a"]
        assert ids(memory.list(filter={"$not": asked}).items) == ["b"]
    assert ids(documents.list(filter={path: 1}).items) == ["d"]
    assert memory.forget(filter={path: 1}).forgotten == ("a",)


@pytest.mark.parametrize("sign", ["~~", ">", "==", "!=", "<=", "_"])
def test_an_object_of_nothing_but_signs_is_taken_for_the_mistake_that_it_is(memory, sign):
    memory.remember("row", id="a", metadata={"prio": {sign: 3}})
    memory.remember("row two", id="b", metadata={"prio": 3})
    for asked in ({"prio": {sign: 3}}, {"@importance": {sign: 3}}, {"@subject": {sign: "s", ">": 1}}):
        with pytest.raises(InvalidRequest) as caught:
            memory.list(filter=asked)
        assert caught.value.details["operator"] == sign
        assert repr(sign) in str(caught.value)
        assert "$eq" in str(caught.value)
    assert ids(memory.list(filter={"prio": {"$eq": {sign: 3}}}).items) == ["a"]
    assert ids(memory.list(filter={f"prio.{sign}": 3}).items) == ["a"]
    assert memory.list(filter={"prio": {sign: 3, "a": 3}}).items == ()


@pytest.mark.parametrize("field", [*FirstClass])
def test_no_field_of_a_fact_is_compared_with_an_object(memory, field):
    for asked in ({"a": 1}, {"$eq": {"a": 1}}, {"$in": [{"a": 1}]}, {"$contains": {}}):
        with pytest.raises(InvalidRequest) as caught:
            memory.list(filter={field: asked})
        assert caught.value.details["place"].startswith(f"filter.{field}")


@pytest.mark.parametrize("operator", ["$regex", "$EQ", "$", "$$eq", "$eq') OR 1=1 --"])
def test_an_unknown_operator_is_an_error_and_never_dropped(memory, store, operator):
    memory.remember("row", id="a", metadata={"prio": 3})
    for asked in (
        {operator: 3},
        {operator: [{"prio": 3}]},
        {"prio": {operator: 3}},
        {"prio": 3, operator: 3},
        {"prio": [1, {"deep": [{operator: 3}]}]},
    ):
        for call in (
            lambda asked=asked: memory.recall("row", filter=asked),
            lambda asked=asked: memory.list(filter=asked),
            lambda asked=asked: memory.forget(filter=asked),
            lambda asked=asked: store.export_lines(filter=asked),
        ):
            with pytest.raises(InvalidRequest) as caught:
                call()
            assert caught.value.field == "filter"
            assert caught.value.details["operator"] == operator
            assert repr(operator) in str(caught.value)
    assert ids(memory.recall("row", filter={"prio": 3})) == ["a"]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(json_values, min_size=1, max_size=6))
@settings(max_examples=examples(20), deadline=None)
def test_any_json_value_is_found_by_itself_and_kept_as_it_was(values):
    with Store.open(":memory:") as store:
        memory: Memory = store.memory()
        for n, value in enumerate(values):
            memory.remember(f"row {n}", id=f"{n}", metadata={"k": value})
        for n, value in enumerate(values):
            assert memory.get(f"{n}").metadata == {"k": value}
            same = [f"{m}" for m, v in enumerate(values) if canonical_json(v) == canonical_json(value)]
            assert ids(memory.list(filter={"k": {"$eq": value}}).items) == same


def test_a_filter_that_looks_at_more_rows_than_the_budget_has_is_refused_kept_or_not(store):
    for n in range(8):
        store.memory().remember(f"row {n}", metadata={"n": n})
    memory = store.memory(config=MemoryConfig(limits=Limits(work=20)))
    documents = store.documents(config=MemoryConfig(limits=Limits(work=20)))
    twice = {"n": {"$gte": 3}, "$not": {"n": {"$in": [7]}}}
    thrice = {**twice, "@importance": {"$exists": False}}
    for _ in range(2):
        assert len(memory.recall("row", filter=twice)) == 4
        assert documents.list(filter=twice).total == 4
        assert memory.list(filter={"n": 3}).total == 1
        for call in (
            lambda: memory.recall("row", filter=thrice),
            lambda: documents.list(filter=thrice),
            lambda: documents.search("row", filter=thrice),
            lambda: memory.list(filter=twice),
        ):
            with pytest.raises(QueryLimit):
                call()
    assert len(memory.forget(filter=thrice, dry_run=True).forgotten) == 4
