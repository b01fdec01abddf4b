"""Exports of whole memories at the command line."""

from __future__ import annotations

import io
import json
import stat
import zipfile

from unit.cli.command_line import remember, texts


def told(text):
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_brings_a_memory_back_as_it_was(run, tmp_path):
    remember(run, "Alice lives in Paris", "--id", "paris", "--principal", "ann")
    remember(run, "Alice lives in Berlin", "--id", "berlin", "--supersedes", "paris", "--principal", "ann")
    run("end", "berlin", "--at", "2030-01-01", "--reason", "moves", "--principal", "ann")
    exported = run("export", "--principal", "ann")
    assert [line.get("type") for line in told(exported.out)] == [
        None, "space", "fact", "fact", "link", "end", "space-end", "total",
    ]  # fmt: skip
    other = ("--store", str(tmp_path / "other"))
    outcome = run("import", "-", *other, stdin=exported.out)
    assert outcome.code == 0
    assert "2 facts stored, 4 records in all; 0 were known" in outcome.out
    again = run("export", "--principal", "ann", *other)
    assert again.out.split("\n", 1)[1] == exported.out.split("\n", 1)[1]
    assert "4 were known" in run("import", "-", *other, stdin=exported.out).out


def test_an_export_takes_the_memory_that_is_named_or_all(run, tmp_path):
    for name in ("ann", "bob"):
        remember(run, f"of {name}", "--principal", name)
    assert [line["principal"] for line in told(run("export", "--all-spaces").out) if line.get("type") == "space"] == [
        "ann", "bob",
    ]  # fmt: skip
    path = tmp_path / "all.jsonl"
    outcome = run("export", "--all-spaces", "--output", str(path), "--json")
    assert outcome.json["exported"] | {"sizeBytes": 0} == {
        "spaces": 2, "facts": 2, "records": 2, "sizeBytes": 0,
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("export", "--all-spaces", "--principal", "ann").code == 2
    nobody = run("export", "--principal", "nobody", "--json")
    assert (nobody.code, nobody.error["code"]) == (1, "not_found")
    other = ("--store", str(tmp_path / "other"))
    one = run("import", str(path), "--principal", "bob", *other, "--json")
    assert one.json["spaces"] == [{"principal": "bob", "scope": ""}]
    moved = run("import", str(path), "--principal", "ann", "--into-principal", "cem", *other)
    assert moved.code == 0
    assert texts(run("list", "--principal", "cem", *other, "--json")) == ["of ann"]


def test_an_export_of_a_newer_version_is_refused_as_such_however_its_header_is_written(run, tmp_path):
    remember(run, "one", "--id", "a")
    header, rest = run("export").out.split("\n", 1)
    other = ("--store", str(tmp_path / "other"))
    turned = json.dumps(dict(sorted(json.loads(header).items(), reverse=True)))
    newer = json.dumps({"version": 3, "unheard": True, "format": "perdure-export"})
    for first, name in ((newer, "-"), (newer, str(tmp_path / "newer.jsonl"))):
        (tmp_path / "newer.jsonl").write_text(f"{first}\n{rest}")
        refused = run("import", name, *other, "--json", stdin=f"{first}\n{rest}")
        assert (refused.code, refused.error["code"]) == (1, "import_failed")
        assert "format version 3" in refused.error["message"]
    assert run("import", "-", *other, stdin=f"{turned}\n{rest}").code == 0
    assert texts(run("list", *other, "--json")) == ["one"]


def test_bad_lines_are_listed_and_strict_stores_nothing(run, tmp_path):
    for number in range(3):
        remember(run, f"fact {number}", "--id", f"f{number}")
    lines = run("export").out.splitlines(keepends=True)
    lines[3] = lines[3].replace('"text":"fact 1"', '"text":"fact 1","colour":"red"')
    path = tmp_path / "bad.jsonl"
    path.write_text("".join(lines))
    other = ("--store", str(tmp_path / "other"))
    dry = run("import", str(path), "--dry-run", *other, "--json")
    assert dry.code == 1
    assert dry.json["problems"] == [{"line": 4, "reason": "unknown field 'colour'"}]
    (tmp_path / "good.jsonl").write_text(run("export").out)
    both = run("import", str(path), str(tmp_path / "good.jsonl"), "--dry-run", *other, "--json")
    assert both.json["problems"] == [{"file": "bad.jsonl", "line": 4, "reason": "unknown field 'colour'"}]
    assert not (tmp_path / "other").exists()
    strict = run("import", str(path), *other, "--json")
    assert (strict.code, strict.error["code"]) == (1, "import_failed")
    assert strict.error["details"]["committed"] == "no"
    assert "bad.jsonl: line 4: unknown field 'colour'" in strict.error["message"]
    lenient = run("import", str(path), "--lenient", *other)
    assert lenient.code == 1
    assert "2 facts stored, 2 records in all; 0 were known, 1 is left out." in lenient.out
    assert "bad.jsonl, line 4" in lenient.err


def test_exports_and_other_files_are_not_imported_together(run, tmp_path):
    remember(run, "one")
    run("export", "--output", str(tmp_path / "a.jsonl"))
    (tmp_path / "b.jsonl").write_text('{"text":"x"}\n')
    files = (str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    assert run("import", *files).code == 2
    assert run("import", files[1], "--into-principal", "x").code == 2
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(files[0], "a.jsonl")
    (tmp_path / "c.zip").write_bytes(packed.getvalue())
    outcome = run("import", str(tmp_path / "c.zip"))
    assert outcome.code == 1
    assert "an export of whole spaces" in outcome.err
