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

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]

CHUNK_NUMBERS = 1 << 16
"""Numbers that are folded at once: half a megabyte of products, which a second-level cache holds."""


def norms(matrix: Floats) -> Scores:
    """Return the length of each row of a matrix of shape (n, dimension); shape (n,)."""
    return np.sqrt(_by_chunks(matrix, None))


def cosines(query: Floats, query_norm: float, matrix: Floats, matrix_norms: Scores) -> Scores:
    """Return the cosine of the query and each row, from -1 to 1; the norms are those of norms()."""
    products = _by_chunks(matrix, query.astype(np.float64))
    return np.clip(products / (query_norm * matrix_norms), -1.0, 1.0)


def _by_chunks(matrix: Floats, query: Scores | None) -> Scores:
    count, dimension = matrix.shape
    step = max(1, CHUNK_NUMBERS // dimension)
    sums = np.empty(count)
    for start in range(0, count, step):
        wide = matrix[start : start + step].astype(np.float64)
        sums[start : start + step] = _fold(wide * (wide if query is None else query))
    return sums


def _fold(products: Scores) -> Scores:
    """Add up each row of products in the order that the module describes; products are overwritten."""
    width = products.shape[1]
    while width > 1:
        half = 1 << ((width - 1).bit_length() - 1)
        products[:, : width - half] += products[:, half:width]
        width = half
    return products[:, 0]
