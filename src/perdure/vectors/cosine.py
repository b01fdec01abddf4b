"""The published similarity: a float64 cosine whose operations come in one fixed order.

The two float32 vectors are multiplied element by element; a product of two float32 numbers is exact in
float64. The n products are then folded: with h the greatest power of two below n, products h, h + 1, … are
added to products 0, 1, …, which leaves h of them, until one is left. Every addition is one IEEE operation on
two numbers that only the vectors decide. So a score is the same bits on every machine, whatever rows are
scored beside it, in whatever batch or thread. Products of BLAS have no such order.

    cosine(q, x) = fold(q * x) / (sqrt(fold(q * q)) * sqrt(fold(x * x))), clamped to [-1, 1]

Nothing overflows or vanishes: squares of float32 numbers lie between 1e-90 and 1e77.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]

CHUNK_NUMBERS = 1 << 16
"""Numbers that are folded at once: half a megabyte of products, which a second-level cache holds."""


def norms(matrix: Floats) -> Scores:
    """Return the length of each row of a matrix of shape (n, dimension); shape (n,)."""
    sums = np.empty(len(matrix))
    for part in _chunks(matrix.shape):
        wide = matrix[part].astype(np.float64)
        wide *= wide
        sums[part] = _fold(wide)
    return np.sqrt(sums)


def products(matrix: Floats, query: Scores) -> Scores:
    """Return the folded product of each row and the query, which is given in float64; shape (n,)."""
    sums = np.empty(len(matrix))
    for part in _chunks(matrix.shape):
        sums[part] = _fold(matrix[part] * query)
    return sums


def cosines(folded: Scores, query_norm: float, matrix_norms: Scores) -> Scores:
    """Return cosines, from -1 to 1, from what products() and norms() gave."""
    return np.maximum(np.minimum(folded / (query_norm * matrix_norms), 1.0), -1.0)


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    count, dimension = shape
    step = max(1, CHUNK_NUMBERS // dimension)
    return (slice(start, start + step) for start in range(0, count, step))


def _fold(wide: Scores) -> Scores:
    """Add up each row of products in the order that the module describes; they are overwritten."""
    width = wide.shape[1]
    while width > 1:
        half = 1 << ((width - 1).bit_length() - 1)
        wide[:, : width - half] += wide[:, half:width]
        width = half
    return wide[:, 0]
