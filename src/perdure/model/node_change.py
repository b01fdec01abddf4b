"""What may be done to nodes: operations, the change sets that hold them, and what tells of changes later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from perdure.base.instants import Instant
from perdure.base.text import counted
from perdure.model.node import Evidence, Node, NodeDraft, NodeStatus, Relation
from perdure.repository_errors import InvariantViolation

TOKEN_PROFILE = "perdure.space-change-token.v1"  # noqa: S105 - a name, no secret
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Operation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all operations have: who wants it, and why; both are kept with the revision."""

    actor: str | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Create(Operation, frozen=True):
    """Make a node, as a candidate or, with evidence that decides, active."""

    draft: NodeDraft


class _Revision(Operation, frozen=True, kw_only=True):
    node_id: str
    expected_revision: int
    evidence: Iterable[Evidence] = ()


class Activate(_Revision, frozen=True):
    """Make a candidate active. Needs evidence that decides."""


class Corroborate(_Revision, frozen=True):
    """Add evidence to a node."""


class Revise(_Revision, frozen=True, kw_only=True):
    """Say a node's content anew: to the same effect but better, or because it was wrong. Needs evidence.

    `confidence` and `importance` stay where they are None.
    """

    content: str
    mode: Literal["refinement", "correction"] | str
    confidence: float | None = None
    importance: float | None = None


class Relabel(_Revision, frozen=True, kw_only=True):
    """Change labels (whole), subject or validity; what is left out stays, None takes away."""

    labels: Mapping[str, str] | UnsetType | None = UNSET
    subject: str | UnsetType | None = UNSET
    valid_from: Instant | UnsetType | None = UNSET
    valid_to: Instant | UnsetType | None = UNSET


class AddRelation(_Revision, frozen=True, kw_only=True):
    """Add one end of an edge. Needs evidence on an active node."""

    relation: Relation


class RemoveRelation(_Revision, frozen=True, kw_only=True):
    """Take away one end of an edge. Needs evidence on an active node."""

    relation: Relation


class SetStatus(_Revision, frozen=True, kw_only=True):
    """Make a node superseded, conflicted or tombstoned. Needs evidence that decides on an active one."""

    status: NodeStatus | str


class Resolve(_Revision, frozen=True):
    """Make a conflicted node active again. Needs evidence that decides."""


class ChangeSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operations that happen together or not at all, in order; at most 128.

    The key names the set: telling an equal set again under it gives the first result and changes nothing.
    """

    idempotency_key: str
    occurred_at: Instant
    operations: Iterable[Operation]

    def __repr__(self) -> str:
        return "<ChangeSet>"


class ChangeResult(msgspec.Struct, frozen=True):
    """What a change set made of each node that it changed, ascending by id."""

    idempotency_key: str
    occurred_at: datetime
    nodes: tuple[Node, ...]

    def __repr__(self) -> str:
        return f"<ChangeResult of {counted(len(self.nodes), 'node')}>"


class ChangeToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the content of a repository stands. Equal tokens mean equal content; it holds no id and no text.

    `sequence` counts change sets and erasures since the history began: with the space, or at the last purge.
    `history_id` and `head_digest` are 64 lowercase hexadecimal digits.
    """

    sequence: int
    history_id: str
    head_digest: str
    profile: str = TOKEN_PROFILE

    def verify(self) -> None:
        """Raise InvariantViolation unless it has the form of a token."""
        if self.profile != TOKEN_PROFILE:
            raise InvariantViolation(f"the token is not of profile {TOKEN_PROFILE}", field="profile")
        if type(self.sequence) is not int or self.sequence < 0:
            raise InvariantViolation("the token's sequence is not a count", field="sequence")
        for name in ("history_id", "head_digest"):
            value = getattr(self, name)
            if not isinstance(value, str) or _DIGEST.fullmatch(value) is None:
                raise InvariantViolation(
                    f"the token's {name} is not 64 lowercase hexadecimal digits", field=name
                )


class NodeChange(msgspec.Struct, frozen=True):
    """One step of a repository's change feed, by its sequence.

    `applied` names the nodes that a change set changed, each with the revision that it left; those forgotten
    since are left out. `erased` says how many nodes were forgotten, and no more of them; or it names nodes that
    stayed and lost a quote of a turn that was forgotten: each with its last revision, and all of them are to be read
    again. `at` is when it was recorded, None where nothing that is left says so.
    """

    sequence: int
    kind: Literal["applied", "erased"]
    at: datetime | None
    nodes: tuple[tuple[str, int], ...]
    forgotten: int

    def __repr__(self) -> str:
        return f"<NodeChange {self.sequence} {self.kind} {counted(len(self.nodes), 'node')}>"


class NodeChanges(msgspec.Struct, frozen=True):
    """A part of a repository's change feed, in order; pass `token` as `since` to go on after it."""

    items: tuple[NodeChange, ...]
    has_more: bool
    token: ChangeToken
