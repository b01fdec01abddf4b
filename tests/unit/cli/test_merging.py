"""merge and use at the command line, and what remember says of a fact that was merged or refused."""

from __future__ import annotations

import pytest

from unit.cli.command_line import remember, texts


@pytest.fixture
def two(run):
    remember(run, "Ana has a bike", "--id", "a")
    remember(run, "There is a bike of Ana's", "--id", "b", "--tag", "bike", "--importance", "0.7")


@pytest.fixture
def careful(tmp_path):
    path = tmp_path / "careful.json"
    path.write_text('{"admission":"standard","dedup":"merge-exact"}')
    return ("--config", str(path))


@pytest.mark.usefixtures("two")
def test_merge_takes_the_others_over_and_shows_the_outcome(run):
    assert run("merge", "a", "b", "--dry-run").out.startswith("1 fact would be merged into a.")
    told = run("merge", "a", "b", "--json").json
    assert (told["kept"], told["merged"], told["tags"], told["importance"]) == ("a", ["b"], ["bike"], 0.7)
    assert run("get", "b", "--json").json["fact"]["status"] == "superseded"
    assert "merged" in run("get", "a").out


@pytest.mark.usefixtures("two")
def test_a_merge_that_cannot_be_is_one_line_and_an_exit_code(run):
    assert run("merge", "a", "nobody").code == 1
    failed = run("merge", "a", "a", "--json")
    assert failed.code == 2
    assert failed.error["field"] == "ids"


@pytest.mark.usefixtures("two")
def test_use_counts_once_in_a_context(run):
    assert run("record-use", "a", "b", "--context", "turn 1", "--json").json == {"counted": 2}
    assert run("record-use", "a", "--context", "turn 1").out == "A use of 0 facts was counted.\n"
    assert run("get", "a", "--json").json["fact"]["uses"] == 1
    assert "1 time," in run("get", "a").out


@pytest.mark.usefixtures("two")
def test_ids_of_no_fact_are_named_on_standard_error_and_the_others_count(run):
    told = run("record-use", "zed", "a", "nobody", "zed", "--json")
    assert (told.code, told.json, told.err) == (0, {"counted": 1}, "perdure: not found: nobody, zed\n")
    assert run("record-use", "a", "b").err == ""


def test_a_refused_fact_is_told_with_its_reason_and_exit_code_1(run, careful):
    refused = run("remember", "my password is hunter2", *careful, "--json")
    assert refused.code == 1
    receipt = refused.json
    assert (receipt["outcome"], receipt["id"]) == ("refused", None)
    assert "hunter2" not in refused.out + refused.err
    shown = run("remember", "my password is hunter2", *careful)
    assert (shown.code, "sensitive" in shown.out) == (1, True)


def test_a_merged_fact_is_told_as_such(run, careful):
    text = "Ana keeps the bicycle in the cellar"
    assert run("remember", text, *careful, "--json").json["outcome"] == "created"
    told = run("remember", text.upper(), *careful, "--json")
    assert (told.code, told.json["outcome"]) == (0, "merged")
    assert texts(run("list", "--json")) == [text]


def test_an_import_tells_what_was_merged_and_what_was_refused(run, careful, tmp_path):
    path = tmp_path / "facts.jsonl"
    lines = ("Ana keeps the bicycle in the cellar", "ana keeps the bicycle in the cellar", "hello!")
    path.write_text("".join(f'{{"text": "{line}"}}\n' for line in lines))
    shown = run("import", str(path), *careful).out
    assert "1 fact stored" in shown
    assert "1 were merged" in shown
    assert "1 were refused" in shown
