"""What the re-ranking run takes for a question and an answer, and what its tables say."""

from __future__ import annotations

import numpy as np
from bench.late_interaction import Reranker, TokenVectors
from bench.rerank import Asked, Set, Way, answers, lines_of, own_set

from perdure import NewFact

FACTS = [NewFact(text=text, id=text[:2]) for text in ("aa tea", "bb tea", "cc tea tea")]


def first_letters(texts):
    """A vector a word, by its first letter."""
    table = np.eye(26, dtype=np.float32)
    return [table[[ord(word[0]) - 97 for word in text.split()]] for text in texts]


LETTERS = {"letters": Reranker(TokenVectors("letters", first_letters), weight=1.0)}


def a_set(*questions):
    return Set("teas", {"me": FACTS}, {"me": questions}, {})


def test_reordering_moves_what_was_recalled_and_adds_nothing():
    told = a_set(Asked("tea boat", 1, frozenset({"bb"}), {}), Asked("unknown", 1, frozenset({"bb"}), {}))
    found = answers(told, Way("words", None), LETTERS)
    assert [row.scores["MRR"] for row in found["as it is"]] == [1 / 3, 0.0]
    assert [row.scores["MRR"] for row in found["letters"]] == [1.0, 0.0]


def test_the_candidates_are_deep_whatever_k_a_question_brings():
    told = a_set(Asked("tea boat", 1, frozenset({"bb"}), {"k": 1}))
    found = answers(told, Way("words", None), LETTERS)
    assert [row.scores["MRR"] for row in found["letters"]] == [1.0]


def test_a_table_has_a_line_for_each_recall_and_order():
    told = a_set(*[Asked("tea boat", 1, frozenset({"bb"}), {})] * 2)
    lines = lines_of(told, [Way("words", None)], LETTERS)
    assert [line.split(" | ")[:2] for line in lines[3:]] == [["| words", "as it is"], ["| words", "letters"]]
    assert lines[0].strip() == "## teas"


def test_every_question_of_our_own_sets_is_answered_by_facts_that_are_there():
    for name in ("paraphrases", "multilingual"):
        told = own_set(name)
        known = {fact.id for fact in told.facts[name]}
        assert all(question.wanted <= known for question in told.questions[name])
        assert len(told.questions[name]) > 50
