"""Every profile makes terms of every text, alone and in a memory, and what is told is found."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from fuzz.strategies import PIECES, texts
from perdure import Store
from perdure.contract.limits import QUERY_BYTES_MAX, TEXT_BYTES_MAX, TEXT_WORDS_MAX
from perdure.errors import InvalidRequest
from perdure.lexical.characters import ascii_digits, classes
from perdure.lexical.languages import PROFILES
from perdure.lexical.profile import get_profile, is_blank

law = settings(deadline=None, max_examples=examples(60))
names = st.one_of(st.sampled_from(("english.v1", "unicode.v1")), st.sampled_from(PROFILES))


@given(names, texts)
@law
def test_terms_follow_from_the_text_alone_and_a_query_asks_only_for_what_the_text_holds(name, text):
    profile = get_profile(name)
    held = profile.document_terms(text)
    asked = profile.query_terms(text)
    words = profile.query_words(text)
    assert bool(held) is bool(asked) is not is_blank(text)
    assert set(asked) <= set(held)
    assert len(asked) == len(set(asked))
    assert {term for _, terms in words for term in terms} == set(asked)
    assert all(1 <= len(term) <= 64 and not set(" \t\n") & set(term) for term in held)
    profile.forget_words()
    assert (profile.document_terms(text), profile.query_terms(text)) == (held, asked)
    assert profile.query_words(text) == words


@given(names, texts)
@law
def test_canonically_equal_texts_have_equal_terms_in_every_language(name, text):
    if "u" in classes(text):
        return
    profile = get_profile(name)
    assert profile.document_terms(unicodedata.normalize("NFD", text)) == profile.document_terms(
        unicodedata.normalize("NFC", text)
    )


@given(names, st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
@law
def test_each_piece_of_a_text_finds_the_text(name, pieces):
    profile = get_profile(name)
    held = set(profile.document_terms(" ".join(pieces)))
    for piece in pieces:
        assert held.issuperset(profile.query_terms(piece))


@given(texts)
@law
def test_digits_of_every_script_are_those_of_ascii(text):
    plain = ascii_digits(text)
    assert len(plain) == len(text)
    assert all(
        a == b or (b in "0123456789" and unicodedata.decimal(a) == int(b))
        for a, b in zip(text, plain, strict=True)
    )


def blocks() -> list[str]:
    """From each stretch of 128 code points, a word of up to three letters in a row, or else a visible character."""
    found = []
    for start in range(0x80, 0x110000, 128):
        stretch = "".join(map(chr, range(start, start + 128)))
        kinds = classes(stretch)
        for kind in ("a", "k", "t"):
            if (at := kinds.find(kind * 2)) >= 0:
                found.append(stretch[at : at + 3 if kinds[at : at + 3] == kind * 3 else at + 2])
        if set(kinds) - set("uwfzg"):
            at = next(at for at, kind in enumerate(kinds) if kind not in "uwfzg")
            found.append(stretch[at])
    return found


def test_a_word_of_every_block_of_unicode_finds_the_row_that_has_it_alone_and_among_others():
    words = blocks()
    assert len(words) > 500
    profiles = [get_profile(name) for name in ("english.v1", "unicode.v1")]
    for word in words:
        for profile in profiles:
            for row in (word, f"we wrote {word} there", f"({word})."):
                asked = set(profile.query_terms(word))
                assert asked, hex(ord(word[0]))
                assert asked & set(profile.document_terms(row)), hex(ord(word[0]))


@pytest.fixture(scope="module")
def memory_of_blocks():
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember_many([f"zzz {word} zzz" for word in blocks()])
        yield memory


@pytest.mark.slow
def test_a_word_of_every_block_finds_its_row_in_a_memory(memory_of_blocks):
    for word in blocks()[::5]:
        found = [hit.text for hit in memory_of_blocks.recall(word, k=20)]
        assert f"zzz {word} zzz" in found, hex(ord(word[0]))


SINGLES = [
    "a", "é", "1", "١", ".", "-", "'", "#", "*", "_", "/", ":", "@", "漢", "한", "ก", "👍", "🇳", "\u0301", "\u200d", "\u200b",
    "¨", "ͺ", "\ufdfa", "ﬁ", "\U0001fae8", "\ue000", "\U000e0067", "\u05b0", "½", "İ", "ß", "ΐ", "\u1fb7",
]  # fmt: skip


UNITS = [*SINGLES, *PIECES, "2024-05-01T10:30:00Z ", "1 ", "a.", "a'", "1,", "++", "v1."]
# Profiles of other languages differ in what they make of words of Latin letters alone.
IN_ENGLISH = [("english.v1", unit) for unit in UNITS]
IN_FRENCH = [("snowball:french", unit) for unit in UNITS if any("a" <= c.lower() <= "ÿ" for c in unit)]


@pytest.mark.parametrize(("name", "unit"), IN_ENGLISH + IN_FRENCH)
def test_64_kib_of_one_thing_take_part_of_a_second(name, unit):
    profile = get_profile(name)
    text = unit * (TEXT_BYTES_MAX // len(unit.encode("utf-8", "surrogatepass")))
    spent = []
    for ask in (profile.document_terms, profile.query_terms, profile.query_words):
        started = time.thread_time()
        ask(text)
        spent.append(time.thread_time() - started)
    # About 0.3 s at most where nothing else runs; what grows with the square takes minutes.
    assert max(spent) < 3, spent


@pytest.mark.slow
def test_the_largest_text_and_the_largest_queries_are_taken_and_one_more_is_refused():
    words = " ".join(f"w{n:014}" for n in range(TEXT_WORDS_MAX))
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember(words + "x", id="long")
        assert [hit.id for hit in memory.recall(words)] == ["long"]
        assert [hit.id for hit in memory.recall("w00000000000007")] == ["long"]
        assert memory.recall("y" * QUERY_BYTES_MAX) == []
        for call, field in (
            (lambda: memory.remember(words + " more"), "text"),
            (lambda: memory.remember("x" * (TEXT_BYTES_MAX + 1)), "text"),
            (lambda: memory.recall("x" * (QUERY_BYTES_MAX + 1)), "query"),
        ):
            with pytest.raises(InvalidRequest) as error:
                call()
            assert error.value.field == field
