"""The list of decisions: every page is in it, in order, under the title that the page has."""

from __future__ import annotations

import re
from pathlib import Path

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
LISTED = re.findall(
    r"^\| (\d+) \| \[(.+)\]\((\S+)\) \|$", (DECISIONS / "README.md").read_text("utf-8"), re.MULTILINE
)


def test_every_decision_is_in_the_list_in_order_and_nothing_else():
    assert [name for _, _, name in LISTED] == sorted(path.name for path in DECISIONS.glob("0*.md"))


def test_the_list_has_the_number_and_the_title_of_each_page():
    for number, title, name in LISTED:
        head = (DECISIONS / name).read_text("utf-8").splitlines()[0]
        assert name.startswith(f"{int(number):04}-")
        assert head == f"# {number}. {title}", name
