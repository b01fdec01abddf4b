"""Marking in a text the words that a query's terms stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from perdure.lexical.profile import Profile

_CHUNK = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
Mark = tuple[int, int]


def marks(text: str, terms: Collection[str], profile: Profile) -> tuple[Mark, ...]:
    """Return where words stand whose terms are among these: (start, end) in code points, ascending, apart.

    A compound is marked whole where its own term is asked for, else the parts that are; in a run of Chinese,
    Japanese or Korean the characters of the terms are.
    """
    asked = frozenset(terms)
    found: list[Mark] = []
    for start, end in (
        span for chunk in _CHUNK.finditer(text) for span in _in_chunk(text, chunk, asked, profile)
    ):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def _in_chunk(text: str, chunk: re.Match[str], asked: frozenset[str], profile: Profile) -> Iterator[Mark]:
    held = asked.intersection(profile.document_terms(chunk.group()))
    if not held:
        return
    narrowed = False
    for word in _WORD.finditer(text, chunk.start(), chunk.end()):
        terms = profile.document_terms(word.group())
        if held.isdisjoint(terms):
            continue
        narrowed = True
        literal = [term for term in held.intersection(terms) if term in word.group() and len(term) <= 2]
        if literal and not _is_one_word(word.group(), terms):
            yield from sorted(
                (word.start() + at.start(), word.start() + at.end())
                for term in literal
                for at in re.finditer(f"(?={re.escape(term)})", word.group())
                for at in [re.compile(re.escape(term)).match(word.group(), at.start())]
                if at is not None
            )
        else:
            yield word.span()
    if not narrowed:
        yield chunk.span()


def _is_one_word(word: str, terms: list[str]) -> bool:
    """Whether a word is no run of characters that are each a term."""
    return len(terms) <= 2 or word.isascii()
