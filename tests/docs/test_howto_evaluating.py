"""The page on evaluating: its scenario is run by its commands and its Python, and gives what is shown."""

from __future__ import annotations

import pytest

from console_page import run_commands
from markdown_page import blocks, run_page
from perdure.evaluation import METRICS
from source_tree import ROOT
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

PAGE = ROOT / "docs" / "howto" / "evaluating.md"


@pytest.fixture(autouse=True)
def _scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    team, meaning = [block.text for block in blocks(PAGE) if block.language == "jsonl"]
    (tmp_path / "team.jsonl").write_text(team, encoding="utf-8")
    (tmp_path / "meaning.jsonl").write_text(meaning, encoding="utf-8")
    (tmp_path / "static.json").write_text('{"embedder": "static"}', encoding="utf-8")


def test_every_command_of_the_page_gives_what_is_shown(run, monkeypatch):
    missed = ["perdure eval team.jsonl --min exact=0.99 --json"]
    assert run_commands(PAGE, run, monkeypatch, refused=missed) == 7


def test_without_a_floor_a_case_of_nothing_fails_with_an_embedder_as_the_page_says(run):
    assert run("eval", "meaning.jsonl", "--config", "static.json").code == 1
    assert run("eval", "meaning.jsonl").code == 0


def test_the_python_of_the_page_gives_what_it_says():
    assert run_page(PAGE) == 4


def test_every_metric_is_explained():
    table = PAGE.read_text(encoding="utf-8").split("| metric |", 1)[1].split("\n\n", 1)[0]
    assert [name for name in METRICS if name not in table] == []
