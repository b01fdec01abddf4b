"""Where the store is when nobody says, and which options win."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Store
from perdure.cli.session import Common, default_store, session_of
from unit.cli.command_line import remember, texts


@pytest.mark.parametrize(
    ("platform", "variable", "folder"),
    [
        ("linux", "XDG_DATA_HOME", "perdure/store"),
        ("win32", "LOCALAPPDATA", "perdure/store"),
    ],
)
def test_the_store_is_among_the_users_data(monkeypatch, tmp_path, platform, variable, folder):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert default_store() == tmp_path / folder


def test_a_data_folder_that_is_not_absolute_is_not_used(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert default_store() == Path.home() / ".local" / "share" / "perdure" / "store"


def test_the_option_wins_over_the_environment_and_the_environment_over_the_default(monkeypatch):
    monkeypatch.delenv("PERDURE_STORE", raising=False)
    assert session_of(Common()).place == str(default_store())
    monkeypatch.setenv("PERDURE_STORE", "theirs")
    assert session_of(Common()).place == "theirs"
    assert session_of(Common(store="mine")).place == "mine"


def test_what_is_given_nearer_to_the_command_wins():
    near, far = Common(store="a", scope=""), Common(store="b", principal="p", scope="s", as_json=True)
    assert near.over(far) == Common(store="a", principal="p", scope="", as_json=True)


def test_the_first_write_makes_the_store_and_later_processes_find_it(run, store_path):
    assert not store_path.exists()
    remember(run, "x")
    assert store_path.is_dir()
    assert texts(run("list", "--json")) == ["x"]
    told = run("stats", "--json").json
    assert told["facts"] == 1
    assert told["health"] == {
        "status": "ok",
        "writable": True,
        "erasurePending": False,
        "message": "the store can be read and written",
    }


def test_the_stats_say_that_another_one_holds_the_store(run, store_path):
    remember(run, "x")
    with Store.open(store_path) as other, other.log.writer(1.0):
        outcome = run("stats", "--json")
        shown = run("stats").out
    health = outcome.json["health"]
    assert (outcome.code, health["status"], health["writable"]) == (0, "busy", False)
    assert outcome.json["facts"] == 1
    assert "health" in shown
    assert "busy: " in shown
