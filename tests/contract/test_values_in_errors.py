"""What callers sent stands in an error as they sent it, on every surface; only the contract's own names are respelled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.stores import caller_of, shared_store
from contract.test_http import over_http
from perdure.contract.naming import on_the_wire, outside_of_values, python_names
from perdure.contract.reading import read_error
from perdure.mcp.service import Service, Settings
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

NAMES = [
    "valid_from",
    "validFrom",
    "as_of",
    "asOf",
    "dry_run",
    "dryRun",
    "max_bytes",
    "maxBytes",
    "scope.ids",
]
AROUND = st.text(st.sampled_from("ab ._-'\"\\[]@:=,;"), max_size=6)
names = st.sampled_from(NAMES)
keys = st.builds(lambda before, name, after: f"{before}{name}{after}", AROUND, names, AROUND)
words = st.builds(
    lambda name, after: f"{name}{after}", st.sampled_from(NAMES[:-1]), st.text("ab_-", max_size=6)
)
bad = st.sampled_from([{"$bad": 1}, {"$gt": 1, "x": 2}, {"$in": 5}, {"$and": []}])


def of_the_wire(op: str, request: dict[str, Any]) -> dict[str, Any]:
    case = {"store": "full", "op": op, "request": request, "reply": {"error": {}}}
    found: dict[str, Any] = over_http(case).json()["error"]
    return found


def of_a_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = Service(Settings("all")).call(name, arguments, caller_of(shared_store("full")))
    found: dict[str, Any] = result["structuredContent"]["error"]
    return found


@given(keys, bad)
def test_a_key_of_a_filter_stands_in_the_error_as_it_was_sent(key: str, condition: dict[str, Any]):
    asked = {"query": "x", "filter": {key: condition}}
    http, tool = of_the_wire("recall", asked), of_a_tool("recall", asked)
    client = read_error({"error": http}, 422)
    place = http["details"]["place"]
    assert place == tool["details"]["place"] == client.details["place"]
    for message in (http["message"], tool["message"], client.message):
        assert message.startswith(f"{place} ")
    assert http["field"] == tool["field"] == client.field == "filter"


@given(words)
def test_a_value_that_is_no_choice_stands_in_the_error_as_it_was_sent(word: str):
    http, tool = (
        of_the_wire("recall", {"query": "x", "mode": word}),
        of_a_tool("recall", {"query": "x", "mode": word}),
    )
    for message in (http["message"], tool["message"], read_error({"error": http}, 422).message):
        assert f"got {word!r}" in message or f"a text of {len(word)} characters" in message


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_profile_that_there_is_not_stands_in_the_error_as_it_was_sent(name: str):
    assert repr(name) in of_the_wire("reindex", {"profile": name})["message"]


@pytest.mark.parametrize("name", NAMES[:-1])
@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_line_tells_keys_of_filters_and_values_as_they_were_typed(run, name: str, as_json: bool):
    how = ["--json"] if as_json else []
    of_filter = run("recall", "x", "--filter", json.dumps({name: {"$bad": 1}}), *how)
    assert f"filter.{name}.$bad has the unknown operator" in of_filter.err
    assert f"got {name!r}" in run("recall", "x", "--mode", name, *how).err


@given(keys, names)
def test_only_what_stands_outside_of_quotes_is_respelled(text: str, name: str):
    message = f"valid_from is {text!r}; the caller's valid_to is not validTo's {name!r}"
    wired = on_the_wire(message)
    assert wired == f"validFrom is {text!r}; the caller's validTo is not validTo's {name!r}"
    assert python_names(wired) == f"valid_from is {text!r}; the caller's valid_to is not valid_to's {name!r}"
    assert outside_of_values(f"a {text!r} a", str.upper) == f"A {text!r} A"


@pytest.mark.parametrize(
    "below", ["filter.valid_from.$x", "facts[0].metadata.valid_from", "matching[valid_from]"]
)
def test_a_path_below_an_argument_of_the_callers_own_keys_is_theirs(below: str):
    assert on_the_wire(f"{below} is wrong, valid_to too") == f"{below} is wrong, validTo too"
