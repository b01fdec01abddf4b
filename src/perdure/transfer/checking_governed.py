"""From the lines of nodes and conversations to records, held to the limits that every request is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perdure.base.canonical import checked_text
from perdure.base.ids import refuse_control
from perdure.contract import limits as common
from perdure.errors import InvalidRequest
from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    AccessRecord,
    ChangeSetRecord,
    ConversationRecord,
    EvidenceFields,
    NodeRecord,
    Record,
    TurnRecord,
)
from perdure.model import node_limits as limits
from perdure.model.node import EvidenceKind, NodeKind, NodeStatus, RelationKind, RevisionKind
from perdure.planning import checks
from perdure.planning.references import refuse_misspelt
from perdure.transfer.lines import (
    AccessLine,
    ChangeSetLine,
    ConversationLine,
    NodeLine,
    RelationFields,
    TurnLine,
)
from perdure.transfer.lines import EvidenceFields as EvidenceTold
from perdure.transfer.values import (
    NUMBER_MAX,
    checked_digest,
    checked_moment,
    checked_number,
    find_moment,
)

REVISION_MAX = 2**53 - 1
TURN_BYTES_MAX = common.DOCUMENT_BYTES_MAX  # more than a conversation takes
CHUNKS_MAX = 65_536  # far more than a turn of a conversation has


def _node(line: NodeLine) -> NodeRecord:
    if line.valid_from is not None and line.valid_to is not None:
        checks.refuse_empty_interval(line.valid_from, line.valid_to)
    return NodeRecord(
        number=checked_number(line.number, "number"),
        id=_name(line.id, "id"),
        revision=_revision(line.revision, "revision"),
        change=_choice(line.change, "change", RevisionKind),
        kind=_choice(line.kind, "kind", NodeKind),
        status=_choice(line.status, "status", NodeStatus),
        content=checks.checked_body(line.content, limits.CONTENT_BYTES_MAX, "nodes")[0],
        confidence=checks.checked_real(line.confidence, "confidence", 0.0, 1.0),
        importance=checks.checked_real(line.importance, "importance", 0.0, 1.0),
        evidence=tuple(map(_evidence, _few(line.evidence, "evidence", limits.EVIDENCE_MAX))),
        relations=tuple(map(_relation, _few(line.relations, "relations", limits.RELATIONS_MAX))),
        labels=_labels(line.labels),
        created_at=checked_moment(line.created_at, "createdAt"),
        updated_at=checked_moment(line.updated_at, "updatedAt"),
        recorded_at=checked_moment(line.recorded_at, "recordedAt"),
        subject=_find_text(line.subject, "subject", limits.SUBJECT_BYTES_MAX),
        valid_from=find_moment(line.valid_from, "validFrom"),
        valid_to=find_moment(line.valid_to, "validTo"),
        fact=checks.checked_count(line.fact, "fact", NO_FACT, NUMBER_MAX),
        actor=None if line.actor is None else _name(line.actor, "actor"),
        reason=_find_text(line.reason, "reason", limits.REASON_BYTES_MAX),
    )


def _evidence(told: EvidenceTold) -> EvidenceFields:
    for value, field in ((told.start, "evidence.start"), (told.end, "evidence.end")):
        if value is not None:
            checks.checked_count(value, field, 0, REVISION_MAX)
    uri = _text(told.uri, "evidence.uri", limits.URI_BYTES_MAX)
    refuse_misspelt(uri, field="evidence.uri")
    return EvidenceFields(
        uri,
        _text(told.digest, "evidence.digest", limits.DIGEST_BYTES_MAX),
        _choice(told.kind, "evidence.kind", EvidenceKind),
        checked_moment(told.occurred_at, "evidence.occurredAt"),
        _find_text(told.quote, "evidence.quote", limits.QUOTE_BYTES_MAX),
        told.start,
        told.end,
    )


def _relation(told: RelationFields) -> tuple[str, int]:
    kind = _choice(told.kind, "relations.kind", RelationKind)
    return kind, checks.checked_count(told.node, "relations.node", NO_NODE, NUMBER_MAX)


def _labels(told: dict[str, str]) -> tuple[tuple[str, str], ...]:
    _few(list(told), "labels", limits.LABELS_MAX)
    if common.METADATA_KEY_RESERVED in told:
        raise InvalidRequest(
            f"labels have the key {common.METADATA_KEY_RESERVED!r}, which is reserved", field="labels"
        )
    found = {
        _text(key, "labels", limits.LABEL_KEY_BYTES_MAX): _text(value, "labels", limits.LABEL_VALUE_BYTES_MAX)
        for key, value in told.items()
    }
    return tuple(sorted(found.items()))


def _change_set(line: ChangeSetLine) -> ChangeSetRecord:
    return ChangeSetRecord(
        key=checked_digest(line.key, "key"),
        request=checked_digest(line.request, "request"),
        nodes=tuple(
            (checked_number(one.node, "nodes.node"), _revision(one.revision, "nodes.revision"))
            for one in line.nodes
        ),
        occurred_at=checked_moment(line.occurred_at, "occurredAt"),
        recorded_at=checked_moment(line.recorded_at, "recordedAt"),
        step=0,
    )


def _access(line: AccessLine) -> AccessRecord:
    return AccessRecord(
        kind=line.kind,
        id=_name(line.id, "id"),
        node=checked_number(line.node, "node"),
        revision=_revision(line.revision, "revision"),
        occurred_at=checked_moment(line.occurred_at, "occurredAt"),
        recorded_at=checked_moment(line.recorded_at, "recordedAt"),
        context=None if line.context is None else _name(line.context, "context"),
        actor=None if line.actor is None else _name(line.actor, "actor"),
    )


def _conversation(line: ConversationLine) -> ConversationRecord:
    return ConversationRecord(
        number=checked_number(line.number, "number"),
        session=_name(line.session, "session"),
        version=_name(line.version, "version"),
        turns=checks.checked_count(line.turns, "turns", 1, NUMBER_MAX),
        recorded_at=checked_moment(line.recorded_at, "recordedAt"),
    )


def _turn(line: TurnLine) -> TurnRecord:
    return TurnRecord(
        conversation=checked_number(line.conversation, "conversation"),
        position=checked_number(line.position, "position"),
        source_id=_name(line.source_id, "sourceId"),
        role=_name(line.role, "role"),
        text=checks.checked_body(line.text, TURN_BYTES_MAX, "turns")[0],
        observed_at=checked_moment(line.observed_at, "observedAt"),
        first=checked_number(line.first, "first"),
        chunks=checks.checked_count(line.chunks, "chunks", 1, CHUNKS_MAX),
        recorded_at=checked_moment(line.recorded_at, "recordedAt"),
    )


def _revision(value: int, field: str) -> int:
    return checks.checked_count(value, field, 1, REVISION_MAX)


def _choice(value: str, field: str, kind: type[Any]) -> str:
    return checks.checked_choice(value, field, tuple(member.value for member in kind))


def _name(value: str, field: str) -> str:
    text = _text(value, field, limits.IDENTIFIER_BYTES_MAX)
    refuse_control(text, field=field)
    return text


def _text(value: str, field: str, bytes_max: int) -> str:
    size = len(checked_text(value, field=field).encode())
    if not 1 <= size <= bytes_max:
        raise InvalidRequest(f"{field} must take 1 to {bytes_max} bytes, got {size}", field=field)
    return value


def _find_text(value: str | None, field: str, bytes_max: int) -> str | None:
    return None if value is None else _text(value, field, bytes_max)


def _few(values: Sequence[Any], field: str, at_most: int) -> Sequence[Any]:
    if len(values) > at_most:
        raise InvalidRequest(f"{field} has {len(values)} members; at most {at_most} are allowed", field=field)
    return values


RECORDS: dict[type, Callable[[Any], Record]] = {
    NodeLine: _node,
    ChangeSetLine: _change_set,
    AccessLine: _access,
    ConversationLine: _conversation,
    TurnLine: _turn,
}
