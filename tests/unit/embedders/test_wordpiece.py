"""How texts become word pieces."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.embedders.static import TABLE
from perdure.embedders.wordpiece import WordPieces
from perdure.errors import InvalidRequest

PIECES = (TABLE / "pieces.txt").read_bytes().decode().splitlines()
WORDS = WordPieces(PIECES)


def pieces(text):
    return [PIECES[number] for number in WORDS.numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", ["the", "cat"]),
        ("unaffable", ["una", "##ffa", "##ble"]),
        ("don't stop", ["don", "'", "t", "stop"]),
        ("snake_case", ["snake", "_", "case"]),
        ("Müller", ["muller"]),
        ("Mu\u0308ller", ["muller"]),
        ("naïve café", ["naive", "cafe"]),
        ("price: 5€", ["price", ":", "5", "€"]),
        ("“quoted”", ["“", "quoted", "”"]),
        ("日本語", ["日", "本", "語"]),
        ("ΣΟΦΟΣ", ["σ", "##ο", "##φ", "##ο", "##σ"]),
        ("zero\u200bwidth", ["zero", "width"]),
        ("calen\u00addar", ["calendar"]),
        ("warm☀day", ["warm", "day"]),
        ("hi😀there", ["hi", "there"]),
        ("two\xa0words", ["two", "words"]),
        ("tab\tand\nline\x00end", ["tab", "and", "line", "end"]),
        ("[MASK] [unused5]", ["[", "mask", "]", "[", "unused", "##5", "]"]),
        ("", []),
        ("x" * 101, []),
    ],
)
def test_a_text_has_these_pieces(text, expected):
    assert pieces(text) == expected


@given(st.text(max_size=80))
def test_the_normal_form_of_a_text_makes_no_difference(text):
    # Characters of later versions have no pieces, and some stand for known ones in those versions' normal forms.
    known = "".join(c for c in text if unicodedata.ucd_3_2_0.category(c) != "Cn")
    composed = unicodedata.ucd_3_2_0.normalize("NFC", known)
    assert pieces(composed) == pieces(unicodedata.ucd_3_2_0.normalize("NFD", known))


@given(st.lists(st.text(max_size=30), max_size=5))
def test_texts_beside_each_other_keep_their_pieces(texts):
    assert pieces(" ".join(texts)) == [piece for text in texts for piece in pieces(text)]


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=60))
def test_ascii_next_to_other_text_is_split_as_ascii_alone(text):
    assert pieces(f"{text} é")[:-1] == pieces(text)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_the_pieces_of_a_word_spell_it_or_there_are_none(word):
    found = pieces(word)
    assert not found or "".join(piece.removeprefix("##") for piece in found) == word


@pytest.mark.parametrize("vocabulary", [[], ["##s"]])
def test_a_vocabulary_must_begin_words(vocabulary):
    with pytest.raises(InvalidRequest, match="begin a word"):
        WordPieces(vocabulary)
