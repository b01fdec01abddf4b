"""A key for the command: from a file or the environment; and changing it."""

import os

import pytest

from perdure import Store, WrongKey
from perdure.cli.main import main
from unit.cli.command_line import remember, texts

KEY = bytes(range(1, 33))
SECRET = bytes(range(100, 132))
WORDS = "some words that open it"


@pytest.fixture
def key_file(tmp_path):
    return made(tmp_path / "key", KEY)


@pytest.fixture(autouse=True)
def no_key_of_the_environment(monkeypatch):
    for name in ("PERDURE_KEY", "PERDURE_KEY_FILE", "PERDURE_SECRET_FILE"):
        monkeypatch.delenv(name, raising=False)


def made(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def opens(store_path, key):
    """Whether the key is that of the store."""
    try:
        Store.open(store_path, key=key).close()
    except WrongKey:
        return False
    return True


def test_a_key_file_encrypts_what_the_command_makes_and_opens_it_again(run, store_path, key_file):
    remember(run, "x", "--key-file", str(key_file))
    assert not opens(store_path, None)
    assert opens(store_path, KEY)
    assert texts(run("--key-file", str(key_file), "list", "--json")) == ["x"]
    refused = run("list", "--json")
    assert (refused.code, refused.error["code"]) == (1, "wrong_key")


def test_the_environment_names_a_key_file_and_the_option_wins(
    run, store_path, key_file, tmp_path, monkeypatch
):
    other = made(tmp_path / "other", KEY[::-1])
    monkeypatch.setenv("PERDURE_KEY_FILE", str(other))
    remember(run, "x", "--key-file", str(key_file))
    assert opens(store_path, KEY)
    assert run("list", "--json").error["code"] == "wrong_key"


def test_the_environment_holds_a_passphrase(run, store_path, monkeypatch):
    monkeypatch.setenv("PERDURE_KEY", WORDS)
    remember(run, "x")
    assert opens(store_path, WORDS)
    monkeypatch.setenv("PERDURE_KEY", "")
    assert run("list", "--json").error["code"] == "wrong_key"


@pytest.mark.parametrize(("option", "named"), [(True, "--key-file"), (False, "PERDURE_KEY_FILE")])
def test_a_key_that_is_told_twice_is_refused_and_both_are_named(
    run, store_path, key_file, monkeypatch, option, named
):
    monkeypatch.setenv("PERDURE_KEY", WORDS)
    if not option:
        monkeypatch.setenv("PERDURE_KEY_FILE", str(key_file))
    outcome = run("remember", "x", "--json", *(["--key-file", str(key_file)] if option else []))
    assert outcome.code == 2
    assert "PERDURE_KEY " in outcome.error["message"]
    assert named in outcome.error["message"]
    assert WORDS not in outcome.out + outcome.err
    assert not store_path.exists()


def test_a_key_file_that_is_not_there_is_a_wrong_value(run, store_path, tmp_path):
    for name in (str(tmp_path / "absent"), ""):
        outcome = run("remember", "x", "--key-file", name, "--json")
        assert outcome.code == 2
        assert outcome.error["code"] == "invalid_request"
    assert not store_path.exists()


def test_a_store_in_memory_needs_no_key(run, monkeypatch):
    monkeypatch.setenv("PERDURE_KEY", WORDS)
    assert run("list", "--store", ":memory:", "--json").code == 0
    assert run("list", "--json").code == 0


def test_a_change_of_key_asks_and_then_only_the_new_one_opens(run, store_path, key_file):
    remember(run, "x")
    told = run("rekey", "--new-key-file", str(key_file), stdin="y\n")
    assert (told.code, told.out) == (0, "The store is encrypted with the new key.\n")
    assert "1 fact in 1 memory" in told.err
    assert not opens(store_path, None)
    assert texts(run("list", "--json", "--key-file", str(key_file))) == ["x"]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_a_change_of_key_that_is_refused_changes_nothing(run, store_path, key_file, answer):
    remember(run, "x")
    refused = run("rekey", "--new-key-file", str(key_file), stdin=answer)
    assert refused.code == 1
    assert "nothing was changed" in refused.err
    assert opens(store_path, None)


def test_encryption_is_taken_away_again(run, store_path, key_file):
    remember(run, "x", "--key-file", str(key_file))
    told = run("rekey", "--plain", "--yes", "--json", "--key-file", str(key_file))
    assert told.json["rekeyed"] == {"encrypted": False, "records": 2, "dropped": 0, "pending": False}
    assert opens(store_path, None)
    assert texts(run("list", "--json")) == ["x"]


@pytest.mark.parametrize("options", [(), ("--plain", "--new-key-file", "key"), ("--new-key-file", "")])
def test_a_change_of_key_says_one_of_what_to_change_it_to(run, options):
    remember(run, "x")
    outcome = run("rekey", *options, "--yes", "--json")
    assert (outcome.code, outcome.error["field"]) == (2, "newKeyFile")


def test_there_is_no_change_of_key_where_there_is_no_store(run, store_path, key_file):
    outcome = run("rekey", "--new-key-file", str(key_file), "--yes")
    assert outcome.code == 1
    assert not store_path.exists()


def test_a_new_key_that_others_may_read_is_refused_and_nothing_is_changed(run, store_path, key_file):
    if os.name != "posix":
        pytest.skip("modes tell who may read on POSIX only")
    remember(run, "x")
    key_file.chmod(0o644)
    outcome = run("rekey", "--new-key-file", str(key_file), "--yes", "--json")
    assert (outcome.code, outcome.error["field"]) == (2, "key")
    assert opens(store_path, None)


def test_no_option_takes_a_key_itself(capsys):
    for command in ("recall", "rekey"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    shown = capsys.readouterr().out
    assert "--key-file" in shown
    assert "--key " not in shown


@pytest.mark.parametrize("content", [SECRET, SECRET.hex().encode() + b"\n"], ids=["bytes", "hex"])
@pytest.mark.parametrize("by_environment", [False, True])
def test_a_store_whose_secret_is_kept_outside_is_opened_with_its_file(
    run, store_path, tmp_path, monkeypatch, content, by_environment
):
    with Store.open(store_path, secret=SECRET) as store:
        store.memory().remember("The kettle is blue")
    assert "secret" in run("recall", "kettle", "--json").error["message"]
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(0o600)
    option = () if by_environment else ("--secret-file", str(file))
    if by_environment:
        monkeypatch.setenv("PERDURE_SECRET_FILE", str(file))
    assert texts(run("list", "--json", *option)) == ["The kettle is blue"]
    assert run("verify", *option).code == 0


@pytest.mark.parametrize(("content", "mode"), [(b"short", 0o600), (SECRET, 0o644)], ids=["short", "readable"])
def test_a_secret_that_is_none_or_that_others_may_read_is_refused(run, tmp_path, content, mode):
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    outcome = run("list", "--json", "--secret-file", str(file))
    assert outcome.code == 2
    assert outcome.error["field"] == "secretFile"
    assert "short" not in outcome.error["message"]
