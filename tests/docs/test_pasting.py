"""What the pages show of Python can be pasted into a prompt."""

from __future__ import annotations

import pytest

from markdown_page import blocks
from prompt_page import refused_by_a_prompt
from source_tree import ROOT

NOT_PASTED = (
    ROOT / "docs" / "howto" / "custom-backend.md",  # shows a module, which goes into a file
    ROOT / "docs" / "howto" / "scale-out.md",  # as that one
    ROOT / "docs" / "reference",  # shows signatures
)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if any(block.language == "python" for block in blocks(page))
    and not any(page.is_relative_to(other) for other in NOT_PASTED)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_pastes_into_a_prompt(page):
    assert refused_by_a_prompt(page) == []


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("for n in (1,):\n    n\nm = 1\n", 6),
        ("def f():\n    a = 1\n\n    return a\n", 7),
        ("class A:\n    a = 1\n\n    def f(self):\n        pass\n", 7),
        ("a = (1,\n", 4),
    ],
    ids=["no empty line after", "an empty line in a function", "an empty line in a class", "no end"],
)
def test_what_a_prompt_does_not_take_is_found(tmp_path, code, line):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n```python\n{code}```\n", encoding="utf-8")
    assert refused_by_a_prompt(page)[0].startswith(f"page.md:{line}: ")


def test_what_a_prompt_takes_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfor n in (1,):\n    n\n\nm = [\n    1,\n\n    2,\n]\ndef f():\n    return 1\n```\n"
        "```sh\nfor n in 1\n```\n",
        encoding="utf-8",
    )
    assert refused_by_a_prompt(page) == []
