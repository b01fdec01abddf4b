"""Planning a change set: its receipt, its revisions, the facts that they are seen as, all in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from perdure.base.ids import keyed_hash
from perdure.base.instants import to_datetime, to_millis
from perdure.base.members import within
from perdure.errors import NotFound
from perdure.log.protocol import Log
from perdure.log.records import NO_FACT, ChangeSetRecord
from perdure.model.node import Node, NodeStatus
from perdure.model.node_change import ChangeResult, ChangeSet
from perdure.model.node_forms import fact_id
from perdure.planning.blocks import refuse_blocked
from perdure.planning.embedding import Vectors
from perdure.repository.canonical import canonical_change_set
from perdure.repository.changes import Staged, stage
from perdure.repository.graph import check_graph
from perdure.repository.projection import project, texts_to_embed
from perdure.repository.quotes import CheckedQuotes
from perdure.repository.stored import StoredNodes, find_fact, record_of
from perdure.repository_errors import IdempotencyConflict
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState


@dataclass(frozen=True, slots=True)
class Request:
    """A checked change set with the keyed digests by which it is known again."""

    changes: ChangeSet
    key: bytes
    digest: bytes

    @classmethod
    def of(cls, changes: ChangeSet, secret: bytes) -> Request:
        key = keyed_hash(secret, b"change set", changes.idempotency_key.encode())
        digest = keyed_hash(secret, b"request", canonical_change_set(changes))
        return cls(changes, key, digest)


def find_result(state: SpaceState, nodes: StoredNodes, request: Request) -> ChangeResult | None:
    """Return what the change set came to when it was told first; None where it is new.

    Raises IdempotencyConflict where its key stands for another one, NotFound (reason "forgotten") where a node that it
    changed was forgotten since.
    """
    receipt = state.nodes.receipts.get(request.key)
    if receipt is None:
        return None
    if receipt.record.lost:
        raise NotFound(
            "what this idempotency_key changed was forgotten since; use another key to tell it anew",
            field="idempotency_key",
            reason="forgotten",
        )
    if receipt.record.request != request.digest:
        raise IdempotencyConflict(request.changes.idempotency_key)
    heads = state.nodes.heads
    found = nodes.revisions([(heads[number], revision) for number, revision in receipt.record.nodes])
    return ChangeResult(
        request.changes.idempotency_key,
        to_datetime(receipt.record.occurred_at),
        tuple(sorted(found, key=lambda node: node.id)),
    )


def find_texts(
    state: SpaceState, nodes: StoredNodes, request: Request, decision_kinds: Collection[str]
) -> list[str]:
    """Return the texts that a change set would have recalls see, as far as is known before the writer's turn.

    Raises what `stage` raises where it cannot be done as things are.
    """
    if find_result(state, nodes, request) is not None:
        return []
    return texts_to_embed(stage(request.changes, nodes, decision_kinds))


def plan_apply(
    draft: Draft,
    log: Log,
    request: Request,
    decision_kinds: Collection[str],
    vectors: Mapping[str, Vectors],
    quotes: CheckedQuotes | None = None,
) -> ChangeResult:
    """Plan a change set; return what it comes to. The draft is the state itself: it was asked for alone.

    Raises TurnsMoved where its quotes have to be checked again.
    """
    # The reader knows the space by its number, which a purge may have changed since the caller last read.
    nodes = StoredNodes(draft.state, FactReader(log, draft.state.number))
    kept = find_result(draft.state, nodes, request)
    if kept is not None:
        return kept
    if quotes is not None:
        quotes.hold(draft)
    staged = stage(request.changes, nodes, decision_kinds)
    check_graph(staged)
    for place, node in enumerate(staged.revisions):  # each operation makes one
        is_new = node.revision == 1
        with within(f"operations[{place}]{'.draft' if is_new else ''}"):
            fields = ("id" if is_new else "node_id", "content")
            refuse_blocked(draft, fact_id(node.id, node.revision), node.content, fields)
    facts = project(draft, staged, vectors)
    _add_records(draft, staged, request, facts)
    return ChangeResult(
        request.changes.idempotency_key,
        staged.occurred_at,
        tuple(_seen_as(draft, staged.heads[node_id], facts) for node_id in sorted(staged.heads)),
    )


def _add_records(draft: Draft, staged: Staged, request: Request, facts: dict[str, int]) -> None:
    table = draft.state.nodes
    numbers: dict[str, int] = {}
    for node in staged.revisions:
        if node.revision == 1:
            numbers[node.id] = table.next_number + len(numbers)
    for node in staged.revisions:
        for id_ in (node.id, *(one.target for one in node.relations if one.target is not None)):
            if id_ not in numbers:
                numbers[id_] = table.numbers[id_]
    for node in staged.revisions:
        is_last = node is staged.heads[node.id]
        fact = facts.get(node.id, NO_FACT) if is_last else NO_FACT
        draft.add(record_of(node, numbers, fact, draft.now))
    draft.add(
        ChangeSetRecord(
            key=request.key,
            request=request.digest,
            nodes=tuple(sorted((numbers[id_], head.revision) for id_, head in staged.heads.items())),
            occurred_at=to_millis(staged.occurred_at, field="occurred_at"),
            recorded_at=draft.now,
            step=table.sequence + 1,
        )
    )


def _seen_as(draft: Draft, node: Node, facts: dict[str, int]) -> Node:
    """Return the node with the id of the fact that it is seen as from now on."""
    if node.id in facts:
        fact: str | None = fact_id(node.id, node.revision)
    else:
        head = draft.state.nodes.find(node.id)
        is_active = node.status is NodeStatus.ACTIVE
        fact = None if head is None or not is_active else find_fact(head, head.revision, node.status)
    return msgspec.structs.replace(node, fact=fact)
