"""The index of a space, to look at: what BM25 counts, and the terms of each text."""

from __future__ import annotations

from perdure.base.canonical import checked_text
from perdure.base.ids import checked_id
from perdure.documents.reading import find_visible
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import SpaceState


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

    def _rows(self, id_: str) -> list[tuple[int, list[tuple[str, int]]]] | None:
        id_ = checked_id(id_)

        def work(state: SpaceState, reader: FactReader) -> list[tuple[int, list[tuple[str, int]]]] | None:
            number = find_visible(state, reader, id_)
            if number is None:
                return None
            rows = range(number, number + state.unit_counts.get(number, 1))
            return [(state.index.row_length(row), state.index.row_terms(row)) for row in rows]

        return self._space.read(work)
