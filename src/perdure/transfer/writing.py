"""From records to the lines of an export."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from perdure.log.records import (
    AccessRecord,
    AnnotationRecord,
    BlockRecord,
    ChangeSetRecord,
    ConversationRecord,
    EndRecord,
    FactRecord,
    HideRecord,
    LinkRecord,
    MarkRecord,
    Merges,
    NodeRecord,
    ReceiptItem,
    ReceiptRecord,
    Record,
    SpaceRecord,
    TurnRecord,
    UseRecord,
    VectorRecord,
)
from perdure.log.records import EvidenceFields as EvidenceRecord
from perdure.log.records import SourceFields as SourceRecord
from perdure.temporal.columns import BEGINNING
from perdure.transfer.lines import (
    NOTHING,
    NUMBERS_MAX,
    AccessLine,
    AnnotationLine,
    Beginning,
    BlockLine,
    ChangedFields,
    ChangeSetLine,
    ConversationLine,
    DocumentLine,
    EndLine,
    EvidenceFields,
    FactLine,
    HiddenLine,
    ItemFields,
    LinkLine,
    MergedFields,
    NodeLine,
    ReceiptLine,
    RecordLine,
    RelationFields,
    RetractionLine,
    SourceFields,
    SpaceLine,
    TurnLine,
    UseLine,
    VectorLine,
)


def space_line(record: SpaceRecord, *, blocks: bool) -> SpaceLine:
    return SpaceLine(
        record.principal,
        record.scope,
        record.profile,
        record.k1,
        record.b,
        record.created_at,
        record.block_key.hex() if blocks else None,
    )


def lines_of(record: Record) -> Iterator[RecordLine]:
    """Yield the lines of a folded record: one, or several where it names very many facts; none for a mark.

    Whoever imports begins a sequence of changes of its own.
    """
    yield from _LINES[type(record)](record)


def moment_of(record: Record) -> int | None:
    """Return when a record was made; a link says when it is known from."""
    for name in ("ingest_time", "recorded_at", "known_from"):
        found = getattr(record, name, None)
        if isinstance(found, int):
            return found
    return None


def _fact(record: FactRecord) -> Iterator[FactLine]:
    told: dict[str, Any] = {name: getattr(record, name) for name in _ALIKE}
    told["metadata"] = _raw(record.metadata)
    told["source"] = None if record.source is None else _source(record.source)
    told["effective_from"] = _instant(record.effective_from)
    if record.version:
        yield DocumentLine(**told, version=record.version, cuts=record.cuts)
    else:
        yield FactLine(**told)


_ALIKE = [name for name in FactLine.__struct_fields__ if name not in ("metadata", "source", "effective_from")]


def _source(source: SourceRecord) -> SourceFields:
    return SourceFields(source.uri, source.quote, source.start, source.end, source.position, source.actor)


def _raw(metadata: bytes | None) -> msgspec.Raw:
    return NOTHING if metadata is None else msgspec.Raw(metadata)


def _instant(at: int | None) -> int | Beginning | None:
    return "beginning" if at == BEGINNING else at


def _link(record: LinkRecord) -> Iterator[LinkLine]:
    yield LinkLine(
        record.newer,
        record.older,
        "corrects" if record.corrects else "supersedes",
        record.known_from,
        _instant(record.effective_at),
        record.told,
    )


def _end(record: EndRecord) -> Iterator[EndLine | RetractionLine]:
    if record.at is None:
        yield RetractionLine(record.number, record.recorded_at, record.reason)
    else:
        yield EndLine(record.number, record.at, record.recorded_at, record.reason)


def _annotation(record: AnnotationRecord) -> Iterator[AnnotationLine]:
    yield AnnotationLine(
        record.number,
        record.recorded_at,
        record.tags,
        record.kind,
        record.importance,
        record.pinned,
        _raw(record.metadata),
        None if record.merged is None else _merged(record.merged),
    )


def _merged(merges: Merges) -> MergedFields:
    return MergedFields(merges.count, merges.last_at, tuple(digest.hex() for digest in merges.ids))


def _vector(record: VectorRecord) -> Iterator[VectorLine]:
    data = b64encode(record.data).decode()
    yield VectorLine(record.number, data, record.recorded_at, record.unit, record.model)


def _hidden(record: HideRecord) -> Iterator[HiddenLine]:
    for numbers in _parts(record.numbers):
        yield HiddenLine(numbers, record.recorded_at)


def _receipt(record: ReceiptRecord) -> Iterator[ReceiptLine]:
    yield ReceiptLine(
        record.operation,
        record.key.hex(),
        record.request.hex(),
        record.recorded_at,
        tuple(map(_item, record.items)),
        record.count,
    )


def _item(item: ReceiptItem) -> ItemFields:
    return ItemFields(
        item.number, item.outcome, item.status, item.supersedes, item.superseded_by, item.reason
    )


def _use(record: UseRecord) -> Iterator[UseLine]:
    for numbers in _parts(record.numbers):
        yield UseLine(numbers, record.recorded_at, record.context.hex())


def _block(record: BlockRecord) -> Iterator[BlockLine]:
    key = record.key.hex() if record.key else None
    for digests in _parts(record.digests):
        yield BlockLine(tuple(digest.hex() for digest in digests), record.recorded_at, key)


def _node(record: NodeRecord) -> Iterator[NodeLine]:
    told: dict[str, Any] = {name: getattr(record, name) for name in _NODE_ALIKE}
    yield NodeLine(
        **told,
        evidence=tuple(map(_evidence, record.evidence)),
        relations=tuple(RelationFields(kind, node) for kind, node in record.relations),
        labels=dict(record.labels),
    )


_NODE_ALIKE = [name for name in NodeLine.__struct_fields__ if name not in ("evidence", "relations", "labels")]


def _evidence(told: EvidenceRecord) -> EvidenceFields:
    return EvidenceFields(
        told.uri, told.digest, told.kind, told.occurred_at, told.quote, told.start, told.end
    )


def _change_set(record: ChangeSetRecord) -> Iterator[ChangeSetLine]:
    nodes = tuple(ChangedFields(node, revision) for node, revision in record.nodes)
    yield ChangeSetLine(record.key.hex(), record.request.hex(), record.occurred_at, record.recorded_at, nodes)


def _access(record: AccessRecord) -> Iterator[AccessLine]:
    yield AccessLine(**{name: getattr(record, name) for name in AccessLine.__struct_fields__})


def _conversation(record: ConversationRecord) -> Iterator[ConversationLine]:
    yield ConversationLine(**{name: getattr(record, name) for name in ConversationLine.__struct_fields__})


def _turn(record: TurnRecord) -> Iterator[TurnLine]:
    yield TurnLine(**{name: getattr(record, name) for name in TurnLine.__struct_fields__})


def _mark(record: MarkRecord) -> Iterator[RecordLine]:
    return iter(())


def _parts(members: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(members), NUMBERS_MAX):
        yield tuple(members[start : start + NUMBERS_MAX])


_LINES: dict[type, Callable[[Any], Iterator[RecordLine]]] = {
    FactRecord: _fact,
    LinkRecord: _link,
    EndRecord: _end,
    AnnotationRecord: _annotation,
    VectorRecord: _vector,
    HideRecord: _hidden,
    ReceiptRecord: _receipt,
    UseRecord: _use,
    BlockRecord: _block,
    NodeRecord: _node,
    ChangeSetRecord: _change_set,
    AccessRecord: _access,
    ConversationRecord: _conversation,
    TurnRecord: _turn,
    MarkRecord: _mark,
}
