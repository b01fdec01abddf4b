"""Long texts are cut between words."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.documents.units import cuts_of
from perdure.lexical.profile import count_words, get_profile

PROFILE = get_profile("english.v1")
WORDS_MAX, BYTES_MAX = 4_096, 65_536


def units(text: str) -> list[str]:
    return [text[a:b] for a, b in pairwise((0, *cuts_of(text), len(text)))]


@pytest.mark.parametrize("text", ["one", "word " * 4_096, "x" * 65_536, "字" * 4_096])
def test_what_a_fact_may_say_is_one_unit(text):
    assert cuts_of(text) == ()


def test_one_word_more_than_a_unit_holds_begins_the_next():
    assert units("word " * 4_096 + "more") == ["word " * 4_096, "more"]


def test_one_byte_more_than_a_unit_holds_moves_the_last_word_on():
    text = "é" * 20_000 + " " + "a" * 25_537
    assert len(text.encode()) == BYTES_MAX + 2
    assert units(text) == ["é" * 20_000 + " ", "a" * 25_537]


def test_a_word_longer_than_a_unit_is_cut_between_code_points_and_its_rest_is_followed_by_the_next_word():
    assert units("first " + "€" * 30_000 + " last") == ["first ", "€" * 21_845, "€" * 8_155 + " last"]


def test_a_space_longer_than_a_unit_does_not_cut_the_words_around_it():
    assert units("left" + " " * 70_000 + "right") == ["left" + " " * 65_532, " " * 4_468 + "right"]


def test_text_without_spaces_is_cut_between_characters_that_are_words_and_keeps_their_marks():
    assert units("か\u3099。" * 5_000) == ["か\u3099。" * 4_096, "か\u3099。" * 904]


def test_letters_between_chinese_characters_are_kept_together():
    assert units("字latin" * 3_000) == ["字latin" * 2_048, "字latin" * 952]


@pytest.mark.parametrize(("character", "words"), [("\ufdfa", 4), ("\u337f", 4), ("\u3316", 6), ("\u3231", 1)])
def test_characters_that_stand_for_words_fill_a_unit_as_those_words_do(character, words):
    text = character * 9_000
    found = units(text)
    assert "".join(found) == text
    assert len(found) == -(-9_000 * words // WORDS_MAX)
    for unit in found:
        assert len(PROFILE.document_terms(unit)) <= 2 * WORDS_MAX
        assert count_words(unit) <= WORDS_MAX


PIECES = st.tuples(
    st.text(
        st.sampled_from("ab€\U0001f600字か\u3099。!\u200b\u0301 \t\n\u2003\ufdfa\u337f\u3231\u00a8"),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 3, 700, 9_000]),
)
PARTS = st.lists(PIECES, min_size=1, max_size=5)


@settings(max_examples=examples(24), deadline=None)
@given(PARTS)
def test_units_are_the_text_in_order_and_none_is_over_a_limit(parts):
    text = "".join(piece * times for piece, times in parts)
    found = units(text)
    assert "".join(found) == text
    for unit in found:
        assert unit
        assert count_words(unit) <= WORDS_MAX
        assert len(unit.encode()) <= BYTES_MAX


@settings(max_examples=examples(24), deadline=None)
@given(PARTS)
def test_no_word_that_fits_into_a_unit_is_cut(parts):
    text = "".join(piece * times for piece, times in parts)
    found = units(text)
    ends = list(accumulate(map(len, found)))
    for (before, after), end in zip(pairwise(found), ends, strict=False):
        if before[-1].isspace() or after[0] not in "ab€\U0001f600":
            continue
        last = before.rsplit(maxsplit=1)[-1]
        # Within a run without spaces only a Chinese or Japanese character may end the unit.
        ends_a_word = any(letter in "字か" for letter in last)
        # The whole word, which may go on through several units.
        word = text[:end].rsplit(maxsplit=1)[-1] + text[end:].split(maxsplit=1)[0]
        assert ends_a_word or len(word.encode()) > BYTES_MAX or count_words(word) > WORDS_MAX
