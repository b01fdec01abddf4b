"""A page that promises what does not happen is caught."""

from __future__ import annotations

import pytest

from markdown_page import anchors, links, run_page


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_are_checked_across_blocks(tmp_path):
    text = "```python\na = 2\n```\ntext\n```python\na + 1  # -> 3\nsum([\n    a,\n    a,\n])  # -> 4\n```\n"
    assert run_page(page(tmp_path, text)) == 2


@pytest.mark.parametrize(
    "code",
    ["1 + 1  # -> 3", "a = 1  # -> 1", "for n in (1, 2):\n    n  # -> 1"],
    ids=["a wrong value", "a value behind an assignment", "a value inside a loop"],
)
def test_a_promise_that_does_not_hold_or_cannot_be_checked_fails(tmp_path, code):
    with pytest.raises(AssertionError, match=r"page\.md"):
        run_page(page(tmp_path, f"```python\n{code}\n```\n"))


def test_blocks_in_other_languages_are_not_run(tmp_path):
    assert run_page(page(tmp_path, "```sh\nexit 1\n```\n")) == 0


def test_links_in_code_are_no_links_and_headings_are_anchors(tmp_path):
    path = page(tmp_path, "# Two `as_of` times\n[a](b.md) `[c](d.md)`\n```text\n# no\n[e](f.md)\n```\n")
    assert links(path) == ["b.md"]
    assert anchors(path) == {"two-as_of-times"}
