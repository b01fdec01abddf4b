"""import and export at the command line."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from unit.cli.command_line import remember, texts

TALK = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a kite."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "What colour?"},
    ],
}
DAMAGED = (
    b'\xef\xbb\xbf{"text":"one"}\r\n'
    b"\r\n"
    b'{"text":"\xff"}\n'
    b'{"text":"two","colour":"red"}\n'
    b'{"text":"three","validFrom":"banana"}\n'
    b'{"text":"four"}\n'
    b'{"text":"fi'
)


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "facts.jsonl"
    path.write_bytes(DAMAGED)
    return str(path)


def test_a_conversation_becomes_the_memory_of_a_principal_of_its_name(run, tmp_path):
    path = tmp_path / "26.json"
    path.write_text(json.dumps(TALK))
    outcome = run("import", str(path), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["imported"] == {
        "good": 2, "stored": 2, "outcomes": {"created": 2}, "bad": [], "dryRun": False, "principals": ["26"],
    }  # fmt: skip
    assert texts(run("recall", "kite", "--principal", "26", "--json")) == [
        "[1:56 pm on 8 May, 2023] Ana: I bought a kite."
    ]
    assert "2 were known" in run("import", str(path)).out
    assert run("import", str(path), "--principal", "me", "--json").json["imported"]["stored"] == 2


def test_an_archive_is_imported_without_being_unpacked(run, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("26.json", json.dumps(TALK))
        archive.writestr("30.json", json.dumps(TALK))
    path = tmp_path / "all.zip"
    path.write_bytes(packed.getvalue())
    assert run("import", str(path), "--json").json["imported"]["principals"] == ["26", "30"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["all.zip", "store"]


def test_an_archive_that_leads_outside_stores_nothing(run, tmp_path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good.jsonl", '{"text":"x"}\n')
        archive.writestr("../evil.jsonl", '{"text":"y"}\n')
    for mode in ("--strict", "--lenient"):
        outcome = run("import", str(path), mode)
        assert outcome.code == 1
        assert "leads outside" in outcome.err
    assert texts(run("list", "--json")) == []


def test_a_dry_run_lists_every_bad_line_with_its_number_and_reason(run, damaged, store_path):
    outcome = run("import", damaged, "--dry-run", "--json")
    assert outcome.code == 1
    told = outcome.json["imported"]
    assert (told["good"], told["stored"], told["dryRun"]) == (2, 0, True)
    assert [(bad["file"], bad["line"]) for bad in told["bad"]] == [
        ("facts.jsonl", line) for line in (3, 4, 5, 7)
    ]
    for bad, reason in zip(told["bad"], ("UTF-8", "'colour'", "valid_from", "cut off"), strict=True):
        assert reason in bad["reason"]
    assert not store_path.exists()


def test_strict_is_the_default_and_stores_nothing(run, damaged):
    outcome = run("import", damaged, "--json")
    assert outcome.code == 1
    assert outcome.error["code"] == "import_failed"
    assert [bad["line"] for bad in outcome.error["details"]["bad"]] == [3, 4, 5, 7]
    assert texts(run("list", "--json")) == []
    assert "line 3" in run("import", damaged).err


def test_lenient_stores_the_good_lines_and_says_so(run, damaged):
    outcome = run("import", damaged, "--lenient")
    assert outcome.code == 1
    assert "2 facts stored" in outcome.out
    assert "4 entries are bad" in outcome.out
    assert outcome.err.count("facts.jsonl, line ") == 4
    assert texts(run("list", "--json")) == ["one", "four"]


def test_standard_input_can_be_imported(run):
    assert run("import", "-", stdin=b'{"text":"x"}\n').code == 0
    assert texts(run("list", "--json")) == ["x"]


def test_a_file_that_is_not_there_is_one_line_and_exit_code_1(run, tmp_path):
    outcome = run("import", str(tmp_path / "absent.jsonl"), "--json")
    assert outcome.code == 1
    assert "absent.jsonl" in outcome.error["message"]


def test_what_the_store_refuses_is_told_with_its_line(run, tmp_path):
    remember(run, "first", "--id", "a")
    path = tmp_path / "facts.jsonl"
    path.write_text('{"text":"b"}\n{"text":"other","id":"a"}\n')
    outcome = run("import", str(path), "--json")
    assert outcome.error["code"] == "conflict"
    assert "line 2" in outcome.error["message"]
    assert texts(run("list", "--json")) == ["first"]


def test_the_export_of_a_forgotten_fact_is_refused_where_it_was_blocked(run, tmp_path):
    remember(run, "The pin is 9", "--id", "p")
    path = tmp_path / "facts.jsonl"
    run("export", "--output", str(path))
    run("forget", "p", "--block", "--yes")
    outcome = run("import", str(path), "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "blocked")
    assert texts(run("list", "--json")) == []


def test_an_export_is_lines_that_import_reads_back(run, tmp_path, latest):
    for day, city in (("2020-01-01", "Paris"), ("2025-01-01", "Berlin")):
        remember(run, f"Alice lives in {city}", *latest, "--subject", "city", "--valid-from", day)
    exported = run("export")
    assert exported.code == 0
    other = ("--store", str(tmp_path / "other"))
    assert run("import", "-", *other, stdin=exported.out).code == 0
    for day, city in (("2021-01-01", "Paris"), ("2026-01-01", "Berlin")):
        assert texts(run("recall", "Alice", "--as-of", day, *other, "--json")) == [f"Alice lives in {city}"]
    assert run("export", *other).out == exported.out


def test_an_export_does_not_write_over_a_file_unless_told(run, tmp_path):
    remember(run, "x", "--id", "a")
    path = tmp_path / "facts.jsonl"
    path.write_text("mine")
    assert run("export", "--output", str(path)).code == 1
    assert path.read_text() == "mine"
    assert run("export", "--output", str(path), "--force", "--json").json == {"exported": 1}
    assert json.loads(path.read_text()) == {"id": "a", "text": "x"}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["facts.jsonl", "store"]
