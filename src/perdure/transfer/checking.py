"""From the lines of an export to records, held to the limits that every request is held to."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from perdure.base.canonical import decode_json, strict_json
from perdure.base.ids import checked_id, checked_known_id
from perdure.base.text import shown_real
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import get_profile
from perdure.log.records import (
    NO_FACT,
    AnnotationRecord,
    BlockRecord,
    EndRecord,
    FactRecord,
    HideRecord,
    LinkRecord,
    Merges,
    ReceiptItem,
    ReceiptRecord,
    Record,
    SpaceRecord,
    UseRecord,
    VectorRecord,
)
from perdure.log.records import SourceFields as SourceRecord
from perdure.model.conversation_forms import TURN_PREFIX
from perdure.model.namespace import checked_namespace
from perdure.model.node_forms import FACT_PREFIX
from perdure.model.status import Status
from perdure.planning import checks
from perdure.transfer.checking_governed import RECORDS as GOVERNED
from perdure.transfer.lines import (
    AnnotationLine,
    BlockLine,
    DocumentLine,
    EndLine,
    FactLine,
    HiddenLine,
    ItemFields,
    LinkLine,
    MergedFields,
    ReceiptLine,
    RecordLine,
    RetractionLine,
    SourceFields,
    SpaceLine,
    UseLine,
    VectorLine,
)
from perdure.transfer.values import (
    DIGEST_BYTES,
    NUMBER_MAX,
    checked_digest,
    checked_hex,
    checked_moment,
    checked_number,
    checked_numbers,
    checked_short,
    find_instant,
    find_moment,
)

K1_MAX = 1_000.0  # as in a configuration
VERSION_MAX = 2**53 - 1
SESSION_PREFIX = "perdure:session/"  # of the ids of what sessions keep, which nobody else may tell
GOVERNED_PREFIXES = (FACT_PREFIX, TURN_PREFIX)  # of the ids of what nodes and turns are seen as
STATUSES = frozenset({"", *(status.value for status in Status)})


def space_of(line: SpaceLine) -> SpaceRecord:
    """Return the first record of the space; its block key is empty where the line has none.

    Raises:
        InvalidRequest: naming the field.
    """
    name = checked_namespace(line.principal, line.scope)
    get_profile(line.profile)
    for field, low, high in (("k1", 0.0, K1_MAX), ("b", 0.0, 1.0)):
        value = getattr(line, field)
        if not low <= value <= high:
            raise InvalidRequest(f"{field} must be {low:g} to {high:g}, got {shown_real(value)}", field=field)
    key = b"" if line.block_key is None else checked_digest(line.block_key, "blockKey")
    return SpaceRecord(
        name.principal,
        name.scope,
        line.profile,
        line.k1,
        line.b,
        checked_moment(line.created_at, "createdAt"),
        key,
    )


def record_of(line: RecordLine) -> Record:
    """Return the record of a line; facts are named by their numbers in the file.

    Raises:
        InvalidRequest: naming the field that is outside its limit.
    """
    return _RECORDS[type(line)](line)


def _fact(line: FactLine) -> FactRecord:
    if line.valid_from is not None and line.valid_to is not None:
        checks.refuse_empty_interval(line.valid_from, line.valid_to)
    version = 0
    cuts: tuple[int, ...] = ()
    if isinstance(line, DocumentLine):
        text = checks.checked_body(line.text, limits.DOCUMENT_BYTES_MAX, "documents")[0]
        version = checks.checked_count(line.version, "version", 1, VERSION_MAX)
        cuts = _cuts(line.cuts, text)
    else:
        text = checks.checked_fact_text(line.text)
    return FactRecord(
        number=checked_number(line.number, "number"),
        id=_governed_id(line) if line.governed else _plain_id(line),
        text=text,
        ingest_time=checked_moment(line.ingest_time, "ingestTime"),
        subject=None if line.subject is None else checks.checked_name(line.subject, "subject"),
        valid_from=find_moment(line.valid_from, "validFrom"),
        valid_to=find_moment(line.valid_to, "validTo"),
        event_time=find_moment(line.event_time, "eventTime"),
        metadata=_metadata(line.metadata) or None,
        entities=_names(line.entities, "entities", limits.ENTITIES_MAX),
        extracted=_names(line.extracted, "extracted", limits.ENTITIES_MAX),
        tags=_names(line.tags, "tags", limits.TAGS_MAX),
        kind=checks.checked_kind(line.kind),
        importance=checks.checked_importance(line.importance),
        pinned=line.pinned,
        source=None if line.source is None else _source(line.source),
        effective_from=find_instant(line.effective_from, "effectiveFrom"),
        retelling=checks.checked_count(line.retelling, "retelling", 0, NUMBER_MAX),
        version=version,
        cuts=cuts,
        made_from=tuple(sorted(set(checked_numbers(line.made_from, "madeFrom")))),
        governed=line.governed,
    )


def _governed_id(line: FactLine) -> str:
    id_ = checked_known_id(line.id)
    if isinstance(line, DocumentLine) or not id_.startswith(GOVERNED_PREFIXES):
        raise InvalidRequest(
            f"governed is for facts whose id starts with one of {', '.join(GOVERNED_PREFIXES)}",
            field="governed",
        )
    return id_


def _plain_id(line: FactLine) -> str:
    return checked_known_id(line.id) if line.id.startswith(SESSION_PREFIX) else checked_id(line.id)


def _cuts(cuts: Sequence[int], text: str) -> tuple[int, ...]:
    bounds = (0, *cuts, len(text))
    for start, end in pairwise(bounds):
        if end <= start:
            raise InvalidRequest("cuts must ascend and lie within the text", field="cuts")
        if len(text[start:end].encode()) > limits.TEXT_BYTES_MAX:
            raise InvalidRequest(
                f"cuts leave a unit of more than {limits.TEXT_BYTES_MAX} bytes", field="cuts"
            )
    return tuple(cuts)


def _metadata(told: msgspec.Raw) -> bytes | None:
    """Return the metadata as it is stored; b"" where the object is empty, None where there is none."""
    raw = bytes(told)
    if not raw or raw == b"null":
        return None
    try:
        value = decode_json(raw)
        is_ours = checks.json_bytes(value) == raw  # so that no key is there twice
    except (msgspec.MsgspecError, RecursionError):
        is_ours = False
    found = checks.checked_metadata(value if is_ours else strict_json(raw.decode(), field="metadata"))
    return checks.json_bytes(found) or b""


def _names(values: tuple[str, ...], field: str, at_most: int) -> tuple[str, ...]:
    return checks.checked_names(values, field, at_most) if values else ()


def _source(source: SourceFields) -> SourceRecord | None:
    return checks.checked_source({name: getattr(source, name) for name in SourceFields.__struct_fields__})


def _link(line: LinkLine) -> LinkRecord:
    return LinkRecord(
        checked_number(line.newer, "newer"),
        checked_number(line.older, "older"),
        line.kind == "corrects",
        find_instant(line.effective_at, "effectiveAt"),
        checked_moment(line.known_from, "knownFrom"),
        line.told,
    )


def _end(line: EndLine) -> EndRecord:
    return EndRecord(
        checked_number(line.fact, "fact"),
        checked_moment(line.at, "at"),
        checked_moment(line.recorded_at, "recordedAt"),
        checks.checked_reason(line.reason),
    )


def _retraction(line: RetractionLine) -> EndRecord:
    number, at = checked_number(line.fact, "fact"), checked_moment(line.recorded_at, "recordedAt")
    return EndRecord(number, None, at, checks.checked_reason(line.reason))


def _annotation(line: AnnotationLine) -> AnnotationRecord:
    metadata = _metadata(line.metadata)
    return AnnotationRecord(
        checked_number(line.fact, "fact"),
        _names(line.tags, "tags", limits.TAGS_MAX),
        checks.checked_kind(line.kind),
        checks.checked_importance(line.importance),
        line.pinned,
        b"{}" if metadata == b"" else metadata,
        checked_moment(line.recorded_at, "recordedAt"),
        None if line.merged is None else _merged(line.merged),
    )


def _merged(merged: MergedFields) -> Merges:
    if len(merged.ids) > limits.MERGED_IDS_MAX:
        raise InvalidRequest(
            f"merged.ids has {len(merged.ids)} members; at most {limits.MERGED_IDS_MAX} are allowed",
            field="merged.ids",
        )
    return Merges(
        checks.checked_count(merged.count, "merged.count", 0, NUMBER_MAX),
        checked_moment(merged.last_at, "merged.lastAt"),
        tuple(checked_digest(digest, "merged.ids") for digest in merged.ids),
    )


def _vector(line: VectorLine) -> VectorRecord:
    try:
        data = b64decode(line.data, validate=True)
    except ValueError as error:
        raise InvalidRequest("data must be base64", field="data") from error
    return VectorRecord(
        checked_number(line.fact, "fact"),
        checked_number(line.unit, "unit"),
        checks.checked_vector_bytes(data, "data"),
        checks.checked_model(line.model),
        checked_moment(line.recorded_at, "recordedAt"),
    )


def _hidden(line: HiddenLine) -> HideRecord:
    return HideRecord(checked_numbers(line.facts, "facts"), checked_moment(line.recorded_at, "recordedAt"))


def _receipt(line: ReceiptLine) -> ReceiptRecord:
    return ReceiptRecord(
        checked_short(line.operation, "operation"),
        checked_digest(line.key, "key"),
        checked_digest(line.request, "request"),
        tuple(map(_item, line.items)),
        checked_moment(line.recorded_at, "recordedAt"),
        count=checks.checked_count(line.count, "count", 0, NUMBER_MAX),
    )


def _item(item: ItemFields) -> ReceiptItem:
    if item.status not in STATUSES:
        raise InvalidRequest("items have a status that is not known", field="items")
    return ReceiptItem(
        checks.checked_count(item.fact, "items.fact", NO_FACT, NUMBER_MAX),
        checked_short(item.outcome, "items.outcome"),
        item.status,
        checked_numbers(item.supersedes, "items.supersedes"),
        checked_numbers(item.superseded_by, "items.supersededBy"),
        checks.checked_reason(item.reason),
    )


def _use(line: UseLine) -> UseRecord:
    context = checked_hex(line.context, "context")
    if len(context) not in (0, DIGEST_BYTES):  # it stays when a fact of it is forgotten, so it may be no text
        raise InvalidRequest(
            f"context must be empty, or {DIGEST_BYTES} bytes in hexadecimal: a digest", field="context"
        )
    return UseRecord(
        checked_numbers(line.facts, "facts"), context, checked_moment(line.recorded_at, "recordedAt")
    )


def _block(line: BlockLine) -> BlockRecord:
    key = b"" if line.key is None else checked_digest(line.key, "key")
    digests = tuple(checked_digest(digest, "digests") for digest in line.digests)
    return BlockRecord(digests, checked_moment(line.recorded_at, "recordedAt"), key)


_RECORDS: dict[type, Callable[[Any], Record]] = {
    FactLine: _fact,
    DocumentLine: _fact,
    LinkLine: _link,
    EndLine: _end,
    RetractionLine: _retraction,
    AnnotationLine: _annotation,
    VectorLine: _vector,
    HiddenLine: _hidden,
    ReceiptLine: _receipt,
    UseLine: _use,
    BlockLine: _block,
    **GOVERNED,
}
