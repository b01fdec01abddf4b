"""The lines of an export: one readable JSON object per record, and what frames them.

A field that is absent has its default. Times are integer milliseconds since 1970 UTC. Facts are named by their
number in the file, which counts from 0 in each space; so do those of nodes and of conversations. Digests and keys are
hexadecimal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from perdure.base.ids import keyed_hash

FORMAT = "perdure-export"
VERSION = 2  # grows when a reader of today would misread what is written
NUMBERS_MAX = 100_000  # facts or digests that a line names before the rest goes into another
NOTHING = msgspec.Raw(b"")  # in place of metadata: there is none

Beginning = Literal["beginning"]  # the effective time of a correction that holds from the beginning of time


class Selected(msgspec.Struct, frozen=True):
    """A space that was asked for by name."""

    principal: str
    scope: str


class Header(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, tag_field="format", tag=FORMAT
):
    """Line 1. `spaces` is null where all were asked for; `secret` tells stores of one secret from others."""

    version: int
    exported_at: int
    generator: str
    spaces: tuple[Selected, ...] | None
    blocks: bool
    secret: str


class _Line(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="type",
    gc=False,
):
    """The shape that all other lines share."""


class SpaceLine(_Line, frozen=True, tag="space"):
    """The first line of a space. `block_key` only where blocks were asked for."""

    principal: str
    scope: str
    profile: str
    k1: float
    b: float
    created_at: int
    block_key: str | None = None


class SourceFields(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Where a fact comes from."""

    uri: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    position: int | None = None
    actor: str | None = None


class FactLine(_Line, frozen=True, tag="fact"):
    """A fact as told, with the annotations that came with it."""

    number: int
    id: str
    text: str
    ingest_time: int
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    event_time: int | None = None
    metadata: msgspec.Raw = NOTHING
    entities: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    source: SourceFields | None = None
    effective_from: int | Beginning | None = None
    retelling: int = 0
    made_from: tuple[int, ...] = ()
    governed: bool = False  # what a node or a turn is seen as, whose line follows (version 2)


class DocumentLine(FactLine, frozen=True, tag="document"):
    """A plain document. It takes one number for each of its units; `cuts` says where each after the first begins."""

    version: int = 0
    cuts: tuple[int, ...] = ()


class LinkLine(_Line, frozen=True, tag="link"):
    """`newer` supersedes or corrects `older`."""

    newer: int
    older: int
    kind: Literal["supersedes", "corrects"]
    known_from: int
    effective_at: int | Beginning | None = None
    told: bool = False


class EndLine(_Line, frozen=True, tag="end"):
    """The fact holds until `at`."""

    fact: int
    at: int
    recorded_at: int
    reason: str | None = None


class RetractionLine(_Line, frozen=True, tag="retraction"):
    """The fact was never true."""

    fact: int
    recorded_at: int
    reason: str | None = None


class MergedFields(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """How often other tellings were merged into a fact; `ids` are digests of the last of them under the secret."""

    count: int
    last_at: int
    ids: tuple[str, ...] = ()


class AnnotationLine(_Line, frozen=True, tag="annotation"):
    """The annotations of a fact from now on, whole. Without `metadata` what was told stays."""

    fact: int
    recorded_at: int
    tags: tuple[str, ...] = ()
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    metadata: msgspec.Raw = NOTHING
    merged: MergedFields | None = None


class VectorLine(_Line, frozen=True, tag="vector"):
    """The vector of a fact or of one unit of a document: float32 numbers, little-endian, in base64.

    `model` names the embedder that made it; it is absent where the caller gave the vector.
    """

    fact: int
    data: str
    recorded_at: int
    unit: int = 0
    model: str = ""


class HiddenLine(_Line, frozen=True, tag="hidden"):
    """Facts that were softly forgotten."""

    facts: tuple[int, ...]
    recorded_at: int


class ItemFields(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """What one fact of a request was answered; `fact` is -1 where it was refused."""

    fact: int
    outcome: str
    status: str
    supersedes: tuple[int, ...] = ()
    superseded_by: tuple[int, ...] = ()
    reason: str | None = None


class ReceiptLine(_Line, frozen=True, tag="receipt"):
    """The answer kept under an idempotency key; `key` and `request` are digests under the store's secret."""

    operation: str
    key: str
    request: str
    recorded_at: int
    items: tuple[ItemFields, ...] = ()
    count: int = 0


class UseLine(_Line, frozen=True, tag="use"):
    """Facts that a caller said it used."""

    facts: tuple[int, ...]
    recorded_at: int
    context: str = ""


class BlockLine(_Line, frozen=True, tag="block"):
    """Digests of what may not be stored again; `key` is what they are keyed with, where not the space's own."""

    digests: tuple[str, ...]
    recorded_at: int
    key: str | None = None


class EvidenceFields(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """What a node rests on."""

    uri: str
    digest: str
    kind: str
    occurred_at: int
    quote: str | None = None
    start: int | None = None
    end: int | None = None


class RelationFields(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An edge to another node, by number; without one the node was forgotten."""

    kind: str
    node: int = -1


class NodeLine(_Line, frozen=True, tag="node"):
    """One revision of a node, whole; `fact` is what it is seen as, absent where it made no fact (version 2)."""

    number: int
    id: str
    revision: int
    change: str
    kind: str
    status: str
    content: str
    confidence: float
    importance: float
    created_at: int
    updated_at: int
    recorded_at: int
    evidence: tuple[EvidenceFields, ...] = ()
    relations: tuple[RelationFields, ...] = ()
    labels: dict[str, str] = {}
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    fact: int = -1
    actor: str | None = None
    reason: str | None = None


class ChangedFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A node that a change set changed, and the revision at which it left it."""

    node: int
    revision: int


class ChangeSetLine(_Line, frozen=True, tag="change-set"):
    """The answer kept under a change set's key; `key` and `request` as in a receipt (version 2)."""

    key: str
    request: str
    occurred_at: int
    recorded_at: int
    nodes: tuple[ChangedFields, ...] = ()


class AccessLine(_Line, frozen=True, tag="access"):
    """A revision of a node went into a prompt, or was used (version 2)."""

    kind: Literal["admission", "use"]
    id: str
    node: int
    revision: int
    occurred_at: int
    recorded_at: int
    context: str | None = None
    actor: str | None = None


class ConversationLine(_Line, frozen=True, tag="conversation"):
    """A version of a session, before its turns; `turns` is how many it was told with (version 2)."""

    number: int
    session: str
    version: str
    turns: int
    recorded_at: int


class TurnLine(_Line, frozen=True, tag="turn"):
    """One turn, exact, after the facts that it is seen as: so many, from `first` on (version 2)."""

    conversation: int
    position: int
    source_id: str
    role: str
    text: str
    observed_at: int
    first: int
    chunks: int
    recorded_at: int


class SpaceEndLine(_Line, frozen=True, tag="space-end"):
    """The last line of a space, with how many lines there were since its first."""

    facts: int
    documents: int
    records: int


class TotalLine(_Line, frozen=True, tag="total"):
    """The last line of a file: without it the file was cut."""

    spaces: int
    records: int


RecordLine = (
    FactLine
    | DocumentLine
    | LinkLine
    | EndLine
    | RetractionLine
    | AnnotationLine
    | VectorLine
    | HiddenLine
    | ReceiptLine
    | UseLine
    | BlockLine
    | NodeLine
    | ChangeSetLine
    | AccessLine
    | ConversationLine
    | TurnLine
)
Line = SpaceLine | RecordLine | SpaceEndLine | TotalLine
TYPES = frozenset(
    {
        "space",
        "fact",
        "document",
        "link",
        "end",
        "retraction",
        "annotation",
        "vector",
        "hidden",
        "receipt",
        "use",
        "block",
        "node",
        "change-set",
        "access",
        "conversation",
        "turn",
        "space-end",
        "total",
    }
)

_encode = msgspec.json.Encoder().encode
decode_line = msgspec.json.Decoder(Line).decode
decode_header = msgspec.json.Decoder(Header).decode


def encode_line(line: Header | Line) -> bytes:
    """Return a line with its line feed; equal lines give equal bytes."""
    return _encode(line) + b"\n"


def secret_mark(secret: bytes) -> str:
    """Return what is equal for stores of one secret alone, and tells nothing of it."""
    return keyed_hash(secret, b"export", b"secret").hex()
