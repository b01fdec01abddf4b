"""JSON Lines: what a line gives, and what is said of a damaged one."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import NewFact
from perdure.importers.entries import Bad, Found
from perdure.importers.jsonlines import LINE_BYTES_MAX, fact_of, read_lines


def entries(data: bytes) -> list[Found | Bad]:
    return list(read_lines(io.BytesIO(data), "facts.jsonl"))


def reason(data: bytes) -> str:
    (entry,) = entries(data)
    assert isinstance(entry, Bad)
    return entry.reason


def test_a_line_may_have_every_field_in_either_spelling():
    camel = {"text": "x", "id": "a", "validFrom": 5, "eventTime": "2020-01-01", "supersedes": ["b"]}
    snake = {"text": "x", "id": "a", "valid_from": 5, "event_time": "2020-01-01", "supersedes": ["b"]}
    assert fact_of(camel) == fact_of(snake)
    assert fact_of(camel) == NewFact(
        text="x", id="a", valid_from=5, event_time="2020-01-01", supersedes=["b"]
    )


def test_null_is_the_same_as_absent():
    assert fact_of({"text": "x", "subject": None}) == NewFact(text="x")


def test_a_byte_order_mark_carriage_returns_and_blank_lines_are_no_faults():
    found = entries(b'\xef\xbb\xbf{"text":"a"}\r\n\r\n   \n{"text":"b"}\r\n{"text":"c"}')
    assert [(entry.place.line, entry.fact.text) for entry in found if isinstance(entry, Found)] == [
        (1, "a"),
        (4, "b"),
        (5, "c"),
    ]
    assert len(found) == 3


def test_every_bad_line_is_told_by_number_with_its_reason_and_the_others_are_kept():
    lines = [
        b'{"text":"good"}',
        b'{"text":',
        b'{"text":"\xff"}',
        b"[1]",
        b'{"text":"x","colour":"red"}',
        b'{"id":"a"}',
    ]
    found = entries(b"\n".join(lines) + b"\n")
    assert [entry.place.line for entry in found] == [1, 2, 3, 4, 5, 6]
    assert isinstance(found[0], Found)
    reasons = [entry.reason for entry in found[1:] if isinstance(entry, Bad)]
    for said, wanted in zip(
        reasons, ["JSON", "UTF-8 at byte 10", "array", "'colour'", "text is missing"], strict=True
    ):
        assert wanted in said


def test_a_last_line_that_was_cut_off_says_so():
    assert "cut off" in reason(b'{"text":"a')
    assert "cut off" not in reason(b'{"text":"a\n')


@pytest.mark.parametrize(
    "line", [b'{"text":"a","text":"b"}', b'{"text":"a","metadata":{"n":NaN}}', b"[" * 100_000]
)
def test_what_decoders_disagree_about_is_refused(line):
    assert "the line" in reason(line + b"\n")


def test_a_field_in_both_spellings_is_refused():
    assert "both spellings" in reason(b'{"text":"a","validFrom":1,"valid_from":1}')


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_read():
    long = b'{"text":"' + b"x" * LINE_BYTES_MAX + b'"}\n'
    found = entries(long + b'{"text":"b"}\n')
    assert isinstance(found[0], Bad)
    assert str(LINE_BYTES_MAX) in found[0].reason
    assert isinstance(found[1], Found)
    assert found[1].place.line == 2


@given(
    st.lists(st.text(min_size=1).filter(lambda t: t.strip() != ""), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_was_written_as_lines_is_read_back(texts, line_end):
    data = "".join(json.dumps({"text": text}) + line_end for text in texts).encode()
    found = entries(data)
    assert [entry.fact.text for entry in found if isinstance(entry, Found)] == texts
    assert len(found) == len(texts)


@given(st.binary(max_size=200))
def test_no_bytes_raise_and_every_line_gives_at_most_one_entry(data):
    found = entries(data)
    places = [entry.place.line for entry in found]
    assert places == sorted(set(places))
    assert len(found) <= data.count(b"\n") + 1
