"""The hashing embedder: character n-grams counted into a fixed number of places; for tests, and as a last resort.

It knows spelling, not meaning: a misspelt word stays near the right one. Like the static embedder it counts in
whole numbers, so equal texts have equal vectors, bit for bit, everywhere.
"""

from __future__ import annotations

import math
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from perdure.embedders.protocol import DIMENSION_MAX, QueryTask, Vectors, checked_texts
from perdure.policies.parameters import Parameter, Whole, set_checked

SHORTEST, LONGEST = 3, 5  # fastText's range begins at 3 as well; longer n-grams are nearly whole words
_SIGN = 1 << 31


@dataclass(frozen=True, slots=True)
class HashingEmbedder:
    """Counts the n-grams of 3 to 5 characters of each word, with marks at its ends, by a CRC.

    Args:
        dimension: places to count in, 8 to 4,096.

    A text without letters and digits has a vector of zeros; any other has unit length.
    """

    dimension: int = 256

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {"dimension": Whole(8, DIMENSION_MAX)}

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    @property
    def model(self) -> str:
        return f"hashing-{SHORTEST}-{LONGEST}-{self.dimension}.v1"

    @property
    def query_task(self) -> QueryTask | None:
        return None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in order."""
        told = checked_texts(texts)
        vectors = np.zeros((len(told), self.dimension), np.float32)
        for row, text in enumerate(told):
            vectors[row] = self._embedded(text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a text."""
        return self._embedded(*checked_texts([text]))

    def _embedded(self, text: str) -> Vectors:
        hashes = np.array([zlib.crc32(gram) for word in _words(text) for gram in _grams(word)], np.int64)
        signs = np.where(hashes & _SIGN, -1.0, 1.0)
        counts = np.bincount(hashes % self.dimension, weights=signs, minlength=self.dimension)
        length = math.sqrt(float(counts @ counts))
        vector: Vectors = (counts / length if length else counts).astype(np.float32)
        return vector


def _words(text: str) -> list[str]:
    letters = (c if c.isalnum() else " " for c in unicodedata.normalize("NFKC", text).casefold())
    return "".join(letters).split()


def _grams(word: str) -> list[bytes]:
    marked = f"<{word}>"
    return [
        marked[start : start + size].encode("utf-8", "surrogatepass")
        for size in range(SHORTEST, LONGEST + 1)
        for start in range(max(1, len(marked) - size + 1))
    ]
