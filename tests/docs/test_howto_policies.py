"""The page on policies does what it says, in code and at the command line."""

from __future__ import annotations

from console_page import run_commands
from markdown_page import blocks, run_page
from source_tree import ROOT
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

PAGE = ROOT / "docs" / "howto" / "policies.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) >= 7


def test_the_commands_of_the_page_give_what_it_shows(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [settings] = [block.text for block in blocks(PAGE) if block.language == "json"]
    (tmp_path / "tidy.json").write_text(settings, encoding="utf-8")
    refused = ['perdure remember "my password is hunter2"']
    assert run_commands(PAGE, run, monkeypatch, refused=refused) == 10
