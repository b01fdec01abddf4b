"""The index of a space, to look at: what BM25 counts, the terms of each text, and the vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from perdure.base.canonical import checked_text
from perdure.base.ids import checked_id
from perdure.documents.reading import find_visible
from perdure.model.document import VectorIndex
from perdure.planning import checks
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import LIVE, SpaceState

UNIT_MAX = 2**31 - 1  # no text has as many units


class DocumentIndex:
    """Read-only. It counts units (a fact, a piece of a document) that are live; hidden ones are left out.

    A term is a word as the space's analysis keeps it: stemmed, in lower case.
    """

    def __init__(self, space: Space) -> None:
        self._space = space

    @property
    def unit_count(self) -> int:
        """The number of units: N of the formula."""
        return self._space.read(lambda state, _: state.index.document_count)

    @property
    def total_length(self) -> int:
        """The number of terms of all units together, repeats included; over N it is the average length."""
        return self._space.read(lambda state, _: state.index.total_length)

    def terms(self) -> int:
        """Return the number of distinct terms. Walks every unit."""

        def work(state: SpaceState, reader: FactReader) -> int:
            index = state.index
            return len(
                {t for row in range(index.rows) if index.is_live(row) for t, _ in index.row_terms(row)}
            )

        return self._space.read(work)

    def document_frequency(self, term: str) -> int:
        """Return the number of units that hold the term; 0 where none does."""
        wanted = checked_text(term, field="term")
        return self._space.read(lambda state, _: state.index.document_frequency(wanted))

    def length(self, id: str) -> int | None:
        """Return the number of a document's terms, repeats included, over all its units; None if absent."""
        rows = self._rows(id)
        return None if rows is None else sum(length for length, _ in rows)

    def terms_of(self, id: str) -> dict[str, int]:
        """Return how often each term is in a document, in order of appearance; {} if absent."""
        counts: dict[str, int] = {}
        for _, terms in self._rows(id) or ():
            for term, frequency in terms:
                counts[term] = counts.get(term, 0) + frequency
        return counts

    def vectors(self) -> VectorIndex:
        """Return how many units have vectors, how long these are, and what made them. Reads none of them."""

        def work(state: SpaceState, reader: FactReader) -> VectorIndex:
            live = BitMap(np.flatnonzero(np.frombuffer(bytes(state.presence), dtype=np.uint8) == LIVE))
            models = {name: len(rows & live) for name, rows in sorted(state.vector_models.items())}
            count = sum(models.values())
            models = {name: number for name, number in models.items() if number}
            return VectorIndex(count, len(live) - count, state.dimension or None, models)

        return self._space.read(work)

    def vector(self, id: str, unit: int = 0) -> npt.NDArray[np.float32] | None:
        """Return a copy of the vector of one unit of a document or fact, as it is stored.

        Args:
            unit: from 0; a fact has one.

        Returns:
            float32, shape (dimension,). None if there is no such document, no such unit, or it has no vector.
        """
        id_ = checked_id(id)
        wanted = checks.checked_count(unit, "unit", 0, UNIT_MAX)

        def work(state: SpaceState, reader: FactReader) -> npt.NDArray[np.float32] | None:
            number = find_visible(state, reader, id_)
            if number is None or wanted >= state.unit_counts.get(number, 1):
                return None
            row = number + wanted
            if not state.vector_seqs[row]:
                return None
            return np.frombuffer(reader.vectors(state, [row])[0].data, dtype="<f4").astype(np.float32)

        return self._space.read(work)

    def _rows(self, id_: str) -> list[tuple[int, list[tuple[str, int]]]] | None:
        id_ = checked_id(id_)

        def work(state: SpaceState, reader: FactReader) -> list[tuple[int, list[tuple[str, int]]]] | None:
            number = find_visible(state, reader, id_)
            if number is None:
                return None
            rows = range(number, number + state.unit_counts.get(number, 1))
            return [(state.index.row_length(row), state.index.row_terms(row)) for row in rows]

        return self._space.read(work)
