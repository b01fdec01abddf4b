"""Synthetic facts for all benchmarks: 24 words on average, Zipf-distributed, from one seed.

Lengths are normal(24, 7) clipped to 5..60; 50,000 pseudo-words of letters; exponent 1.07, so that the
top word is in nearly every fact, as in English without a stop list. Queries have 3 to 8 words; three
of four take the words of one fact, the others follow the same law.
"""

from __future__ import annotations

import numpy as np

WORDS = 50_000
ZIPF = 1.07
_ONSETS = [
    "b",
    "d",
    "f",
    "g",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "br",
    "dr",
    "gr",
    "kr",
    "tr",
    "st",
    "pl",
]
_VOWELS = ["a", "e", "i", "o", "u"]


class Corpus:
    """Facts and queries as text."""

    def __init__(self, rows: int, seed: int = 7) -> None:
        self.rows = rows
        self._random = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, WORDS + 1) ** ZIPF
        self._cumulative = np.cumsum(weights) / weights.sum()
        self._names = np.array(_distinct(WORDS), dtype=object)
        lengths = np.clip(self._random.normal(24, 7, rows).round().astype(int), 5, 60)
        self._stops = np.concatenate([[0], np.cumsum(lengths)])
        self._tokens = self._draw(int(self._stops[-1])).astype(np.int32)

    def _draw(self, count: int) -> np.ndarray:
        return np.minimum(np.searchsorted(self._cumulative, self._random.random(count)), WORDS - 1)

    def words(self, row: int) -> list[str]:
        return list(self._names[self._tokens[self._stops[row] : self._stops[row + 1]]])

    def fact(self, row: int) -> str:
        return " ".join(self.words(row))

    def facts(self) -> list[str]:
        return [self.fact(row) for row in range(self.rows)]

    def queries(self, count: int) -> list[str]:
        return [self._query() for _ in range(count)]

    def _query(self) -> str:
        size = int(self._random.integers(3, 9))
        if self._random.random() < 0.75:
            words = sorted(set(self.words(int(self._random.integers(self.rows)))))
            return " ".join(self._random.permutation(words)[:size])
        return " ".join(self._names[self._draw(size)])


def _distinct(count: int) -> list[str]:
    words: dict[str, None] = {}
    i = 0
    syllables = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
    size = len(syllables)
    while len(words) < count:
        a, b, c = i % size, i // size % size, i // size**2 % size
        words[syllables[a] + syllables[(b * 7 + a) % size] + syllables[(c * 3 + b) % size]] = None
        i += 1
    return list(words)
