"""The replies about governed knowledge."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract.replies.fields import Millis, Reply, SpaceObject, says
from perdure.model.node import EvidenceKind, NodeKind, NodeStatus, RelationKind, RevisionKind

NodeStatusName = Annotated[str, Meta(extra_json_schema={"enum": list(NodeStatus)})]


class EvidenceObject(Reply, frozen=True):
    """What vouches for a node."""

    uri: str
    digest: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": list(EvidenceKind)})]
    occurred_at: Millis
    quote: Annotated[str | None, says("What it says, verbatim.")]
    start: Annotated[int | None, says("Where the quote begins, in code points.")]
    end: Annotated[int | None, says("Where it ends, exclusive.")]


class RelationObject(Reply, frozen=True):
    """An edge to another node."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(RelationKind)})]
    target: Annotated[str | None, says("null where that node was forgotten.")]


class NodeObject(Reply, frozen=True):
    """One revision of a node, whole."""

    id: str
    revision: Annotated[int, says("From 1.")]
    kind: Annotated[str, Meta(extra_json_schema={"enum": list(NodeKind)})]
    status: NodeStatusName
    content: str
    confidence: Annotated[float, says("0 to 1.")]
    importance: Annotated[float, says("0 to 1.")]
    evidence: tuple[EvidenceObject, ...]
    relations: tuple[RelationObject, ...]
    labels: dict[str, str]
    subject: str | None
    valid_from: Millis | None
    valid_to: Millis | None
    created_at: Millis
    updated_at: Millis
    revision_kind: Annotated[
        str, Meta(description="What made it.", extra_json_schema={"enum": list(RevisionKind)})
    ]
    actor: Annotated[str | None, says("Who made this revision.")]
    reason: Annotated[str | None, says("Why.")]
    fact: Annotated[str | None, says("The id of the fact that stands for it in recalls.")]


class ChangesApplied(Reply, frozen=True):
    """What a change set made of each node that it changed, ascending by id."""

    idempotency_key: str
    occurred_at: Millis
    nodes: tuple[NodeObject, ...]


class NodeReply(Reply, frozen=True):
    """A node, or null where there is none."""

    node: NodeObject | None


class NodePage(Reply, frozen=True):
    """A part of a listing of nodes."""

    items: tuple[NodeObject, ...]
    total: Annotated[int, says("How many there are, on all pages.")]
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]


class NodeHitObject(Reply, frozen=True):
    """A node that a query found."""

    node: NodeObject
    bm25: float
    coverage: Annotated[float, says("The share of the query that the content holds.")]
    score: Annotated[float, says("Orders hits; 0 where no text was asked for.")]


class NodesFound(Reply, frozen=True):
    """A part of what a query found."""

    items: tuple[NodeHitObject, ...]
    total: Annotated[int, says("How many match, on all pages.")]
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]


class SnapshotReply(Reply, frozen=True):
    """A verified view of nodes, ascending by id."""

    profile: str
    namespace: SpaceObject
    statuses: tuple[str, ...]
    nodes: tuple[NodeObject, ...]
    histories: Annotated[tuple[str, ...], says("The digest of each node's history, in the order of nodes.")]
    byte_count: Annotated[int, says("Of the payload that the digest is of.")]
    digest: str


class TokenObject(Reply, frozen=True):
    """Where the content stands."""

    sequence: int
    history_id: str
    head_digest: str
    profile: str


class TokenReply(Reply, frozen=True):
    """Where the content of the nodes stands."""

    token: TokenObject


class NodeRevision(Reply, frozen=True):
    """A node at a revision."""

    id: str
    revision: int


class NodeChangeObject(Reply, frozen=True):
    """One step of the feed."""

    sequence: int
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["applied", "erased"]})]
    at: Annotated[Millis | None, says("When it was recorded; null where nothing says so any more.")]
    nodes: Annotated[
        tuple[NodeRevision, ...], says("That were changed, each with the revision it was left at.")
    ]
    forgotten: Annotated[int, says("How many nodes were forgotten.")]


class NodeChangesReply(Reply, frozen=True):
    """A part of the feed, in order."""

    items: tuple[NodeChangeObject, ...]
    has_more: bool
    token: Annotated[TokenObject, says("Pass it as since to go on after these.")]


class AccessRecorded(Reply, frozen=True):
    """The event is kept, now or since an earlier call."""

    recorded: bool


class AccessEventObject(Reply, frozen=True):
    """A revision of a node went into a prompt, or was used by an answer."""

    id: str
    node_id: str
    node_revision: int
    occurred_at: Millis
    context_id: str | None
    actor: str | None
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["admission", "use"]})]


class AccessEventPage(Reply, frozen=True):
    """A part of a node's access events."""

    items: tuple[AccessEventObject, ...]
    total: int
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]


class UsageReply(Reply, frozen=True):
    """How often a node was admitted and used, over all of its revisions."""

    admissions: int
    uses: int


class NodeReferenceObject(Reply, frozen=True):
    """The node that a fact stands for, with what vouches for it."""

    id: str
    revision: int
    status: NodeStatusName
    evidence: tuple[EvidenceObject, ...]
