"""Bodies are read no further than the limit and decoded strictly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidJson, InvalidRequest, PerdureError, TooLarge
from perdure.server.bodies import Gone, decode_body, read_body
from perdure.server.failures import Slow

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def receiving(*parts: bytes, gone: bool = False) -> Any:
    """Return what gives these parts; a part that is awaited after them never comes, unless the caller has gone."""
    messages: Iterator[dict[str, Any]] = iter(
        [
            {"type": "http.request", "body": part, "more_body": gone or place < len(parts) - 1}
            for place, part in enumerate(parts)
        ]
    )

    async def receive() -> dict[str, Any]:
        found = next(messages, None)
        if found is None and gone:
            return {"type": "http.disconnect"}
        if found is None:
            await asyncio.Event().wait()
        assert found is not None
        return found

    return receive


@given(st.dictionaries(st.text(), PLAIN, max_size=5))
def test_every_object_of_json_comes_through_unchanged(value):
    assert decode_body(json.dumps(value).encode()) == value


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_text_may_come_as_utf_8_as_well_as_in_escapes(value):
    assert decode_body(json.dumps(value, ensure_ascii=False).encode()) == value


def test_an_empty_body_is_an_empty_object():
    assert decode_body(b"") == {}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nothing",
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":01}',
        b"\xff",
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a":1} x',
        b" ",
    ],
)
def test_what_is_no_json_is_invalid_json(body):
    with pytest.raises(InvalidJson) as caught:
        decode_body(body)
    assert caught.value.status == 400


@pytest.mark.parametrize("body", [b'{"a":1,"a":2}', b'{"a":{"b":1,"b":1}}', b"[]", b"1", b"null", b'"text"'])
def test_json_that_is_no_request_is_an_invalid_request(body):
    with pytest.raises(InvalidRequest) as caught:
        decode_body(body)
    assert caught.value.status == 422


@pytest.mark.parametrize("depth", [129, 1_000, 100_000])
def test_json_that_is_nested_too_deeply_is_refused(depth):
    with pytest.raises(InvalidRequest) as caught:
        decode_body(b'{"a":' + b"[" * depth + b"]" * depth + b"}")
    assert "128" in caught.value.message


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_refusal(body):
    try:
        status = 200 if isinstance(decode_body(body), dict) else 500
    except PerdureError as error:
        status = error.status
    assert status in (200, 400, 422)


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=8))
def test_a_body_is_its_parts_in_order(parts):
    assert asyncio.run(read_body(receiving(*parts), 1_000, 5)) == b"".join(parts)


def test_a_body_is_refused_at_the_part_that_goes_over_the_limit():
    with pytest.raises(TooLarge):
        asyncio.run(read_body(receiving(b"a" * 60, b"b" * 41, gone=True), 100, 5))


def test_a_body_that_stops_coming_is_given_up():
    with pytest.raises(Slow) as caught:
        asyncio.run(read_body(receiving(), 100, 0.01))
    assert caught.value.status == 408


def test_a_caller_who_goes_away_ends_the_reading():
    with pytest.raises(Gone):
        asyncio.run(read_body(receiving(b"a", gone=True), 100, 5))
