"""The page on prompts does what it says."""

from __future__ import annotations

from markdown_page import blocks, run_page
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "prompts.md"


def test_the_examples_of_the_page_give_what_it_says(capsys):
    assert run_page(PAGE) >= 8
    shown = next(block.text for block in blocks(PAGE) if block.language == "text")
    assert capsys.readouterr().out.startswith(shown)
