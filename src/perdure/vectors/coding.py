"""Bounds that choose candidates: for each stored vector, a number that its cosine to a query cannot exceed.

A stored vector x of length |x| and a query q are taken at unit length, u = x / |x| and v = q / |q|. What is
scanned is a coarser u and v, and the difference is accounted for. As codes of one byte they are s * c and
t * d, with whole numbers c and d from -127 to 127, which leaves remainders e and f:

    u . v = (s c + e) . (t d + f) = s t (c . d) + e . v + (s c) . f
          <= s t (c . d) + |e| + |f| (1 + |e|)           as |v| = 1 and |s c| = |u - e| <= 1 + |e|

Every bound is of that form: factor * scale * product + share * error + rest. SLACK is added for rounding, of
bounds and of published scores. A slot whose row is not to be found has the error -inf: no bound of it is
enough. The errors of a row depend on its vector alone.
"""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from perdure.errors import InvalidRequest, Unavailable
from perdure.vectors.cosine import CHUNK_NUMBERS, Floats, Scores, products

try:
    from perdure.vectors import _scan as kernel
except ImportError:  # no compiler where it was installed
    kernel = None  # type: ignore[assignment]

Codes = npt.NDArray[np.int8]
Places = npt.NDArray[np.int64]

CODE_MAX = 127
CODES_STEP = 64  # the kernel reads as many at once
DIMENSION_MAX = 1 << 16  # 2^16 * 127^2 is below 2^31
SLACK = 2e-6  # a bound is a few float32 operations on numbers below 2: some 5e-7
GROUP = 32  # the kernel has the same number
NEVER = np.float32(-np.inf)


class Columns(NamedTuple):
    """What is kept of n vectors for scanning: codes (n, width), scales (n,) and errors (n,)."""

    codes: Codes
    scales: Floats
    errors: Floats

    def first(self, count: int) -> Columns:
        """Return the columns of the first vectors, as views."""
        return Columns(self.codes[:count], self.scales[:count], self.errors[:count])

    def at(self, places: Places) -> Columns:
        """Return copies of the columns at some places."""
        return Columns(self.codes[places], self.scales[places], self.errors[places])

    def write(self, places: Places, other: Columns) -> None:
        """Overwrite some places; of a place that is given twice the later values stay."""
        self.codes[places] = other.codes
        self.scales[places] = other.scales
        self.errors[places] = other.errors


class Bounds(NamedTuple):
    """The bounds of n places, shape (n,), and the greatest of every GROUP of them, shape (ceil(n / GROUP),)."""

    each: Floats
    peaks: Floats


class Sought(NamedTuple):
    """A query made ready: what is multiplied with the rows, and the weights factor, share and rest."""

    numbers: npt.NDArray[np.int8] | Floats
    weights: tuple[float, float, float]


class Coding(Protocol):
    """How vectors are kept for scanning; width is the number of codes of a vector."""

    width: int

    def encode(self, vectors: Floats, norms: Scores) -> Columns:
        """Return the columns of finite vectors of shape (n, dimension), whose lengths are above 0."""

    def seek(self, query: Floats, norm: float) -> Sought:
        """Return a query made ready."""

    def upper_bounds(
        self, sought: Sought, vectors: Floats, columns: Columns, places: Places | None, out: Bounds
    ) -> None:
        """Write the bound of each place, or of all, to out, -inf where the error is; and the peaks."""

    def products(self, query: Scores, vectors: Floats, places: Places, out: Scores) -> None:
        """Write the folded product of the query, in float64, and the vector at each place to out."""


class ByteCodes:
    """One byte a number, scanned by the compiled kernel."""

    def __init__(self, dimension: int) -> None:
        self.width = -(-dimension // CODES_STEP) * CODES_STEP

    def encode(self, vectors: Floats, norms: Scores) -> Columns:
        count, dimension = vectors.shape
        codes = np.zeros((count, self.width), dtype=np.int8)
        scales, errors = np.empty(count, dtype=np.float32), np.empty(count, dtype=np.float32)
        step = max(1, CHUNK_NUMBERS // dimension)
        for start in range(0, count, step):
            part = slice(start, start + step)
            units = vectors[part] / norms[part, np.newaxis]
            scales[part], codes[part, :dimension], remainders = _quantise(units)
            # Rounded up: an error that is too small would not bound.
            errors[part] = np.sqrt(np.einsum("ij,ij->i", remainders, remainders)) * (1 + 1e-6)
        return Columns(codes, scales, errors)

    def seek(self, query: Floats, norm: float) -> Sought:
        units = (query / np.float64(norm))[np.newaxis]
        scales, codes, remainders = _quantise(units)
        numbers = np.zeros(self.width, dtype=np.int8)
        numbers[: len(query)] = codes[0]
        error = float(np.sqrt(np.square(remainders).sum()))
        return Sought(numbers, (float(scales[0]), 1.0 + error, error + SLACK))

    def upper_bounds(
        self, sought: Sought, vectors: Floats, columns: Columns, places: Places | None, out: Bounds
    ) -> None:
        kernel.upper_bounds(
            columns.codes, sought.numbers, columns.scales, columns.errors, places, *out, sought.weights
        )

    def products(self, query: Scores, vectors: Floats, places: Places, out: Scores) -> None:
        kernel.products(vectors, query, places, out)


class PlainNumbers:
    """The float32 numbers as they are, scanned by NumPy; no codes are kept.

    A float32 sum of n products, in any order, is off by less than n * 2^-24 times the lengths of both vectors
    where nothing overflows or vanishes. So the numbers of a vector must lie within 2^-60 and 2^60 at the
    greatest; the error of others is inf, and they are always candidates.
    """

    width = 0
    GREATEST, LEAST = 2.0**60, 2.0**-60
    ROWS_AT_ONCE = 1024

    def __init__(self, dimension: int) -> None:
        self._rest = (dimension + 8) * 2.0**-23 + SLACK

    def encode(self, vectors: Floats, norms: Scores) -> Columns:
        greatest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
        plain = (greatest >= self.LEAST) & (greatest <= self.GREATEST)
        scales = np.where(plain, 1.0 / norms, 0.0).astype(np.float32)
        errors = np.where(plain, 0.0, np.inf).astype(np.float32)
        return Columns(np.empty((len(vectors), 0), dtype=np.int8), scales, errors)

    def seek(self, query: Floats, norm: float) -> Sought:
        return Sought((query / np.float64(norm)).astype(np.float32), (1.0, 1.0, self._rest))

    def upper_bounds(
        self, sought: Sought, vectors: Floats, columns: Columns, places: Places | None, out: Bounds
    ) -> None:
        scales, errors, each = columns.scales, columns.errors, out.each
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # Not a product of BLAS: it would start threads.
            if places is None:
                np.einsum("ij,j->i", vectors, sought.numbers, out=each)
            else:
                scales, errors = scales[places], errors[places]
                for start in range(0, len(places), self.ROWS_AT_ONCE):
                    part = slice(start, start + self.ROWS_AT_ONCE)
                    np.einsum("ij,j->i", vectors[places[part]], sought.numbers, out=each[part])
            each *= scales
            each += np.float32(sought.weights[2])
        np.copyto(each, errors, where=np.isinf(errors))
        np.maximum.reduceat(each, np.arange(0, len(each), GROUP), out=out.peaks)

    def products(self, query: Scores, vectors: Floats, places: Places, out: Scores) -> None:
        for start in range(0, len(places), self.ROWS_AT_ONCE):
            part = slice(start, start + self.ROWS_AT_ONCE)
            out[part] = products(vectors[places[part]], query)


def kernel_name() -> str:
    """Return which scan new indexes use, "compiled" or "reference": PERDURE_KERNEL, or what was built."""
    wanted = os.environ.get("PERDURE_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise InvalidRequest(
            "PERDURE_KERNEL must be compiled or reference, or be unset", field="PERDURE_KERNEL"
        )
    if wanted == "compiled" and kernel is None:
        raise Unavailable(
            "PERDURE_KERNEL is compiled, but the scan of vectors was not built: install a C compiler and "
            "reinstall, or unset PERDURE_KERNEL",
            field="PERDURE_KERNEL",
        )
    return "reference" if wanted == "reference" or kernel is None else "compiled"


def new_coding(dimension: int) -> Coding:
    """Return the coding that kernel_name tells of."""
    return ByteCodes(dimension) if kernel_name() == "compiled" else PlainNumbers(dimension)


def _quantise(units: Scores) -> tuple[Floats, Codes, Scores]:
    """Return scales, codes and remainders of vectors of unit length, shape (n, dimension)."""
    greatest = np.maximum(units.max(axis=1), -units.min(axis=1))
    scales = (greatest / CODE_MAX).astype(np.float32)
    wide = scales.astype(np.float64)[:, np.newaxis]
    whole = np.rint(units / wide)  # at most 127: float32 rounding of the scale moves 127 by 1e-5
    codes: Codes = whole.astype(np.int8)
    whole *= wide
    return scales, codes, units - whole
