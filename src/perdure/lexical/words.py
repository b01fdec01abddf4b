"""The terms of one word in a language: stem, accent-free form, and the bound on a term's length."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import import_module

from perdure.lexical.characters import classes

TERM_LENGTH_MAX = 64  # characters; longer than words and names of any language, shorter than encoded data
_DIGEST_BYTES = 8

# Letters that Unicode does not decompose but keyboards without them replace.
_PLAIN_LETTERS = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "ħ": "h",
        "ŧ": "t",
        "ı": "i",
        "ё": "е",
    }
)
_stemming = threading.Lock()  # every stemmer keeps the word at hand in itself


@cache
def _stemmer(algorithm: str) -> Callable[[str], str]:
    try:
        compiled = import_module("Stemmer")
    except ImportError:
        pure: Callable[[str], str] = import_module("snowballstemmer").stemmer(algorithm).stemWord
        return pure
    # Size 0: the stemmer's own cache would keep words of texts that were forgotten.
    fast: Callable[[str], str] = compiled.Stemmer(algorithm, 0).stemWord
    return fast


@cache
def stemmer_version() -> str:
    """Return which code stems here: its stems may differ from those of any other version."""
    try:
        compiled: str = import_module("Stemmer").version()
    except ImportError:
        return f"snowballstemmer {import_module('importlib.metadata').version('snowballstemmer')}"
    return f"PyStemmer {compiled}"


@dataclass(frozen=True, slots=True)
class Language:
    """What a profile takes for one word, and which words its queries may leave out.

    Args:
        algorithm: Snowball's, for the stems; None leaves words as they are.
        stop_words: as they are written, in lower case and without accents.
        latin_only: stem words of the letters a to z only, because the algorithm is made for no others.
    """

    algorithm: str | None = None
    stop_words: frozenset[str] = frozenset()
    latin_only: bool = False

    def stem(self, word: str) -> str:
        """Return the stem of a normalised word of letters; any other word as it is."""
        if self.algorithm is None or len(word) < 3 or not self._has_stem(word):
            return word
        with _stemming:
            # Some algorithms take away all of a word that is one ending.
            return _stemmer(self.algorithm)(word) or word

    def _has_stem(self, word: str) -> bool:
        if word.isascii():
            return word.isalpha()
        return not self.latin_only and not classes(word).strip("am")

    def terms(self, word: str) -> tuple[list[str], bool]:
        """Return the terms of a normalised word, and whether the first is that of a stop word.

        The first is the stem of the spelling without accents; a second one is the stem with them, where there
        are any and it is another.
        """
        if len(word) > TERM_LENGTH_MAX:
            return [bounded(word)], False
        plain = without_accents(word)
        first = bounded(self.stem(plain))
        if plain == word or (second := bounded(self.stem(word))) == first:
            return [first], plain in self.stop_words
        return [first, second], plain in self.stop_words


def forget_last_word() -> None:
    """Drop the stemmers, each of which keeps the last word it was given; the next word makes a new one."""
    with _stemming:
        _stemmer.cache_clear()


def without_accents(word: str) -> str:
    """Return a normalised word with the accents of its Latin and Greek letters removed.

    Marks of other scripts stay, because there they make another letter. Words longer than TERM_LENGTH_MAX are
    left alone.
    """
    if word.isascii() or len(word) > TERM_LENGTH_MAX:
        return word
    plain = unicodedata.normalize("NFD", word)
    letters = classes(plain)
    if "m" in letters:
        plain = "".join(_unaccented(plain, letters))
    return unicodedata.normalize("NFC", plain).translate(_PLAIN_LETTERS)


def _unaccented(text: str, letters: str) -> Iterator[str]:
    accentable = False
    for character, letter in zip(text, letters, strict=True):
        if letter != "m":
            accentable = letter == "a" and (character < "\u0250" or "\u0370" <= character < "\u0400")
        elif accentable:
            continue
        yield character


def bounded(term: str) -> str:
    """Return a term of at most TERM_LENGTH_MAX characters.

    A longer term becomes its first 47 characters, `~` and 16 hexadecimal digits of its BLAKE2b digest, so
    that two long terms with one beginning stay apart.
    """
    if len(term) <= TERM_LENGTH_MAX:
        return term
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{term[: TERM_LENGTH_MAX - 1 - len(digest)]}~{digest}"
