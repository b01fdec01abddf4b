"""The page of invariants names tests that exist."""

from __future__ import annotations

import ast
import re

import pytest

from source_tree import ROOT

SECTION = re.compile(r"^## (I-\d\d) .*?\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(?:(\w+)::)?(\w+)`")
NO_TEST = "No test holds this yet."

SECTIONS = dict(SECTION.findall((ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")))


def test_all_seventeen_invariants_are_on_the_page():
    assert list(SECTIONS) == [f"I-{number:02d}" for number in range(1, 18)]


@pytest.mark.parametrize("invariant", SECTIONS)
def test_an_invariant_names_its_tests_or_says_that_there_are_none(invariant):
    assert bool(TEST.search(SECTIONS[invariant])) != (NO_TEST in SECTIONS[invariant])


@pytest.mark.parametrize("invariant", SECTIONS)
def test_every_test_that_an_invariant_names_exists(invariant):
    assert [name for name in TEST.findall(SECTIONS[invariant]) if not _exists(*name)] == []


def _exists(path: str, class_name: str, test: str) -> bool:
    file = ROOT / path
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    scopes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name]
    names = {node.name for node in (scopes[0] if scopes else tree).body if isinstance(node, ast.FunctionDef)}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]  # state machines' test cases
    names |= {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    return test in names
