"""The page on conversations does what it says."""

from __future__ import annotations

from markdown_page import run_page
from source_tree import ROOT


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(ROOT / "docs" / "howto" / "conversations.md") >= 13
