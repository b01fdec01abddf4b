"""The examples of the documentation run, and give what the pages say."""

from __future__ import annotations

import pytest

from markdown_page import blocks, run_page
from source_tree import ROOT

PAGES = ["README.md", "docs/tutorial.md", "docs/concepts/two-times.md", "docs/concepts/evidence.md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_give_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(ROOT / name) >= 1


def test_every_page_with_python_is_run_by_a_test():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    pages = [page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if _has_python(page)]
    assert [page.name for page in pages if page.name not in tests] == []


def _has_python(page):
    return any(block.language == "python" for block in blocks(page))
