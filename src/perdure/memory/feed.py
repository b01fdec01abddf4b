"""The change feed: what happened to a space's facts, in log order."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.base.instants import to_datetime
from perdure.log.records import (
    AnnotationRecord,
    BlockRecord,
    EndRecord,
    FactRecord,
    HideRecord,
    LinkRecord,
    Record,
    RemovalRecord,
    RestoreRecord,
    UnblockRecord,
    UseRecord,
)
from perdure.model.replies import Change
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState

_KINDS: dict[type, str] = {
    AnnotationRecord: "annotated",
    HideRecord: "hidden",
    RestoreRecord: "restored",
    UseRecord: "used",
    BlockRecord: "blocked",
    UnblockRecord: "unblocked",
}


def change_of(state: SpaceState, reader: FactReader, seq: int, record: Record | None) -> Change | None:
    """Return what a record means to a follower; None for bookkeeping. An erased record was a fact's own."""
    if record is None:
        return None
    kind = _kind(record)
    if kind is None:
        return None
    numbers = list(_numbers(record))
    shown = state.exists if kind == "hidden" else state.is_live
    ids = tuple(reader.get(state, number).id for number in numbers if shown(number))
    moment = _moment(state, record)
    count = len(record.digests) if isinstance(record, BlockRecord | UnblockRecord) else len(numbers)
    return Change(seq, kind, None if moment is None else to_datetime(moment), ids, count)


def _kind(record: Record) -> str | None:
    if isinstance(record, FactRecord):
        return "document" if record.version else "remembered"
    if isinstance(record, LinkRecord):
        return "corrected" if record.corrects else "superseded"
    if isinstance(record, EndRecord):
        return "retracted" if record.at is None else "ended"
    if isinstance(record, RemovalRecord):
        return "replaced" if record.replaced else "forgotten"
    return _KINDS.get(type(record))


def _numbers(record: Record) -> Iterator[int]:
    if isinstance(record, LinkRecord):
        yield record.newer
        yield record.older
    elif isinstance(record, FactRecord | EndRecord | AnnotationRecord):
        yield record.number
    elif isinstance(record, HideRecord | RestoreRecord | RemovalRecord | UseRecord):
        yield from record.numbers


def _moment(state: SpaceState, record: Record) -> int | None:
    if isinstance(record, FactRecord):
        return record.ingest_time
    if isinstance(record, LinkRecord):
        return record.known_from
    return getattr(record, "recorded_at", None)
