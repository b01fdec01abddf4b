"""The requests of operations on governed knowledge: nodes, their evidence, and what is to be done to them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract.requests.fields import Cursor, Id, Moment, Request, choice, limited
from perdure.model import node_limits as limits
from perdure.model.node import EvidenceKind, NodeKind, NodeStatus, RelationKind

Content = Annotated[str, limited("1 to 65,536 bytes that hold a word; kept byte for byte.", minLength=1)]
Share = Annotated[float, limited("0 to 1.", minimum=0, maximum=1)]
Status = Annotated[str, choice("Where a node stands in its lifecycle.", *NodeStatus)]
Sort = Annotated[str, choice("What kind of knowledge it is.", *NodeKind)]
Subject = Annotated[str, limited("The slot that it fills, 1 to 1,024 bytes.", minLength=1)]
Labels = Annotated[
    dict[str, str],
    limited("Texts by name: 128 bytes for a name, 1,024 for a value.", maxProperties=limits.LABELS_MAX),
]
ExpectedRevision = Annotated[
    int, limited("The revision that the change was made for; another one is a conflict.", minimum=1)
]
NodePageSize = Annotated[
    int, limited("How many items at most; 20 when absent.", minimum=1, maximum=limits.QUERY_LIMIT_MAX)
]


class EvidenceInput(Request, frozen=True, kw_only=True):
    """What vouches for a node, unique in it by uri and digest."""

    uri: Annotated[str, limited("Where it is, 1 to 2,048 bytes.", minLength=1)]
    digest: Annotated[str, limited("Of what was found there, 1 to 256 bytes; not interpreted.", minLength=1)]
    kind: Annotated[str, choice("What kind of thing it is.", *EvidenceKind)]
    occurred_at: Moment
    quote: Annotated[str, limited("What it says, verbatim.", minLength=1)] | None = None
    start: Annotated[int, limited("Where the quote begins, in code points.", minimum=0)] | None = None
    end: Annotated[int, limited("Where it ends, exclusive.", minimum=0)] | None = None


class RelationInput(Request, frozen=True, kw_only=True):
    """An edge to another node."""

    kind: Annotated[str, choice("Each edge is kept at both ends.", *RelationKind)]
    target: Id


EvidenceList = Annotated[list[EvidenceInput], limited("What vouches for it.", maxItems=limits.EVIDENCE_MAX)]


class DraftInput(Request, frozen=True, kw_only=True):
    """A node to create."""

    id: Id
    kind: Sort
    content: Content
    status: Annotated[str, choice("active needs evidence that decides.", "candidate", "active")] | None = None
    confidence: Share | None = None
    importance: Share | None = None
    evidence: EvidenceList
    relations: Annotated[list[RelationInput], limited("Edges.", maxItems=limits.RELATIONS_MAX)] | None = None
    labels: Labels | None = None
    subject: Subject | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    created_at: Moment | None = None


class ChangeOperation(Request, frozen=True, kw_only=True, tag_field="operation"):
    """One operation of a change set; `actor` and `reason` are kept with the revision."""

    actor: Annotated[str, limited("Who wants it, at most 256 bytes.")] | None = None
    reason: Annotated[str, limited("Why, at most 4,096 bytes.")] | None = None


class CreateOperation(ChangeOperation, frozen=True, kw_only=True, tag="create"):
    """Make a node, as a candidate or, with evidence that decides, active."""

    draft: DraftInput


class NodeOperation(ChangeOperation, frozen=True, kw_only=True):
    """What operations on a node that is there share."""

    node_id: Id
    expected_revision: ExpectedRevision
    evidence: EvidenceList | None = None


class ActivateOperation(NodeOperation, frozen=True, kw_only=True, tag="activate"):
    """Make a candidate active. Needs evidence that decides."""


class CorroborateOperation(NodeOperation, frozen=True, kw_only=True, tag="corroborate"):
    """Add evidence to a node."""


class ReviseOperation(NodeOperation, frozen=True, kw_only=True, tag="revise"):
    """Say a node's content anew. Needs evidence."""

    content: Content
    mode: Annotated[str, choice("Better put, or put right.", "refinement", "correction")]
    confidence: Share | None = None
    importance: Share | None = None


RelabelClear = list[
    Annotated[str, choice("What the node shall have no longer.", "labels", "subject", "validFrom", "validTo")]
]


class RelabelOperation(NodeOperation, frozen=True, kw_only=True, tag="relabel"):
    """Change labels (whole), subject or validity; what is left out stays, `clear` takes away."""

    labels: Labels | None = None
    subject: Subject | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    clear: RelabelClear | None = None


class AddRelationOperation(NodeOperation, frozen=True, kw_only=True, tag="add_relation"):
    """Add one end of an edge. Needs evidence on an active node."""

    relation: RelationInput


class RemoveRelationOperation(NodeOperation, frozen=True, kw_only=True, tag="remove_relation"):
    """Take away one end of an edge. Needs evidence on an active node."""

    relation: RelationInput


class SetStatusOperation(NodeOperation, frozen=True, kw_only=True, tag="set_status"):
    """Make a node superseded, conflicted or tombstoned. Needs evidence that decides on an active one."""

    status: Status


class ResolveOperation(NodeOperation, frozen=True, kw_only=True, tag="resolve"):
    """Make a conflicted node active again. Needs evidence that decides."""


AnyOperation = (
    CreateOperation
    | ActivateOperation
    | CorroborateOperation
    | ReviseOperation
    | RelabelOperation
    | AddRelationOperation
    | RemoveRelationOperation
    | SetStatusOperation
    | ResolveOperation
)


class ApplyChanges(Request, frozen=True, kw_only=True):
    """Change nodes, all of it or nothing; a retry under the same key gives the first answer."""

    idempotency_key: Annotated[str, limited("Names the change set.", minLength=1, maxLength=256)]
    occurred_at: Moment
    operations: Annotated[
        list[AnyOperation],
        limited("Carried out in order.", minItems=1, maxItems=limits.OPERATIONS_MAX),
    ]


class GetNode(Request, frozen=True, kw_only=True):
    """One node, as it is or as a past revision of it was."""

    id: Id
    revision: Annotated[int, limited("From 1; the last one when absent.", minimum=1)] | None = None


class Revisions(Request, frozen=True, kw_only=True):
    """All revisions of a node, the first one first."""

    id: Id
    limit: NodePageSize | None = None
    cursor: Cursor | None = None


class QueryNodes(Request, frozen=True, kw_only=True):
    """Find nodes as they are, of any status; best first where a text is given, else those updated last."""

    text: Annotated[str, Meta(description="Words to find in contents.")] | None = None
    kinds: list[Sort] | None = None
    statuses: Annotated[list[Status], limited("Active ones when absent.", minItems=1)] | None = None
    labels: (
        Annotated[
            dict[str, str | list[str] | None],
            limited(
                "By name: the text that it must have, several of which one, or null: it must be absent.",
                maxProperties=limits.LABELS_MAX,
            ),
        ]
        | None
    ) = None
    subject: Subject | None = None
    updated_after: Annotated[Moment, Meta(description="At that moment or later.")] | None = None
    updated_before: Annotated[Moment, Meta(description="Before that moment.")] | None = None
    created_after: Annotated[Moment, Meta(description="At that moment or later.")] | None = None
    created_before: Annotated[Moment, Meta(description="Before that moment.")] | None = None
    evidence_uri: Annotated[str, Meta(description="With an evidence of that uri.")] | None = None
    limit: NodePageSize | None = None
    cursor: Cursor | None = None


class TakeSnapshot(Request, frozen=True, kw_only=True):
    """All nodes of some statuses at one moment, with a digest that anyone can recompute."""

    statuses: Annotated[list[Status], limited("Active ones when absent.", minItems=1)] | None = None
    max_nodes: (
        Annotated[
            int,
            limited("Refuse a view of more.", minimum=1, maximum=limits.SNAPSHOT_NODES_MAX),
        ]
        | None
    ) = None
    max_bytes: (
        Annotated[
            int,
            limited("Refuse a view that takes more.", minimum=1, maximum=limits.SNAPSHOT_BYTES_MAX),
        ]
        | None
    ) = None


class TokenInput(Request, frozen=True, kw_only=True):
    """A change token, as it was given."""

    sequence: int
    history_id: str
    head_digest: str
    profile: str


class NodeChanges(Request, frozen=True, kw_only=True):
    """What changed of nodes after a token, each step once and in order."""

    since: TokenInput | None = None
    limit: (
        Annotated[
            int,
            limited("How many at most; 100 when absent.", minimum=1, maximum=limits.CHANGES_LIMIT_MAX),
        ]
        | None
    ) = None


class GetChangeToken(Request, frozen=True, kw_only=True):
    """Where the content of the nodes stands: equal tokens mean equal content."""


class AccessInput(Request, frozen=True, kw_only=True):
    """What an access event says."""

    id: Id
    node_id: Id
    node_revision: Annotated[int, limited("From 1.", minimum=1)]
    occurred_at: Moment
    context_id: Annotated[str, limited("Names the prompt, at most 256 bytes.")] | None = None
    actor: Annotated[str, limited("At most 256 bytes.")] | None = None


class RecordAdmission(AccessInput, frozen=True, kw_only=True):
    """Note that the active head of a node went into a prompt; the same event again changes nothing."""


class RecordNodeUse(AccessInput, frozen=True, kw_only=True):
    """Note that a revision of a node was used by an answer; the same event again changes nothing."""


class AccessEvents(Request, frozen=True, kw_only=True):
    """The access events of a node, in the order in which they were recorded."""

    id: Id
    kind: Annotated[str, choice("Of one kind; both when absent.", "admission", "use")] | None = None
    limit: NodePageSize | None = None
    cursor: Cursor | None = None


class UsageSummary(Request, frozen=True, kw_only=True):
    """How often a node was admitted and used."""

    id: Id


class ReviewQueue(Request, frozen=True, kw_only=True):
    """What waits for a decision: candidates and conflicted nodes, those updated first coming first."""

    limit: NodePageSize | None = None
    cursor: Cursor | None = None


class ForgetNodes(Request, frozen=True, kw_only=True):
    """Erase nodes with all revisions and evidence, and the facts that they were seen as."""

    ids: Annotated[list[str], limited("Unknown ones are ignored.")]
    dry_run: bool | None = None
    purge: bool | None = None
