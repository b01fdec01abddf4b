"""One --filter on every command that reads, forgets or exports."""

from __future__ import annotations

import json

import pytest

from unit.cli.command_line import remember, texts

ABOVE_TWO = '{"prio": {"$gt": 2}, "$not": {"@tags": {"$contains": "old"}}}'


@pytest.fixture
def rows(run):
    for prio, tags in ((1, ()), (2, ()), (3, ("old",)), (4, ())):
        tagged = [word for tag in tags for word in ("--tag", tag)]
        remember(run, f"row {prio}", "--id", f"r{prio}", "--metadata", json.dumps({"prio": prio}), *tagged)


@pytest.mark.usefixtures("rows")
def test_a_filter_chooses_the_same_for_every_command(run, tmp_path):
    asked = ("--filter", ABOVE_TWO)
    assert texts(run("list", *asked, "--json")) == ["row 4"]
    assert texts(run("recall", "row", *asked, "--json")) == ["row 4"]
    assert run("explain", "row", "r3", *asked, "--json").json["explanation"]["filteredBy"] == ["filter"]
    assert run("forget", *asked, "--dry-run", "--json").json["forgotten"] == ["r4"]
    told = run("export", "--facts", *asked).out
    assert [json.loads(line)["id"] for line in told.splitlines()] == ["r4"]
    path = tmp_path / "part.jsonl"
    assert run("export", *asked, "--output", str(path), "--json").json["exported"]["facts"] == 1
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines if line.get("type") == "fact"] == ["r4"]
    other = ("--store", str(tmp_path / "other"))
    assert run("import", str(path), *other).code == 0
    assert texts(run("list", *other, "--json")) == ["row 4"]


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    "command",
    [("list",), ("recall", "row"), ("explain", "row", "r1"), ("forget",), ("export",), ("export", "--facts")],
)
def test_a_filter_that_is_none_is_refused_with_the_place_of_the_mistake(run, command):
    outcome = run(*command, "--filter", '{"prio": {"$above": 2}}', "--json")
    assert (outcome.code, outcome.error["code"]) == (2, "invalid_request")
    assert "filter.prio.$above" in outcome.error["message"]
    assert len(texts(run("list", "--json"))) == 4


def test_facts_that_stand_between_are_left_out_of_the_lines_and_revive_nothing(run):
    for id_, older, team in (("first", None, "a"), ("second", "first", "b"), ("third", "second", "a")):
        more = () if older is None else ("--supersedes", older)
        remember(run, f"the {id_}", "--id", id_, "--metadata", json.dumps({"team": team}), *more)
    told = run("export", "--facts", "--filter", '{"team": "a"}').out
    lines = {line["id"]: line.get("supersedes") for line in map(json.loads, told.splitlines())}
    assert lines == {"first": None, "third": ["first"]}
