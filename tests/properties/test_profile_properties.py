"""Laws of text analysis that hold for every text."""

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.lexical.characters import classes
from perdure.lexical.profile import count_words, get_profile, is_blank
from perdure.lexical.unicode_table import GAPS

PROFILE = get_profile("english.v1")

INTERESTING = (
    "aZé\u0301İßΣ09 1\t-.,'’@/+#:_*(%\u200d\u200b\ufe0f漢かが\u3099한กำ\u05d0\u05b8\u0645\u064e"
    "👍\U0001f3fd🇳\U0001fae8\u2028ﬁ½"
)
law = settings(deadline=None, max_examples=examples(60))
texts = st.one_of(st.text(max_size=40), st.text(alphabet=INTERESTING, max_size=40))
digit_texts = st.text(alphabet="0123456789 -()+.,a", max_size=40)
words = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCXYZ", min_size=1, max_size=12)


def assigned(text: str) -> bool:
    return "u" not in classes(text)


@given(st.one_of(texts, digit_texts))
@law
def test_a_text_has_terms_exactly_when_it_has_a_visible_character(text):
    terms = PROFILE.document_terms(text)
    assert bool(terms) is bool(PROFILE.query_terms(text)) is bool(count_words(text)) is not is_blank(text)


@given(st.one_of(texts, digit_texts))
@law
def test_terms_are_short_and_never_empty_or_spaced(text):
    for term in PROFILE.document_terms(text):
        assert 1 <= len(term) <= 64
        assert term == "".join(term.split())


@given(st.one_of(texts, digit_texts))
@law
def test_a_query_asks_only_for_terms_that_the_same_text_holds_each_once(text):
    asked = PROFILE.query_terms(text)
    assert len(asked) == len(set(asked))
    assert set(asked) <= set(PROFILE.document_terms(text))


@given(st.lists(st.one_of(texts, digit_texts), min_size=1, max_size=4))
@law
def test_every_visible_chunk_of_a_text_finds_the_text(parts):
    text = " ".join(parts)
    held = set(PROFILE.document_terms(text))
    for chunk in text.split():
        if not is_blank(chunk):
            assert held & set(PROFILE.query_terms(chunk))


@given(st.one_of(texts, digit_texts))
@law
def test_the_words_of_a_query_have_the_terms_of_the_query(text):
    found = PROFILE.query_words(text)
    assert {term for _, terms in found for term in terms} == set(PROFILE.query_terms(text))
    assert len({terms for _, terms in found}) == len(found)
    assert all(word and word in text for word, _ in found)


@given(texts.filter(assigned))
@law
def test_canonically_equal_texts_have_equal_terms(text):
    expected = PROFILE.document_terms(text)
    for form in ("NFC", "NFD"):
        assert PROFILE.document_terms(unicodedata.normalize(form, text)) == expected


@given(texts.filter(assigned))
@law
def test_case_makes_no_difference(text):
    # Folding is defined on the decomposed form: folding first can move a mark away from its letter.
    folded = unicodedata.normalize("NFD", text).casefold()
    assert PROFILE.document_terms(folded) == PROFILE.document_terms(text)


@given(st.lists(words, min_size=1, max_size=6))
@law
def test_upper_and_lower_case_words_meet(spoken):
    text = " ".join(spoken)
    assert PROFILE.document_terms(text.upper()) == PROFILE.document_terms(text.lower())


@given(words, st.sampled_from(["", ".", ",", "!?", "'", '"']))
@law
def test_an_invisible_character_inside_a_word_changes_nothing(word, ending):
    hidden = f"{word[:1]}\u00ad{word[1:]}{ending}"
    assert PROFILE.document_terms(hidden) == PROFILE.document_terms(word + ending)


@given(texts)
@law
def test_forgetting_cached_words_changes_no_answer(text):
    before = PROFILE.document_terms(text), PROFILE.query_terms(text), PROFILE.query_words(text)
    PROFILE.forget_words()
    assert (PROFILE.document_terms(text), PROFILE.query_terms(text), PROFILE.query_words(text)) == before


@given(texts, texts)
@law
def test_text_without_digits_is_analysed_chunk_by_chunk(left, right):
    if any(character in "0123456789" for character in left + right):
        return
    assert PROFILE.document_terms(f"{left} {right}") == PROFILE.document_terms(left) + PROFILE.document_terms(
        right
    )


@given(st.lists(st.text(alphabet="0123456789", min_size=1, max_size=6), min_size=2, max_size=6))
@law
def test_digit_groups_are_found_joined(groups):
    joined = "".join(groups)
    if 5 <= len(joined) <= 15:
        for separator in (" ", "-", "\u00a0"):
            assert joined in PROFILE.document_terms(f"call {separator.join(groups)} now")
        assert set(PROFILE.query_terms(" ".join(groups))) & set(PROFILE.document_terms(f"call {joined} now"))


def test_every_kind_of_character_alone_is_blank_or_has_a_term():
    start, seen = 0x80, set(range(0x3000))
    for gap in GAPS.split():
        start += int(gap, 16)
        seen.update((start - 1, start))
    for code_point in sorted(seen):
        text = chr(code_point)
        assert bool(PROFILE.document_terms(text)) is not is_blank(text), hex(code_point)


LETTERS = ["a", "漢", "\u0301", "\u0301\u0316", "e\u0301\u0316", "\u05b0\u0591", "\ufdfa", "\U0001fae8", "ก็"]
JOINTS = ["a.", "a-", "a'", "a's'", "a+", "a#", "@a", ".", "_", "*", "/", "\u200d"]
DIGITS = ["1,", "1 ", "1-", "(1)", "1:", "v1."]
PICTURES = ["\U0001f44d\u200d", "\U0001f44d", "\U000e0067"]


@pytest.mark.parametrize("unit", LETTERS + JOINTS + DIGITS + PICTURES)
def test_a_long_text_of_one_kind_costs_time_and_terms_in_proportion(unit):
    text = unit * (65_536 // len(unit.encode()))
    started = time.process_time()
    terms = PROFILE.document_terms(text)
    PROFILE.query_terms(text)
    count_words(text)
    # Work that grows with the square of 64 Ki characters takes minutes here.
    assert time.process_time() - started < 15
    assert len(terms) <= 8 * len(text)
    assert max(map(len, terms), default=0) <= 64


@given(st.text(min_size=65, max_size=300))
@settings(deadline=None, max_examples=examples(12))
def test_long_chunks_are_analysed_like_short_ones_every_time(text):
    assert PROFILE.document_terms(text) == PROFILE.document_terms(text)
