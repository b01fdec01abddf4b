"""Marking in a text the words that a query's terms stand for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

from perdure.lexical.compounds import written_form
from perdure.lexical.profile import Profile, get_profile
from perdure.model.hit import Marking

_CHUNK = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
Mark = tuple[int, int]
RUN_TERM_MAX = 2  # characters of a term of Chinese, Japanese or Korean


class TextMarking(Marking, frozen=True):
    """Finds the marks of a text when they are asked for: most explanations are read without."""

    def find(self) -> tuple[Mark, ...]:
        return marks(self.text, self.terms, get_profile(self.profile))


def marks(text: str, terms: Collection[str], profile: Profile) -> tuple[Mark, ...]:
    """Return where words stand whose terms are among these: (start, end) in code points, ascending, apart.

    A compound is marked whole where its own term is asked for, else the parts that are; in a run of Chinese,
    Japanese or Korean the characters of the terms are.
    """
    asked = frozenset(terms)
    holding = profile.chunks_holding(text, asked)
    if not holding:
        return ()
    found: list[Mark] = []
    chunks = list(islice(_CHUNK.finditer(text), holding[-1] + 1))
    for start, end in (span for place in holding for span in _in_chunk(chunks[place], asked, profile)):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def _in_chunk(chunk: re.Match[str], asked: frozenset[str], profile: Profile) -> Iterator[Mark]:
    written = chunk.group()
    if written.isascii() and written.isalnum():  # one word, the common case
        yield chunk.span()
        return
    held = asked.intersection(profile.document_terms(written))
    words = [
        (word, held.intersection(profile.document_terms(word.group())))
        for word in _WORD.finditer(chunk.string, chunk.start(), chunk.end())
    ]
    if not held.issubset(term for _, terms in words for term in terms):  # a term of the whole
        form = written_form(written)
        at = chunk.start() + max(written.find(form), 0)
        yield at, at + len(form)
        return
    for word, terms in words:
        if terms:
            yield from _in_word(word, terms)


def _in_word(word: re.Match[str], terms: Collection[str]) -> Iterator[Mark]:
    written, start = word.group(), word.start()
    # Terms of one or two characters that stand in a longer word are those of a script without spaces.
    short = [term for term in terms if len(term) <= RUN_TERM_MAX and term in written]
    if written.isascii() or not short or len(written) <= RUN_TERM_MAX:
        yield word.span()
        return
    places = {(at, at + len(term)) for term in short for at in _occurrences(written, term)}
    for at, end in sorted(places):
        yield start + at, start + end


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)
