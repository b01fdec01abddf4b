"""The command verify: what it prints, and its exit codes."""

import apsw
import pytest

from unit.cli.command_line import remember


@pytest.fixture
def damaged(run, store_path):
    """A store of three facts, of which the second one's record is damaged."""
    for text in ("The kettle is blue", "The teapot is green", "The cup is white"):
        remember(run, text)
    db = apsw.Connection(str(store_path / "gen-1.db"))
    db.execute("UPDATE rec SET data = zeroblob(length(data)) || x'01' WHERE seq = 3")
    db.close()
    return store_path


def test_a_whole_store_is_said_to_be_whole(run):
    remember(run, "The kettle is blue")
    for options in ((), ("--quick",)):
        outcome = run("verify", *options)
        assert (outcome.code, outcome.out) == (0, "2 records of 1 space looked at: all is whole.\n")
    assert run("verify", "--json").json == {"ok": True, "spaces": 1, "records": 2, "findings": []}


def test_damage_is_listed_and_the_exit_code_is_1(run, damaged):
    outcome = run("verify")
    assert outcome.code == 1
    assert "record 3 of space 1 is damaged" in outcome.out
    assert outcome.out.endswith("4 records of 1 space looked at: 1 finding.\n")
    told = run("verify", "--json")
    assert told.code == 1
    [finding] = told.json["findings"]
    assert (told.json["ok"], finding["space"], finding["seq"]) == (False, 1, 3)
    assert run("verify", "--quick").code == 0


def test_a_store_that_cannot_be_opened_is_verified_all_the_same(run, store_path):
    remember(run, "The kettle is blue")
    (store_path / "gen-1.hw").write_bytes((9).to_bytes(8, "little"))
    assert run("list").code == 1
    outcome = run("verify")
    assert outcome.code == 1
    assert "9 rows were acknowledged, but there are 2" in outcome.out


def test_salvage_saves_the_rest_and_lists_what_is_lost(run, damaged, tmp_path):
    outcome = run("verify", "--salvage", str(tmp_path / "saved"))
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "record 3 of space 1 is lost",
        "2 facts of 1 space in the new store; 1 finding above, of what was lost.",
    ]
    listed = run("list", "--store", str(tmp_path / "saved"), "--json").json
    assert {fact["text"] for fact in listed["items"]} == {"The kettle is blue", "The cup is white"}


def test_salvage_of_a_whole_store_loses_nothing(run, tmp_path):
    remember(run, "The kettle is blue")
    outcome = run("verify", "--salvage", str(tmp_path / "saved"), "--json")
    assert outcome.code == 0
    assert outcome.json == {"spaces": 1, "records": 2, "facts": 1, "generation": 1, "lost": [], "notes": []}


def test_salvage_saves_the_whole_lines_of_a_journal_and_names_the_others(run, store_path, tmp_path):
    for text in ("The kettle is blue", "The teapot is green", "The cup is white"):
        remember(run, text, "--backend", "journal")
    file = store_path / "journal-1.jsonl"
    file.write_bytes(file.read_bytes().replace(b"teapot is green", b"teapot is brown"))
    assert run("list").code == 1
    outcome = run("verify", "--salvage", str(tmp_path / "saved"))
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "record 3 of space 1 is lost",
        "Note: line 6 of journal-1.jsonl is gone, or not what was written there.",
        "2 facts of 1 space in the new store; 1 finding above, of what was lost.",
    ]
    assert run("verify", "--store", str(tmp_path / "saved")).code == 0
    listed = run("list", "--store", str(tmp_path / "saved"), "--json").json
    assert {fact["text"] for fact in listed["items"]} == {"The kettle is blue", "The cup is white"}


def test_a_journal_without_its_key_is_not_saved_and_the_error_says_what_to_do(run, store_path, tmp_path):
    remember(run, "The kettle is blue", "--backend", "journal")
    (store_path / "journal.key").unlink()
    outcome = run("verify", "--salvage", str(tmp_path / "saved"), "--json")
    assert outcome.code == 1
    assert outcome.error["code"] == "corrupt"
    assert "restore journal.key from a backup" in outcome.error["message"]
    assert not (tmp_path / "saved").exists()


def test_notes_are_shown(run, store_path, tmp_path):
    remember(run, "The kettle is blue")
    (store_path / "store.lock").unlink()
    outcome = run("verify", "--salvage", str(tmp_path / "saved"))
    assert outcome.code == 0
    assert "Note: store.lock is damaged or missing: the newest generation was read." in outcome.out


def test_salvage_into_a_folder_that_is_in_use_is_a_wrong_value(run, damaged, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert run("verify", "--salvage", str(tmp_path), "--json").error["field"] == "out"


def test_a_certificate_is_checked_against_the_store(run, store_path, tmp_path):
    remember(run, "The kettle is blue", "--id", "kettle")
    receipt = run("forget", "--id", "kettle", "--yes", "--json")
    file = tmp_path / "certificate.json"
    file.write_text(receipt.out)
    outcome = run("verify", "--erased", str(file))
    assert (outcome.code, outcome.out) == (0, "The certificate holds.\n")
    remember(run, "The kettle is blue", "--id", "kettle")
    outcome = run("verify", "--erased", str(file))
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1].startswith("The certificate does not hold: ")
    told = run("verify", "--erased", str(file), "--json")
    assert (told.code, told.json["ok"]) == (1, False)


@pytest.mark.parametrize("content", [None, b"\xff", b"[]", b"{}"])
def test_what_is_no_certificate_is_a_wrong_value(run, tmp_path, content):
    remember(run, "The kettle is blue")
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    outcome = run("verify", "--erased", str(tmp_path / "file"), "--json")
    assert outcome.code == 2
    assert "certificate" in outcome.error["message"]


def test_only_one_thing_is_done_at_a_time(run, tmp_path):
    remember(run, "The kettle is blue")
    assert run("verify", "--quick", "--salvage", str(tmp_path / "saved")).code == 2
    assert not (tmp_path / "saved").exists()


def test_a_store_that_is_not_there_is_an_error_and_none_is_made(run, store_path):
    outcome = run("verify")
    assert outcome.code == 1
    assert "no store there yet" in outcome.err
    assert not store_path.exists()


def test_an_encrypted_store_is_verified_and_saved_with_its_key(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_KEY", "a passphrase")
    remember(run, "The kettle is blue")
    assert run("verify").code == 0
    assert run("verify", "--salvage", str(tmp_path / "saved")).code == 0
    assert b"kettle" not in (tmp_path / "saved" / "gen-1.db").read_bytes()
    monkeypatch.delenv("PERDURE_KEY")
    outcome = run("verify", "--json")
    assert outcome.error["code"] == "wrong_key"
