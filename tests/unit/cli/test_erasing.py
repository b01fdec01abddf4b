"""erase, purge and certificates at the command line."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

from perdure import Busy, Store
from perdure.contract.reading import read_kept_certificate
from unit.cli.command_line import remember, texts

DONE = {
    "erase": ("erase", "--principal", "ann", "--yes"),
    "purge": ("purge", "--yes"),
    "forget": ("forget", "a", "--yes"),
}


@pytest.fixture
def told(run):
    """Two memories of Ann, one of Bob, and one of nobody with a fact `a`."""
    for principal, scope in (("ann", ""), ("ann", "work"), ("bob", ""), ("", "")):
        remember(
            run, f"a fact of {principal} {scope}", "--id", "a", "--principal", principal, "--scope", scope
        )
    return run


def spaces(run):
    return [(one["principal"], one["scope"]) for one in run("spaces", "--json").json["spaces"]]


def test_erase_shows_whose_memories_would_go_and_asks(told):
    refused = told("erase", "--principal", "ann", stdin="n\n")
    assert refused.code == 1
    assert "ann" in refused.err
    assert "work" in refused.err
    assert "2 memories with 2 facts would go." in refused.err
    assert "nothing was erased" in refused.err
    assert ("ann", "work") in spaces(told)
    outcome = told("erase", "--principal", "ann", stdin="y\n")
    assert outcome.code == 0
    assert "2 memories with 2 facts erased." in outcome.out
    assert spaces(told) == [("", ""), ("bob", "")]
    assert texts(told("list", "--json")) == ["a fact of  "]


def test_erase_as_json_gives_the_receipt_with_its_certificate(told):
    outcome = told("erase", "--principal", "ann", "--scope", "work", "--yes", "--json")
    reply = outcome.json
    assert list(reply) == ["spaces", "facts", "dryRun", "purged", "pending", "certificate"]
    assert reply["spaces"] == [{"principal": "ann", "scope": "work"}]
    assert (reply["facts"], reply["dryRun"], reply["purged"], reply["pending"]) == (1, False, True, False)
    assert read_kept_certificate(reply).operation == "erase"
    assert spaces(told) == [("", ""), ("ann", ""), ("bob", "")]


def test_a_dry_run_of_erase_names_what_would_go_and_changes_nothing(told, tmp_path):
    before = spaces(told)
    reply = told("erase", "--principal", "ann", "--dry-run", "--json", "--certificate", str(tmp_path / "c"))
    assert (reply.json["facts"], reply.json["dryRun"], reply.json["certificate"]) == (2, True, None)
    assert "Nothing was changed." in told("erase", "--principal", "ann", "--dry-run").out
    assert spaces(told) == before
    assert not (tmp_path / "c").exists()


def test_erase_needs_a_principal_and_the_one_without_a_name_is_named_by_an_empty_text(told):
    outcome = told("erase", "--yes", "--json")
    assert (outcome.code, outcome.error["field"]) == (2, "principal")
    assert len(spaces(told)) == 4
    assert told("erase", "--principal", "", "--yes", "--json").json["facts"] == 1
    assert spaces(told) == [("ann", ""), ("ann", "work"), ("bob", "")]


def test_erasing_a_principal_whom_nobody_knows_erases_nothing_and_does_not_ask(told):
    outcome = told("erase", "--principal", "Ann", "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "failed")
    assert "no memory of that name" in outcome.error["message"]
    assert len(spaces(told)) == 4
    shown = told("erase", "--principal", "Ann", "--json", "--dry-run")
    assert (shown.code, shown.json["spaces"], shown.json["facts"]) == (0, [], 0)


def test_purge_says_how_much_it_left_out(told):
    told("forget", "a", "--yes")
    outcome = told("purge", "--yes")
    assert outcome.code == 0
    assert "The store was rewritten: 6 records, 3 fewer than before." in outcome.out
    reply = told("purge", "--yes", "--json").json
    assert list(reply) == ["records", "dropped", "pending", "certificate"]
    assert (reply["records"], reply["dropped"], reply["pending"]) == (6, 0, False)
    assert told("list", "--json", "--principal", "bob").json["total"] == 1


def test_purge_shows_what_it_rewrites_asks_first_and_does_nothing_without_a_yes(told, store_path):
    told("forget", "a", "--yes")
    before = sorted(path.name for path in store_path.glob("gen-*"))
    for answer in ("n\n", ""):
        refused = told("purge", stdin=answer)
        assert refused.code == 1
        assert re.search(
            r"4 memories with 3 facts: [0-9,]+ bytes, of which about [0-9,]+ would go", refused.err
        )
        assert "Cursors from before it end with it." in refused.err
        assert "nothing was rewritten" in refused.err
        assert sorted(path.name for path in store_path.glob("gen-*")) == before
    assert told("purge", stdin="y\n").out == "The store was rewritten: 6 records, 3 fewer than before.\n"


def test_forget_with_purge_says_so(told):
    outcome = told("forget", "a", "--yes", "--purge")
    assert "1 fact forgotten." in outcome.out
    assert "The store was rewritten without them." in outcome.out
    reply = told("forget", "a", "--yes", "--purge", "--json").json
    assert (reply["forgotten"], reply["purged"], reply["certificate"]["facts"]) == ([], True, 0)
    soft = told("forget", "a", "--yes", "--purge", "--soft", "--json")
    assert (soft.code, soft.error["field"]) == (2, "purge")


@pytest.mark.parametrize("command", DONE.values(), ids=DONE)
def test_a_certificate_is_kept_in_a_new_file_that_verify_reads(told, tmp_path, command):
    file = tmp_path / "certificate.json"
    outcome = told(*command, "--certificate", str(file), "--json")
    assert outcome.code == 0
    assert json.loads(file.read_text()) == outcome.json["certificate"]
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
    assert told("verify", "--erased", str(file), "--json").json == {"ok": True, "findings": []}
    if command != DONE["purge"]:  # which knows of no fact in particular
        told("remember", "told again", "--id", "a", *command[1:3] * (command == DONE["erase"]))
        again = told("verify", "--erased", str(file), "--json")
        assert (again.code, again.json["ok"]) == (1, False)


@pytest.mark.parametrize("command", DONE.values(), ids=DONE)
def test_a_certificate_that_cannot_be_kept_is_refused_before_anything_happens(told, tmp_path, command):
    existing = tmp_path / "existing"
    existing.write_text("something of mine")
    before = spaces(told)
    for place in (existing, tmp_path / "no folder" / "file", tmp_path, ""):
        outcome = told(*command, "--certificate", str(place), "--json")
        assert (outcome.code, outcome.error["field"]) == (2, "certificate")
    assert existing.read_text() == "something of mine"
    assert (spaces(told), texts(told("list", "--json"))) == (before, ["a fact of  "])


def test_where_nothing_is_erased_there_is_no_file_and_a_line_says_so(told, tmp_path):
    file = tmp_path / "certificate.json"
    outcome = told("forget", "a", "--soft", "--yes", "--certificate", str(file))
    assert outcome.code == 0
    assert "there is no certificate" in outcome.err
    assert not file.exists()
    refused = told("erase", "--principal", "ann", "--certificate", str(file), stdin="n\n")
    assert refused.code == 1
    assert not file.exists()


@pytest.mark.parametrize("command", [DONE["erase"], (*DONE["forget"], "--purge")], ids=["erase", "forget"])
def test_where_the_purge_fails_the_certificate_of_what_was_erased_is_kept(
    told, tmp_path, monkeypatch, command
):
    def busy(*_):
        raise Busy("a backup is being made")

    file = tmp_path / "certificate.json"
    with monkeypatch.context() as patch:
        patch.setattr("perdure.log.sqlite.log.SqliteLog.purge", busy)
        outcome = told(*command, "--certificate", str(file), "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "busy")
    assert json.loads(file.read_text()) == outcome.error["details"]["certificate"]
    assert read_kept_certificate(outcome.json) == read_kept_certificate(json.loads(file.read_text()))
    assert told("purge", "--yes").code == 0
    assert told("verify", "--erased", str(file)).code == 0


def test_a_certificate_that_the_full_disk_did_not_take_is_shown(told, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "certificate.json"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        outcome = told(*DONE["forget"], "--certificate", str(file), "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "failed")
    assert "No space left on device" in outcome.err
    shown = next(line for line in outcome.err.splitlines() if "the certificate: " in line).removeprefix(
        "perdure: the certificate: "
    )
    assert read_kept_certificate(json.loads(shown)) == read_kept_certificate(outcome.json)
    assert not file.exists()
    assert texts(told("list", "--json")) == []


@pytest.mark.parametrize("command", [DONE["erase"], DONE["purge"]], ids=["erase", "purge"])
def test_where_there_is_no_store_nothing_is_erased_certified_or_made(run, store_path, tmp_path, command):
    outcome = run(*command, "--certificate", str(tmp_path / "certificate.json"), "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "failed")
    assert not store_path.exists()
    assert not (tmp_path / "certificate.json").exists()
    assert run("erase", "--principal", "ann", "--dry-run", "--json").json["facts"] == 0
    assert not store_path.exists()


def test_nothing_of_an_erased_person_is_in_any_file_of_the_store(run, store_path):
    canary = "XQZ-canary-7731"

    def holds():
        return any(canary.encode() in path.read_bytes() for path in store_path.rglob("*") if path.is_file())

    remember(run, f"words of {canary}", "--id", canary, "--principal", canary, "--scope", canary)
    remember(run, "words of another")
    assert holds()
    with Store.open(store_path) as store:
        assert store.spaces()[1].principal == canary
    assert run("erase", "--principal", canary, "--yes").code == 0
    assert not holds()
