"""Postings of the NumPy index: growable columns of rows and counts, and how a row is looked up in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]


class Column:
    """A growable array of numbers, with slack of an eighth."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array: npt.NDArray[Any] = np.empty(0, dtype)
        self._size = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        """The numbers so far: a view, valid until the next change."""
        return self._array[: self._size]

    @property
    def memory_bytes(self) -> int:
        return self._array.nbytes

    def append(self, value: int) -> None:
        if self._size == len(self._array):
            grown = np.empty(self._size + self._size // 8 + 4, self._array.dtype)
            grown[: self._size] = self._array
            self._array = grown
        self._array[self._size] = value
        self._size += 1

    def extend(self, values: npt.NDArray[Any]) -> None:
        self._array = np.concatenate((self.values, values.astype(self._array.dtype)))
        self._size = len(self._array)

    def delete(self, place: int) -> None:
        self._array[place : self._size - 1] = self._array[place + 1 : self._size]
        self._size -= 1


class Postings:
    """The rows that hold one term, ascending, hidden ones included, with the tf of each."""

    def __init__(self) -> None:
        self.rows, self.tfs = Column(np.int32), Column(np.int32)
        self.document_frequency = 0

    def delete(self, row: int) -> None:
        place = int(np.searchsorted(self.rows.values, row))
        self.rows.delete(place)
        self.tfs.delete(place)


@dataclass(frozen=True, slots=True)
class SoughtTerm:
    """A query term that some live row holds. No row's score gains more than bound from it."""

    postings: Postings
    weight: float
    bound: float


def probe(term: SoughtTerm, rows: Rows) -> tuple[Rows, npt.NDArray[np.int32]]:
    """Return the rows with the term's tf in each, 0 where it is not."""
    postings, tfs = term.postings.rows.values, term.postings.tfs.values
    places = np.minimum(np.searchsorted(postings, rows), len(postings) - 1)
    return rows, np.where(postings[places] == rows, tfs[places], 0)
