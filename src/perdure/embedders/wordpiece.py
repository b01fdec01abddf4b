"""Texts to numbers of word pieces: the uncased WordPiece of BERT, the same on every Python.

Characters are classed, decomposed and split by Unicode 3.2, which every Python carries beside its own version
and which knows nearly every character of the vocabulary that is shipped. So the pieces of a text do not change
with the interpreter. Characters that came later, such as most emoji, separate words and are no piece.

It differs from BERT's own on purpose in one place: symbols that are not ASCII stand alone, so that an unknown
one next to a word does not make the whole word unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain

from perdure.errors import InvalidRequest

WORD_LENGTH_MAX = 100  # BERT's bound: longer runs are data, not words
KNOWN_CHARACTERS_MAX = 8_192  # more than any one language's everyday characters

_UNICODE = unicodedata.ucd_3_2_0
_SOFT_HYPHEN = "\u00ad"  # punctuation to Unicode 3.2; later it became what it is in texts: invisible
_ASCII_TOKEN = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
# The ideographs that BERT takes one by one; kana and Hangul are words.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class _Written(dict[int, str]):
    """Code point to its lower-case letters without accents, in spaces where it stands alone."""

    def __missing__(self, code_point: int) -> str:
        if len(self) >= KNOWN_CHARACTERS_MAX:
            self.clear()
        written = self[code_point] = _written(chr(code_point))
        return written


def _written(character: str) -> str:
    if _UNICODE.category(character) in ("Cc", "Cn", "Co", "Cs"):
        return " "
    return "".join(map(_part, _UNICODE.normalize("NFD", character)))


def _part(character: str) -> str:
    """Return one character of a decomposition as the vocabulary writes it."""
    category = _UNICODE.category(character)
    if category in ("Mn", "Cf") or character == _SOFT_HYPHEN:
        return ""
    if category[0] in "ZC":
        return " "
    if category[0] in "PS" or _is_ideograph(character):
        return f" {character} "
    return character.lower()


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


class WordPieces:
    """A vocabulary of pieces, numbered by their place; pieces that go on a word begin with `##`."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._starts: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        for number, piece in enumerate(pieces):
            if piece.startswith("##") and len(piece) > 2:
                self._parts[piece[2:]] = number
            else:
                self._starts[piece] = number
        if not self._starts:
            raise InvalidRequest("the vocabulary has no pieces that begin a word", field="pieces")
        self._length_max = max(map(len, chain(self._starts, self._parts)))
        self._written = _Written()

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, in order. Words that have no spelling in pieces are left out.

        The time is linear in the text's length, whatever it holds.
        """
        found: list[int] = []
        for word in self._words(text):
            number = self._starts.get(word)
            if number is not None:
                found.append(number)
            else:
                found.extend(self._spelled(word))
        return found

    def _words(self, text: str) -> Iterable[str]:
        if text.isascii():
            return _ASCII_TOKEN.findall(text.lower())
        return text.translate(self._written).split()

    def _spelled(self, word: str) -> list[int]:
        """Return the pieces of a word, the longest first from its start; none where a rest has no piece."""
        if len(word) > WORD_LENGTH_MAX:
            return []
        found: list[int] = []
        known, start = self._starts, 0
        while start < len(word):
            for end in range(min(len(word), start + self._length_max), start, -1):
                number = known.get(word[start:end])
                if number is not None:
                    found.append(number)
                    known, start = self._parts, end
                    break
            else:
                return []
        return found
