"""The exact vector index: the k most similar of the vectors in memory, proved and not approximated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from perdure.vectors.cosine import Floats, Scores, cosines, norms
from perdure.vectors.storage import NO_SLOT, ROW_MAX, Slots, Storage

Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | npt.NDArray[np.bool_]


class ExactIndex:
    """Vectors by row number, searched by cosine; exact, in memory, for one writer or several readers at a time.

    A score is the float64 cosine that perdure.vectors.cosine defines: it depends on the query and the row's
    vector alone, bit for bit, and not on what else is stored, on the other rows asked for or on what the
    machine offers. Readers share nothing that they change, so several threads may search while nobody writes.
    """

    def __init__(self, dimension: int) -> None:
        """Make an empty index. ValueError unless dimension is at least 1."""
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, got {dimension}")
        self.dimension = dimension
        self._storage = Storage(dimension)

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
        slots = np.array([self._slot_for(int(row)) for row in numbers], dtype=np.int64)
        lengths = norms(vectors)
        for block, chosen, places in self._storage.by_block(slots):
            block.vectors[places] = vectors[chosen]
            block.norms[places] = lengths[chosen]
            block.rows[places] = numbers[chosen]
            block.visible[places] = True

    def erase(self, row: int) -> None:
        """Forget a row's vector: every number kept of it is overwritten. ValueError if it has none."""
        self._get_slot(row)
        self._storage.free_slot(row)

    def hide(self, row: int) -> None:
        """Let no search find a row until show or put. ValueError if it has no vector or is hidden."""
        self._set_visible(row, visible=False)

    def show(self, row: int) -> None:
        """Let searches find a hidden row again. ValueError if it has no vector or is not hidden."""
        self._set_visible(row, visible=True)

    def vector(self, row: int) -> Floats:
        """Return a copy of a row's vector, as it was put. ValueError if it has none."""
        block, at = self._storage.place(self._get_slot(row))
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
        slots, numbers = self._eligible(mask, rows)
        if not k or not len(slots):
            return [], []
        return _best(numbers, self._scores(sought, slots), k)

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
        return [float(score) for score in self._scores(sought, slots)]

    def memory_bytes(self) -> int:
        """Return about how many bytes the vectors and what is kept beside them take, free room included."""
        return self._storage.memory_bytes()

    def _scores(self, query: Floats, slots: Slots) -> Scores:
        length = float(norms(query[np.newaxis])[0])
        return cosines(query, length, *self._storage.gather(slots))

    def _eligible(
        self, mask: Bytes | None, rows: npt.NDArray[np.integer] | None
    ) -> tuple[Slots, npt.NDArray[np.int64]]:
        slots: Slots = np.concatenate(
            [
                np.empty(0, dtype=np.int64),
                *(block.start + np.flatnonzero(block.visible) for block in self._storage.blocks),
            ]
        )
        numbers = np.concatenate(
            [np.empty(0, dtype=np.int64), *(block.rows[block.visible] for block in self._storage.blocks)]
        )
        if mask is not None:
            bits = np.frombuffer(mask, dtype=np.uint8)
            keep = numbers < len(bits)
            keep[keep] = bits[numbers[keep]] != 0
            slots, numbers = slots[keep], numbers[keep]
        if rows is not None:
            keep = np.isin(numbers, _checked_ascending(rows))
            slots, numbers = slots[keep], numbers[keep]
        return slots, numbers

    def _slot_for(self, row: int) -> int:
        slot = self._storage.find_slot(row)
        return self._storage.take_slot(row) if slot == NO_SLOT else slot

    def _get_slot(self, row: int) -> int:
        slot = self._storage.find_slot(row)
        if slot == NO_SLOT:
            raise ValueError(f"row {row} has no vector")
        return slot

    def _set_visible(self, row: int, *, visible: bool) -> None:
        block, at = self._storage.place(self._get_slot(row))
        if bool(block.visible[at]) == visible:
            raise ValueError(f"row {row} is {'not hidden' if visible else 'already hidden'}")
        block.visible[at] = visible

    def _checked_query(self, query: Floats) -> Floats:
        vector = np.asarray(query)
        if vector.dtype != np.float32 or vector.shape != (self.dimension,):
            raise ValueError(
                f"query must be float32 of shape ({self.dimension},), got {vector.dtype} of shape {vector.shape}"
            )
        if not np.isfinite(vector).all():
            raise ValueError("query holds a number that is not finite")
        if not vector.any():
            raise ValueError("query is all zero: it has no direction")
        return np.ascontiguousarray(vector)

    def _checked_vectors(self, rows: npt.NDArray[np.int64], matrix: Floats) -> Floats:
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


def _checked_rows(rows: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    numbers = np.asarray(rows, dtype=np.int64)
    if numbers.ndim != 1:
        raise ValueError(f"rows must be a sequence of numbers, got shape {numbers.shape}")
    wrong = (numbers < 0) | (numbers > ROW_MAX)
    if wrong.any():
        raise ValueError(f"row must be from 0 to {ROW_MAX}, got {numbers[wrong][0]}")
    return numbers


def _checked_ascending(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    numbers = _checked_rows(rows)
    if (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("rows must be ascending and without repeats")
    return numbers


def _best(numbers: npt.NDArray[np.int64], scores: Scores, k: int) -> tuple[list[int], list[float]]:
    if len(numbers) > k:
        keep = scores >= np.partition(scores, -k)[-k]
        numbers, scores = numbers[keep], scores[keep]
    order = np.lexsort((numbers, -scores))[:k]
    return numbers[order].tolist(), scores[order].tolist()
