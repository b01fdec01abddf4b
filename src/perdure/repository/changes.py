"""What a change set makes of nodes: every revision in order, or the first thing that speaks against it.

Nothing is stored here, and no clock is read. Operations see what those before them did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET

from perdure.base.members import within
from perdure.errors import InvalidRequest
from perdure.model.node import (
    Evidence,
    EvidenceKind,
    Node,
    NodeStatus,
    Relation,
    RelationKind,
    RevisionKind,
)
from perdure.model.node_change import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    Operation,
    Relabel,
    RemoveRelation,
    Resolve,
    Revise,
    SetStatus,
)
from perdure.model.node_limits import EVIDENCE_MAX, RELATIONS_MAX
from perdure.repository.checks import check_validity
from perdure.repository.lifecycle import ABSENT, check_changeable, check_decided, check_transition
from perdure.repository_errors import (
    EvidenceRequired,
    InvalidTransition,
    InvariantViolation,
    LimitExceeded,
    NodeAlreadyExists,
    NodeNotFound,
    RevisionConflict,
)

_EVIDENCE_ORDER = {kind: place for place, kind in enumerate(EvidenceKind)}
_RELATION_ORDER = {kind: place for place, kind in enumerate(RelationKind)}
_SETTABLE = (NodeStatus.SUPERSEDED, NodeStatus.CONFLICTED, NodeStatus.TOMBSTONED)


class Edges(NamedTuple):
    """What the graph asks of a node."""

    status: NodeStatus
    relations: tuple[Relation, ...]


class Nodes(Protocol):
    """The nodes that are stored."""

    def find(self, id_: str) -> Node | None:
        """Return the head of the node of this id, or None."""
        ...

    def find_edges(self, id_: str) -> Edges | None:
        """Return what `find` would say of it; cheap."""
        ...


@dataclass(slots=True)
class Staged:
    """What a change set comes to. `before` holds the stored heads of changed nodes, None for new ones."""

    nodes: Nodes
    decision_kinds: frozenset[str]
    occurred_at: datetime
    revisions: list[Node] = field(default_factory=list)  # every one that is made, in order
    heads: dict[str, Node] = field(default_factory=dict)  # of the changed nodes, as they end
    before: dict[str, Node | None] = field(default_factory=dict)

    def find(self, id_: str) -> Node | None:
        """Return the node as it stands after the operations so far."""
        return self.heads.get(id_) or self.nodes.find(id_)

    def find_edges(self, id_: str) -> Edges | None:
        """Return what `find` would say of it; cheap."""
        head = self.heads.get(id_)
        return self.nodes.find_edges(id_) if head is None else Edges(head.status, head.relations)

    def put(self, node: Node) -> None:
        """Add a revision."""
        if node.id not in self.before:
            self.before[node.id] = self.nodes.find(node.id)
        self.heads[node.id] = node
        self.revisions.append(node)


def stage(changes: ChangeSet, nodes: Nodes, decision_kinds: Collection[str]) -> Staged:
    """Return what a checked change set makes of the nodes, its graph not yet looked at.

    Raises what the first operation that cannot be done says: see the classes of `perdure.repository_errors`.
    """
    assert isinstance(changes.occurred_at, datetime)
    staged = Staged(nodes, frozenset(decision_kinds), changes.occurred_at)
    for place, operation in enumerate(changes.operations):
        with within(f"operations[{place}]"):
            _OPERATIONS[type(operation)](staged, operation)
    return staged


def _create(staged: Staged, operation: Any) -> None:
    draft = operation.draft
    if draft.status not in (NodeStatus.CANDIDATE, NodeStatus.ACTIVE):
        raise InvalidTransition(draft.id, ABSENT, draft.status)
    if draft.created_at > staged.occurred_at:
        raise InvalidRequest(
            "draft.created_at must not lie after occurred_at of the change set", field="draft.created_at"
        )
    if staged.find(draft.id) is not None:
        raise NodeAlreadyExists(draft.id)
    with within("draft"):
        _check_times(draft.evidence, staged.occurred_at)
        if not draft.evidence:
            raise EvidenceRequired(draft.id)
        if draft.status is NodeStatus.ACTIVE:
            check_decided(draft.id, draft.evidence, staged.decision_kinds)
        _check_new_evidence(draft.id, (), draft.evidence)
        _check_relations(draft.id, draft.relations)
    staged.put(
        Node(
            id=draft.id,
            revision=1,
            kind=draft.kind,
            status=draft.status,
            content=draft.content,
            confidence=draft.confidence,
            importance=draft.importance,
            evidence=draft.evidence,
            relations=draft.relations,
            labels=draft.labels,
            subject=draft.subject,
            valid_from=draft.valid_from,
            valid_to=draft.valid_to,
            created_at=draft.created_at,
            updated_at=draft.created_at,
            revision_kind=RevisionKind.CREATED,
            actor=operation.actor,
            reason=operation.reason,
        )
    )


def _activate(staged: Staged, operation: Any) -> None:
    node = _named(staged, operation, needs_evidence=True)
    if node.status is not NodeStatus.CANDIDATE:
        raise InvalidTransition(node.id, node.status.value, NodeStatus.ACTIVE.value)
    check_decided(node.id, operation.evidence, staged.decision_kinds)
    _revise(staged, node, operation, RevisionKind.ACTIVATED, status=NodeStatus.ACTIVE)


def _corroborate(staged: Staged, operation: Any) -> None:
    node = _named(staged, operation, needs_evidence=True)
    check_changeable(node.id, node.status)
    _revise(staged, node, operation, RevisionKind.CORROBORATED)


def _restate(staged: Staged, operation: Any) -> None:
    node = _named(staged, operation, needs_evidence=True)
    check_changeable(node.id, node.status)
    given = {
        name: value
        for name in ("confidence", "importance")
        if (value := getattr(operation, name)) is not None
    }
    kind = RevisionKind.REFINED if operation.mode == "refinement" else RevisionKind.CORRECTED
    _revise(staged, node, operation, kind, content=operation.content, **given)


def _relabel(staged: Staged, operation: Any) -> None:
    node = _named(staged, operation)
    check_changeable(node.id, node.status)
    names = ("labels", "subject", "valid_from", "valid_to")
    given = {name: value for name in names if (value := getattr(operation, name)) is not UNSET}
    check_validity(given.get("valid_from", node.valid_from), given.get("valid_to", node.valid_to))
    _revise(staged, node, operation, RevisionKind.RELABELLED, **given)


def _add_relation(staged: Staged, operation: Any) -> None:
    _refuse_self(operation.node_id, operation.relation)
    node = _related(staged, operation)
    if operation.relation in node.relations:
        raise InvariantViolation("the node has this relation already", field="relation", node_id=node.id)
    if len(node.relations) >= RELATIONS_MAX:
        raise LimitExceeded("relations", RELATIONS_MAX, len(node.relations) + 1)
    relations = sorted((*node.relations, operation.relation), key=_relation_key)
    _revise(staged, node, operation, RevisionKind.RELATION_CHANGED, relations=tuple(relations))


def _remove_relation(staged: Staged, operation: Any) -> None:
    _refuse_self(operation.node_id, operation.relation)
    node = _related(staged, operation)
    if operation.relation not in node.relations:
        raise InvariantViolation("the node has no such relation", field="relation", node_id=node.id)
    relations = tuple(one for one in node.relations if one != operation.relation)
    _revise(staged, node, operation, RevisionKind.RELATION_CHANGED, relations=relations)


def _set_status(staged: Staged, operation: Any) -> None:
    if operation.status not in _SETTABLE:
        raise InvalidRequest(
            f"status must be one of {', '.join(_SETTABLE)}, got {operation.status}: activate makes a candidate "
            "active, resolve a conflicted node",
            field="status",
        )
    node = _named(staged, operation)
    check_transition(node.id, node.status, operation.status)
    if node.status is NodeStatus.ACTIVE:
        check_decided(node.id, operation.evidence, staged.decision_kinds)
    _revise(staged, node, operation, RevisionKind.STATUS_CHANGED, status=operation.status)


def _resolve(staged: Staged, operation: Any) -> None:
    node = _named(staged, operation, needs_evidence=True)
    if node.status is not NodeStatus.CONFLICTED:
        raise InvalidTransition(node.id, node.status.value, NodeStatus.ACTIVE.value)
    check_decided(node.id, operation.evidence, staged.decision_kinds)
    _revise(staged, node, operation, RevisionKind.RESOLVED, status=NodeStatus.ACTIVE)


_OPERATIONS: dict[type[Operation], Callable[[Staged, Any], None]] = {
    Create: _create,
    Activate: _activate,
    Corroborate: _corroborate,
    Revise: _restate,
    Relabel: _relabel,
    AddRelation: _add_relation,
    RemoveRelation: _remove_relation,
    SetStatus: _set_status,
    Resolve: _resolve,
}


def _named(staged: Staged, operation: Any, *, needs_evidence: bool = False) -> Node:
    """Return the node that an operation names, at the revision that it expects."""
    if needs_evidence and not operation.evidence:
        raise EvidenceRequired(operation.node_id)
    _check_times(operation.evidence, staged.occurred_at)
    node = staged.find(operation.node_id)
    if node is None:
        raise NodeNotFound(operation.node_id)
    if node.revision != operation.expected_revision:
        raise RevisionConflict(node.id, operation.expected_revision, node.revision)
    return node


def _related(staged: Staged, operation: Any) -> Node:
    node = _named(staged, operation)
    check_changeable(node.id, node.status)
    if node.status is NodeStatus.ACTIVE and not operation.evidence:
        raise EvidenceRequired(node.id)
    return node


def _revise(staged: Staged, node: Node, operation: Any, kind: RevisionKind, **changes: Any) -> None:
    """Add the node's next revision, with the operation's evidence."""
    _check_new_evidence(node.id, node.evidence, operation.evidence)
    if staged.occurred_at < node.updated_at:
        raise InvalidRequest(
            "occurred_at must not lie before a changed node was updated last", field="occurred_at"
        )
    evidence = node.evidence
    if operation.evidence:
        evidence = tuple(sorted((*evidence, *operation.evidence), key=_evidence_key))
    staged.put(
        msgspec.structs.replace(
            node,
            revision=node.revision + 1,
            updated_at=staged.occurred_at,
            revision_kind=kind,
            actor=operation.actor,
            reason=operation.reason,
            evidence=evidence,
            fact=None,
            **changes,
        )
    )


def _check_times(evidence: tuple[Evidence, ...], occurred_at: datetime) -> None:
    for one in evidence:
        assert isinstance(one.occurred_at, datetime)
        if one.occurred_at > occurred_at:
            raise InvalidRequest(
                "evidence.occurred_at must not lie after occurred_at of the change set",
                field="evidence.occurred_at",
            )


def _check_new_evidence(node_id: str, there: tuple[Evidence, ...], new: tuple[Evidence, ...]) -> None:
    if len(there) + len(new) > EVIDENCE_MAX:
        raise LimitExceeded("evidence", EVIDENCE_MAX, len(there) + len(new))
    known = {(one.uri, one.digest) for one in there}
    for one in new:
        if (one.uri, one.digest) in known:
            raise InvariantViolation(
                "evidence of one node must differ by uri or digest, and one of these comes twice",
                field="evidence",
                node_id=node_id,
            )
        known.add((one.uri, one.digest))


def _check_relations(node_id: str, relations: tuple[Relation, ...]) -> None:
    for one in relations:
        _refuse_self(node_id, one)
    if len(set(relations)) != len(relations):
        raise InvariantViolation("one of the relations comes twice", field="relations", node_id=node_id)


def _refuse_self(node_id: str, relation: Relation) -> None:
    if relation.target == node_id:
        raise InvariantViolation("a node has no relation to itself", field="relation", node_id=node_id)


def _evidence_key(one: Evidence) -> tuple[str, str, int, Any]:
    return one.uri, one.digest, _EVIDENCE_ORDER[EvidenceKind(one.kind)], one.occurred_at


def _relation_key(one: Relation) -> tuple[int, str]:
    return _RELATION_ORDER[RelationKind(one.kind)], one.target or ""
