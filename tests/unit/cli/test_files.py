"""import and export at the command line."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import stat
import zipfile

import pytest

from perdure import Corrupt
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


@pytest.mark.parametrize(
    ("name", "options", "asks"),
    [
        ("26", (), "--principal 26"),
        ("two words", (), "--principal 'two words'"),
        ("--x", ("--scope", "s"), "--principal=--x --scope s"),
    ],
)
def test_an_import_says_how_to_ask_the_memory_that_it_made(run, tmp_path, name, options, asks):
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(TALK))
    last = run("import", *options, "--", str(path)).out.splitlines()[-1]
    assert last == f'Ask one: perdure recall "…" {asks}'
    asked = shlex.split(last.removeprefix("Ask one: perdure ").replace("…", "kite"))
    assert len(texts(run(*asked, "--json"))) == 1


def test_an_import_into_the_default_memory_names_none(run):
    assert "Ask one" not in run("import", "-", stdin=b'{"text":"x"}\n').out


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
    for bad, reason in zip(told["bad"], ("UTF-8", "'colour'", "validFrom", "cut off"), strict=True):
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
    run("export", "--facts", "--output", str(path))
    run("forget", "p", "--block", "--yes")
    outcome = run("import", str(path), "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "blocked")
    assert texts(run("list", "--json")) == []


def test_an_export_is_lines_that_import_reads_back(run, tmp_path, latest):
    for day, city in (("2020-01-01", "Paris"), ("2025-01-01", "Berlin")):
        remember(run, f"Alice lives in {city}", *latest, "--subject", "city", "--valid-from", day)
    exported = run("export", "--facts")
    assert exported.code == 0
    other = ("--store", str(tmp_path / "other"))
    assert run("import", "-", *other, stdin=exported.out).code == 0
    for day, city in (("2021-01-01", "Paris"), ("2026-01-01", "Berlin")):
        assert texts(run("recall", "Alice", "--as-of", day, *other, "--json")) == [f"Alice lives in {city}"]
    assert run("export", "--facts", *other).out == exported.out


def test_an_export_does_not_write_over_a_file_unless_told(run, tmp_path):
    remember(run, "x", "--id", "a")
    path = tmp_path / "facts.jsonl"
    path.write_text("mine")
    assert run("export", "--facts", "--output", str(path)).code == 1
    assert path.read_text() == "mine"
    assert run("export", "--facts", "--output", str(path), "--force", "--json").json == {"exported": 1}
    assert json.loads(path.read_text()) == {"id": "a", "text": "x"}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["facts.jsonl", "store"]


def test_what_stands_beside_the_output_stays_whole(run, tmp_path):
    remember(run, "x", "--id", "a")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    (folder / "facts.jsonl.partial").write_text("theirs")
    (folder / "linked.jsonl.partial").symlink_to(folder / "mine")
    for name in ("facts.jsonl", "linked.jsonl"):
        assert run("export", "--facts", "--output", str(folder / name)).code == 0
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert (folder / "facts.jsonl.partial").read_text() == "theirs"
    assert (folder / "mine").read_text() == "mine"
    assert len(list(folder.iterdir())) == 5


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_output_that_is_no_plain_file_is_refused_and_stays(run, tmp_path, force):
    remember(run, "x", "--id", "a")
    mine, link, dangling, pipe = (tmp_path / name for name in ("mine", "link", "dangling", "pipe"))
    mine.write_text("mine")
    link.symlink_to(mine)
    dangling.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    for path in (link, dangling, pipe, tmp_path):
        outcome = run("export", "--facts", "--output", str(path), *force, "--json")
        assert (outcome.code, outcome.error["field"]) == (1, "output")
    assert mine.read_text() == "mine"
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert not (tmp_path / "nowhere").exists()


def broken_off(memory, **_):
    yield {"text": "x"}
    raise Corrupt("the second fact is damaged")


def full(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("where", "what", "told"),
    [
        ("perdure.importers.exporting.export_facts", broken_off, "the second fact is damaged"),
        ("os.fsync", full, "the output file cannot be written: No space left on device"),
    ],
)
def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(
    run, tmp_path, monkeypatch, where, what, told
):
    remember(run, "x", "--id", "a")
    path = tmp_path / "facts.jsonl"
    path.write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(where, what)
        outcome = run("export", "--facts", "--output", str(path), "--force")
    assert (outcome.code, outcome.err) == (1, f"perdure: {told}\n")
    assert path.read_text() == "mine"
    assert run("export", "--facts", "--output", str(tmp_path / "absent" / "facts.jsonl")).code == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["facts.jsonl", "store"]


def test_a_bad_place_on_the_wire_has_null_where_it_has_no_line_or_entry(run, damaged, tmp_path):
    for bad in run("import", damaged, "--json").error["details"]["bad"]:
        assert bad["entry"] is None
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({**TALK, "session_2": 5}))
    (bad,) = run("import", str(path), "--json").error["details"]["bad"]
    assert (bad["line"], bad["entry"]) == (None, "session_2")


def test_a_damaged_archive_is_one_line(run, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("26.json", json.dumps(TALK))
    data = bytearray(packed.getvalue())
    data[40:50] = b"\xff" * 10
    path = tmp_path / "all.zip"
    path.write_bytes(data)
    outcome = run("import", str(path))
    assert outcome.code == 1
    assert "all.zip: damaged archive" in outcome.err


def test_a_blocked_line_among_others_is_told_with_its_line(run, tmp_path):
    remember(run, "The pin is 9", "--id", "p")
    run("forget", "p", "--block", "--yes")
    path = tmp_path / "facts.jsonl"
    path.write_text('{"text":"b"}\n\n{"text":"The pin is 9"}\n')
    error = run("import", str(path), "--json").error
    assert error["code"] == "blocked"
    assert error["message"].startswith("facts.jsonl, line 3: ")
    assert (error["details"]["file"], error["details"]["line"]) == ("facts.jsonl", 3)
    assert texts(run("list", "--json")) == []
