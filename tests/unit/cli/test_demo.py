"""The demonstration shows what it says, quickly, and leaves nothing behind unless asked to."""

from __future__ import annotations

import tempfile
import time

import pytest

from unit.cli.command_line import texts

TITLES = (
    "Remember",
    "The world changes",
    "Recall, at any moment",
    "Correct a mistake",
    "Explain an absence",
    "End a fact",
    "Forget, for good",
)


@pytest.fixture
def steps(run):
    told = run("demo", "--json")
    assert told.code == 0
    return {step["title"]: step for step in told.json["steps"]}


def test_the_steps_come_in_order(steps):
    assert tuple(steps) == TITLES


def test_people_see_every_step_under_its_heading(run):
    out = run("demo").out
    places = [out.index(f"{number}. {title}\n") for number, title in enumerate(TITLES, 1)]
    assert places == sorted(places)
    assert len(out.splitlines()) < 100


def test_the_answers_are_those_of_the_two_times(steps):
    recalled = {row["asked"]: row["answer"] for row in steps["Recall, at any moment"]["rows"]}
    assert recalled == {
        "now": "Mara lives in Ghent",
        "as of 2020-06-01": "Mara lives in Porto",
        "as of 2021-04-15": "Mara lives in Ghent",
        "as of 2021-04-15, known at 2021-04-15": "Mara lives in Porto",
    }
    assert [row["answer"] for row in steps["Correct a mistake"]["rows"]] == [
        "Ines plays the cello",
        "Ines plays the viola",
    ]
    assert [row["answer"] for row in steps["End a fact"]["rows"]] == [
        "Tomas keeps bees on his roof",
        "nothing",
    ]


def test_the_absent_fact_is_explained_by_its_successor(steps):
    explanation = steps["Explain an absence"]["explanation"]
    assert explanation["reason"] == "not-current"
    assert [link["id"] for link in explanation["chain"]] == ["porto", "ghent"]


def test_what_was_forgotten_was_in_a_file_before_and_is_in_none_after(steps):
    seen = {row["looked at"]: (row["before"], row["now"]) for row in steps["Forget, for good"]["rows"]}
    before, now = seen.pop("files that hold it")
    assert int(before) >= 1
    assert now == "0"
    assert {now for _, now in seen.values()} == {"nothing"}


def test_it_says_the_same_each_time(run):
    assert run("demo").out == run("demo").out


def test_it_takes_little_computing(run):
    run("demo")
    start = time.process_time()
    run("demo")
    assert time.process_time() - start < 1.0


def test_nothing_is_left_behind_and_no_other_store_is_touched(run, store_path, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run("demo").code == 0
    assert list(tmp_path.iterdir()) == []
    assert not store_path.exists()


def test_the_store_is_kept_where_told_but_never_in_a_folder_that_holds_something(run, tmp_path):
    kept = tmp_path / "kept"
    assert run("demo", "--keep", str(kept)).code == 0
    assert "Mara lives in Ghent" in texts(run("list", "--store", str(kept), "--json"))
    assert run("demo", "--keep", str(kept)).code == 1
