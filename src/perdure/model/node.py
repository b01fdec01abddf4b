"""A node of governed knowledge: a claim with its evidence, its lifecycle and its relations to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from perdure.base.instants import Instant
from perdure.base.text import counted, shown_choice


class NodeStatus(StrEnum):
    """Where a node stands in its lifecycle; in the order of snapshots. Only what is active is ever recalled."""

    CANDIDATE = "candidate"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    CONFLICTED = "conflicted"
    TOMBSTONED = "tombstoned"


class NodeKind(StrEnum):
    """What kind of knowledge a node is."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class EvidenceKind(StrEnum):
    """What kind of thing vouches for a node; in the order by which evidence is sorted."""

    USER_STATEMENT = "user_statement"
    TOOL_RESULT = "tool_result"
    ARTIFACT = "artifact"
    SESSION_TURN = "session_turn"
    VERIFICATION = "verification"
    MANUAL = "manual"


class RelationKind(StrEnum):
    """How a node stands to another; in the order by which relations are sorted. Each edge is kept at both ends."""

    SUPERSEDES = "supersedes"
    SUPERSEDED_BY = "superseded_by"
    CONFLICTS_WITH = "conflicts_with"
    RELATED_TO = "related_to"

    @property
    def inverse(self) -> RelationKind:
        """The kind of the same edge, seen from the other end."""
        if self is RelationKind.SUPERSEDES:
            return RelationKind.SUPERSEDED_BY
        if self is RelationKind.SUPERSEDED_BY:
            return RelationKind.SUPERSEDES
        return self


class RevisionKind(StrEnum):
    """What made a revision."""

    CREATED = "created"
    ACTIVATED = "activated"
    CORROBORATED = "corroborated"
    REFINED = "refined"
    CORRECTED = "corrected"
    RELABELLED = "relabelled"
    RELATION_CHANGED = "relation_changed"
    STATUS_CHANGED = "status_changed"
    RESOLVED = "resolved"


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What vouches for a node, unique in it by (uri, digest).

    Args:
        uri: where it is, 1 to 2,048 bytes.
        digest: of what was found there, 1 to 256 bytes; not interpreted.
        kind: what kind of thing it is.
        occurred_at: when; not after the change set that brings it.
        quote: what it says, verbatim.
        start: where the quote begins in its source, in code points.
        end: where it ends there, exclusive.
    """

    uri: str
    digest: str
    kind: EvidenceKind | str
    occurred_at: Instant
    quote: str | None = None
    start: int | None = None
    end: int | None = None

    def __repr__(self) -> str:
        return f"<Evidence {_name(self.kind)}>"


class Relation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An edge to another node; `target` is None where that node was forgotten."""

    kind: RelationKind | str
    target: str | None

    def __repr__(self) -> str:
        return f"<Relation {_name(self.kind)}{' to a forgotten node' if self.target is None else ''}>"


class NodeDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node to create, not yet checked.

    Args:
        id: 1 to 256 bytes, the caller's.
        kind: what kind of knowledge it is.
        content: 1 to 65,536 bytes that hold a word; stored byte for byte.
        status: `candidate` or `active`; the latter needs evidence that decides.
        confidence: 0 to 1.
        importance: 0 to 1.
        evidence: at least one, at most 64.
        relations: at most 256; the other end is written in the same change set.
        labels: at most 64 texts by name: 128 bytes for a name, 1,024 for a value.
        subject: the slot that the node fills.
        valid_from: from when it holds in the world, inclusive.
        valid_to: until when, exclusive.
        created_at: not after the change set's `occurred_at`, which stands in where it is left out.
    """

    id: str
    kind: NodeKind | str
    content: str
    status: NodeStatus | str = NodeStatus.CANDIDATE
    confidence: float = 0.5
    importance: float = 0.5
    evidence: Iterable[Evidence] = ()
    relations: Iterable[Relation] = ()
    labels: Mapping[str, str] = {}
    subject: str | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    created_at: Instant | None = None

    def __repr__(self) -> str:
        return f"<NodeDraft {_name(self.status)}, {counted(len(self.content) if isinstance(self.content, str) else 0, 'character')}>"


class Node(msgspec.Struct, frozen=True):
    """One revision of a node, whole. Times are aware UTC datetimes; `repr()` shows no text.

    `revision` counts from 1; `revision_kind`, `actor` and `reason` say what made this one. Evidence and
    relations stand as drafted until some is added; then evidence is sorted by (uri, digest, kind, time), relations by
    (kind, target), those to forgotten nodes first. `fact` is the id of the fact
    that stands for this revision in recalls; None where there is none.
    """

    id: str
    revision: int
    kind: NodeKind
    status: NodeStatus
    content: str
    confidence: float
    importance: float
    evidence: tuple[Evidence, ...]
    relations: tuple[Relation, ...]
    labels: dict[str, str]
    subject: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime
    revision_kind: RevisionKind
    actor: str | None = None
    reason: str | None = None
    fact: str | None = None

    def __repr__(self) -> str:
        return (
            f"<Node {self.status.value}, revision {self.revision}, {counted(len(self.content), 'character')}>"
        )


class NodeHit(msgspec.Struct, frozen=True):
    """A node that a query found. `score` orders hits and is `bm25`; all are 0 where no text was asked for.

    `coverage` is the share of the query's words and two-character pieces that the content holds: unlike `bm25` it
    says the same in every store, so that a caller may set a floor to it.
    """

    node: Node
    bm25: float
    coverage: float
    score: float

    def __repr__(self) -> str:
        return f"<NodeHit score {self.score}, {self.node.status.value}>"


class NodeReference(msgspec.Struct, frozen=True):
    """The node that a fact stands for, as an explanation names it: its revision, and what vouches for it."""

    id: str
    revision: int
    status: NodeStatus
    evidence: tuple[Evidence, ...]

    def __repr__(self) -> str:
        return f"<NodeReference {self.status.value}, revision {self.revision}>"


AccessKind = Literal["admission", "use"]


class AccessEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A revision of a node went into a prompt (`admission`), or was used by an answer (`use`).

    `id` is the caller's, unique among the events of its kind; `context_id` names the prompt.
    """

    id: str
    node_id: str
    node_revision: int
    occurred_at: Instant
    context_id: str | None = None
    actor: str | None = None
    kind: AccessKind = "admission"

    def __repr__(self) -> str:
        return f"<AccessEvent {_name(self.kind)} of revision {self.node_revision}>"


class Usage(msgspec.Struct, frozen=True):
    """How often a node was admitted and used, over all of its revisions."""

    admissions: int
    uses: int


def _name(value: object) -> str:
    """Return what a message may say of a value that stands where an enum's is wanted."""
    return value.value if isinstance(value, StrEnum) else shown_choice(value)
