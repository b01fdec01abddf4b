"""The reads of documents: each one consistent view, with no regard to time."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice

import msgspec

from perdure.documents.putting import FACT_VERSION
from perdure.errors import Conflict
from perdure.filters.grammar import Filter
from perdure.log.records import FactRecord
from perdure.model.document import Document, DocumentHit
from perdure.model.replies import Page
from perdure.policies.recency import NoRecency
from perdure.policies.relevance import ScoreOrder
from perdure.search.cursors import CursorCodec
from perdure.search.eligibility import numbers_in, spend_on_filter
from perdure.search.hydration import metadata_of
from perdure.search.pipeline import rank
from perdure.search.query import OPEN, Budget, Question, Scope, Weighing
from perdure.search.semantic import check_vector
from perdure.space.facts import FactReader
from perdure.space.idmap import id_digest, id_hash
from perdure.space.preparing import units_of
from perdure.space.space import Space
from perdure.space.state import SpaceState

AS_FOUND = Weighing(NoRecency(), ScoreOrder(), 1.0)
READ_TOGETHER = 64  # records that a listing holds at once while it sorts ids: at most 64 MiB of text


class Reading:
    """Questions to one space.

    Superseded, expired and retracted facts are seen; hidden ones are not, and none of those that a node or a turn is
    seen as: whether they hold takes time to tell, which documents know nothing of.
    """

    def __init__(self, space: Space, budget: Budget) -> None:
        self._space, self._budget = space, budget
        self._secret = space.log.secret

    def has(self, id_: str) -> bool:
        return self._space.read(lambda state, reader: find_visible(state, reader, id_) is not None)

    def get(self, id_: str) -> Document | None:
        def work(state: SpaceState, reader: FactReader) -> Document | None:
            number = find_visible(state, reader, id_)
            return None if number is None else _document(state, number, reader.get(state, number))

        return self._space.read(work)

    def search(self, question: Question) -> list[DocumentHit]:
        def work(state: SpaceState, reader: FactReader) -> list[DocumentHit]:
            check_vector(state, question)
            asked = msgspec.structs.replace(question, scope=_plain(state, question.scope))
            found = rank(state, reader, asked, AS_FOUND, self._secret)
            records = reader.get_many(state, [one.number for one in found])
            return [
                _hit(state, record, one.row - one.number, one.score)
                for record, one in zip(records, found, strict=True)
            ]

        return self._space.read(work)

    def list(self, filter_: Filter | None, limit: int, cursor: str | None) -> Page[Document]:
        """Return a page by id. A cursor holds the keyed hash of the last id, which no replacement changes."""

        def work(state: SpaceState, reader: FactReader) -> Page[Document]:
            scope = _plain(state, _scope(filter_))
            if filter_ is not None:
                spend_on_filter(self._budget, state, filter_)
            numbers = state.numbers() if scope.is_open else list(numbers_in(state, scope, self._secret))
            codec = self._codec(state, filter_)
            after = None if cursor is None else self._id_at(state, reader, codec.decode(cursor))
            ids = _ids(state, reader, numbers)
            following = ids if after is None else (one for one in ids if one[0] > after)
            shown = nsmallest(limit + 1, following)
            more, shown = len(shown) > limit, shown[:limit]
            records = reader.get_many(state, [number for _, number in shown])
            items = tuple(_document(state, record.number, record) for record in records)
            last = codec.encode(id_hash(id_digest(self._secret, shown[-1][0]))) if more else None
            return Page(items, len(numbers), more, last)

        return self._space.read(work)

    def _codec(self, state: SpaceState, filter_: Filter | None) -> CursorCodec:
        bound = b"documents" + (b"" if filter_ is None else filter_.key())
        return CursorCodec(self._secret, self._space.namespace.key(), state, bound)

    def _id_at(self, state: SpaceState, reader: FactReader, hash_: int) -> str:
        for number in state.ids.find(hash_):
            if state.exists(number):
                return reader.get(state, number).id
        raise Conflict(
            "the document that this cursor stands at was deleted since; start over",
            kind="epoch",
            field="cursor",
        )


def find_visible(state: SpaceState, reader: FactReader, id_: str) -> int | None:
    """Return the number of the document or fact of that id; None for a hidden one too."""
    number = reader.find_number(state, id_)
    return number if number is not None and state.is_live(number) else None


def _ids(state: SpaceState, reader: FactReader, numbers: list[int]) -> Iterator[tuple[str, int]]:
    rest = iter(numbers)
    while some := list(islice(rest, READ_TOGETHER)):
        yield from ((record.id, record.number) for record in reader.get_many(state, some))


def _plain(state: SpaceState, scope: Scope) -> Scope:
    return msgspec.structs.replace(scope, plain=True) if state.governed else scope


def _scope(filter_: Filter | None) -> Scope:
    return OPEN if filter_ is None else Scope(filter=filter_)


def _document(state: SpaceState, number: int, record: FactRecord) -> Document:
    return Document(
        record.id, record.text, metadata_of(state, number, record), record.version or FACT_VERSION
    )


def _hit(state: SpaceState, record: FactRecord, unit: int, score: float) -> DocumentHit:
    text = units_of(record)[unit] if record.cuts else record.text
    return DocumentHit(record.id, text, unit, metadata_of(state, record.number, record), score)
