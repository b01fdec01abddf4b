"""Where the store is when nobody says, and which options win."""

from __future__ import annotations

import time
from importlib.metadata import version
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
    assert run("stats", "--json").json["facts"] == 1
    assert run("health", "--json").json == {
        "status": "ok",
        "writable": True,
        "erasurePending": False,
        "message": "the store can be read and written",
    }


@pytest.mark.parametrize("read", [("recall", "x"), ("list",), ("stats",), ("spaces",)], ids=lambda r: r[0])
@pytest.mark.parametrize("file", [None, "notes.txt"])
def test_a_read_puts_nothing_into_a_folder_that_is_no_store(run, store_path, read, file):
    store_path.mkdir()
    if file is not None:
        (store_path / file).write_text("mine")
    assert "there is no store there yet" in run(*read).err
    assert [entry.name for entry in store_path.iterdir()] == ([] if file is None else [file])


def test_a_generation_without_its_lock_is_a_damaged_store_and_no_absent_one(run, store_path):
    remember(run, "x")
    (store_path / "store.lock").unlink()
    outcome = run("list", "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "corrupt")


def test_a_file_in_the_stores_place_is_refused_by_reads_too(run, store_path):
    store_path.write_text("mine")
    assert run("list").code != 0
    assert store_path.read_text() == "mine"


@pytest.mark.parametrize("made", [False, True], ids=["nothing", "a folder"])
def test_the_health_of_a_store_that_is_not_there_is_absent_and_a_failure(run, store_path, made):
    if made:
        store_path.mkdir()
    outcome = run("health", "--json")
    health = outcome.json
    assert (outcome.code, health["status"], health["writable"]) == (1, "absent", False)
    assert "conversation remember or import makes one" in health["message"]
    shown = run("health")
    assert shown.code == 1
    assert "there is no store" in shown.out
    assert run("stats", "--json").json["facts"] == 0
    remember(run, "x")
    assert run("health").code == 0


def test_a_journal_that_is_open_elsewhere_is_said_to_be_busy_within_seconds(run, store_path):
    with Store.open(store_path, backend="journal"):
        begun = time.monotonic()
        stats, health = run("stats", "--json"), run("health", "--json")
        assert time.monotonic() - begun < 15
    assert (stats.code, stats.error["code"]) == (1, "busy")
    assert (health.code, health.json["status"], health.json["writable"]) == (1, "busy", False)
    assert run("stats").code == run("health").code == 0


def test_a_damaged_store_and_one_of_another_key_are_not_well(run, store_path, monkeypatch):
    remember(run, "x")
    with monkeypatch.context() as patch:
        patch.setenv("PERDURE_KEY", "another")
        assert run("health", "--json").json["status"] == "wrong_key"
    (store_path / "store.lock").unlink()
    outcome = run("health", "--json")
    assert (outcome.code, outcome.json["status"]) == (1, "corrupt")


def test_the_version_is_that_of_the_package(run, store_path):
    told = run("--version")
    assert (told.code, told.out) == (0, f"perdure {version('perdure')}\n")
    assert run("--version", "--json").json == {"version": version("perdure")}
    assert not store_path.exists()


def test_people_see_the_principal_first_and_a_word_for_the_empty_name(run):
    remember(run, "x")
    remember(run, "y", "--principal", "alice", "--scope", "work")
    lines = [line.split() for line in run("spaces").out.splitlines()]
    assert lines == [["principal", "scope"], ["(default)", "(default)"], ["alice", "work"]]


def test_the_health_says_that_another_one_holds_the_store(run, store_path):
    remember(run, "x")
    with Store.open(store_path) as other, other.log.writer(1.0):
        outcome = run("health", "--json")
        shown = run("health").out
        assert run("stats", "--json").json["facts"] == 1
    assert (outcome.code, outcome.json["status"], outcome.json["writable"]) == (1, "busy", False)
    assert "busy" in shown


@pytest.mark.parametrize(
    "line",
    [
        ("recall", "tea"), ("list",), ("stats",), ("spaces",), ("verify",), ("purge",), ("config",),
        ("remember", "tea"), ("forget", "--all"), ("documents", "list"), ("erase", "--principal", "ann"),
    ],
)  # fmt: skip
def test_the_folder_of_many_tenants_stores_is_told_from_a_place_without_a_store(run, store_path, line):
    store_path.mkdir()
    (store_path / "perdure.tenants").touch()
    done = run(*line)
    assert done.code == 2
    assert "holds the stores of many tenants" in done.err
    assert [path.name for path in store_path.iterdir()] == ["perdure.tenants"]


def test_a_configuration_that_cannot_be_read_is_told_with_what_named_it(run, monkeypatch, tmp_path):
    absent = str(tmp_path / "absent.json")
    refused = run("config", "--config", absent, "--json")
    assert (refused.code, refused.error["field"]) == (2, "config")
    assert "--config" in refused.error["message"]
    assert absent not in refused.error["message"]
    monkeypatch.setenv("PERDURE_CONFIG", absent)
    assert "PERDURE_CONFIG" in run("config", "--json").error["message"]


@pytest.mark.parametrize(
    "line",
    [
        ("remember", ""),
        ("remember", "The kettle is red", "--valid-from", "2021-01-01", "--valid-to", "2020-01-01"),
        ("remember", "The kettle is red", "--supersedes", "nobody"),
        ("remember", "The kettle is red", "--id", "x" * 300),
        ("remember", "The kettle is red", "--importance", "7"),
        ("documents", "put", "", "The kettle is red"),
        ("documents", "put", "kettle", "The kettle is red", "--if-version", "3"),
        ("documents", "put", "kettle", "The kettle is red", "--backend", "foo"),
    ],
    ids=" ".join,
)
def test_what_is_refused_makes_no_store(run, store_path, line):
    assert run(*line).code in (1, 2)
    assert not store_path.exists()
    assert run("remember", "The kettle is red").code == 0
    assert store_path.exists()


@pytest.mark.parametrize("command", ["serve", "mcp", "recall x", "stats"])
def test_a_backend_that_there_is_not_is_a_wrong_line_before_anything_is_opened(run, store_path, command):
    told = run(*command.split(), "--backend", "foo", "--json")
    assert (told.code, told.error["field"]) == (2, "backend")
    assert "'foo'" in told.error["message"]
    assert not store_path.exists()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--json"], "json"),
        (["--principal", "alice"], "principal"),
        (["--scope", ""], "scope"),
        (["--burst", "5"], "burst"),
    ],
)
def test_a_server_refuses_what_it_cannot_mean_and_says_what_to_do(run, store_path, options, field):
    told = run("serve", "--port", "0", *options)
    assert told.code == 2
    assert "--" in told.err
    assert not store_path.exists()
    if options != ["--json"]:
        assert f"--{field}" in told.err


def test_what_is_offered_is_told_without_a_store_and_makes_none(run, store_path):
    told = run("capabilities", "--json")
    assert told.code == 0
    assert {"remember", "putDocument", "stats"} <= set(told.json["operations"])
    assert not store_path.exists()
