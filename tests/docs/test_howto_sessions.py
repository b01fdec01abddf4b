"""The page on sessions gives what it says."""

from __future__ import annotations

from markdown_page import run_page
from source_tree import ROOT


def test_the_blocks_of_the_page_on_sessions_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / "docs/howto/sessions.md") >= 1
