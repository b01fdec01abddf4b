"""The compiled scan of one-byte codes; the class ByteCodes of perdure.vectors.coding calls it."""

from typing import Any

import numpy.typing as npt

def upper_bounds(
    codes: npt.NDArray[Any],
    query: npt.NDArray[Any],
    scales: npt.NDArray[Any],
    errors: npt.NDArray[Any],
    places: npt.NDArray[Any] | None,
    out: npt.NDArray[Any],
    peaks: npt.NDArray[Any],
    weights: tuple[float, float, float],
    /,
) -> None:
    """Write factor * scale * (codes . query) + share * error + rest to out, for each place or for all.

    The greatest of each 32 of them, one after the other, is written to peaks.

    codes: int8, (n, stride); query: int8, (stride,), stride a multiple of 64; scales, errors: float32, at
    least n; places: int64, below n; out, peaks: float32. weights are factor, share and rest. ValueError where they
    do not fit together. Releases the interpreter lock in a long scan.
    """

def products(
    vectors: npt.NDArray[Any],
    query: npt.NDArray[Any],
    places: npt.NDArray[Any],
    out: npt.NDArray[Any],
    /,
) -> None:
    """Write the folded product of the query and the vector at each place to out.

    vectors: float32, (n, dimension); query: float64, (dimension,); places: int64, below n; out: float64.
    ValueError where they do not fit together. Releases the interpreter lock if there is much to do.
    """
