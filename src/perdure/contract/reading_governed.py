"""From replies about governed knowledge, conversations and the audit to the values of `perdure.model`."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from perdure.base.instants import to_datetime
from perdure.contract import replies as r
from perdure.model.conversation import (
    Anchor,
    Conversation,
    ConversationContext,
    ConversationEntry,
    ConversationRemembered,
    Dropped,
    DropReason,
    Role,
    SourceTurn,
)
from perdure.model.event import AuditEvent
from perdure.model.namespace import Namespace
from perdure.model.node import (
    AccessEvent,
    AccessKind,
    Evidence,
    EvidenceKind,
    Node,
    NodeHit,
    NodeKind,
    NodeReference,
    NodeStatus,
    Relation,
    RelationKind,
    RevisionKind,
    Usage,
)
from perdure.model.node_change import ChangeResult, ChangeToken, NodeChange, NodeChanges
from perdure.model.node_snapshot import Snapshot
from perdure.model.replies import Page


def read_evidence(told: r.EvidenceObject) -> Evidence:
    occurred_at = to_datetime(told.occurred_at)
    return Evidence(
        told.uri, told.digest, EvidenceKind(told.kind), occurred_at, told.quote, told.start, told.end
    )


def read_node(told: r.NodeObject) -> Node:
    return Node(
        id=told.id,
        revision=told.revision,
        kind=NodeKind(told.kind),
        status=NodeStatus(told.status),
        content=told.content,
        confidence=told.confidence,
        importance=told.importance,
        evidence=tuple(read_evidence(one) for one in told.evidence),
        relations=tuple(Relation(RelationKind(one.kind), one.target) for one in told.relations),
        labels=told.labels,
        subject=told.subject,
        valid_from=_moment(told.valid_from),
        valid_to=_moment(told.valid_to),
        created_at=to_datetime(told.created_at),
        updated_at=to_datetime(told.updated_at),
        revision_kind=RevisionKind(told.revision_kind),
        actor=told.actor,
        reason=told.reason,
        fact=told.fact,
    )


def read_reference(told: r.NodeReferenceObject) -> NodeReference:
    evidence = tuple(read_evidence(one) for one in told.evidence)
    return NodeReference(told.id, told.revision, NodeStatus(told.status), evidence)


def read_result(told: r.ChangesApplied) -> ChangeResult:
    nodes = tuple(read_node(one) for one in told.nodes)
    return ChangeResult(told.idempotency_key, to_datetime(told.occurred_at), nodes)


def read_node_page(told: r.NodePage) -> Page[Node]:
    return Page(tuple(read_node(one) for one in told.items), told.total, told.has_more, told.cursor)


def read_nodes_found(told: r.NodesFound) -> Page[NodeHit]:
    hits = tuple(NodeHit(read_node(one.node), one.bm25, one.coverage, one.score) for one in told.items)
    return Page(hits, told.total, told.has_more, told.cursor)


def read_snapshot(told: r.SnapshotReply) -> Snapshot:
    return Snapshot(
        told.profile,
        Namespace(told.namespace.principal, told.namespace.scope),
        tuple(NodeStatus(one) for one in told.statuses),
        tuple(read_node(one) for one in told.nodes),
        told.histories,
        told.byte_count,
        told.digest,
    )


def read_token(told: r.TokenObject) -> ChangeToken:
    return ChangeToken(told.sequence, told.history_id, told.head_digest, told.profile)


def read_node_changes(told: r.NodeChangesReply) -> NodeChanges:
    items = tuple(
        NodeChange(
            one.sequence,
            "erased" if one.kind == "erased" else "applied",
            _moment(one.at),
            tuple((node.id, node.revision) for node in one.nodes),
            one.forgotten,
        )
        for one in told.items
    )
    return NodeChanges(items, told.has_more, read_token(told.token))


def read_access_events(told: r.AccessEventPage) -> Page[AccessEvent]:
    items = tuple(
        AccessEvent(
            one.id,
            one.node_id,
            one.node_revision,
            to_datetime(one.occurred_at),
            one.context_id,
            one.actor,
            cast(AccessKind, one.kind),
        )
        for one in told.items
    )
    return Page(items, told.total, told.has_more, told.cursor)


def read_usage(told: r.UsageReply) -> Usage:
    return Usage(told.admissions, told.uses)


def read_conversation_remembered(told: r.ConversationRemembered) -> ConversationRemembered:
    return ConversationRemembered(
        outcome="existing" if told.outcome == "existing" else "created",
        session_id=told.session_id,
        version=told.version,
        turns=told.turns,
        chunks=told.chunks,
        recorded_at=to_datetime(told.recorded_at),
        reason=told.reason,
    )


def read_turn(told: r.SourceTurnObject) -> SourceTurn:
    return SourceTurn(
        uri=told.uri,
        session_id=told.session_id,
        version=told.version,
        position=told.position,
        source_id=told.source_id,
        role=cast(Role, told.role),
        text=told.text,
        observation_time=to_datetime(told.observation_time),
    )


def read_context(told: r.ConversationContextObject) -> ConversationContext:
    return ConversationContext(
        query=told.query,
        sources=tuple(read_turn(one) for one in told.sources),
        anchors=tuple(Anchor(one.source, one.score) for one in told.anchors),
        dropped=tuple(Dropped(one.source, cast(DropReason, one.reason), one.score) for one in told.dropped),
        verified=told.verified,
        unresolved=told.unresolved,
        byte_count=told.byte_count,
        time_ranges=tuple((_moment(start), _moment(end)) for start, end in told.time_ranges),
    )


def read_conversation(told: r.ConversationObject) -> Conversation:
    return Conversation(
        session_id=told.session_id,
        version=told.version,
        recorded_at=to_datetime(told.recorded_at),
        turns=tuple(read_turn(one) for one in told.turns),
        gaps=told.gaps,
    )


def read_conversations(told: r.ConversationPage) -> Page[ConversationEntry]:
    items = tuple(
        ConversationEntry(
            session_id=one.session_id,
            version=one.version,
            recorded_at=to_datetime(one.recorded_at),
            turns=one.turns,
            gaps=one.gaps,
        )
        for one in told.items
    )
    return Page(items, told.total, told.has_more, told.cursor)


def read_events(told: r.EventPage) -> Page[AuditEvent]:
    items = tuple(
        AuditEvent(
            one.sequence,
            one.type,
            one.fact_id,
            one.details,
            to_datetime(one.at),
            one.actor,
            one.space,
            one.node_id,
        )
        for one in told.items
    )
    return Page(items, told.total, told.has_more, told.cursor)


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else to_datetime(millis)
