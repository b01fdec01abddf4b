"""The lifecycle of a node: which status may follow which, what decides, and what can no longer be changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from perdure.model.node import Evidence, NodeStatus
from perdure.repository_errors import EvidenceRequired, InvalidTransition, InvariantViolation
from perdure.space.node_rules import FROZEN, NEXT

ABSENT = "absent"  # in place of the status of a node that is created


def check_transition(node_id: str, source: NodeStatus, target: NodeStatus) -> None:
    """Raise InvalidTransition unless the lifecycle has this step."""
    if target not in NEXT[source]:
        raise InvalidTransition(node_id, source.value, target.value)


def check_changeable(node_id: str, status: NodeStatus) -> None:
    """Raise InvariantViolation where the node has come to its end: superseded or tombstoned."""
    if status in FROZEN:
        raise InvariantViolation(
            f"the node is {status.value}, so only its status may still change",
            field="node_id",
            node_id=node_id,
        )


def check_decided(node_id: str, evidence: Iterable[Evidence], decision_kinds: Collection[str]) -> None:
    """Raise EvidenceRequired unless one of the operation's evidence is of a kind that decides."""
    given = tuple(one.kind for one in evidence)
    if not any(kind in decision_kinds for kind in given):
        raise EvidenceRequired(node_id, decision_kinds=tuple(sorted(decision_kinds)), given=given)
