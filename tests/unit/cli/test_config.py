"""The configuration at the command line: from a file for one call, or kept with the store for all."""

from __future__ import annotations

import pytest

from unit.cli.command_line import remember, texts

COMMANDS = [
    ("remember", "x"),
    ("recall", "x"),
    ("list",),
    ("stats",),
    ("spaces",),
    ("purge", "--yes"),
    ("documents", "list"),
    ("documents", "put", "a", "x"),
    ("forget", "--all", "--yes"),
    ("export", "--all-spaces"),
    ("config",),
    ("capabilities",),
    ("embed-missing", "--dry-run"),
]


@pytest.fixture
def file(tmp_path):
    """Writes a configuration and returns the options that name it."""

    def write(text, name="config.json"):
        path = tmp_path / name
        path.write_text(text)
        return ("--config", str(path))

    return write


def test_a_kept_configuration_is_in_force_for_every_later_command(run, file, latest):
    assert run("config", *latest, "--save", "--json").json["supersession"] == "latest-by-subject"
    assert run("config", "--json").json["supersession"] == "latest-by-subject"
    remember(run, "Alice lives in Paris", "--subject", "home", "--valid-from", "2020-01-01")
    remember(run, "Alice lives in Rome", "--subject", "home", "--valid-from", "2021-01-01")
    assert texts(run("recall", "Alice", "--json")) == ["Alice lives in Rome"]
    assert run("spaces").out.count("\n") == 2


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_another_one_is_refused_by_every_command_and_its_field_is_named(run, file, latest, command):
    assert run("config", *latest, "--save").code == 0
    refused = run(*command, *file('{"supersession":"latest-by-subject","defaultK":3}'), "--json")
    assert (refused.code, refused.error["field"]) == (2, "defaultK")
    same = run(*command, *latest)
    nothing = command[0] == "forget"  # of an empty memory nothing can be forgotten
    assert same.code == (1 if nothing else 0), same.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_file_is_refused_before_anything_is_done(run, file, store_path, monkeypatch, command):
    wrong = file('{"defaultK":"three"}')
    assert run(*command, *wrong, "--json").error["field"] == "defaultK"
    monkeypatch.setenv("PERDURE_CONFIG", wrong[1])
    assert run(*command).code == 2
    assert not store_path.exists()


def test_one_that_is_kept_can_be_replaced_and_dropped(run, file, latest):
    run("config", *latest, "--save")
    assert run("config", *file('{"defaultK":3}'), "--save", "--json").json["defaultK"] == 3
    assert run("config", "--json").json["supersession"] == "explicit"
    assert run("config", "--drop", "--json").json["defaultK"] == 10
    assert run("list", *latest).code == 0


def test_what_cannot_be_saved_or_dropped_is_a_wrong_line_or_a_failure(run, latest, store_path):
    refused = run("config", "--save", "--json")
    assert (refused.code, refused.error["field"]) == (2, "config")
    assert run("config", "--save", "--drop", *latest).code == 2
    assert run("config", "--drop").code == 1
    assert not store_path.exists()


def test_looking_at_the_configuration_makes_no_store_and_says_nothing_of_it(run, latest, store_path):
    shown = run("config", *latest)
    assert (shown.code, shown.err) == (0, "")
    assert '"supersession": "latest-by-subject"' in shown.out
    assert not store_path.exists()


def test_a_memory_is_reindexed_to_another_profile_than_the_kept_one_names(run, file):
    remember(run, "die Häuser am See")
    run("config", *file('{"profile":"unicode.v1"}'), "--save")
    assert run("reindex", "--profile", "snowball:german").code == 0
    assert texts(run("recall", "Haus", "--json")) == ["die Häuser am See"]


def test_an_encrypted_store_shows_its_configuration_to_nobody_without_the_key(run, latest, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("PERDURE_KEY", "a long passphrase")
        assert run("config", *latest, "--save").code == 0
        assert run("config", "--json").json["supersession"] == "latest-by-subject"
    assert run("config", "--json").error["code"] == "wrong_key"


@pytest.mark.parametrize(
    ("kept", "told", "field"),
    [
        ('{"defaultK":5}', '{"defaultK":7}', "defaultK"),
        ('{"historicalWeight":0.5}', '{"historicalWeight":0.25}', "historicalWeight"),
        ('{"supersession":"latest-by-subject"}', '{}', "supersession"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("line", [("recall", "x"), ("stats",), ("serve", "--port", "0")], ids=" ".join)
def test_a_clash_with_the_kept_configuration_names_the_field_as_the_file_does(
    run, file, kept, told, field, line
):
    assert run("config", *file(kept), "--save").code == 0
    refused = run(*line, *file(told))
    assert refused.code == 2
    assert refused.err.splitlines()[-1].startswith(f"perdure: {field} is ")
