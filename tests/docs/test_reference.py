"""The reference names every error, every method and every setting, and no others."""

from __future__ import annotations

import dataclasses
import re

import pytest

from perdure import Memory, Store, errors
from perdure.documents.documents import Documents
from perdure.memory.config import MemoryConfig
from source_tree import ROOT

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
BETWEEN_LAYERS = {"Moved", "PerdureError"}  # never reach a caller of the public names by themselves
INSIDE = {"memory_of"}  # what Memory.open asks of its store


def rows(section: str) -> dict[str, str]:
    text = PAGE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))


def test_every_error_is_listed_with_its_code():
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    public = {
        name: kind.code
        for name, kind in kinds.items()
        if issubclass(kind, errors.PerdureError) and name not in BETWEEN_LAYERS
    }
    assert {name: row.split("`")[1] for name, row in rows("Errors").items()} == public


def test_every_setting_is_listed():
    assert list(rows("Settings")) == [field.name for field in dataclasses.fields(MemoryConfig)]


@pytest.mark.parametrize("kind", [Memory, Store, Documents])
def test_every_call_is_listed(kind):
    calls = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert set(rows(kind.__name__)) == calls - INSIDE
