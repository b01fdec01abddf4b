"""Access records: which revisions went into prompts, and which were used. Counted only where a caller says so."""

from __future__ import annotations

from perdure.base.instants import to_millis
from perdure.errors import InvalidRequest
from perdure.log.protocol import Log
from perdure.log.records import AccessRecord
from perdure.model.node import AccessEvent, NodeStatus
from perdure.model.replies import Page
from perdure.repository.canonical import canonical_event
from perdure.repository.stored import StoredNodes
from perdure.repository_errors import (
    AdmissionNotAllowed,
    IdempotencyConflict,
    NodeNotFound,
    NodeRevisionNotFound,
)
from perdure.search.cursors import CursorCodec
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.nodes import NodeHead, access_key


def plan_access(draft: Draft, log: Log, event: AccessEvent) -> None:
    """Plan a checked event; one that is told again changes nothing."""
    nodes = StoredNodes(draft.state, FactReader(log, draft.state.number))
    kept = nodes.table.access.get(access_key(event.kind, event.id, draft.secret))
    if kept is not None:
        if canonical_event(nodes.event(kept)) != canonical_event(event):
            raise IdempotencyConflict(event.id, field="id")
        return
    head = nodes.table.find(event.node_id)
    if head is None:
        raise NodeNotFound(event.node_id)
    _check_revision(nodes, head, event)
    draft.add(
        AccessRecord(
            kind=event.kind,
            id=event.id,
            node=head.number,
            revision=event.node_revision,
            occurred_at=to_millis(event.occurred_at, field="occurred_at"),
            recorded_at=draft.now,
            context=event.context_id,
            actor=event.actor,
        )
    )


def _check_revision(nodes: StoredNodes, head: NodeHead, event: AccessEvent) -> None:
    if event.node_revision > head.revision:
        raise NodeRevisionNotFound(head.id, event.node_revision)
    is_served = event.node_revision == head.revision and head.status == NodeStatus.ACTIVE
    if event.kind == "admission" and not is_served:
        raise AdmissionNotAllowed(head.id, event.node_revision, head.revision, head.status)
    (node,) = nodes.revisions([(head, event.node_revision)])
    if to_millis(event.occurred_at, field="occurred_at") < to_millis(node.updated_at, field="updated_at"):
        raise InvalidRequest(
            "occurred_at of an access must not lie before the revision that it names", field="occurred_at"
        )


def list_events(
    nodes: StoredNodes, head: NodeHead, kind: str | None, limit: int, cursor: str | None, codec: CursorCodec
) -> Page[AccessEvent]:
    """Return a page of a node's events in the order in which they were recorded."""
    told = [(seq, nodes.event(seq)) for seq in head.access]
    events = [(seq, event) for seq, event in told if kind is None or event.kind == kind]
    start = 0 if cursor is None else sum(1 for seq, _ in events if seq <= codec.decode(cursor))
    part = events[start : start + limit]
    has_more = start + limit < len(events)
    after = codec.encode(part[-1][0]) if has_more else None
    return Page(tuple(event for _, event in part), len(events), has_more, after)
