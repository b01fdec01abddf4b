"""Where a text holds the words of a query."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Memory
from perdure.lexical.marking import marks
from perdure.lexical.profile import get_profile

ENGLISH = get_profile("english.v1")


def marked(text, query):
    return [text[start:end] for start, end in marks(text, ENGLISH.query_terms(query), ENGLISH)]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("Alice lives in Paris.", "who lived in Paris", ["lives", "Paris"]),
        ("boats and a boat", "boat", ["boats", "boat"]),
        ("(sailing), twice", "sail", ["sailing"]),
        ("ticket ABC-1234 closed", "abc-1234", ["ABC-1234"]),
        ("ticket (ABC-1234), closed", "abc-1234", ["ABC-1234"]),
        ("ticket ABC-1234 closed", "1234", ["1234"]),
        ("C++ is not C", "C++", ["C++", "C"]),
        ("我喜欢在上海喝咖啡", "咖啡", ["咖啡"]),
        ("東京タワーへ行きました", "タワー", ["タワー"]),
        ("₹1,00,000 were paid", "100000", ["₹1,00,000"]),
        ("Café au lait", "cafe", ["Café"]),
        ("nothing of it", "boat", []),
    ],
)
def test_the_words_of_a_query_are_marked_as_they_are_written(text, query, words):
    assert marked(text, query) == words


texts = st.lists(
    st.one_of(
        st.sampled_from(["boat", "Boats", "ABC-12", "咖啡喝", "a'b", "1,000", "émeu", "C++"]),
        st.text(max_size=6),
    ),
    max_size=8,
).map(" ".join)


@given(texts, texts)
def test_marks_ascend_stand_apart_and_hold_what_is_asked(text, query):
    terms = ENGLISH.query_terms(query)
    found = marks(text, terms, ENGLISH)
    ends = [0]
    for start, end in found:
        assert ends[-1] <= start < end <= len(text)
        ends.append(end)
    if found:
        assert set(terms) & set(ENGLISH.document_terms(text))


@given(texts)
def test_every_piece_that_holds_a_term_is_marked_in_it(text):
    terms = ENGLISH.query_terms(text)
    held = ENGLISH.chunks_holding(text, frozenset(terms))
    found = marks(text, terms, ENGLISH)
    places = iter(found)
    assert bool(held) == bool(found)
    assert sum(1 for _ in places) >= (1 if held else 0)


def test_an_explanation_stays_plain_data_and_equal_ones_are_equal():
    with Memory.open(":memory:") as memory:
        memory.remember("Alice lives in Paris", id="a")
        at = 1_900_000_000_000
        (hit,) = memory.recall("lives", explain=True, as_of=at)
        assert hit.explanation == memory.explain("lives", "a", as_of=at)
        assert hit.explanation.marks == ((6, 11),)
        assert msgspec.to_builtins(hit.explanation)["marking"]["terms"] == ("live",)
        assert "Alice" not in repr(hit.explanation.marking)
