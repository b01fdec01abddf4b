"""The lines of an export: one readable JSON object per record, and what frames them.

A field that is absent has its default. Times are integer milliseconds since 1970 UTC. Facts are named by their
number in the file, which counts from 0 in each space. Digests and keys are hexadecimal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from perdure.base.ids import keyed_hash

FORMAT = "perdure-export"
VERSION = 1  # grows when a reader of today would misread what is written
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
