"""Where a long text is cut into units that can be searched each by itself."""

from __future__ import annotations

import re

import numpy as np

from perdure.contract import limits
from perdure.lexical.characters import classes, count_words

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
    ends = np.array([match.end() for match in _WORD.finditer(classes(text))])
    size_before = _sizes_before(text)
    cuts: list[int] = []
    start = 0
    while True:
        first = int(np.searchsorted(ends, start, side="right"))
        filled = min(first + limits.TEXT_WORDS_MAX, len(ends)) - 1
        limit = (
            int(np.searchsorted(size_before, size_before[start] + limits.TEXT_BYTES_MAX, side="right")) - 1
        )
        fitting = int(np.searchsorted(ends, limit, side="right")) - 1
        end = int(ends[min(filled, fitting)]) if fitting >= first else limit
        if end == len(text):
            return tuple(cuts)
        cuts.append(end)
        start = end


def _sizes_before(text: str) -> np.typing.NDArray[np.int64]:
    """Return, for each position from 0 to the text's length, how many bytes come before it."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
