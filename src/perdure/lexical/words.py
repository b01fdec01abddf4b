"""The terms of one word: stem, accent-free form, and the bound on a term's length."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable
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
_stemming = threading.Lock()  # both stemmers keep the word at hand in themselves


@cache
def _stemmer() -> Callable[[str], str]:
    try:
        compiled = import_module("Stemmer")
    except ImportError:
        pure: Callable[[str], str] = import_module("snowballstemmer").stemmer("english").stemWord
        return pure
    # Size 0: the stemmer's own cache would keep words of texts that were forgotten.
    fast: Callable[[str], str] = compiled.Stemmer("english", 0).stemWord
    return fast


def stem(word: str) -> str:
    """Return the Snowball English stem of a word of the letters a to z; any other word as it is."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    with _stemming:
        return _stemmer()(word)


def forget_last_word() -> None:
    """Drop the stemmer, which keeps the last word it was given; the next word makes a new one."""
    with _stemming:
        _stemmer.cache_clear()


def without_accents(word: str) -> str:
    """Return a normalised word with the accents of its Latin and Greek letters removed.

    Marks of other scripts stay, because there they make another letter. Words longer than TERM_LENGTH_MAX are
    left alone.
    """
    if word.isascii() or len(word) > TERM_LENGTH_MAX:
        return word
    kept: list[str] = []
    accentable = False
    for character in unicodedata.normalize("NFD", word):
        if classes(character) == "m":
            if accentable:
                continue
        else:
            accentable = _takes_accents(character)
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).translate(_PLAIN_LETTERS)


def _takes_accents(letter: str) -> bool:
    return classes(letter) == "a" and (letter < "\u0250" or "\u0370" <= letter < "\u0400")


def bounded(term: str) -> str:
    """Return a term of at most TERM_LENGTH_MAX characters.

    A longer term becomes its first 47 characters, `~` and 16 hexadecimal digits of its BLAKE2b digest, so
    that two long terms with one beginning stay apart.
    """
    if len(term) <= TERM_LENGTH_MAX:
        return term
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{term[: TERM_LENGTH_MAX - 1 - len(digest)]}~{digest}"


def word_terms(word: str) -> list[str]:
    """Return the terms of a normalised word: its stem and, where it has accents, the spelling with them."""
    if len(word) > TERM_LENGTH_MAX:
        return [bounded(word)]
    plain = without_accents(word)
    return [stem(plain)] if plain == word else [stem(plain), word]
