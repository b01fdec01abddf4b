"""Scenario files are read strictly: what is wrong is named by file, line and field."""

from __future__ import annotations

import json

import pytest

from perdure.errors import InvalidRequest
from perdure.evaluation import read_file, read_scenario

CASE = {"query": "where is the kettle", "expect": ["a"]}
TOLD = {"remember": {"id": "a", "text": "The kettle is in the attic"}}


def read(*entries):
    return read_scenario(b"\n".join(json.dumps(entry).encode() for entry in entries), "trial.jsonl")


def test_lines_and_an_array_of_the_same_objects_are_the_same_scenario(tmp_path):
    entries = [
        TOLD,
        {"clock": "2024-01-01"},
        {**CASE, "category": "home", "options": {"asOf": "2024-02-01", "k": 3}},
    ]
    lines = read(*entries)
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(entries, indent=2))
    array = read_file(path)
    assert [case.options for case in array.cases] == [{"as_of": 1_706_745_600_000, "k": 3}]
    assert [(c.query, c.expect, c.category, c.options) for c in array.cases] == [
        (c.query, c.expect, c.category, c.options) for c in lines.cases
    ]
    assert [str(entry.place) for entry in lines.entries] == [f"trial.jsonl, line {n}" for n in (1, 2, 3)]
    assert [str(entry.place) for entry in array.entries] == [f"trial.json, [{n}]" for n in (0, 1, 2)]


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_accepted():
    data = b"\xef\xbb\xbf" + json.dumps(TOLD).encode() + b"\r\n\r\n" + json.dumps(CASE).encode() + b"\r\n"
    scenario = read_scenario(data, "trial.jsonl")
    assert [entry.place.line for entry in scenario.entries] == [1, 3]


def test_both_spellings_of_a_name_are_read_and_together_refused():
    camel = read({**CASE, "options": {"knownAt": 5, "minScore": 0.5}})
    snake = read({**CASE, "options": {"known_at": 5, "min_score": 0.5}})
    assert camel.cases[0].options == snake.cases[0].options == {"known_at": 5, "min_score": 0.5}
    with pytest.raises(InvalidRequest, match=r"options\.knownAt is given in both spellings"):
        read({**CASE, "options": {"known_at": 5, "knownAt": 5}})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ([], "an entry must be an object, got an array"),
        ({}, "the entry says nothing"),
        ({"note": "only a note"}, "the entry says nothing"),
        ({"note": 5, **CASE}, "note must be text"),
        ({"remembr": "x"}, "unknown field 'remembr'"),
        ({**TOLD, "retract": {"id": "a"}}, "remember and retract in one entry"),
        ({**TOLD, **CASE}, "unknown field 'remember' of the case"),
        ({"remember": []}, "remember is an empty array"),
        ({"remember": {"id": "a"}}, "text is missing"),
        ({"remember": {"text": "x", "colour": 1}}, "unknown field 'colour'"),
        ({"remember": {"text": "x", "validFrom": "2020-02-30"}}, "validFrom is not a date"),
        (
            {"remember": {"text": "x", "validFrom": 5, "validTo": 5}},
            r"validTo \(1970-01-01T00:00:00\.005Z\) must lie after validFrom",
        ),
        (
            {"remember": {"text": "x", "valid_from": 5, "valid_to": 5}},
            r"valid_to \(1970-01-01T00:00:00\.005Z\) must lie after valid_from",
        ),
        ({"remember": {"text": "x", "importance": 2}}, "importance"),
        ({"remember": 5}, "a fact must be an object, got a number"),
        ({"retract": {}}, r"retract\.id is missing"),
        ({"retract": "a"}, "retract must be an object, got text"),
        ({"correct": {"id": "a"}}, r"correct\.newText is missing"),
        ({"restore": {}}, r"restore\.ids is missing"),
        ({"forget": {"idz": ["a"]}}, "unknown field 'idz' of forget"),
        ({"clock": "soon"}, "clock is not an ISO 8601 time"),
        ({"query": "x"}, "the case expects nothing"),
        ({"query": " ", "expect": []}, "query is blank"),
        ({"query": 5, "expect": []}, "query must be text"),
        ({"query": "x", "expect": "a"}, "expect must be an array of ids, got text"),
        ({"query": "x", "expect": ["a", "a"]}, "expect names an id twice"),
        ({"query": "x", "expect": [""]}, "expect"),
        ({"query": "x", "expect": ["a"], "absent": ["a"]}, "of the ids in expect 1 is in absent too"),
        ({**CASE, "ordered": 1}, "ordered must be true or false"),
        ({**CASE, "category": " "}, "category is blank"),
        ({**CASE, "options": {"kk": 3}}, "unknown field 'kk' of options"),
        ({**CASE, "options": {"query": "y"}}, "unknown field 'query' of options"),
        ({**CASE, "options": {"asOf": "x"}}, r"options\.asOf is not an ISO 8601 time"),
        ({**CASE, "options": [1]}, "options must be an object, got an array"),
    ],
)
def test_what_is_not_understood_is_refused_by_file_line_and_field(entry, said):
    with pytest.raises(InvalidRequest, match=said) as raised:
        read(TOLD, entry)
    assert str(raised.value).startswith("trial.jsonl, line 2: ")
    assert {name: raised.value.details[name] for name in ("file", "line", "entry")} == {
        "file": "trial.jsonl",
        "line": 2,
        "entry": None,
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"query": "x"', "line 1: the line is not valid JSON at column 14$"),
        (b'{"note": 1, "clock": 5}\n{"query": ', "line 1: note must be text"),
        (b'{"clock": 5}\n{"query": ', "line 2: the line is not valid JSON at column 11$"),
        (b'[{"clock": 5},\n{"query": ]', "trial: the file is not valid JSON at line 2, column 11$"),
        (
            b'{"query": "x", "query": "y", "expect": []}',
            "line 1: the line has an object with a duplicate key",
        ),
        (b'{"query": "\xff", "expect": []}', "line 1: the line is not UTF-8 at byte 12"),
        (b"[{]", "trial: the file is not valid JSON"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(data, said):
    with pytest.raises(InvalidRequest, match=said):
        read_scenario(data, "trial")


def test_no_message_holds_the_text_of_a_fact_or_a_query():
    for entry in (
        {"remember": {"text": "canary " * 5_000}},
        {"query": "canary", "expect": ["a"], "absent": ["a"]},
    ):
        with pytest.raises(InvalidRequest) as raised:
            read(entry)
        assert "canary" not in str(raised.value)


@pytest.mark.parametrize("place", ["nope.jsonl", "", "nul\0.jsonl"])
def test_a_file_that_cannot_be_read_is_a_wrong_request(tmp_path, place):
    with pytest.raises(InvalidRequest, match="cannot be read") as raised:
        read_file(tmp_path / place)
    assert raised.value.field == "path"


@pytest.mark.parametrize("value", [None, 5, b"trial.jsonl", ["trial.jsonl"]])
def test_what_is_no_path_is_refused(value):
    with pytest.raises(InvalidRequest, match=f"path must be the path of a file, got {type(value).__name__}"):
        read_file(value)
