"""What one record of an export means to a space: new, there before, or refused. Pure in its draft.

A record is compared with what the space holds, so that importing again adds what is missing and nothing else:
facts by id, links by their facts and kind, annotations by when they were given, ends and uses by how many
there are. What the space removed, restored or ended by itself is not undone, also while the import runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.base.canonical import canonical_json, decode_json
from perdure.base.text import counted
from perdure.errors import Blocked
from perdure.log.records import (
    NO_FACT,
    AnnotationRecord,
    BlockRecord,
    EndRecord,
    FactRecord,
    HideRecord,
    LinkRecord,
    ReceiptRecord,
    Record,
    UseRecord,
    VectorRecord,
)
from perdure.planning.blocks import refuse_among, refuse_blocked
from perdure.planning.vectors import find_other_model
from perdure.space.draft import Draft
from perdure.space.preparing import link_of
from perdure.space.quotes import is_kept
from perdure.space.state import TOLD, VECTOR_ITEM
from perdure.temporal.links import Link, closes_cycle
from perdure.transfer.book import Book
from perdure.transfer.earlier import vector_digest
from perdure.transfer.merging_governed import MERGES as GOVERNED
from perdure.transfer.merging_governed import merge_governed
from perdure.transfer.reading import Refused


class Item(NamedTuple):
    """A record of the file, with the terms of its units where they were worked out before the turn."""

    line: int
    record: Record
    units: tuple[list[str], ...] | None = None


def merge(draft: Draft, book: Book, item: Item) -> bool:
    """Plan what a record of the file adds; return whether it adds anything.

    Raises:
        Refused: it contradicts what is here or what the file has told; nothing of it is planned.
    """
    if type(item.record) in GOVERNED:
        return merge_governed(draft, book, item.record, item.line)
    return _MERGES[type(item.record)](draft, book, item.record, item)


def _merge_fact(draft: Draft, book: Book, record: FactRecord, item: Item) -> bool:
    if record.number <= book.last_told():
        raise Refused(f"number {record.number} is not above that of the fact before it")
    if not record.version and record.ingest_time < book.newest_told():
        raise Refused("ingestTime lies before that of an earlier line: facts stand in their order of arrival")
    if record.governed:
        book.governed.refuse_unowned(record)
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
    if record.governed:
        notes.governed.add(number)
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
    # A quote that went with its turn here does not come back.
    told = (
        msgspec.structs.replace(record, source=stored.source)
        if is_kept(record.source, stored.source)
        else record
    )
    if _payload(told) != _payload(stored):
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
    book.refuse_governed(record.number)
    number = book.number(record.number)
    known = draft.annotation(number)
    if known is not None and known.recorded_at >= record.recorded_at:
        return False
    draft.add(msgspec.structs.replace(record, number=number))
    return True


def _merge_vector(draft: Draft, book: Book, record: VectorRecord, item: Item) -> bool:
    number = book.number(record.number)
    units = draft.unit_count(number)
    if record.unit >= units:
        raise Refused(f"tells of unit {record.unit} of a text that has {units}")
    dimension = draft.dimension
    if dimension not in (0, len(record.data) // VECTOR_ITEM):
        raise Refused(
            f"has {counted(len(record.data) // VECTOR_ITEM, 'dimension')}, but the vectors of this space have {dimension}"
        )
    if other := find_other_model(draft, record.model):
        raise Refused(f"was made by another model than the vectors of this space ({other})")
    known = draft.vector(number, record.unit)
    if known is not None:
        same = known.data in (record.data, vector_digest(draft.secret, record.data))
        if record.model == known.model == TOLD and not same:
            raise Refused("conflict: this fact is stored with another embedding")
        if record.model == TOLD != known.model:
            raise Refused("conflict: this fact is stored without the embedding that the file tells")
        return False
    draft.add(msgspec.structs.replace(record, number=number))
    return True


def _merge_hidden(draft: Draft, book: Book, record: HideRecord, item: Item) -> bool:
    for number in record.numbers:
        book.refuse_governed(number)
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
            number=NO_FACT if told.number == NO_FACT else book.number(told.number),
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
    VectorRecord: _merge_vector,
    HideRecord: _merge_hidden,
    ReceiptRecord: _merge_receipt,
    UseRecord: _merge_use,
    BlockRecord: _merge_block,
}
