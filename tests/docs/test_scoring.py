"""The page on scores says what the code does."""

from __future__ import annotations

import re

import pytest

from markdown_page import run_page
from perdure.model.hit import Part
from perdure.policies import Relevance, final_score, score_parts
from source_tree import ROOT

PAGE = ROOT / "docs" / "concepts" / "scoring.md"


def test_every_number_of_the_worked_example_is_what_the_code_gives():
    assert run_page(PAGE) >= 14


def test_the_page_names_every_part_that_a_score_can_have_and_no_other():
    ranking = Relevance().parts(1.0, top=1.0, importance=1.0, age_ms=0)
    names = ("lexical", "smoothing", "actor", "period", "phrase", "semantic")
    made = score_parts([Part(name, 1.0) for name in names], ranking, recency_factor=0.5, historical=0.5)
    table = PAGE.read_text(encoding="utf-8").rpartition("| part |")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [part.name for part in made]


def test_the_two_formulas_of_the_page_give_the_score():
    lexical, top, factor, historical = 0.3, 0.6, 0.25, 0.5
    assert final_score(lexical, factor, historical) == lexical * factor * historical
    ranking = Relevance().parts(lexical, top=top, importance=0.9, age_ms=0)
    by_hand = (lexical / top + 0.063 + 0.03) * factor * historical
    assert final_score(ranking.score, factor, historical) == pytest.approx(by_hand)
