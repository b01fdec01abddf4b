"""Named, versioned text analysis: from a text or a query to the terms of the index."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import Protocol

from perdure.errors import InvalidRequest
from perdure.lexical import characters
from perdure.lexical.characters import classes, is_blank
from perdure.lexical.compounds import analyse, written_form
from perdure.lexical.languages import DEFAULT_PROFILE, PROFILES, SNOWBALL, UNICODE_PROFILE
from perdure.lexical.numbers import joined_groups
from perdure.lexical.stopwords import STOP_WORDS as ENGLISH
from perdure.lexical.unicode_table import TABLE_VERSION
from perdure.lexical.words import Language, forget_last_word, stemmer_version

__all__ = ["Profile", "count_words", "get_profile", "is_blank", "spelled_out"]

RULES = 2  # grows with any change of the rules that gives some text other terms
CHUNKS_MAX = 65_536  # about 16 MB; an English corpus of a million facts repeats far fewer frequent chunks
CHUNK_LENGTH_MAX = 64  # longer chunks are rarely met twice
SPELLINGS_MAX = 8_192  # more than any one language's everyday characters


class _Spellings(dict[int, str]):
    """Code point to what it stands for where that is several words or a word by itself, else to itself."""

    def __missing__(self, code_point: int) -> str:
        if len(self) >= SPELLINGS_MAX:
            self.clear()
        spelling = self[code_point] = _spelling(chr(code_point))
        return spelling


def _spelling(character: str) -> str:
    own = classes(character)
    if own == "u":  # later versions of Unicode may give it a normal form
        return character
    written = unicodedata.normalize("NFKC", character)
    letters = classes(written)
    return written if letters != own and ("w" in letters or "k" in letters) else character


_SPELLINGS = _Spellings()


def spelled_out(text: str) -> str:
    """Return the text with each character that stands for words, such as ㍿, in NFKC."""
    return text if text.isascii() else text.translate(_SPELLINGS)


def count_words(text: str) -> int:
    """Return the number of words of a text, as limits count them: at least as many as its NFKC form has.

    A word is a run between white space with a visible character. Each Chinese, Japanese or Korean character
    counts as one, and so does each stretch of other letters, digits or pictographs between them. A character
    that stands for words counts as those, because analysis spells it out.
    """
    return characters.count_words(spelled_out(text))


class Profile(Protocol):
    """One way to turn text into terms. Deterministic: a name and a version fix every term.

    There is no query syntax; every character is text. Methods may be called from any number of threads.
    """

    @property
    def name(self) -> str:
        """The name and version that a space stores, such as `english.v1`."""

    @property
    def version(self) -> str:
        """All that the terms depend on beside the name: rules, Unicode's word classes, the stemmer's code.

        What was derived under another version is derived anew.
        """

    @property
    def table_version(self) -> str:
        """The version of Unicode whose word classes are used."""

    def document_terms(self, text: str) -> list[str]:
        """Return the terms to index, in the order of the text, with repeats. Empty only for a blank text."""

    def chunks_holding(self, text: str, terms: frozenset[str]) -> list[int]:
        """Return which pieces between white space hold one of the terms, by their place, ascending.

        Terms of digits that stand in several groups are those of no piece, but of one that holds all groups.
        """

    def query_terms(self, text: str) -> list[str]:
        """Return the terms to ask for, in the order of the query, each once. Empty only for a blank query.

        Stop words and symbols are left out unless the query has nothing else. Every term is one that
        `document_terms` gives for the same text.
        """

    def query_words(self, text: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return (word as written, its terms) for each word that `query_terms` asks for, in order.

        Words with equal terms appear once, as first written. All their terms are those of `query_terms`.
        """

    def forget_words(self) -> None:
        """Drop every cached word, so that nothing of an erased text stays in memory here."""


class _ChunkCache(dict[str, tuple[str, ...]]):
    """Chunk to terms, computed when first asked for; emptied when it holds CHUNKS_MAX chunks."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        terms = self._compute(chunk)
        if len(chunk) <= CHUNK_LENGTH_MAX:
            if len(self) >= CHUNKS_MAX:
                self.clear()
            self[chunk] = terms
        return terms


class WordProfile:
    """Words of any script in one language: its stems, and its stop words left out of queries."""

    __slots__ = ("_content", "_documents", "_language", "_loose", "_name")

    def __init__(self, name: str, language: Language) -> None:
        self._name, self._language = name, language
        # Only digit groups depend on what stands beyond white space, so the terms of a chunk can be cached.
        self._documents = _ChunkCache(lambda chunk: tuple(analyse(chunk, language).document))
        self._content = _ChunkCache(lambda chunk: tuple(dict.fromkeys(analyse(chunk, language).content)))
        self._loose = _ChunkCache(lambda chunk: tuple(dict.fromkeys(analyse(chunk, language).loose)))

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        stems = "" if self._language.algorithm is None else f", {stemmer_version()}"
        return f"rules {RULES}, Unicode {TABLE_VERSION}{stems}"

    @property
    def table_version(self) -> str:
        return TABLE_VERSION

    def document_terms(self, text: str) -> list[str]:
        terms = list(chain.from_iterable(map(self._documents.__getitem__, text.split())))
        if joined := joined_groups(text):
            terms.extend(digits for _, digits in joined)
        return terms

    def chunks_holding(self, text: str, terms: frozenset[str]) -> list[int]:
        chunks = text.split()
        held = [not terms.isdisjoint(found) for found in map(self._documents.__getitem__, chunks)]
        if any(map(str.isdecimal, terms)):
            for place, chunk in enumerate(chunks):
                held[place] = held[place] or any(digits in terms for _, digits in joined_groups(chunk))
        return [place for place, holds in enumerate(held) if holds]

    def query_terms(self, text: str) -> list[str]:
        chunks = text.split()
        terms = dict.fromkeys(chain.from_iterable(map(self._content.__getitem__, chunks)))
        if not terms:
            terms = dict.fromkeys(chain.from_iterable(map(self._loose.__getitem__, chunks)))
        if joined := joined_groups(text):
            terms.update(dict.fromkeys(digits for _, digits in joined))
        return list(terms)

    def query_words(self, text: str) -> list[tuple[str, tuple[str, ...]]]:
        chunks = text.split()
        terms = list(map(self._content.__getitem__, chunks))
        if not any(terms):
            terms = list(map(self._loose.__getitem__, chunks))
        words: dict[tuple[str, ...], str] = {}
        for chunk, found in zip(chunks, terms, strict=True):
            if found:
                words.setdefault(found, written_form(chunk))
        for written, digits in joined_groups(text):
            words.setdefault((digits,), written)
        return [(word, these) for these, word in words.items()]

    def forget_words(self) -> None:
        self._documents.clear()
        self._content.clear()
        self._loose.clear()
        forget_last_word()


def _language_of(name: str) -> Language:
    if name == UNICODE_PROFILE:
        return Language()
    if name == DEFAULT_PROFILE:
        return Language("english", ENGLISH, latin_only=True)
    algorithm = name.removeprefix(SNOWBALL)
    return Language(algorithm, ENGLISH if algorithm == "english" else frozenset())


@cache
def _profile(name: str) -> Profile:
    return WordProfile(name, _language_of(name))


def get_profile(name: str) -> Profile:
    """Return the profile of that name; the same object on every call.

    Raises:
        InvalidRequest: there is no profile of that name.
    """
    if name not in PROFILES:
        raise InvalidRequest(
            f"profile {name[:64]!r} is unknown; use one of: {', '.join(PROFILES)}", field="profile"
        )
    return _profile(name)
