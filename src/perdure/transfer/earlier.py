"""What a dry run remembers of the records before: enough to judge the next ones, and no texts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import msgspec

from perdure.base.ids import keyed_hash
from perdure.log.records import AnnotationRecord, EndRecord, FactRecord, LinkRecord, Record, VectorRecord
from perdure.space.draft import Draft, StateBase
from perdure.space.preparing import link_of
from perdure.space.state import VECTOR_ITEM, Receipt
from perdure.temporal.columns import begins_at
from perdure.temporal.links import Link

FIRST = 1 << 30  # above the numbers of all facts that a space holds, so that it may grow meanwhile


def vector_digest(secret: bytes, data: bytes) -> bytes:
    """Return what stands for a vector that was told before."""
    return keyed_hash(secret, b"vector", data)


class Earlier:
    """The facts and links that the file has told so far and that the space does not hold."""

    def __init__(self) -> None:
        self.effs = array("q")  # by number - FIRST; a document's later units repeat its own
        self.ids: dict[bytes, int] = {}
        self.above: dict[int, list[Link]] = {}
        self.below: dict[int, list[Link]] = {}
        self.units: dict[int, int] = {}  # of documents of several
        self.vectors: dict[tuple[int, int], VectorRecord] = {}  # each with a digest in place of its data
        self.dimension = 0
        self.is_ordered = True

    def keep(self, draft: Draft) -> None:
        """Keep what a plan would add."""
        for record, units in draft.planned:
            if isinstance(record, FactRecord):
                self.ids[draft.digest(record.id)] = record.number
                eff = begins_at(
                    record.ingest_time,
                    valid_from=record.valid_from,
                    event_time=record.event_time,
                    effective_from=record.effective_from,
                )
                self.effs.extend([eff] * len(units))
                if len(units) > 1:
                    self.units[record.number] = len(units)
            elif isinstance(record, VectorRecord):
                self.dimension = len(record.data) // VECTOR_ITEM
                digest = vector_digest(draft.secret, record.data)
                self.vectors[record.number, record.unit] = msgspec.structs.replace(record, data=digest)
            elif isinstance(record, LinkRecord):
                link = link_of(record)
                self.above.setdefault(link.older, []).append(link)
                self.below.setdefault(link.newer, []).append(link)
        self.is_ordered = self.is_ordered and draft.is_ordered


class Before:
    """The space with what a dry run told before: the bottom of the draft of the next records."""

    def __init__(self, base: StateBase, earlier: Earlier) -> None:
        self._base, self._earlier = base, earlier

    @property
    def next_number(self) -> int:
        return FIRST + len(self._earlier.effs)

    def exists(self, number: int) -> bool:
        return number >= FIRST or self._base.exists(number)

    def is_live(self, number: int) -> bool:
        return number >= FIRST or self._base.is_live(number)

    def above(self, number: int) -> Sequence[Link]:
        return [*self._base.above(number), *self._earlier.above.get(number, ())]

    def below(self, number: int) -> Sequence[Link]:
        return [*self._base.below(number), *self._earlier.below.get(number, ())]

    def eff(self, number: int) -> int:
        return self._earlier.effs[number - FIRST] if number >= FIRST else self._base.eff(number)

    def ingest(self, number: int) -> int:
        return self.eff(number) if number >= FIRST else self._base.ingest(number)

    def find_number(self, id_: str) -> int | None:
        found = self._earlier.ids.get(self._base.digest(id_))
        return self._base.find_number(id_) if found is None else found

    def fact(self, number: int) -> FactRecord:
        return self._base.fact(number)

    def records(self, seqs: Sequence[int]) -> list[Record]:
        return self._base.records(seqs)

    def slot(self, subject: str) -> Sequence[int]:
        return self._base.slot(subject)

    def receipt(self, key: bytes) -> Receipt | None:
        return self._base.receipt(key)

    def is_blocked(self, digest: bytes) -> bool:
        return self._base.is_blocked(digest)

    def valid_to(self, number: int) -> int:
        return self._base.valid_to(number)

    def ends(self, number: int) -> Sequence[EndRecord]:
        return () if number >= FIRST else self._base.ends(number)

    def annotation(self, number: int) -> AnnotationRecord | None:
        return None if number >= FIRST else self._base.annotation(number)

    def retold(self, text: int) -> list[int]:
        return self._base.retold(text)

    def unit_count(self, number: int) -> int:
        return self._earlier.units.get(number, 1) if number >= FIRST else self._base.unit_count(number)

    def vector(self, number: int, unit: int) -> VectorRecord | None:
        """Return the vector of a unit; where it was told before, with a digest in place of its data."""
        found = self._earlier.vectors.get((number, unit))
        return self._base.vector(number, unit) if found is None and number < FIRST else found

    @property
    def dimension(self) -> int:
        return self._earlier.dimension or self._base.dimension

    def models(self) -> set[str]:
        return self._base.models() | {record.model for record in self._earlier.vectors.values()}

    def digest(self, id_: str) -> bytes:
        return self._base.digest(id_)

    @property
    def is_ordered(self) -> bool:
        return self._earlier.is_ordered and self._base.is_ordered
