"""Every link of the documentation leads somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from markdown_page import anchors, links
from source_tree import ROOT

FOLDERS = ("*.md", "docs/**/*.md", "bench/**/*.md", "changelog.d/*.md")
PAGES = sorted(page for folder in FOLDERS for page in ROOT.glob(folder))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_resolves(page: Path):
    broken = [target for target in links(page) if not _resolves(page, target)]
    assert broken == []


def _resolves(page: Path, target: str) -> bool:
    if target.startswith(("https://", "http://", "mailto:")):
        return True
    name, _, fragment = target.partition("#")
    linked = (page.parent / name).resolve() if name else page
    if not linked.exists() or not linked.is_relative_to(ROOT):
        return False
    return not fragment or fragment in anchors(linked)


def test_every_page_is_reached_from_the_index():
    found, queue = set(), [ROOT / "docs" / "index.md"]
    while queue:
        page = queue.pop()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        targets = [target.partition("#")[0] for target in links(page) if "://" not in target]
        queue += [(page.parent / target).resolve() for target in targets if target]
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert sorted(str(page.relative_to(ROOT)) for page in pages - found) == []
