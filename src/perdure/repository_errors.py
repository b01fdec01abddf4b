"""What a repository of governed knowledge refuses, each kind as a class with its fields as attributes.

Each is one of the categories of `perdure.errors`, whose code it shares on every surface; `details["kind"]` is the
class's name in snake_case there. A wrong form (a field of another type, a blank text, a number out of range) is a
plain InvalidRequest that names the field.

InvalidRequest
├── EvidenceRequired        the operation needs evidence that it does not bring
├── QuoteNotFound           the quote is not in the turn that it is said to come from
├── StatusNotSelected       a snapshot was given a node of a status that was not asked for
└── QueryLimit
    └── LimitExceeded       a text, a list or a view is larger than it may be
NotFound
├── NodeNotFound
├── NodeRevisionNotFound
└── RelationTargetNotFound
Conflict
├── NodeAlreadyExists
├── RevisionConflict        the node moved on after the caller read it
├── IdempotencyConflict     the key, or the id of an event, stands for something else
├── InvalidTransition       the lifecycle has no such step
├── InvariantViolation      the graph or a node would contradict itself
├── AdmissionNotAllowed     what was served is not the active head
└── HistoryChanged          the token is of another history: a purge or an old backup came between
"""

from __future__ import annotations

import re
from typing import Any

from perdure.errors import Conflict, InvalidRequest, NotFound, PerdureError, QueryLimit

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")
_INDEX = re.compile(r"\[\d+\]")


class EvidenceRequired(InvalidRequest):
    """The operation brings no evidence, or none of a kind that decides. Told before anything is changed."""

    def __init__(
        self, node_id: str, *, decision_kinds: tuple[str, ...] = (), given: tuple[str, ...] = ()
    ) -> None:
        """`given` are the kinds of the evidence that the operation brings."""
        decision_kinds = tuple(map(str.__str__, decision_kinds))  # of enums, what they spell
        found = tuple(sorted(set(map(str.__str__, given))))
        wanted = _kinds(decision_kinds) if decision_kinds else ""
        message = "evidence is missing: this operation needs at least one that is new" + (
            f", of {wanted}" if wanted else ""
        )
        if found:
            none = "which does not decide" if len(found) == 1 else "none of which decides"
            message = f"evidence is of {_kinds(found)}, {none}: this operation needs at least one of {wanted}"
        super().__init__(
            message,
            field="evidence",
            kind="evidence_required",
            node_id=node_id,
            decision_kinds=decision_kinds,
        )
        self.node_id, self.decision_kinds = node_id, decision_kinds


def _kinds(kinds: tuple[str, ...]) -> str:
    return f"the kind {kinds[0]}" if len(kinds) == 1 else f"the kinds {', '.join(kinds)}"


class QuoteNotFound(InvalidRequest):
    """The original of the turn does not hold the quote, or not at the place that was told, or is not there."""

    def __init__(self, message: str, *, uri: str, field: str = "evidence.quote") -> None:
        super().__init__(message, field=field, kind="quote_not_found", uri=uri)
        self.uri = uri


class StatusNotSelected(InvalidRequest):
    """A node handed to a snapshot has a status that the request does not select."""

    def __init__(self, node_id: str, status: str) -> None:
        status = str.__str__(status)  # of an enum, what it spells
        super().__init__(
            f"a node is {status}, which the request does not select: leave it out, or name that status",
            field="nodes",
            kind="status_not_selected",
            node_id=node_id,
            node_status=status,
        )
        self.node_id, self.node_status = node_id, status


class LimitExceeded(QueryLimit):
    """Something is larger than it may be; it is refused whole, never cut. `actual` is what it would take.

    `resource` names what every member of a list has in common: of `evidence[3].uri` it is `evidence.uri`.
    """

    def __init__(self, resource: str, limit: int, actual: int, *, field: str | None = None) -> None:
        named, resource = resource, _INDEX.sub("", resource)
        PerdureError.__init__(
            self,
            f"{named} would be {actual}; at most {limit} are allowed",
            field=field or named,
            kind="limit_exceeded",
            resource=resource,
            limit=limit,
            actual=actual,
        )
        self.resource, self.limit, self.actual = resource, limit, actual


class NodeNotFound(NotFound):
    """There is no such node, or it was forgotten."""

    def __init__(self, node_id: str, *, field: str = "node_id") -> None:
        """`field` is the argument that named it."""
        super().__init__(
            "no node of this repository has that id", field=field, kind="node_not_found", node_id=node_id
        )
        self.node_id = node_id


class NodeRevisionNotFound(NotFound):
    """The node is there, and never had that revision."""

    def __init__(self, node_id: str, revision: int) -> None:
        super().__init__(
            f"the node has no revision {revision}; its revisions are counted from 1",
            field="revision",
            kind="node_revision_not_found",
            node_id=node_id,
            revision=revision,
        )
        self.node_id, self.revision = node_id, revision


class RelationTargetNotFound(NotFound):
    """A relation points at a node that is neither stored nor made by the same change set."""

    def __init__(self, node_id: str, target_id: str, *, field: str = "relation.target") -> None:
        """`field` is what of the operation named it."""
        super().__init__(
            "a relation points at a node that is not there: create it in the same change set",
            field=field,
            kind="relation_target_not_found",
            node_id=node_id,
            target_id=target_id,
        )
        self.node_id, self.target_id = node_id, target_id


class NodeAlreadyExists(Conflict):
    """A node of that id is stored, or made by an earlier operation of the same change set."""

    def __init__(self, node_id: str) -> None:
        super().__init__(
            "a node of this id exists already: revise it, or choose another id",
            kind="node_already_exists",
            field="draft.id",
            node_id=node_id,
        )
        self.node_id = node_id


class RevisionConflict(Conflict):
    """The node moved on after the caller read it."""

    def __init__(self, node_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"the node is at revision {actual}, not {expected}: read it again, redo the change on what it says "
            "now, and retry",
            kind="revision_conflict",
            field="expected_revision",
            node_id=node_id,
            expected=expected,
            actual=actual,
        )
        self.node_id, self.expected, self.actual = node_id, expected, actual


class IdempotencyConflict(Conflict):
    """The key (of an access event: its id) was used for something else, or what it named was forgotten since."""

    def __init__(self, key: str, *, field: str = "idempotency_key") -> None:
        super().__init__(
            f"this {field} stands for another request: use a new one for a new request",
            kind="idempotency_conflict",
            field=field,
            key=key,
        )
        self.key = key


class InvalidTransition(Conflict):
    """The lifecycle has no step between these two statuses. `source` is `absent` for a node that is created."""

    def __init__(self, node_id: str, source: str, target: str) -> None:
        source, target = str.__str__(source), str.__str__(target)  # of enums, what they spell
        super().__init__(
            f"a node cannot go from {source} to {target}: {_way_on(source, target)}",
            kind="invalid_transition",
            field="status",
            node_id=node_id,
            source=source,
            target=target,
        )
        self.node_id, self.source, self.target = node_id, source, target


class InvariantViolation(Conflict):
    """What was asked for would make a node or the graph contradict itself."""

    def __init__(self, message: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(message, kind="invariant_violation", field=field, **details)


def _way_on(source: str, target: str) -> str:
    """Return what to do where the lifecycle has no step between two statuses."""
    if source == target:
        return f"it is {source} already"
    if source in _ENDS:
        return _ENDS[source]
    if target == "active":  # by the operation for the other status
        return (
            "activate makes a candidate active" if source == "candidate" else "resolve makes it active again"
        )
    return "activate it first" if source == "candidate" else f"a node is never made {target} again"


_ENDS = {
    "absent": "create it as candidate or active",
    "superseded": "it stays so, or becomes tombstoned; create another node",
    "tombstoned": "it stays so; create another node",
}


class AdmissionNotAllowed(Conflict):
    """Only the active head of a node may be admitted to a prompt: take this one out."""

    def __init__(self, node_id: str, revision: int, current_revision: int, current_status: str) -> None:
        current_status = str.__str__(current_status)  # of an enum, what it spells
        super().__init__(
            f"revision {revision} cannot be admitted: the node is {current_status} at revision "
            f"{current_revision}; leave it out of the prompt",
            kind="admission_not_allowed",
            field="node_revision",
            node_id=node_id,
            revision=revision,
            current_revision=current_revision,
            current_status=current_status,
        )
        self.node_id, self.revision = node_id, revision
        self.current_revision, self.current_status = current_revision, current_status


class HistoryChanged(Conflict):
    """The token is of another history than this repository's, so what changed since it cannot be told."""

    def __init__(self) -> None:
        super().__init__(
            "the token is of another history: the store was purged, erased in or restored since; take a snapshot "
            "and go on from a new token",
            kind="history_changed",
            field="since",
        )


_CATEGORIES = (InvalidRequest, NotFound, Conflict)
BY_KIND: dict[str, type[PerdureError]] = {
    _HUMP.sub("_", one.__name__).lower(): one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, _CATEGORIES) and one.__module__ == __name__
}
"""The class of each `details["kind"]`."""
