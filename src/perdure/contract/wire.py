"""The wire form of replies: plain objects of JSON, camelCase, with a fixed order of keys.

Times are integer milliseconds since 1970-01-01T00:00:00Z. Every key of a fact, a receipt and an
explanation is always there, null where there is nothing; `explanation` of a hit and `field` and
`details` of an error are left out where there are none. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

import msgspec

from perdure.base.instants import to_millis
from perdure.contract.capabilities import Capabilities
from perdure.contract.naming import camel_case, on_the_wire
from perdure.contract.wire_governed import reference_object
from perdure.errors import PerdureError
from perdure.model.certificate import Certificate
from perdure.model.document import Deleted, Document, DocumentHit, Put
from perdure.model.fact import End, Fact, Merges, Source
from perdure.model.finding import Verified
from perdure.model.hit import ChainLink, Explanation, Hit
from perdure.model.namespace import Namespace
from perdure.model.replies import (
    Change,
    Changes,
    Consolidated,
    Embedded,
    Erased,
    Forgotten,
    Merged,
    Page,
    PurgeReceipt,
    Reindexed,
    Remembered,
)
from perdure.model.status import Status
from perdure.model.stores import Imported, StoreStats
from perdure.model.trace import Diff, Difference, Trace

JsonObject = dict[str, Any]
T = TypeVar("T")
encode = msgspec.json.Encoder().encode
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def fact_object(fact: Fact) -> JsonObject:
    # The hot part of every reply: what most facts lack takes no call, and `_value_` none of the property `value`.
    event, start, end, used = fact.event_time, fact.valid_from, fact.valid_to, fact.last_used_at
    return {
        "id": fact.id,
        "text": fact.text,
        "subject": fact.subject,
        "entities": list(fact.entities),
        "metadata": fact.metadata,
        "tags": list(fact.tags),
        "kind": fact.kind,
        "importance": fact.importance,
        "pinned": fact.pinned,
        "eventTime": None if event is None else _millis(event),
        "validFrom": None if start is None else _millis(start),
        "validTo": None if end is None else _millis(end),
        "ingestTime": _millis(fact.ingest_time),
        "ends": [end_object(one) for one in fact.ends] if fact.ends else [],
        "uses": fact.uses,
        "lastUsedAt": None if used is None else _millis(used),
        "hidden": fact.hidden,
        "source": None if fact.source is None else source_object(fact.source),
        "supersedes": list(fact.supersedes),
        "supersededBy": list(fact.superseded_by),
        "status": fact.status._value_,
        "merged": None if fact.merged is None else merges_object(fact.merged),
    }


def fact_json(fact: Fact) -> bytes:
    return encode(fact_object(fact))


def merges_object(merges: Merges) -> JsonObject:
    return {"count": merges.count, "lastAt": _millis(merges.last_at)}


def source_object(source: Source) -> JsonObject:
    """Return the fields that are there; a source has no others."""
    told = {name: getattr(source, name) for name in Source.__struct_fields__}
    return {name: value for name, value in told.items() if value is not None}


def end_object(end: End) -> JsonObject:
    """`at` is null for a retraction."""
    return {"at": _millis(end.at), "recordedAt": _millis(end.recorded_at), "reason": end.reason}


def hit_object(hit: Hit) -> JsonObject:
    shown: JsonObject = {"fact": fact_object(hit.fact), "score": hit.score, "status": hit.status._value_}
    if hit.explanation is not None:
        shown["explanation"] = explanation_object(hit.explanation)
    if hit.space is not None:
        shown["space"] = {"principal": hit.space.principal, "scope": hit.space.scope}
    return shown


def results_json(hits: Iterable[tuple[bytes, float, Status]]) -> bytes:
    """Return the reply with these hits, which have neither an explanation nor a space, from their facts as JSON."""
    shown = [
        {"fact": msgspec.Raw(fact), "score": score, "status": status._value_} for fact, score, status in hits
    ]
    return encode({"results": shown})


def results_size(hits: Iterable[Hit]) -> Iterator[int]:
    """Yield for each hit the bytes of the results up to and with it: a compact JSON array of their objects."""
    size = 2
    for place, hit in enumerate(hits):
        size += len(encode(hit_object(hit))) + (place > 0)
        yield size


def explanation_object(explanation: Explanation) -> JsonObject:
    return {
        "id": explanation.id,
        "reason": explanation.reason,
        "retrieved": explanation.retrieved,
        "rank": explanation.rank,
        "lexicalScore": explanation.lexical_score,
        "semanticScore": explanation.semantic_score,
        "retrievalScore": explanation.retrieval_score,
        "weights": dict(explanation.weights),
        "fusion": explanation.fusion,
        "matchedTerms": list(explanation.matched_terms),
        "recencyFactor": explanation.recency_factor,
        "historicalFactor": explanation.historical_factor,
        "finalScore": explanation.final_score,
        "parts": [{"name": part.name, "value": part.value} for part in explanation.parts],
        "status": None if explanation.status is None else explanation.status.value,
        "asOf": _millis(explanation.as_of),
        "knownAt": _millis(explanation.known_at),
        "validFrom": _millis(explanation.valid_from),
        "validTo": _millis(explanation.valid_to),
        "withinValidity": explanation.within_validity,
        "filteredBy": list(explanation.filtered_by),
        "chain": [chain_object(link) for link in explanation.chain],
        "source": None if explanation.source is None else source_object(explanation.source),
        "uses": explanation.uses,
        "lastUsedAt": _millis(explanation.last_used_at),
        "marks": [[start, end] for start, end in explanation.marks],
        "neighbours": [
            {"id": one.id, "distance": one.distance, "weight": one.weight, "terms": list(one.terms)}
            for one in explanation.neighbours
        ],
        "actor": explanation.actor,
        "period": explanation.period,
        "node": None if explanation.node is None else reference_object(explanation.node),
    }


def trace_object(trace: Trace) -> JsonObject:
    return {
        "query": trace.query,
        "options": _options(trace.options),
        "seen": trace.seen,
        "eligible": trace.eligible,
        "matched": trace.matched,
        "scored": trace.scored,
        "returned": trace.returned,
        "results": [hit_object(hit) for hit in trace.results],
        "rejected": [
            {
                "id": one.id,
                "reason": one.reason,
                "status": None if one.status is None else one.status.value,
                "filter": list(one.filter),
            }
            for one in trace.rejected
        ],
    }


def _options(options: Mapping[str, Any]) -> JsonObject:
    """Return options as asked, in JSON."""

    def shown(name: str, value: Any) -> Any:
        if name == "embedding":
            return [float(number) for number in value]  # also an array's own kind of numbers
        return _plain(msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value)

    return {camel_case(name): shown(name, value) for name, value in options.items()}


def diff_object(diff: Diff) -> JsonObject:
    def members(found: Iterable[Difference]) -> list[JsonObject]:
        return [
            {
                "fact": fact_object(one.fact),
                "before": None if one.before is None else one.before.value,
                "after": one.after.value,
                "by": list(one.by),
            }
            for one in found
        ]

    return {
        "knownFrom": _millis(diff.known_from),
        "knownTo": _millis(diff.known_to),
        "asOf": _millis(diff.as_of),
        "learnt": members(diff.learnt),
        "ended": members(diff.ended),
        "retracted": members(diff.retracted),
        "superseded": members(diff.superseded),
        "corrected": members(diff.corrected),
    }


def chain_object(link: ChainLink) -> JsonObject:
    return {
        "id": link.id,
        "text": link.text,
        "relation": link.relation,
        "direct": link.direct,
        "effectiveTime": _millis(link.effective_time),
        "status": link.status.value,
    }


def remembered_object(reply: Remembered) -> JsonObject:
    return {
        "id": reply.id,
        "outcome": reply.outcome,
        "created": reply.created,
        "status": None if reply.status is None else reply.status.value,
        "reason": reply.reason,
        "ingestTime": _millis(reply.ingest_time),
        "supersedes": list(reply.supersedes),
        "supersededBy": list(reply.superseded_by),
        "pending": reply.pending,
    }


def forgotten_object(reply: Forgotten) -> JsonObject:
    return {
        "forgotten": list(reply.forgotten),
        "derived": list(reply.derived),
        "dryRun": reply.dry_run,
        "purged": reply.purged,
        "pending": reply.pending,
        "certificate": None if reply.certificate is None else certificate_object(reply.certificate),
    }


def erased_object(reply: Erased) -> JsonObject:
    return {
        "spaces": [{"principal": name.principal, "scope": name.scope} for name in reply.spaces],
        "facts": reply.facts,
        "dryRun": reply.dry_run,
        "purged": reply.purged,
        "pending": reply.pending,
        "certificate": None if reply.certificate is None else certificate_object(reply.certificate),
    }


def purged_object(reply: PurgeReceipt) -> JsonObject:
    return {
        "records": reply.records,
        "dropped": reply.dropped,
        "pending": reply.pending,
        "certificate": certificate_object(reply.certificate),
    }


def certificate_object(certificate: Certificate) -> JsonObject:
    return {
        "version": certificate.version,
        "operation": certificate.operation,
        "at": _millis(certificate.at),
        "store": certificate.store,
        "epoch": certificate.epoch,
        "spaces": certificate.spaces,
        "facts": certificate.facts,
        "records": certificate.records,
        "ids": list(certificate.ids),
        "texts": list(certificate.texts),
        "steps": [{"name": step.name, "done": step.done} for step in certificate.steps],
        "pending": certificate.pending,
        "backups": [_millis(moment) for moment in certificate.backups],
        "outside": list(certificate.outside),
        "seal": certificate.seal,
        "event": None
        if certificate.event is None
        else {"sequence": certificate.event.sequence, "chain": certificate.event.chain},
    }


def consolidated_object(reply: Consolidated) -> JsonObject:
    return {
        "created": list(reply.created),
        "forgotten": list(reply.forgotten),
        "dryRun": reply.dry_run,
        "pending": reply.pending,
    }


def merged_object(reply: Merged) -> JsonObject:
    return {
        "kept": reply.kept,
        "merged": list(reply.merged),
        "dryRun": reply.dry_run,
        "tags": list(reply.tags),
        "kind": reply.kind,
        "importance": reply.importance,
        "pinned": reply.pinned,
        "metadata": reply.metadata,
    }


def page_object(page: Page[T], item: Callable[[T], JsonObject]) -> JsonObject:
    """Return a page whose items have the form that `item` gives."""
    return {
        "items": [item(one) for one in page.items],
        "total": page.total,
        "hasMore": page.has_more,
        "cursor": page.cursor,
    }


def changes_object(changes: Changes) -> JsonObject:
    return {
        "items": [change_object(change) for change in changes.items],
        "hasMore": changes.has_more,
        "cursor": changes.cursor,
    }


def change_object(change: Change) -> JsonObject:
    return {
        "sequence": change.sequence,
        "kind": change.kind,
        "at": _millis(change.at),
        "ids": list(change.ids),
        "count": change.count,
    }


def document_object(document: Document) -> JsonObject:
    return {
        "id": document.id,
        "text": document.text,
        "metadata": document.metadata,
        "version": document.version,
    }


def document_hit_object(hit: DocumentHit) -> JsonObject:
    return {"id": hit.id, "text": hit.text, "unit": hit.unit, "metadata": hit.metadata, "score": hit.score}


def put_object(reply: Put) -> JsonObject:
    return {
        "id": reply.id,
        "outcome": reply.outcome,
        "version": reply.version,
        "pending": reply.pending,
        "reason": reply.reason,
    }


def deleted_object(reply: Deleted) -> JsonObject:
    return {
        "deleted": reply.deleted,
        "purged": reply.purged,
        "pending": reply.pending,
        "certificate": None if reply.certificate is None else certificate_object(reply.certificate),
    }


def space_object(name: Namespace) -> JsonObject:
    return {"principal": name.principal, "scope": name.scope}


def stats_object(reply: StoreStats) -> JsonObject:
    return _flat(reply)


def verified_object(reply: Verified) -> JsonObject:
    found = [{"message": one.message, "space": one.space, "seq": one.seq} for one in reply.findings]
    return {"ok": reply.ok, "findings": found, "spaces": reply.spaces, "records": reply.records}


def imported_object(reply: Imported) -> JsonObject:
    return {
        "created": reply.created,
        "existing": reply.existing,
        "skipped": reply.skipped,
        "facts": reply.facts,
        "spaces": [space_object(name) for name in reply.spaces],
        "problems": [{"line": one.line, "reason": one.reason} for one in reply.problems],
        "foreignReceipts": reply.foreign_receipts,
        "dryRun": reply.dry_run,
    }


def reindexed_object(reply: Reindexed) -> JsonObject:
    return _flat(reply)


def embedded_object(reply: Embedded) -> JsonObject:
    return _flat(reply)


def _flat(reply: msgspec.Struct) -> JsonObject:
    """Return a reply whose fields are plain, as it is."""
    return {camel_case(name): getattr(reply, name) for name in reply.__struct_fields__}


def capabilities_object(reply: Capabilities) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(reply)
    return {**plain, "operations": list(plain["operations"])}


def error_object(error: PerdureError) -> JsonObject:
    """Return `{"error": …}`, the one shape of an error on every surface."""
    message, field = str(error), error.field
    if not error.in_wire_names:
        place = error.details.get("place")
        message = on_the_wire(message, place if isinstance(place, str) else "")
        field = None if field is None else on_the_wire(field)
    told: JsonObject = {"code": error.code, "message": message}
    if field is not None:
        told["field"] = field
    details = {camel_case(name): _plain(v) for name, v in error.details.items() if v is not None}
    if details:
        told["details"] = details
    return {"error": told}


def _millis(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if (
        type(moment) is datetime and moment.tzinfo is UTC
    ):  # ours are, and a reply of ten facts has forty of them
        return (moment - _EPOCH) // _MILLISECOND
    return to_millis(moment, field="time")


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, datetime):
        return _millis(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinity
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, Iterable) else type(value).__name__
