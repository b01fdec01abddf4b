"""The wire form of governed knowledge, of conversations and of the audit: plain objects of JSON as in `wire`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from perdure.base.instants import Instant, to_millis
from perdure.model.conversation import (
    Conversation,
    ConversationContext,
    ConversationEntry,
    ConversationRemembered,
)
from perdure.model.conversation_forms import source_object
from perdure.model.event import AuditEvent
from perdure.model.node import AccessEvent, Evidence, Node, NodeHit, NodeReference, Relation, Usage
from perdure.model.node_change import ChangeResult, ChangeToken, NodeChange, NodeChanges
from perdure.model.node_snapshot import Snapshot

JsonObject = dict[str, Any]


def evidence_object(evidence: Evidence) -> JsonObject:
    return {
        "uri": evidence.uri,
        "digest": evidence.digest,
        "kind": str(evidence.kind),
        "occurredAt": _millis(evidence.occurred_at),
        "quote": evidence.quote,
        "start": evidence.start,
        "end": evidence.end,
    }


def relation_object(relation: Relation) -> JsonObject:
    """`target` is null where that node was forgotten."""
    return {"kind": str(relation.kind), "target": relation.target}


def node_object(node: Node) -> JsonObject:
    return {
        "id": node.id,
        "revision": node.revision,
        "kind": node.kind.value,
        "status": node.status.value,
        "content": node.content,
        "confidence": node.confidence,
        "importance": node.importance,
        "evidence": [evidence_object(one) for one in node.evidence],
        "relations": [relation_object(one) for one in node.relations],
        "labels": node.labels,
        "subject": node.subject,
        "validFrom": _find_millis(node.valid_from),
        "validTo": _find_millis(node.valid_to),
        "createdAt": _millis(node.created_at),
        "updatedAt": _millis(node.updated_at),
        "revisionKind": node.revision_kind.value,
        "actor": node.actor,
        "reason": node.reason,
        "fact": node.fact,
    }


def reference_object(reference: NodeReference) -> JsonObject:
    return {
        "id": reference.id,
        "revision": reference.revision,
        "status": reference.status.value,
        "evidence": [evidence_object(one) for one in reference.evidence],
    }


def result_object(result: ChangeResult) -> JsonObject:
    return {
        "idempotencyKey": result.idempotency_key,
        "occurredAt": _millis(result.occurred_at),
        "nodes": [node_object(one) for one in result.nodes],
    }


def node_hit_object(hit: NodeHit) -> JsonObject:
    return {"node": node_object(hit.node), "bm25": hit.bm25, "coverage": hit.coverage, "score": hit.score}


def snapshot_object(snapshot: Snapshot) -> JsonObject:
    return {
        "profile": snapshot.profile,
        "namespace": {"principal": snapshot.namespace.principal, "scope": snapshot.namespace.scope},
        "statuses": [one.value for one in snapshot.statuses],
        "nodes": [node_object(one) for one in snapshot.nodes],
        "histories": list(snapshot.histories),
        "byteCount": snapshot.byte_count,
        "digest": snapshot.digest,
    }


def token_object(token: ChangeToken) -> JsonObject:
    return {
        "sequence": token.sequence,
        "historyId": token.history_id,
        "headDigest": token.head_digest,
        "profile": token.profile,
    }


def node_change_object(change: NodeChange) -> JsonObject:
    return {
        "sequence": change.sequence,
        "kind": change.kind,
        "at": _find_millis(change.at),
        "nodes": [{"id": id_, "revision": revision} for id_, revision in change.nodes],
        "forgotten": change.forgotten,
    }


def node_changes_object(changes: NodeChanges) -> JsonObject:
    return {
        "items": [node_change_object(one) for one in changes.items],
        "hasMore": changes.has_more,
        "token": token_object(changes.token),
    }


def access_event_object(event: AccessEvent) -> JsonObject:
    return {
        "id": event.id,
        "nodeId": event.node_id,
        "nodeRevision": event.node_revision,
        "occurredAt": _millis(event.occurred_at),
        "contextId": event.context_id,
        "actor": event.actor,
        "kind": event.kind,
    }


def usage_object(usage: Usage) -> JsonObject:
    return {"admissions": usage.admissions, "uses": usage.uses}


def conversation_remembered_object(receipt: ConversationRemembered) -> JsonObject:
    return {
        "outcome": receipt.outcome,
        "sessionId": receipt.session_id,
        "version": receipt.version,
        "turns": receipt.turns,
        "chunks": receipt.chunks,
        "recordedAt": _millis(receipt.recorded_at),
        "reason": receipt.reason,
    }


def context_object(context: ConversationContext) -> JsonObject:
    """`sources` takes `byteCount` bytes as compact JSON."""
    return {
        "query": context.query,
        "sources": [source_object(one) for one in context.sources],
        "anchors": [{"source": one.source, "score": one.score} for one in context.anchors],
        "dropped": [
            {"source": one.source, "reason": one.reason, "score": one.score} for one in context.dropped
        ],
        "verified": context.verified,
        "unresolved": list(context.unresolved),
        "byteCount": context.byte_count,
        "timeRanges": [[_find_millis(start), _find_millis(end)] for start, end in context.time_ranges],
    }


def conversation_object(conversation: Conversation) -> JsonObject:
    return {
        "sessionId": conversation.session_id,
        "version": conversation.version,
        "recordedAt": _millis(conversation.recorded_at),
        "turns": [source_object(one) for one in conversation.turns],
        "gaps": list(conversation.gaps),
    }


def conversation_entry_object(entry: ConversationEntry) -> JsonObject:
    return {
        "sessionId": entry.session_id,
        "version": entry.version,
        "recordedAt": _millis(entry.recorded_at),
        "turns": entry.turns,
        "gaps": list(entry.gaps),
    }


def event_object(event: AuditEvent) -> JsonObject:
    return {
        "sequence": event.sequence,
        "type": event.type,
        "factId": event.fact_id,
        "nodeId": event.node_id,
        "details": event.details,
        "at": _millis(event.at),
        "actor": event.actor,
        "space": event.space,
    }


def _millis(moment: Instant) -> int:
    return to_millis(moment, field="time")


def _find_millis(moment: datetime | None) -> int | None:
    return None if moment is None else _millis(moment)
