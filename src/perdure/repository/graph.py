"""What must hold between nodes once a change set is done.

Every edge is kept at both ends. A superseded node has a superseder and a conflicted one a node that it conflicts with
(or had one that was forgotten since: edges to forgotten nodes count, and are never followed). What a node supersedes is
superseded or tombstoned, and a node is active when it comes to supersede another one.

Supersession has therefore no cycle: the node at the head of a new edge is active, and nothing that is active is
superseded by anything, so that no path leads back to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.base.members import within
from perdure.model.node import Node, NodeStatus, Relation, RelationKind
from perdure.model.node_limits import CLOSURE_MAX
from perdure.repository.changes import Edges, Staged
from perdure.repository_errors import InvariantViolation, LimitExceeded, RelationTargetNotFound
from perdure.space.node_rules import FROZEN, NEEDED


def check_graph(staged: Staged) -> None:
    """Check the changed nodes, ascending by id, then the others that an edge joins to them now or did before.

    What is wrong with a changed node is told of the last operation that changed it.

    Raises:
        RelationTargetNotFound: an edge leads to a node that is not there.
        InvariantViolation: a rule above is broken.
        LimitExceeded: more than 65,536 nodes would have to be looked at.
    """
    neighbours = _neighbours(staged)
    last = {
        node.id: place for place, node in enumerate(staged.revisions)
    }  # each operation makes one revision
    for node_id in sorted(staged.heads):
        head = staged.heads[node_id]
        is_new = staged.before[node_id] is None and head.revision == 1
        with within(f"operations[{last[node_id]}]{'.draft' if is_new else ''}"):
            _check_node(staged, node_id, Edges(head.status, head.relations), head.relations)
            _check_new_supersessions(staged, head)
    for node_id in sorted(neighbours):
        edges = staged.find_edges(node_id)
        if edges is not None:
            # Its edges to nodes that did not change were right before.
            joined = tuple(one for one in edges.relations if one.target in staged.heads)
            _check_node(staged, node_id, edges, joined)


def _neighbours(staged: Staged) -> set[str]:
    """Return the ids at the other ends of edges of changed nodes, as these are and as they were."""
    found: set[str] = set()
    for node_id, head in staged.heads.items():
        before = staged.before[node_id]
        for node in (head, before) if before is not None else (head,):
            found.update(one.target for one in node.relations if one.target is not None)
        if len(found) + len(staged.heads) > CLOSURE_MAX:
            raise LimitExceeded("nodes of a change set", CLOSURE_MAX, len(found) + len(staged.heads))
    return found - staged.heads.keys()


def _check_node(staged: Staged, node_id: str, edges: Edges, checked: Iterable[Relation]) -> None:
    needed = NEEDED.get(edges.status)
    if needed is not None and not any(one.kind is needed for one in edges.relations):
        raise InvariantViolation(
            f"a {edges.status.value} node needs a relation of the kind {needed.value}",
            field="relations",
            node_id=node_id,
        )
    for relation in checked:
        if relation.target is not None:
            _check_edge(staged, node_id, relation, relation.target)


def _check_edge(staged: Staged, node_id: str, relation: Relation, target_id: str) -> None:
    target = staged.find_edges(target_id)
    if target is None:
        raise RelationTargetNotFound(node_id, target_id, field="relations")
    kind = RelationKind(relation.kind)
    if Relation(kind.inverse, node_id) not in target.relations:
        raise InvariantViolation(
            f"a relation of the kind {kind.value} needs {kind.inverse.value} at its other end: write both in "
            "one change set",
            field="relations",
            node_id=node_id,
            target_id=target_id,
        )
    if kind is RelationKind.SUPERSEDES and target.status not in FROZEN:
        raise InvariantViolation(
            f"what a node supersedes must be superseded or tombstoned, and is {target.status.value}",
            field="relations",
            node_id=node_id,
            target_id=target_id,
        )


def _check_new_supersessions(staged: Staged, node: Node) -> None:
    if node.status is NodeStatus.ACTIVE:
        return
    before = staged.before[node.id]
    known = () if before is None else before.relations
    if any(one.kind is RelationKind.SUPERSEDES and one not in known for one in node.relations):
        raise InvariantViolation(
            f"only an active node supersedes another one, and this one is {node.status.value}",
            field="relations",
            node_id=node.id,
        )
