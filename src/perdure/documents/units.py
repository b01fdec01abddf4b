"""Where a long text is cut into units that can be searched each by itself."""

from __future__ import annotations

import re

import numpy as np

from perdure.contract import limits
from perdure.lexical.characters import classes
from perdure.lexical.profile import count_words, spelled_out

_Counts = np.typing.NDArray[np.int64]

# Over classes of characters: a word with the white space behind it. A Chinese, Japanese or Korean character is a
# word and keeps the marks and punctuation that follow it; none of these counts more than once as a word.
_WORD = re.compile(r"(?:k[^kadtpruw]*|[^kw]+)w*|w+")


def cuts_of(text: str) -> tuple[int, ...]:
    """Return where each unit after the first begins, in code points, ascending; () where one unit holds all.

    A unit has at most 4,096 words and 65,536 bytes of UTF-8. It begins with a word and keeps the white space
    behind its last one; only a word or a space longer than a unit is cut inside.
    """
    if len(text.encode()) <= limits.TEXT_BYTES_MAX and count_words(text) <= limits.TEXT_WORDS_MAX:
        return ()
    ends, words_before = _pieces(text)
    size_before = _sizes_before(text)
    cuts: list[int] = []
    start = 0
    while True:
        first = int(np.searchsorted(ends, start, side="right"))
        filled = _last_within(words_before, first, limits.TEXT_WORDS_MAX) - 1
        limit = _last_within(size_before, start, limits.TEXT_BYTES_MAX)
        fitting = int(np.searchsorted(ends, limit, side="right")) - 1
        end = int(ends[min(filled, fitting)]) if fitting >= first else limit
        if end == len(text):
            return tuple(cuts)
        cuts.append(end)
        start = end


def _pieces(text: str) -> tuple[_Counts, _Counts]:
    """Return where each piece that is kept whole ends, and the words before each piece and after the last.

    A piece is a word with what follows it. It takes one word of the limit, or as many as its characters stand
    for; where those are more than a unit holds, each character is a piece.
    """
    is_plain = spelled_out(text) == text
    ends: list[int] = []
    words: list[int] = []
    for match in _WORD.finditer(classes(text)):
        piece = text[match.start() : match.end()]
        count = 1 if is_plain else count_words(piece)
        if count <= limits.TEXT_WORDS_MAX:
            ends.append(match.end())
            words.append(count)
        else:
            each = {character: count_words(character) for character in set(piece)}
            ends.extend(range(match.start() + 1, match.end() + 1))
            words.extend(each[character] for character in piece)
    return np.array(ends), np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(words)))


def _last_within(before: _Counts, start: int, at_most: int) -> int:
    """Return the last position up to which at most so much is counted from `start` on."""
    return int(np.searchsorted(before, before[start] + at_most, side="right")) - 1


def _sizes_before(text: str) -> _Counts:
    """Return, for each position from 0 to the text's length, how many bytes come before it."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
