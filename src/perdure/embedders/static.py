"""The static embedder: a vector per word piece, distilled from a sentence model; no model runs.

A text's vector is the sum of its pieces' rows, each weighted by how rare the piece is, at unit length. Rows are
int8 and weights are whole multipliers, so the sum is a sum of whole numbers below 2**53: exact in float64, in
any order, with or without fused steps. What follows it (a scaling by a power of two, a sum of squares below
2**53, one root, one division) is rounded as IEEE 754 prescribes. Equal texts therefore have equal vectors, bit for
bit, on every machine.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perdure.embedders.protocol import QueryTask, Vectors, checked_texts
from perdure.embedders.wordpiece import WordPieces
from perdure.errors import Unavailable

TABLE = Path(__file__).parent / "minilm"
DIMENSION = 256
# The digest of the shipped table, and with the name what a store remembers its vectors by. A change of the
# word-piece rules changes vectors as well: count TEXT_RULES up then.
TABLE_DIGEST = "be0c76fd8457db30c86ba424a93681c02077303f1da80d3131abc83aad7bdb1f"
TEXT_RULES = 1
MODEL = f"static-minilm-{DIMENSION}.v{TEXT_RULES}:{TABLE_DIGEST[:16]}"

# Rows gathered at a time, 8 MB of float64; a longer text is summed in parts.
GATHERED_MAX = 4_096
# Sums are cut to this many binary digits before they are squared: 256 squares then stay below 2**53.
SUM_BITS = 22


@dataclass(frozen=True, slots=True)
class _Table:
    words: WordPieces
    rows: NDArray[np.int8]  # (pieces, dimension)
    multipliers: NDArray[np.float64]  # (pieces,), whole numbers up to 65,535


_loading = threading.Lock()


def table_digest() -> str:
    """Return the digest of the table's files as they are on disk: BLAKE2b, 32 bytes, hexadecimal."""
    digest = hashlib.blake2b(digest_size=32)
    for name in ("pieces.txt", "multipliers.npy", "rows.npy"):
        digest.update((TABLE / name).read_bytes())
    return digest.hexdigest()


@cache
def _read() -> _Table:
    try:
        if table_digest() != TABLE_DIGEST:
            raise Unavailable(
                "the table of the static embedder is not the one that was shipped; install perdure again"
            )
        pieces = (TABLE / "pieces.txt").read_bytes().decode().splitlines()
        # Mapped, so that processes share its pages.
        rows = np.asarray(np.load(TABLE / "rows.npy", mmap_mode="r"))
        multipliers = np.load(TABLE / "multipliers.npy").astype(np.float64)
    except OSError as error:
        raise Unavailable(
            "the table of the static embedder cannot be read; install perdure again, whole"
        ) from error
    return _Table(WordPieces(pieces), rows, multipliers)


def _table() -> _Table:
    with _loading:
        return _read()


class StaticEmbedder:
    """Embeds by the shipped table: English for the most part, 256 dimensions, no network, no further package.

    The table is read at the first text, once per process. Unknown words add nothing; a text without any
    known piece has a vector of zeros. Queries and documents are embedded alike.
    """

    @property
    def model(self) -> str:
        return MODEL

    @property
    def dimension(self) -> int:
        return DIMENSION

    @property
    def query_task(self) -> QueryTask | None:
        return None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text, in order, or zeros where a text has no known piece."""
        told = checked_texts(texts)
        vectors = np.zeros((len(told), DIMENSION), np.float32)
        table = _table()
        for row, text in enumerate(told):
            vectors[row] = _embedded(table, text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the text's unit vector, or zeros where it has no known piece."""
        return _embedded(_table(), *checked_texts([text]))

    def __repr__(self) -> str:
        return "StaticEmbedder()"


def _embedded(table: _Table, text: str) -> Vectors:
    numbers = np.array(table.words.numbers(text), np.intp)
    total = np.zeros(DIMENSION)
    for start in range(0, len(numbers), GATHERED_MAX):
        part = numbers[start : start + GATHERED_MAX]
        total += table.multipliers[part] @ table.rows[part].astype(np.float64)
    return _unit(total)


def _unit(total: NDArray[np.float64]) -> Vectors:
    """Return a vector of whole numbers at unit length, or zeros for zeros."""
    _, digits = math.frexp(float(np.abs(total).max()))
    if digits == 0:
        return np.zeros(DIMENSION, np.float32)
    whole = np.rint(np.ldexp(total, SUM_BITS - digits)) if digits > SUM_BITS else total
    unit: Vectors = (whole / math.sqrt(float(whole @ whole))).astype(np.float32)
    return unit
