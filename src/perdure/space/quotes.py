"""What facts quote of turns: kept apart from the facts, so that it goes with the turns where the facts stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from perdure.log.records import FactRecord, QuoteRecord, Record, RemovalRecord, SourceFields
from perdure.model.conversation_forms import is_turn
from perdure.space.preparing import Prepared
from perdure.space.state import SpaceState


def apart(fact: FactRecord) -> tuple[FactRecord, QuoteRecord | None]:
    """Return the fact as it is written, and its quote where it has one of a turn, which is written behind it."""
    source = fact.source
    if source is None or source.uri is None or not is_turn(source.uri):
        return fact, None
    if (source.quote, source.start, source.end) == (None, None, None):
        return fact, None
    bare = structs.replace(source, quote=None, start=None, end=None)
    quote = QuoteRecord(fact.number, source.quote, source.start, source.end)
    return structs.replace(fact, source=bare), quote


def joined(fact: FactRecord, quote: QuoteRecord) -> FactRecord:
    """Return the fact as it was told."""
    source = fact.source or SourceFields()
    told = structs.replace(source, quote=quote.quote, start=quote.start, end=quote.end)
    return structs.replace(fact, source=told)


def all_joined(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records of a space in order, each fact as it was told, and no quote apart."""
    fact: FactRecord | None = None
    for record in records:
        if isinstance(record, QuoteRecord):
            if fact is not None and fact.number == record.number:
                fact = joined(fact, record)
            continue
        if fact is not None:
            yield fact
        fact = record if isinstance(record, FactRecord) else None
        if fact is None:
            yield record
    if fact is not None:
        yield fact


def apply_quote(state: SpaceState, item: Prepared, secret: bytes) -> None:
    """Note where a fact's quote stands."""
    record = item.record
    assert isinstance(record, QuoteRecord)
    state.owned.setdefault(record.number, []).append(item.seq)
    if state.exists(record.number):
        state.quote_seqs[record.number] = item.seq


def lose_quotes(state: SpaceState, removal: RemovalRecord) -> None:
    """Take out the quotes that were erased of facts that stay."""
    if not state.quote_seqs:
        return
    erased = set(removal.seqs)
    for number in [number for number, seq in state.quote_seqs.items() if seq in erased]:
        owned = state.owned[number]
        owned.remove(state.quote_seqs.pop(number))
        if not owned:
            del state.owned[number]
        state.stale.add(number)


def is_kept(told: SourceFields | None, stored: SourceFields | None) -> bool:
    """Whether a stored source is what was told, or what is left of it where its quote went with the turn."""
    if told == stored or told is None or stored is None:
        return told == stored
    lost = stored.quote is None and stored.uri is not None and is_turn(stored.uri)
    return lost and structs.replace(told, quote=None, start=None, end=None) == stored
