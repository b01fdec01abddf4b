"""The page of the export's format names every line and every field, and no others."""

from __future__ import annotations

import re

import pytest

from perdure.transfer import lines
from perdure.transfer.lines import Header
from perdure.transfer.reading import is_export, read_header, read_lines
from source_tree import ROOT

PAGE = (ROOT / "docs" / "export-format.md").read_text(encoding="utf-8")
RECORDS = PAGE.split("\n## Records\n", 1)[1].split("\n## ", 1)[0]
KINDS = {kind.__struct_config__.tag: kind for kind in lines.RecordLine.__args__}


def test_every_type_of_record_has_a_row():
    assert set(re.findall(r"^\| `([a-z-]+)` \|", RECORDS, re.MULTILINE)) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_field_of_a_record_is_named_in_its_row(name):
    (row,) = re.findall(rf"^\| `{name}` \| (.*) \| .* \|$", RECORDS, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", row)) - {"fact", "supersedes", "corrects", "admission", "use"}
    fields = set(KINDS[name].__struct_encode_fields__) - {"fact"}
    if name == "document":
        fields -= set(lines.FactLine.__struct_encode_fields__)
    assert named == fields


def test_every_field_of_the_frame_is_named():
    frame = PAGE.split("\n## What frames the records\n", 1)[1].split("\n## ", 1)[0]
    for kind in (Header, lines.SpaceLine, lines.SpaceEndLine, lines.TotalLine):
        for field in kind.__struct_encode_fields__:
            assert f"`{field}`" in frame, field


def test_the_example_can_be_read(tmp_path):
    example = PAGE.split("```text\n", 1)[1].split("```", 1)[0].replace("…", "")
    path = tmp_path / "example.jsonl"
    path.write_text(example)
    with path.open("rb") as stream:
        assert is_export(stream.readline())
        stream.seek(0)
        assert read_header(stream).version == lines.VERSION
        assert [type(read.line).__name__ for read in read_lines(stream)] == [
            "SpaceLine", "FactLine", "FactLine", "LinkLine", "SpaceEndLine", "TotalLine",
        ]  # fmt: skip
