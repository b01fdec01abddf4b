"""A plan in the making: the state as it would be, and the records that would make it so.

Plans run against a draft before anything is written, so that a plan that fails leaves no trace. A
draft lies over the state or over another draft; both sides answer the same questions (`Base`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

import numpy as np

from perdure.base.ids import keyed_hash
from perdure.lexical.profile import Profile
from perdure.log.protocol import Head
from perdure.log.records import (
    AnnotationRecord,
    EndRecord,
    FactRecord,
    LinkRecord,
    ReceiptRecord,
    Record,
    RemovalRecord,
    VectorRecord,
)
from perdure.space.facts import FactReader
from perdure.space.idmap import id_digest
from perdure.space.preparing import retold_hash, units_of
from perdure.space.quotes import apart
from perdure.space.state import VECTOR_ITEM, Receipt, SpaceState, end_or_forever
from perdure.temporal.columns import RETRACTED, begins_at
from perdure.temporal.links import Link, LinkKind, against_order

RECEIPT_DOMAIN = b"receipt"


class Deferred(Exception):
    """The plan removes what an earlier request of the same transaction adds: it goes into the next one."""


class Base(Protocol):
    """What a plan may ask of the facts below it."""

    @property
    def next_number(self) -> int: ...
    def exists(self, number: int) -> bool: ...
    def is_live(self, number: int) -> bool: ...
    def above(self, number: int) -> Sequence[Link]: ...
    def below(self, number: int) -> Sequence[Link]: ...
    def eff(self, number: int) -> int: ...
    def ingest(self, number: int) -> int: ...
    def find_number(self, id_: str) -> int | None: ...
    def fact(self, number: int) -> FactRecord: ...
    def records(self, seqs: Sequence[int]) -> list[Record]: ...
    def slot(self, subject: str) -> Sequence[int]: ...
    def receipt(self, key: bytes) -> Receipt | None: ...
    def is_blocked(self, digest: bytes) -> bool: ...
    def valid_to(self, number: int) -> int: ...
    def ends(self, number: int) -> Sequence[EndRecord]: ...
    def annotation(self, number: int) -> AnnotationRecord | None: ...
    def retold(self, text: int) -> list[int]: ...
    def unit_count(self, number: int) -> int: ...
    def vector(self, number: int, unit: int) -> VectorRecord | None: ...
    @property
    def dimension(self) -> int: ...
    def models(self) -> set[str]: ...
    def digest(self, id_: str) -> bytes: ...
    @property
    def is_ordered(self) -> bool: ...


class StateBase:
    """The state and its records, as the bottom of all drafts."""

    def __init__(self, state: SpaceState, reader: FactReader, secret: bytes) -> None:
        self.state, self._reader = state, reader
        self.exists, self.is_live = state.exists, state.is_live
        self.above, self.below = state.above, state.below
        self.eff, self.ingest = state.eff, state.ingest
        self._secret = secret
        self._digests: dict[str, bytes] = {}

    @property
    def next_number(self) -> int:
        return self.state.next_number

    def find_number(self, id_: str) -> int | None:
        return self._reader.find_number(self.state, id_, self.digest(id_))

    @property
    def is_ordered(self) -> bool:
        return self.state.is_ordered

    def digest(self, id_: str) -> bytes:
        """Return the id's digest, worked out once a plan."""
        found = self._digests.get(id_)
        if found is None:
            found = self._digests[id_] = id_digest(self._secret, id_)
        return found

    def fact(self, number: int) -> FactRecord:
        return self._reader.get(self.state, number)

    def records(self, seqs: Sequence[int]) -> list[Record]:
        """Return records that the log holds, in the order asked."""
        return self._reader.records(self.state, seqs) if seqs else []

    def slot(self, subject: str) -> Sequence[int]:
        """Return the facts of a subject that policies may link: those of nodes and turns are not theirs."""
        found = self.state.subjects.get(subject, ())
        governed = self.state.governed
        return [number for number in found if number not in governed] if governed else found

    def receipt(self, key: bytes) -> Receipt | None:
        return self.state.receipts.get(key)

    def is_blocked(self, digest: bytes) -> bool:
        return digest in self.state.blocked

    def valid_to(self, number: int) -> int:
        return self.state.valid_to[number]

    def ends(self, number: int) -> Sequence[EndRecord]:
        return self.state.ends.get(number, ())

    def annotation(self, number: int) -> AnnotationRecord | None:
        return self.state.annotations.get(number)

    def retold(self, text: int) -> list[int]:
        found = np.frombuffer(self.state.retold, dtype=np.uint64) == text
        governed = self.state.governed
        return [int(number) for number in np.flatnonzero(found) if int(number) not in governed]

    def unit_count(self, number: int) -> int:
        return self.state.unit_counts.get(number, 1)

    def vector(self, number: int, unit: int) -> VectorRecord | None:
        seq = self.state.vector_seqs[number + unit]
        return self._reader.vectors(self.state, [number + unit])[0] if seq else None

    @property
    def dimension(self) -> int:
        return self.state.dimension

    def models(self) -> set[str]:
        return set(self.state.vector_models)


class Planned(NamedTuple):
    """A record of the plan; for a fact also its analysed units, made before any lock."""

    record: Record
    units: tuple[list[str], ...] = ()


class Draft:
    """Collects records; answers as if they were applied. `now` is one instant for the whole plan."""

    def __init__(self, base: Base, state: SpaceState, secret: bytes, now: int) -> None:
        self._base, self.state, self.secret, self.now = base, state, secret, now
        self.planned: list[Planned] = []
        self.erased: list[int] = []  # seqs
        # Other spaces that it rests on, as they were looked at: by number where only erasures matter, else by name.
        self.unerased: list[tuple[int, Head]] = []
        self.unchanged: list[tuple[bytes, Head]] = []
        self._next = base.next_number
        self._facts: dict[int, FactRecord] = {}
        self._ids: dict[str, int] = {}
        self._removed: set[int] = set()
        self._restored: set[int] = set()
        self._above: dict[int, list[Link]] = {}
        self._below: dict[int, list[Link]] = {}
        self._slots: dict[str, array[int]] = {}
        self._ordered = True
        self._receipts: dict[bytes, Receipt] = {}
        self._ends: dict[int, list[EndRecord]] = {}
        self._annotations: dict[int, AnnotationRecord] = {}
        self._vectors: dict[tuple[int, int], VectorRecord] = {}
        self._retold: dict[int, list[int]] | None = None  # only where somebody asks
        self.analysed_by: Collection[Profile] = ()  # what the units that come from the caller may be of

    @property
    def next_number(self) -> int:
        return self._next

    def exists(self, number: int) -> bool:
        return number not in self._removed and (number in self._facts or self._base.exists(number))

    def is_live(self, number: int) -> bool:
        known = number in self._facts or number in self._restored or self._base.is_live(number)
        return known and number not in self._removed

    def above(self, number: int) -> Sequence[Link]:
        return self._links(self._base.above(number), self._above.get(number))

    def below(self, number: int) -> Sequence[Link]:
        return self._links(self._base.below(number), self._below.get(number))

    def _links(self, under: Sequence[Link], over: list[Link] | None) -> Sequence[Link]:
        if over is None and not self._removed:
            return under
        removed = self._removed
        return [
            link
            for link in (*under, *(over or ()))
            if link.newer not in removed and link.older not in removed
        ]

    def eff(self, number: int) -> int:
        record = self._facts.get(number)
        if record is None:
            return self._base.eff(number)
        return begins_at(
            record.ingest_time,
            valid_from=record.valid_from,
            event_time=record.event_time,
            effective_from=record.effective_from,
        )

    def ingest(self, number: int) -> int:
        record = self._facts.get(number)
        return self._base.ingest(number) if record is None else record.ingest_time

    def find_number(self, id_: str) -> int | None:
        number = self._ids.get(id_)
        if number is None:
            number = self._base.find_number(id_)
        return None if number in self._removed else number

    @property
    def is_ordered(self) -> bool:
        """As below, for the links of this plan too."""
        return self._ordered and self._base.is_ordered

    def digest(self, id_: str) -> bytes:
        return self._base.digest(id_)

    def fact(self, number: int) -> FactRecord:
        return self._facts.get(number) or self._base.fact(number)

    def records(self, seqs: Sequence[int]) -> list[Record]:
        """Return records that the log holds, in the order asked; none of the plan's own."""
        return self._base.records(seqs)

    def slot(self, subject: str) -> Sequence[int]:
        over = self._slots.get(subject)
        return self._base.slot(subject) if over is None else over

    def receipt(self, key: bytes) -> Receipt | None:
        return self._receipts.get(key) or self._base.receipt(key)

    def is_blocked(self, digest: bytes) -> bool:
        return self._base.is_blocked(digest)

    def valid_to(self, number: int) -> int:
        """Return until when the fact holds, ends and retractions included."""
        told = self._facts.get(number)
        valid_to = self._base.valid_to(number) if told is None else end_or_forever(told.valid_to)
        return min(
            [valid_to, *(RETRACTED if end.at is None else end.at for end in self._ends.get(number, ()))]
        )

    def ends(self, number: int) -> Sequence[EndRecord]:
        """Return the ends told of the fact, in order."""
        under = () if number in self._facts else self._base.ends(number)
        return (*under, *self._ends.get(number, ()))

    def annotation(self, number: int) -> AnnotationRecord | None:
        """Return the annotations given after the fact was told, if any."""
        over = self._annotations.get(number)
        if over is not None or number in self._facts:
            return over
        return self._base.annotation(number)

    def retold(self, text: int) -> list[int]:
        """Return the facts that say what this text says (see `retold_hash`), ascending; hidden ones too.

        The first call looks at every fact that the plan has added, later ones at those added since.
        """
        if self._retold is None:
            self._retold = {}
            for record in self._facts.values():
                self._note_text(record)
        mine = self._retold.get(text, [])
        return [number for number in (*self._base.retold(text), *mine) if number not in self._removed]

    def _note_text(self, record: FactRecord) -> None:
        if self._retold is not None and not record.version:
            self._retold.setdefault(retold_hash(record.text, self.secret), []).append(record.number)

    def unit_count(self, number: int) -> int:
        """Return how many units a fact (one) or a document has."""
        told = self._facts.get(number)
        return self._base.unit_count(number) if told is None else 1 + len(told.cuts)

    def vector(self, number: int, unit: int) -> VectorRecord | None:
        """Return the vector of a unit of a fact that exists, if it has one."""
        over = self._vectors.get((number, unit))
        if over is not None or number in self._facts:
            return over
        return self._base.vector(number, unit)

    @property
    def dimension(self) -> int:
        """The dimension of the space's vectors, 0 while there is none."""
        for record in self._vectors.values():
            return len(record.data) // VECTOR_ITEM
        return self._base.dimension

    def models(self) -> set[str]:
        """Return the models of the space's vectors; TOLD among them where callers gave some."""
        return self._base.models() | {record.model for record in self._vectors.values()}

    def holds(self, number: int) -> bool:
        """Whether the number is the first of a fact that this plan (or one below it) adds."""
        if number in self._facts:
            return True
        return isinstance(self._base, Draft) and self._base.holds(number)

    def is_spoken_of(self, numbers: AbstractSet[int]) -> bool:
        """Whether an earlier request of the same transaction adds a record to, or a link over, one of these."""
        below = self._base
        if not isinstance(below, Draft):
            return False
        named = (item.number for kept in below._receipts.values() for item in kept.record.items)
        vectors = (number for number, _ in below._vectors)
        spoken = numbers & {*below._ends, *below._annotations, *below._above, *named, *vectors}
        return bool(spoken) or below.is_spoken_of(numbers)

    # What a plan does.

    def add_fact(self, record: FactRecord, units: tuple[list[str], ...]) -> None:
        """Add a fact or document under the number `next_number`; what it quotes of a turn stands apart."""
        assert record.number == self._next
        profile = self.state.profile
        if any(other is not profile for other in self.analysed_by):
            # The space was reindexed after the caller analysed the texts, outside of the writer's turn.
            units = tuple(profile.document_terms(unit) for unit in units_of(record))
        bare, quote = apart(record)
        self.planned.append(Planned(bare, units))
        if quote is not None:
            self.planned.append(Planned(quote))
        self._facts[record.number] = record
        self._ids[record.id] = record.number
        self._note_text(record)
        self._next += len(units)

    def restore(self, number: int) -> None:
        """See a hidden fact as live for the rest of the plan (its record is added apart)."""
        self._restored.add(number)

    def enter_slot(self, number: int) -> None:
        """Put a fact of this plan among those of its subject, so that later members see it there."""
        subject = self.fact(number).subject
        assert subject is not None
        order = self._own_slot(subject)
        place = bisect_left(order, (self.eff(number), number), key=lambda n: (self.eff(n), n))
        order.insert(place, number)

    def add_link(self, link: Link, *, told: bool = False) -> None:
        """Add a link between facts that exist; `told` when the caller named the older fact."""
        corrects = link.kind is LinkKind.CORRECTS
        if self._ordered and against_order(link.newer, link.older, self):
            self._ordered = False
        self.planned.append(
            Planned(LinkRecord(link.newer, link.older, corrects, link.effective_at, link.known_from, told))
        )
        self._above.setdefault(link.older, []).append(link)
        self._below.setdefault(link.newer, []).append(link)

    def remove(self, numbers: Sequence[int], seqs: Sequence[int], **told: Any) -> None:
        """Remove facts that the log holds and erase these seqs (theirs and what they own).

        `told` are further fields of the removal's record: what else goes, and why.
        """
        self.planned.append(
            Planned(RemovalRecord(tuple(numbers), self.state.next_number, tuple(seqs), self.now, **told))
        )
        self.erased.extend(seqs)
        for number in numbers:
            subject = self.state.subject_of.get(number)
            if subject is not None:
                order = self._own_slot(subject)
                if number in order:
                    order.remove(number)
        self._removed.update(numbers)

    def add(self, record: Record) -> None:
        """Add a record that no later question of this plan depends on."""
        assert not isinstance(record, FactRecord | LinkRecord | RemovalRecord)
        self.planned.append(Planned(record))
        if isinstance(record, ReceiptRecord):
            self._receipts[record.key] = Receipt(record, 0)
        elif isinstance(record, EndRecord):
            self._ends.setdefault(record.number, []).append(record)
        elif isinstance(record, AnnotationRecord):
            self._annotations[record.number] = record
        elif isinstance(record, VectorRecord):
            self._vectors[record.number, record.unit] = record

    def _own_slot(self, subject: str) -> array[int]:
        order = self._slots.get(subject)
        if order is None:
            self._slots[subject] = order = array("i", self._base.slot(subject))
        return order

    def absorb(self, other: Draft) -> None:
        """Take over the plan of a draft that lay over this one."""
        self.planned += other.planned
        self.erased += other.erased
        self.unerased += other.unerased
        self.unchanged += other.unchanged
        self._next = other._next
        self._facts.update(other._facts)
        for record in other._facts.values():
            self._note_text(record)
        self._ids.update(other._ids)
        self._removed |= other._removed
        self._restored |= other._restored
        for mine, theirs in ((self._above, other._above), (self._below, other._below)):
            for number, links in theirs.items():
                mine.setdefault(number, []).extend(links)
        self._slots.update(other._slots)
        self._ordered = self._ordered and other._ordered
        self._receipts.update(other._receipts)
        for number, ends in other._ends.items():
            self._ends.setdefault(number, []).extend(ends)
        self._annotations.update(other._annotations)
        self._vectors.update(other._vectors)

    def receipt_key(self, operation: str, key: str) -> bytes:
        """Return the digest under which an answer to this operation is kept."""
        return keyed_hash(self.secret, RECEIPT_DOMAIN, operation.encode() + b"\0" + key.encode())


def confirm(draft: Draft) -> None:
    """Plan nothing. Written, it returns once all that was read before is as safe as what a write stores.

    Who repeats a call may find what the first one stored while that is on one machine alone.
    """
