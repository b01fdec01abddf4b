"""Record in, state out: the one function that turns the log into what reads see.

Applying is pure in the log: the same records give the same state, bit for bit, on every backend.
Callers hold the space's exclusive lock. Text is analysed by the caller before (`Prepared`), so that
readers wait for integer work only.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from pyroaring import BitMap

from perdure.base.text import counted
from perdure.errors import Corrupt
from perdure.log.records import (
    NO_FACT,
    AnnotationRecord,
    BlockRecord,
    ByRecord,
    ConfigRecord,
    EndRecord,
    FactRecord,
    GoneRecord,
    HideRecord,
    LinkRecord,
    QuoteRecord,
    ReceiptRecord,
    RemovalRecord,
    RestoreRecord,
    SpaceRecord,
    UnblockRecord,
    UseRecord,
    VectorRecord,
)
from perdure.space.governed import HANDLERS as GOVERNED
from perdure.space.idmap import use_hash
from perdure.space.preparing import Prepared, link_of, metadata_pairs
from perdure.space.quotes import apply_quote, lose_quotes
from perdure.space.state import DEAD, HIDDEN, LIVE, NO_TIME, NOWHERE, VECTOR_ITEM, Receipt, SpaceState
from perdure.temporal.columns import BEGINNING, FOREVER, RETRACTED
from perdure.temporal.links import against_order, effective_time


def apply_all(state: SpaceState, prepared: Iterable[Prepared], secret: bytes) -> None:
    """Apply records in log order."""
    for item in prepared:
        handler = _HANDLERS[type(item.record)]
        handler(state, item, secret)
        # A record's own time counts, so that a state rebuilt after an erasure knows the same newest moment.
        state.newest_ingest = max(state.newest_ingest, getattr(item.record, "recorded_at", BEGINNING))
    state.kept = {}


def refresh_superseded(state: SpaceState, number: int) -> None:
    """Recompute from when the fact is superseded: the earliest active link above it."""
    if not state.exists(number):
        return
    earliest = FOREVER
    for link in state.above(number):
        if state.presence[link.newer] == LIVE:
            earliest = min(earliest, effective_time(link, state))
    state.superseded_from[number] = earliest
    _mark_timed(state, number)


def _mark_timed(state: SpaceState, number: int) -> None:
    timed = state.presence[number] == LIVE and (
        state.valid_from[number] != BEGINNING
        or state.valid_to[number] != FOREVER
        or state.superseded_from[number] != FOREVER
    )
    if timed:
        state.timed.add(number)
    else:
        state.timed.discard(number)


def _apply_space(state: SpaceState, item: Prepared, secret: bytes) -> None:
    raise Corrupt("a space record stands where a fact's record should: run a verify", seq=item.seq)


def _apply_fact(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, FactRecord)
    if record.number < state.next_number:
        raise Corrupt(
            f"record {item.seq} repeats the fact number {record.number}: run a verify", seq=item.seq
        )
    while state.next_number < record.number:
        _append_row(state, None, item.seq, [])
    for position, terms in enumerate(item.units):
        _append_row(state, record, item.seq, terms)
        state.places[-1], state.retold[-1] = item.place, item.retold
        if position:
            state.unit_owner[record.number + position] = record.number
    if len(item.units) > 1:
        state.unit_counts[record.number] = len(item.units)
    state.ids.add(item.hash, record.number)
    if record.effective_from is not None:
        state.effective_from[record.number] = record.effective_from
    if record.made_from:
        state.made_from[record.number] = record.made_from
    if record.governed:
        state.governed.add(record.number)
    if record.version:
        state.plain.add(record.number)
        state.versions[record.number] = record.version
    else:
        state.newest_ingest = max(state.newest_ingest, record.ingest_time)
    _post(state, record, item.pairs)
    _mark_timed(state, record.number)


def _append_row(state: SpaceState, record: FactRecord | None, seq: int, terms: list[str]) -> None:
    # A live row has a term in any case: a row without one would count as erased.
    state.index.add(terms or ([""] if record else []))
    state.seqs.append(seq if record else 0)
    if record is None or record.version:
        ingest = event = start = BEGINNING
        end = FOREVER
    else:
        ingest = record.ingest_time
        event = NO_TIME if record.event_time is None else record.event_time
        start = BEGINNING if record.valid_from is None else record.valid_from
        end = FOREVER if record.valid_to is None else record.valid_to
    state.ingested.append(ingest)
    state.event.append(event)
    state.valid_from.append(start)
    state.valid_to.append(end)
    state.superseded_from.append(FOREVER)
    state.places.append(NOWHERE)
    state.retold.append(NOWHERE)
    state.vector_seqs.append(0)
    state.presence.append(LIVE if record else DEAD)


def _post(state: SpaceState, record: FactRecord, pairs: tuple[bytes, ...]) -> None:
    number = record.number
    if record.subject is not None:
        state.subject_of[number] = record.subject
        insert_in_slot(state, record.subject, number)
    if record.entities or record.extracted:
        entities = tuple(sorted({*record.entities, *record.extracted}))
        state.entities_of[number] = entities
        _add_to(state.entities, entities, number)
    if pairs:
        state.pairs_of[number] = pairs
        _add_to(state.metadata, pairs, number)
        state.fields.note(number)
    if record.source is not None:
        if record.source.uri is not None:
            state.uri_of[number] = record.source.uri
        if record.source.actor is not None:
            state.actor_of[number] = record.source.actor
            _add_to(state.actors, (record.source.actor,), number)
    _annotate(state, number, record)


def insert_in_slot(state: SpaceState, subject: str, number: int) -> None:
    """Put the fact into its slot's order of (eff, number)."""
    order = state.subjects.get(subject)
    if order is None:
        state.subjects[subject] = array("i", [number])
    else:
        place = bisect_left(order, (state.eff(number), number), key=lambda n: (state.eff(n), n))
        order.insert(place, number)


def _take_from_slot(state: SpaceState, number: int) -> None:
    subject = state.subject_of.get(number)
    if subject is None or subject not in state.subjects:
        return
    order = state.subjects[subject]
    if number in order:
        order.remove(number)
    if not order:
        del state.subjects[subject]


def _annotate(state: SpaceState, number: int, told: FactRecord | AnnotationRecord) -> None:
    if told.tags:
        state.tags_of[number] = told.tags
        _add_to(state.tags, told.tags, number)
    if told.kind is not None:
        state.kind_of[number] = told.kind
        _add_to(state.kinds, (told.kind,), number)
    if told.importance is not None:
        state.importance_of[number] = told.importance
    if told.pinned:
        state.pinned.add(number)
    if told.tags or told.kind is not None:
        _label(state, number)


def _label(state: SpaceState, number: int) -> None:
    words = (*state.tags_of.get(number, ()), state.kind_of.get(number, ""))
    if any(words):
        state.labels.put(number, state.profile.document_terms(" ".join(words)))
    else:
        state.labels.drop(number)


def _clear_annotations(state: SpaceState, number: int) -> None:
    _take_from(state.tags, state.tags_of.pop(number, ()), number)
    kind = state.kind_of.pop(number, None)
    _take_from(state.kinds, () if kind is None else (kind,), number)
    state.importance_of.pop(number, None)
    state.pinned.discard(number)
    state.labels.drop(number)


def _add_to(postings: dict[Any, BitMap], keys: Iterable[Any], number: int) -> None:
    for key in keys:
        found = postings.get(key)
        if found is None:
            postings[key] = BitMap([number])
        else:
            found.add(number)


def _take_from(postings: dict[Any, BitMap], keys: Iterable[Any], number: int) -> None:
    for key in keys:
        found = postings.get(key)
        if found is not None:
            found.discard(number)
            if not found:
                del postings[key]


def _apply_link(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, LinkRecord)
    link = link_of(item.record)
    if not (state.exists(link.newer) and state.exists(link.older)):
        return  # an end was forgotten later in the log; its links went with it
    replaced = state.links.add(link)
    if against_order(link.newer, link.older, state):
        state.links.against.add(link)
    if item.record.told:
        state.links.told.add((link.newer, link.older))
    state.stale.update((link.newer, link.older))
    if replaced:
        refresh_superseded(state, link.older)
    elif state.presence[link.newer] == LIVE:
        # A link only ever brings the moment forward; looking at all others would make many superseders slow.
        at = min(state.superseded_from[link.older], effective_time(link, state))
        state.superseded_from[link.older] = at
        _mark_timed(state, link.older)


def _apply_end(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, EndRecord)
    _own(state, record.number, item.seq)
    if not state.exists(record.number):
        return
    state.ends.setdefault(record.number, []).append(record)
    state.told_valid_to.setdefault(record.number, state.valid_to[record.number])
    at = RETRACTED if record.at is None else record.at
    state.valid_to[record.number] = min(state.valid_to[record.number], at)
    state.stale.add(record.number)
    _mark_timed(state, record.number)


def _apply_annotation(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, AnnotationRecord)
    _own(state, record.number, item.seq)
    if not state.exists(record.number):
        return
    _clear_annotations(state, record.number)
    _annotate(state, record.number, record)
    if record.metadata is not None:
        _take_from(state.metadata, state.pairs_of.pop(record.number, ()), record.number)
        state.pairs_of[record.number] = pairs = metadata_pairs(record.metadata, secret)
        _add_to(state.metadata, pairs, record.number)
    state.annotations[record.number] = record
    state.fields.note(record.number)
    state.stale.add(record.number)


def _apply_hide(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, HideRecord)
    for number in item.record.numbers:
        if not state.is_live(number):
            continue
        for row in _rows(state, number):
            state.index.hide(row)
            if state.vectors is not None and row in state.vectors:
                state.vectors.hide(row)
            state.presence[row] = HIDDEN
        state.hidden.add(number)
        _mark_stale_around(state, number)
        state.labels.drop(number)
        _take_from_slot(state, number)
        _mark_timed(state, number)
        for link in state.below(number):
            refresh_superseded(state, link.older)


def _apply_restore(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, RestoreRecord)
    for number in item.record.numbers:
        if number not in state.hidden:
            continue
        for row in _rows(state, number):
            state.index.show(row)
            if state.vectors is not None and row in state.vectors:
                state.vectors.show(row)
            state.presence[row] = LIVE
        state.hidden.discard(number)
        _mark_stale_around(state, number)
        _label(state, number)
        if (subject := state.subject_of.get(number)) is not None:
            insert_in_slot(state, subject, number)
        refresh_superseded(state, number)
        for link in state.below(number):
            refresh_superseded(state, link.older)


def _rows(state: SpaceState, number: int) -> range:
    return range(number, number + state.unit_counts.get(number, 1))


def _apply_removal(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, RemovalRecord)
    while state.next_number < record.units:
        _append_row(state, None, item.seq, [])
    for number in record.numbers:
        if state.exists(number):
            _forget(state, number)
        state.owned.pop(number, None)
    lose_quotes(state, record)
    state.nodes.remove(record.nodes, record.step, record.blanked)
    state.conversations.remove(record.turns)
    state.profile.forget_words()


def _mark_stale_around(state: SpaceState, number: int) -> None:
    state.stale.add(number)
    state.stale.update(link.newer for link in state.above(number))
    state.stale.update(link.older for link in state.below(number))


def _forget(state: SpaceState, number: int) -> None:
    _mark_stale_around(state, number)
    _take_from_slot(state, number)
    state.subject_of.pop(number, None)
    _take_from(state.entities, state.entities_of.pop(number, ()), number)
    _take_from(state.metadata, state.pairs_of.pop(number, ()), number)
    state.fields.drop(number)
    _clear_annotations(state, number)
    state.annotations.pop(number, None)
    state.ends.pop(number, None)
    state.told_valid_to.pop(number, None)
    state.effective_from.pop(number, None)
    state.versions.pop(number, None)
    state.uses.pop(number, None)
    state.made_from.pop(number, None)
    state.uri_of.pop(number, None)
    state.quote_seqs.pop(number, None)
    actor = state.actor_of.pop(number, None)
    _take_from(state.actors, () if actor is None else (actor,), number)
    for row in _rows(state, number):
        _forget_vector(state, row)
        state.places[row] = state.retold[row] = NOWHERE
        state.index.erase(row)
        state.presence[row] = DEAD
        state.seqs[row] = 0
        state.unit_owner.pop(row, None)
    state.unit_counts.pop(number, None)
    state.hidden.discard(number)
    state.plain.discard(number)
    state.timed.discard(number)
    state.governed.discard(number)
    for older in state.links.drop_all_of(number):
        refresh_superseded(state, older)


def _apply_receipt(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, ReceiptRecord)
    state.receipts[record.key] = Receipt(record, item.seq)
    for told in record.items:
        if told.number != NO_FACT:
            _own(state, told.number, item.seq)


def _own(state: SpaceState, number: int, seq: int) -> None:
    state.owned.setdefault(number, []).append(seq)


def _apply_use(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, UseRecord)
    for number in record.numbers:
        if state.exists(number):
            count, last = state.uses.get(number, (0, BEGINNING))
            state.uses[number] = (count + 1, max(last, record.recorded_at))
            if record.context:
                state.used_in.add(use_hash(record.context, number), number)
            state.stale.add(number)


def _apply_block(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, BlockRecord)
    state.blocked.update(item.record.digests)
    if item.record.key:
        state.block_keys.add(item.record.key)


def _apply_unblock(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, UnblockRecord)
    state.blocked.difference_update(item.record.digests)


def _apply_vector(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, VectorRecord)
    _own(state, record.number, item.seq)
    if not state.exists(record.number):
        return
    row = record.number + record.unit
    if row not in _rows(state, record.number):
        raise Corrupt(
            f"record {item.seq} is the vector of a unit that there is not: run a verify", seq=item.seq
        )
    _forget_vector(state, row)
    dimension, rest = divmod(len(record.data), VECTOR_ITEM)
    if rest or not dimension or state.dimension not in (0, dimension):
        raise Corrupt(
            f"record {item.seq} is a vector of {counted(len(record.data), 'byte')}, unlike those before it: run a verify",
            seq=item.seq,
        )
    state.vector_seqs[row] = item.seq
    _add_to(state.vector_models, (record.model,), row)
    state.dimension = dimension
    if state.vectors is not None:
        _keep_vector(state, row, record.data)


def _keep_vector(state: SpaceState, row: int, data: bytes) -> None:
    if state.vectors is None or state.vectors.dimension != state.dimension:
        state.vectors = None  # the last of another dimension went: whoever searches next reads what there is
        return
    state.vectors.put(row, np.frombuffer(data, dtype="<f4"))
    if state.presence[row] == HIDDEN:
        state.vectors.hide(row)


def _forget_vector(state: SpaceState, row: int) -> None:
    if not state.vector_seqs[row]:
        return
    state.vector_seqs[row] = 0
    for model in [model for model, rows in state.vector_models.items() if row in rows]:
        _take_from(state.vector_models, (model,), row)
    if not state.vector_models:
        state.dimension = 0
    # It is not there where it was erased while the others were read.
    if state.vectors is not None and row in state.vectors:
        state.vectors.erase(row)


def _apply_gone(state: SpaceState, item: Prepared, secret: bytes) -> None:
    state.gone = True


def _pass_over(state: SpaceState, item: Prepared, secret: bytes) -> None:
    """What a store is set to, and who wrote what, is nothing that a space knows."""


_HANDLERS: dict[type, Callable[[SpaceState, Prepared, bytes], None]] = {
    SpaceRecord: _apply_space,
    FactRecord: _apply_fact,
    LinkRecord: _apply_link,
    EndRecord: _apply_end,
    AnnotationRecord: _apply_annotation,
    HideRecord: _apply_hide,
    RestoreRecord: _apply_restore,
    RemovalRecord: _apply_removal,
    ReceiptRecord: _apply_receipt,
    UseRecord: _apply_use,
    BlockRecord: _apply_block,
    UnblockRecord: _apply_unblock,
    GoneRecord: _apply_gone,
    VectorRecord: _apply_vector,
    QuoteRecord: apply_quote,
    ConfigRecord: _pass_over,
    ByRecord: _pass_over,
    **GOVERNED,
}
