"""What one record of an export means to a space: new, there before, or refused. Pure in its draft.

A record is compared with what the space holds, so that importing again adds what is missing and nothing else:
facts by id, links by their facts and kind, annotations by when they were given, ends and uses by how many
there are. What the space removed, restored or ended by itself is not undone, also while the import runs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from pyroaring import BitMap

from perdure.base.canonical import canonical_json, decode_json
from perdure.errors import Blocked, Conflict
from perdure.log.records import (
    AnnotationRecord,
    BlockRecord,
    EndRecord,
    FactRecord,
    HideRecord,
    LinkRecord,
    ReceiptRecord,
    Record,
    UseRecord,
)
from perdure.planning.blocks import refuse_among, refuse_blocked
from perdure.space.apply import link_of
from perdure.space.draft import Draft
from perdure.space.state import DEAD, SpaceState
from perdure.temporal.columns import BEGINNING
from perdure.temporal.links import Link, closes_cycle
from perdure.transfer.reading import Refused


class Item(NamedTuple):
    """A record of the file, with the terms of its units where they were worked out before the turn."""

    line: int
    record: Record
    units: tuple[list[str], ...] | None = None


@dataclass(slots=True)
class _Notes:
    """What the records so far have told: the numbers of facts in the file and here, and running counts."""

    told: array[int] = field(default_factory=lambda: array("q"))  # in the file, ascending
    here: array[int] = field(default_factory=lambda: array("q"))  # in the space, at the same places
    taken: BitMap = field(default_factory=BitMap)  # all of `here`
    added: BitMap = field(default_factory=BitMap)  # those that this import has stored
    documents: BitMap = field(default_factory=BitMap)
    ends: Counter[int] = field(default_factory=Counter)  # told, by the hash of all that makes one
    uses: Counter[int] = field(default_factory=Counter)  # told, by fact
    counted: Counter[int] = field(default_factory=Counter)  # of those the ones that were missing
    blocked: set[bytes] = field(default_factory=set)
    block_keys: set[bytes] = field(default_factory=set)
    newest_told: int = BEGINNING  # ingest time of the last fact in the file

    def find(self, number: int) -> int | None:
        place = bisect_left(self.told, number)
        return self.here[place] if place < len(self.told) and self.told[place] == number else None

    def add(self, other: _Notes) -> None:
        self.told += other.told
        self.here += other.here
        self.taken |= other.taken
        self.added |= other.added
        self.documents |= other.documents
        self.ends.update(other.ends)
        self.uses.update(other.uses)
        self.blocked |= other.blocked
        self.block_keys |= other.block_keys
        self.newest_told = max(self.newest_told, other.newest_told)


class Book:
    """What an import knows of one space of the file. Plans note into it and may be made anew before `keep`."""

    def __init__(
        self,
        block_key: bytes,
        units_of: Callable[[FactRecord], Any],
        restored_of: Callable[[SpaceState], BitMap],
    ) -> None:
        """Begin with a space.

        Args:
            block_key: what blocks of the file are keyed with that name no key; b"" where it says none.
            units_of: gives the terms of each unit of a fact.
            restored_of: gives the facts of the space that were hidden once and restored.
        """
        self.block_key, self.units_of, self.restored_of = block_key, units_of, restored_of
        self._kept, self._fresh = _Notes(), _Notes()
        self._known_of, self._seen = _Place(0, 0), _Place(0, 0)
        self._exists: Callable[[int], bool] = _never
        self._newest: int | None = None

    def check(self, state: SpaceState) -> None:
        """See that the facts which are remembered still have their numbers.

        Raises:
            Conflict: the space was purged or erased since the last `keep`.
        """
        if self._known_of.number and self._known_of != _place_of(state):
            raise Conflict(
                "the store was purged meanwhile, or this memory erased, so that facts have other numbers: import "
                "again",
                kind="epoch",
            )

    def begin(self, draft: Draft) -> None:
        """Begin a plan: drop what was noted since the last `keep`. Raises as `check`."""
        self.check(draft.state)
        self._fresh, self._seen = _Notes(), _place_of(draft.state)
        self._exists, self._newest = draft.exists, None

    def keep(self) -> None:
        """Keep what was noted: it is written."""
        self._kept.add(self._fresh)
        self._fresh, self._known_of = _Notes(), self._seen

    @property
    def notes(self) -> _Notes:
        """Where new notes go."""
        return self._fresh

    def number(self, told: int) -> int:
        """Return the number here of a fact of the file.

        Raises:
            Refused: no line has told it, or it is here no more.
        """
        found = self._number(told)
        if not self._exists(found):
            raise Refused(f"names fact {told}, which was forgotten meanwhile")
        return found

    def fact_number(self, told: int) -> int:
        """As `number`, but refuses documents, which have no history."""
        found = self.number(told)
        if found in self._fresh.documents or found in self._kept.documents:
            raise Refused(f"names {told} as a fact, but that is a document")
        return found

    def numbers(self, told: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(self.number, told))

    def living(self, told: Sequence[int]) -> tuple[int, ...]:
        """As `numbers`, without those that are here no more."""
        return tuple(filter(self._exists, map(self._number, told)))

    def _number(self, told: int) -> int:
        found = self._fresh.find(told)
        if found is None:
            found = self._kept.find(told)
        if found is None:
            raise Refused(f"names fact {told}, which no line before this one has told, or which was left out")
        return found

    def is_taken(self, here: int) -> bool:
        """Whether a line has told of this fact."""
        return here in self._fresh.taken or here in self._kept.taken

    def is_added(self, here: int) -> bool:
        """Whether this import has stored the fact."""
        return here in self._fresh.added or here in self._kept.added

    def hides_others(self, record: HideRecord) -> bool:
        """Whether the facts that were told before and are to be hidden are not all of this import."""
        return any(
            here is not None and not self.is_added(here) for here in map(self._kept.find, record.numbers)
        )

    def last_told(self) -> int:
        """Return the last fact's number in the file, or -1."""
        for notes in (self._fresh, self._kept):
            if notes.told:
                return notes.told[-1]
        return -1

    def newest_told(self) -> int:
        return max(self._fresh.newest_told, self._kept.newest_told)

    def newest_before(self, state: SpaceState) -> int:
        """Return the ingest time of the last fact that was here before the plan, or BEGINNING."""
        if self._newest is None:
            self._newest = _newest_ingest(state)
        return self._newest

    def count_end(self, here: EndRecord) -> int:
        """Return how many times the file has told this end, this time included."""
        # Of a text: the hashes of -1 and -2 are equal, also in a tuple.
        key = hash(f"{here.number} {here.at} {here.recorded_at} {here.reason!r}")
        self._fresh.ends[key] += 1
        return self._fresh.ends[key] + self._kept.ends[key]

    def counts_use(self, state: SpaceState, here: int) -> bool:
        """Whether one more use of the fact is missing here."""
        notes = self._fresh
        notes.uses[here] += 1
        told = notes.uses[here] + self._kept.uses[here]
        if told <= state.uses.get(here, (0, 0))[0] + notes.counted[here]:
            return False
        notes.counted[here] += 1
        return True

    def is_blocked(self, digest: bytes) -> bool:
        """Whether the file itself has told this block."""
        return digest in self._fresh.blocked or digest in self._kept.blocked

    @property
    def block_keys(self) -> set[bytes]:
        """What the blocks are keyed with that the file has told."""
        return self._fresh.block_keys | self._kept.block_keys


class _Place(NamedTuple):
    """Where numbers of facts mean something: the log's epoch and the space's number, 0 where it has none."""

    epoch: int
    number: int


def _place_of(state: SpaceState) -> _Place:
    return _Place(state.head.epoch, state.number)


def _never(number: int) -> bool:
    return False


def merge(draft: Draft, book: Book, item: Item) -> bool:
    """Plan what a record of the file adds; return whether it adds anything.

    Raises:
        Refused: it contradicts what is here or what the file has told; nothing of it is planned.
    """
    return _MERGES[type(item.record)](draft, book, item.record, item)


def _newest_ingest(state: SpaceState) -> int:
    if not state.presence:
        return BEGINNING
    ingested = np.frombuffer(state.ingested, dtype=np.int64)
    living = np.frombuffer(state.presence, dtype=np.uint8) != DEAD
    return int(ingested[living].max(initial=BEGINNING))


def _merge_fact(draft: Draft, book: Book, record: FactRecord, item: Item) -> bool:
    if record.number <= book.last_told():
        raise Refused(f"number {record.number} is not above that of the fact before it")
    if not record.version and record.ingest_time < book.newest_told():
        raise Refused("ingestTime lies before that of an earlier line: facts stand in their order of arrival")
    made_from = tuple(sorted(book.numbers(record.made_from)))
    number = draft.find_number(record.id)
    is_here = number is not None
    if number is not None:
        if book.is_taken(number):
            raise Refused("repeats the id of an earlier line")
        _refuse_other(record, draft.fact(number))
    else:
        _refuse_late(draft, book, record)
        try:
            refuse_blocked(draft, record.id, record.text)
            refuse_among(book.block_keys, book.is_blocked, record.id, record.text)
        except Blocked as error:
            raise Refused(error.message) from error
        number = draft.next_number
        units = book.units_of(record) if item.units is None else item.units
        draft.add_fact(msgspec.structs.replace(record, number=number, made_from=made_from), units)
        book.notes.added.add(number)
    notes = book.notes
    notes.told.append(record.number)
    notes.here.append(number)
    notes.taken.add(number)
    if record.version:
        notes.documents.add(number)
    else:
        notes.newest_told = max(notes.newest_told, record.ingest_time)
    return not is_here


def _refuse_other(record: FactRecord, stored: FactRecord) -> None:
    if record.version and stored.version and record.version != stored.version:
        raise Refused(
            f"conflict: version {stored.version} of this document is stored, the file has version {record.version}"
        )
    if _payload(record) != _payload(stored):
        raise Refused("conflict: this id is stored with other content")


def _payload(record: FactRecord) -> tuple[FactRecord, bytes]:
    """Return what makes the fact the one it is; when and where it was told first makes no other of it."""
    metadata = b"" if record.metadata is None else canonical_json(decode_json(record.metadata))
    plain = msgspec.structs.replace(
        record,
        number=0,
        ingest_time=0,
        extracted=(),
        metadata=None,
        effective_from=None,
        retelling=0,
        made_from=(),
    )
    return plain, metadata


def _refuse_late(draft: Draft, book: Book, record: FactRecord) -> None:
    if record.version:
        return  # documents take no part in time
    newest = book.newest_before(draft.state)  # what the plan adds itself stands in the order of the file
    if record.ingest_time < newest:
        raise Refused(
            f"was recorded at {record.ingest_time}, but the space holds a fact recorded later, at {newest}, and facts "
            "stand in their order of arrival: import into another scope (into), or tell the facts anew"
        )


def _merge_link(draft: Draft, book: Book, record: LinkRecord, item: Item) -> bool:
    newer, older = book.fact_number(record.newer), book.fact_number(record.older)
    link = link_of(msgspec.structs.replace(record, newer=newer, older=older))
    known = _find_link(draft, link)
    if known is not None and (known == link or known.known_from > link.known_from):
        return False
    if known is None and closes_cycle(newer, older, draft):
        raise Refused("makes a fact supersede itself, through others or at once")
    draft.add_link(link, told=record.told)
    return True


def _find_link(draft: Draft, link: Link) -> Link | None:
    below, above = draft.below(link.newer), draft.above(link.older)
    nearer = below if len(below) <= len(above) else above
    found = None
    for other in nearer:
        if (other.newer, other.older, other.kind) == (link.newer, link.older, link.kind):
            found = other
    return found


def _merge_end(draft: Draft, book: Book, record: EndRecord, item: Item) -> bool:
    here = msgspec.structs.replace(record, number=book.fact_number(record.number))
    # Also of a fact that is new: another import of the same file may have told of it meanwhile.
    there = sum(end == here for end in draft.ends(here.number))
    if book.count_end(here) <= there:
        return False
    draft.add(here)
    return True


def _merge_annotation(draft: Draft, book: Book, record: AnnotationRecord, item: Item) -> bool:
    number = book.number(record.number)
    known = draft.annotation(number)
    if known is not None and known.recorded_at >= record.recorded_at:
        return False
    draft.add(msgspec.structs.replace(record, number=number))
    return True


def _merge_hidden(draft: Draft, book: Book, record: HideRecord, item: Item) -> bool:
    visible = tuple(
        number
        for number in _some(book.living(record.numbers), record.numbers)
        if draft.is_live(number) and (book.is_added(number) or number not in book.restored_of(draft.state))
    )
    if visible:
        draft.add(msgspec.structs.replace(record, numbers=visible))
    return bool(visible)


def _some(living: tuple[int, ...], told: Sequence[int]) -> tuple[int, ...]:
    if told and not living:
        raise Refused(f"names fact {told[0]}, which was forgotten meanwhile")
    return living


def _merge_receipt(draft: Draft, book: Book, record: ReceiptRecord, item: Item) -> bool:
    items = tuple(
        msgspec.structs.replace(
            told,
            number=book.number(told.number),
            supersedes=book.living(told.supersedes),
            superseded_by=book.living(told.superseded_by),
        )
        for told in record.items
    )
    if draft.receipt(record.key) is not None:
        return False
    draft.add(msgspec.structs.replace(record, items=items))
    return True


def _merge_use(draft: Draft, book: Book, record: UseRecord, item: Item) -> bool:
    numbers = _some(book.living(record.numbers), record.numbers)
    missing = tuple(number for number in numbers if book.counts_use(draft.state, number))
    if missing:
        draft.add(msgspec.structs.replace(record, numbers=missing))
    return bool(missing)


def _merge_block(draft: Draft, book: Book, record: BlockRecord, item: Item) -> bool:
    key = record.key or book.block_key
    if not key:
        raise Refused("key is missing, and the line of the space names none")
    missing = tuple(
        digest for digest in record.digests if not (draft.is_blocked(digest) or book.is_blocked(digest))
    )
    if missing:
        book.notes.block_keys.add(key)
        book.notes.blocked.update(missing)
        own = draft.state.settings.block_key
        draft.add(BlockRecord(missing, record.recorded_at, b"" if key == own else key))
    return bool(missing)


_MERGES: dict[type, Callable[[Draft, Book, Any, Item], bool]] = {
    FactRecord: _merge_fact,
    LinkRecord: _merge_link,
    EndRecord: _merge_end,
    AnnotationRecord: _merge_annotation,
    HideRecord: _merge_hidden,
    ReceiptRecord: _merge_receipt,
    UseRecord: _merge_use,
    BlockRecord: _merge_block,
}
