"""The lexical index that the rest of Perdure holds: its protocol, and which implementation serves it.

The compiled kernel and its NumPy twin give the same rows and the same score bits; only speed differs. The
kernel is used where it was built; the environment variable PERDURE_KERNEL=reference forces the twin, and
PERDURE_KERNEL=compiled insists on the kernel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, Protocol, Unpack

from perdure.errors import InvalidRequest, Unavailable
from perdure.lexical import reference
from perdure.lexical.bm25 import check_parameters
from perdure.lexical.search_options import SearchOptions

if TYPE_CHECKING:
    from perdure.lexical import _kernel as kernel
else:
    try:
        from perdure.lexical import _kernel as kernel
    except ImportError:
        kernel = None

DEFAULT_K1 = 0.9  # measured on conversations and short facts; the textbook's 1.2 does worse on both
DEFAULT_B = 0.4


class LexicalIndex(Protocol):
    """An exact BM25 index: rows of analysed terms, numbered 0, 1, 2 … in order of arrival.

    A row is live (counted and found), hidden (neither, but kept) or erased (gone; its number is not used
    again). After every call the statistics are those of an index that held the live rows only, so a change is
    seen by the next search. A score is a float64 defined in perdure.lexical.bm25.

    Not for two threads by itself: callers hold a shared lock around what only asks and an exclusive one
    around what changes. Long searches of the compiled kernel then run in parallel.

    A row number outside the index is a ValueError. A call that raises has changed nothing.
    """

    @property
    def rows(self) -> int:
        """The number of rows ever added, which is the next row's number."""

    @property
    def document_count(self) -> int:
        """The number of live rows."""

    @property
    def total_length(self) -> int:
        """The number of terms of the live rows together, repeats included."""

    @property
    def parameters(self) -> tuple[float, float]:
        """k1 and b."""

    def add(self, terms: list[str], /) -> int:
        """Append a live row with these terms and return its number.

        Repeats count. No terms make a row that is erased from the start.
        """

    def hide(self, row: int, /) -> None:
        """Take a live row out of statistics and results. ValueError if it is not live."""

    def show(self, row: int, /) -> None:
        """Put a hidden row back as if it had never been hidden. ValueError if it is not hidden."""

    def erase(self, row: int, /) -> None:
        """Wipe a live or hidden row's terms for good. ValueError if it is erased already."""

    def compact(self) -> None:
        """Rebuild from the rows, so that memory holds nothing of erased ones, nor terms only they held."""

    def is_live(self, row: int, /) -> bool:
        """Tell whether a row is counted and can be found."""

    def document_frequency(self, term: str, /) -> int:
        """Return the number of live rows that hold the term."""

    def row_length(self, row: int, /) -> int:
        """Return the number of a row's terms, repeats included, at most LENGTH_MAX; 0 if it is erased."""

    def row_terms(self, row: int, /) -> list[tuple[str, int]]:
        """Return a row's terms with their tf, in order of first appearance; none if it is erased."""

    def shares(self, term: str, /) -> tuple[bytes, bytes]:
        """Return the live rows that hold the term, ascending, as int32, and tf / (tf + K) of each as float64.

        A row's score is the sum of idf times share over the query's distinct terms, added in the order of
        (document frequency, term): so they give the very bits that search gives.
        """

    def search(
        self, terms: list[str], k: int, **options: Unpack[SearchOptions]
    ) -> tuple[list[int], list[float], int]:
        """Return the k best rows, their scores, and the work done.

        Only live, eligible rows with at least one of the terms; best score first, ties by row, ascending. A
        repeated term counts once. Eligibility is decided before the k best are taken.

        Raises:
            ValueError: k is negative, or a buffer is too short or out of order.
            WorkExceeded: more than work_max postings and rows would have to be tested.
        """

    def scores(self, terms: list[str], rows: list[int], /) -> list[float]:
        """Return the exact scores of these rows, as search gives them; 0.0 where no term is in the row.

        Rows may come in any order and repeat. ValueError if one is not live.
        """

    def dump(self) -> bytes:
        """Return a snapshot for load_index: all rows, hidden ones included, erased ones empty."""

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""


def kernel_name() -> Literal["compiled", "reference"]:
    """Tell which implementation new_index and load_index use."""
    wanted = os.environ.get("PERDURE_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise InvalidRequest(
            "PERDURE_KERNEL must be compiled or reference, or be unset", field="PERDURE_KERNEL"
        )
    if wanted == "reference" or (not wanted and kernel is None):
        return "reference"
    if kernel is None:
        raise Unavailable(
            "PERDURE_KERNEL is compiled, but the kernel was not built: install a C compiler and reinstall, "
            "or unset PERDURE_KERNEL",
            field="PERDURE_KERNEL",
        )
    return "compiled"


def new_index(k1: float = DEFAULT_K1, b: float = DEFAULT_B) -> LexicalIndex:
    """Return an empty index. InvalidRequest unless 0 <= k1 <= K1_MAX and 0 <= b <= 1."""
    check_parameters(k1, b)
    return kernel.Index(k1, b) if kernel_name() == "compiled" else reference.Index(k1, b)


def load_index(blob: bytes) -> LexicalIndex:
    """Return the index that a snapshot holds. ValueError if the bytes are damaged: then rebuild it."""
    return kernel.load(blob) if kernel_name() == "compiled" else reference.load(blob)
