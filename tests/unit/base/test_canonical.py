"""Canonical JSON: equal values and equal bytes are the same thing."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.base.canonical import canonical_json, checked_json, checked_text, decode_json, strict_json
from perdure.errors import InvalidRequest

SAFE = 2**53 - 1
numbers = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=6)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
MARKER = "XQZ-canary-7731"


def same(a: object, b: object) -> bool:
    """Equality of JSON values as a person would define it, independent of bytes."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@given(values, values)
def test_values_are_equal_exactly_when_their_bytes_are(a, b):
    assert (canonical_json(a) == canonical_json(b)) == same(a, b)


@given(values)
def test_bytes_decode_to_an_equal_value_that_every_reader_agrees_on(value):
    data = canonical_json(value)
    assert same(decode_json(data), value)
    assert same(json.loads(data), value)
    assert same(strict_json(data), value)
    assert canonical_json(json.loads(data)) == data
    assert data == canonical_json(value)


@given(st.dictionaries(st.text(max_size=4), values, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_keys_and_the_spelling_of_whole_numbers_do_not_matter(value, random):
    items = list(value.items())
    random.shuffle(items)
    floated = {key: float(item) if type(item) is int and abs(item) <= SAFE else item for key, item in items}
    assert canonical_json(floated) == canonical_json(value)


@given(st.dictionaries(st.text(max_size=4).filter(bool), values, max_size=4))
def test_a_checked_object_is_an_equal_copy_of_its_own(value):
    copy = checked_json(value, field="metadata", bytes_max=65_536)
    assert copy is not value
    assert same(copy, value)
    assert json.dumps(copy) == json.dumps(value)  # 1.0 stays 1.0


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (float(SAFE), b"9007199254740991"),
        (True, b"true"),
        ({"b": 1, "a": [1.0, None]}, b'{"a":[1,null],"b":1}'),
        ("é\u2028\x00", '"é\u2028\\u0000"'.encode()),
        ({}, b"{}"),
    ],
)
def test_bytes_are_compact_sorted_and_shortest(value, data):
    assert canonical_json(value) == data


def test_sizes_and_depths_are_counted_exactly():
    fits = {"k": "é" * 10}
    size = len(canonical_json(fits))
    assert checked_json(fits, field="m", bytes_max=size) == fits
    with pytest.raises(InvalidRequest, match=f"{size} bytes.*{size - 1}"):
        checked_json(fits, field="m", bytes_max=size - 1)
    loop: dict = {}
    loop["a"] = loop["b"] = [loop, loop]
    with pytest.raises(InvalidRequest, match="deeper than 128"):
        checked_json(loop, field="m", bytes_max=10)


def nested_text(levels: int, brackets: str = "[]") -> str:
    return brackets[0] * levels + brackets[1] * levels


@pytest.mark.parametrize(
    "data",
    [
        f'{{"a":1,"{MARKER}":1,"{MARKER}":2}}',
        f'[{{"x":{{"{MARKER}":1,"{MARKER}":1}}}}]',
        '{"a":1,"\\u0061":2}',
        f'{{"{MARKER}":NaN}}',
        "[Infinity]",
        "[-Infinity]",
        nested_text(129),
        nested_text(100_000),
        '{"a":' * 129 + "1" + "}" * 129,
        f'{{"{MARKER}":',
        f'{{"{MARKER}" 1}}',
        "",
        "nul",
        "'a'",
        "[1,]",
        "{a:1}",
        "01",
        "1 2",
        '"\x01"',
        "1" * 5000,
        b'"\xff"',
        b"\xff\xfe",
    ],
)
def test_what_no_two_readers_would_agree_on_is_refused(data):
    with pytest.raises(InvalidRequest) as caught:
        strict_json(data, field="body")
    assert caught.value.field == "body"
    assert str(caught.value).startswith("body ")
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ('{"a":{"a":1},"b":[{"a":2}]}', {"a": {"a": 1}, "b": [{"a": 2}]}),
        (b' [1, 2.5, "\xc3\xa9"] ', [1, 2.5, "é"]),
        (nested_text(128), None),
        ('{"a":' * 128 + "1" + "}" * 128, None),
        ('"[[[[[{{{{"', "[[[[[{{{{"),
    ],
)
def test_plain_json_is_read_as_it_is(data, value):
    found = strict_json(data)
    assert found == value if value is not None else found


@given(st.text())
def test_valid_text_is_returned_as_it_is_and_a_lone_surrogate_is_placed(text):
    assert checked_text(text, field="text") is text
    with pytest.raises(InvalidRequest, match=f"position {len(text)}"):
        checked_text(text + "\ud800", field="text")


def test_numbers_that_are_none_are_refused():
    for number in (math.nan, math.inf, -math.inf, 2**53, -(2**53), 10**5000):
        with pytest.raises(InvalidRequest):
            checked_json({"k": number}, field="metadata", bytes_max=100_000)
