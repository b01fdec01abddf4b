"""The page on terms says what the code does."""

from __future__ import annotations

import re

import pytest

from markdown_page import run_page
from perdure.lexical.languages import LANGUAGES
from perdure.lexical.profile import get_profile
from source_tree import ROOT

PAGE = ROOT / "docs" / "concepts" / "analysis.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]*)` \| `([^`]*)` \| (?:`([^`]*)`|the same) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str, str]]:
    """Of every row: the profile of its section, the text, its terms, the terms of it as a query."""
    found = []
    for section in TEXT.split("\n## ")[1:]:
        profile = "snowball:german" if section.startswith("Other languages") else "english.v1"
        found += [(profile, text, terms, asked or terms) for text, terms, asked in ROW.findall(section)]
    return found


def test_every_row_of_the_page_is_read():
    assert len(rows()) == len(re.findall(r"^\| `", TEXT, re.MULTILINE)) > 40


@pytest.mark.parametrize(("profile", "text", "terms", "asked"), rows())
def test_a_text_has_the_terms_that_the_page_shows(profile, text, terms, asked):
    analysis = get_profile(profile)
    assert list(dict.fromkeys(analysis.document_terms(text))) == terms.split()
    assert analysis.query_terms(text) == asked.split()


def test_the_page_lists_every_language():
    assert ", ".join(LANGUAGES) in TEXT.replace("\n", " ")


def test_the_examples_of_the_page_run():
    assert run_page(PAGE) == 4
