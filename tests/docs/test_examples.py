"""The examples of the documentation run, and give what the pages say."""

from __future__ import annotations

import pytest

from markdown_page import run_page
from source_tree import ROOT


@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md", "docs/concepts/two-times.md"])
def test_the_examples_of_a_page_give_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / name) >= 1
