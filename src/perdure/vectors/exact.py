"""The exact vector index: the k most similar of the vectors in memory, proved and not approximated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import DIMENSION_MAX, new_coding
from perdure.vectors.cosine import Floats, norms
from perdure.vectors.eligible import Flags, Part, eligible_parts
from perdure.vectors.nearest import Query, Scorer, nearest
from perdure.vectors.storage import NO_SLOT, ROW_MAX, Block, RowNumbers, Storage

Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | npt.NDArray[np.bool_]


class ExactIndex:
    """Vectors by row number, searched by cosine; exact, in memory, for one writer or several readers at a time.

    A score is the float64 cosine that perdure.vectors.cosine defines: it depends on the query and the row's
    vector alone, bit for bit, and not on what else is stored, on the other rows asked for or on what the
    machine offers. Readers share nothing that they change, so several threads may search while nobody writes.
    """

    def __init__(self, dimension: int) -> None:
        """Make an empty index. ValueError unless dimension is from 1 to DIMENSION_MAX."""
        if not 1 <= dimension <= DIMENSION_MAX:
            raise ValueError(f"dimension must be from 1 to {DIMENSION_MAX}, got {dimension}")
        self.dimension = dimension
        self._coding = new_coding(dimension)
        self._storage = Storage(dimension, self._coding.width)

    @property
    def count(self) -> int:
        """How many rows have a vector, hidden ones included."""
        return self._storage.count

    def __contains__(self, row: int) -> bool:
        """Whether the row has a vector, hidden or not."""
        return self._storage.find_slot(row) != NO_SLOT

    def put(self, row: int, vector: Floats) -> None:
        """Store a row's vector, or replace it; a row that was hidden is found again.

        Args:
            row: from 0 to ROW_MAX, in any order.
            vector: float32, shape (dimension,), finite, not all zero; need not be of unit length. Copied.

        Raises:
            ValueError: row or vector is not so; nothing is changed.
        """
        self.put_many([row], np.asarray(vector)[np.newaxis])

    def put_many(self, rows: Sequence[int] | npt.NDArray[np.integer], matrix: Floats) -> None:
        """Store or replace many rows, as put does for each; a row given twice keeps the later vector.

        matrix has shape (len(rows), dimension). ValueError names the first row that is wrong; then nothing is
        changed.
        """
        numbers = _checked_rows(rows)
        vectors = self._checked_vectors(numbers, matrix)
        lengths = norms(vectors)
        columns = self._coding.encode(vectors, lengths)
        for block, chosen, places in self._storage.by_block(self._storage.slots_for(numbers)):
            block.write(places, numbers[chosen], vectors[chosen], lengths[chosen])
            block.columns.write(places, columns.at(chosen))

    def erase(self, row: int) -> None:
        """Forget a row's vector: every number kept of it is overwritten. ValueError if it has none."""
        self._get_place(row)
        self._storage.free_slot(row)

    def hide(self, row: int) -> None:
        """Let no search find a row until show or put. ValueError if it has no vector or is hidden."""
        block, at = self._get_place(row)
        if block.is_concealed(at):
            raise ValueError(f"row {row} is already hidden")
        block.conceal(at)

    def show(self, row: int) -> None:
        """Let searches find a hidden row again. ValueError if it has no vector or is not hidden."""
        block, at = self._get_place(row)
        if not block.is_concealed(at):
            raise ValueError(f"row {row} is not hidden")
        # What a scan needs of a row depends on its vector alone, so it can be told anew.
        place = np.array([at])
        block.columns.write(place, self._coding.encode(block.vectors[place], block.norms[place]))

    def vector(self, row: int) -> Floats:
        """Return a copy of a row's vector, as it was put. ValueError if it has none."""
        block, at = self._get_place(row)
        vector: Floats = block.vectors[at].copy()
        return vector

    def search(
        self,
        query: Floats,
        k: int,
        *,
        mask: Bytes | None = None,
        rows: npt.NDArray[np.integer] | None = None,
    ) -> tuple[list[int], list[float]]:
        """Return the k most similar rows, best first, and their scores.

        Args:
            query: float32, shape (dimension,), finite, not all zero; need not be of unit length.
            k: at least 0.
            mask: one byte per row number, 0 for a row not to be found; nor are rows past its end. None: all.
            rows: row numbers, ascending, without repeats: only these may be found; those without a vector or
                hidden are passed over. None: all. Given both, a row must be in both.

        Returns:
            At most k row numbers and as many cosines, -1 to 1. Descending by score, ties ascending by row.

        Raises:
            ValueError: an argument is not so.
        """
        if k < 0:
            raise ValueError(f"k must be at least 0, got {k}")
        sought = self._checked_query(query)
        flags: Flags | None = None if mask is None else np.frombuffer(mask, dtype=np.uint8)
        parts = eligible_parts(self._storage, flags, None if rows is None else _checked_ascending(rows))
        if not k or not parts:
            return [], []
        found, scores = nearest(Scorer(self._coding, sought, parts), k)
        return found.tolist(), scores.tolist()

    def scores(self, query: Floats, rows: Sequence[int] | npt.NDArray[np.integer]) -> list[float]:
        """Return the score of each of the rows, in their order: the very bits that search gives.

        Hidden rows have scores too; rows may repeat. ValueError for a row without a vector, or a query that
        search would refuse.
        """
        sought = self._checked_query(query)
        numbers = _checked_rows(rows)
        slots = self._storage.find_slots(numbers)
        if (slots == NO_SLOT).any():
            raise ValueError(f"row {numbers[slots == NO_SLOT][0]} has no vector")
        scores = np.empty(len(slots))
        for block, chosen, places in self._storage.by_block(slots):
            scores[chosen] = Scorer(self._coding, sought, [Part(block, places)]).scores(
                np.arange(len(places))
            )[1]
        return [float(score) for score in scores]

    def memory_bytes(self) -> int:
        """Return about how many bytes the vectors and what is kept beside them take, free room included."""
        return self._storage.memory_bytes()

    def _get_place(self, row: int) -> tuple[Block, int]:
        slot = self._storage.find_slot(row)
        if slot == NO_SLOT:
            raise ValueError(f"row {row} has no vector")
        return self._storage.place(slot)

    def _checked_query(self, query: Floats) -> Query:
        vector = np.asarray(query)
        if vector.dtype != np.float32 or vector.shape != (self.dimension,):
            raise ValueError(
                f"query must be float32 of shape ({self.dimension},), got {vector.dtype} of shape {vector.shape}"
            )
        if not np.isfinite(vector).all():
            raise ValueError("query holds a number that is not finite")
        if not vector.any():
            raise ValueError("query is all zero: it has no direction")
        return Query(self._coding, np.ascontiguousarray(vector))

    def _checked_vectors(self, rows: RowNumbers, matrix: Floats) -> Floats:
        vectors = np.asarray(matrix)
        wanted = (len(rows), self.dimension)
        if vectors.dtype != np.float32 or vectors.shape != wanted:
            raise ValueError(
                f"vectors must be float32 of shape {wanted}, got {vectors.dtype} of shape {vectors.shape}"
            )
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise ValueError(f"the vector of row {rows[~finite][0]} holds a number that is not finite")
        directed = vectors.any(axis=1)
        if not directed.all():
            raise ValueError(f"the vector of row {rows[~directed][0]} is all zero: it has no direction")
        return np.ascontiguousarray(vectors)


def _checked_rows(rows: Sequence[int] | npt.NDArray[np.integer]) -> RowNumbers:
    numbers = np.asarray(rows, dtype=np.int64)
    if numbers.ndim != 1:
        raise ValueError(f"rows must be a sequence of numbers, got shape {numbers.shape}")
    wrong = (numbers < 0) | (numbers > ROW_MAX)
    if wrong.any():
        raise ValueError(f"row must be from 0 to {ROW_MAX}, got {numbers[wrong][0]}")
    return numbers


def _checked_ascending(rows: npt.NDArray[np.integer]) -> RowNumbers:
    numbers = _checked_rows(rows)
    if (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("rows must be ascending and without repeats")
    return numbers
