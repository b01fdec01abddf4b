"""Record types and their codec: one version byte, then a msgpack array whose first item is the type.

A fact's record is written once and never rewritten; every other record names facts by number.
Fields are only ever added at the end with a default, so that older records stay readable. What an older
build would misread, a new type or a field that must not be passed over, has the version of the format that
brought it: the older build then refuses the space and can say which format it needs.
"""

from __future__ import annotations

import msgspec

from perdure.errors import Corrupt, Unavailable

VERSION = 5  # the newest record format that this build knows
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = (bytes([version]) for version in range(1, VERSION + 1))
_KNOWN = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)


class _Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The shape that all records share: arrays, not objects, since field names would be repeated in each."""


class SpaceRecord(_Record, frozen=True, tag=0):
    """Record 1 of every space: its name and what is fixed at creation."""

    principal: str
    scope: str
    profile: str
    k1: float
    b: float
    created_at: int
    block_key: bytes  # of the store's secret and the space's name; blocks from elsewhere bring their own


class SourceFields(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a fact comes from."""

    uri: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    position: int | None = None
    actor: str | None = None


class FactRecord(_Record, frozen=True, tag=1):
    """A fact, or a plain document (`version` > 0). Times are milliseconds; None where not told."""

    number: int
    id: str
    text: str
    ingest_time: int
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    event_time: int | None = None
    metadata: bytes | None = None  # JSON as told
    entities: tuple[str, ...] = ()  # told
    extracted: tuple[str, ...] = ()  # added by an extractor; no part of the identity
    tags: tuple[str, ...] = ()
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    source: SourceFields | None = None
    effective_from: int | None = None  # corrections only
    retelling: int = 0  # how many earlier tellings of the same payload a reassertion counted
    version: int = 0  # documents: 1 at creation, +1 per replacement
    cuts: tuple[int, ...] = ()  # documents: where each unit after the first begins, in code points
    made_from: tuple[int, ...] = ()  # the facts that the content came from, at any remove, ascending
    governed: bool = False  # a node's or a turn's, which alone changes it (format 5)


class LinkRecord(_Record, frozen=True, tag=2):
    """`newer` supersedes (or corrects) `older`."""

    newer: int
    older: int
    corrects: bool
    effective_at: int | None  # None: the newer fact's own effective time
    known_from: int
    told: bool = False  # the caller named the older fact in `supersedes`


class EndRecord(_Record, frozen=True, tag=3):
    """A close of validity; `at` None retracts: the fact was never true."""

    number: int
    at: int | None
    recorded_at: int
    reason: str | None


class Merges(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How often other tellings were merged into a fact; `ids` are keyed digests of the last of them, in order."""

    count: int
    last_at: int
    ids: tuple[bytes, ...]


class AnnotationRecord(_Record, frozen=True, tag=4):
    """The annotations of a fact from now on, whole. `metadata` None keeps what was told."""

    number: int
    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    metadata: bytes | None
    recorded_at: int
    merged: Merges | None = None  # (format 3)


class HideRecord(_Record, frozen=True, tag=5):
    """Soft forgetting."""

    numbers: tuple[int, ...]
    recorded_at: int


class RestoreRecord(_Record, frozen=True, tag=6):
    """The undoing of soft forgetting."""

    numbers: tuple[int, ...]
    recorded_at: int


class RemovalRecord(_Record, frozen=True, tag=7):
    """Facts forgotten, and every seq whose bytes were erased with them."""

    numbers: tuple[int, ...]
    units: int  # the first number after the removed facts that may be given out again
    seqs: tuple[int, ...]
    recorded_at: int
    replaced: bool = False
    nodes: tuple[int, ...] = ()  # nodes forgotten (format 5)
    turns: tuple[tuple[int, int], ...] = ()  # turns forgotten: conversation and position (format 5)
    step: int = 0  # where nodes or quotes of theirs are forgotten: its place in the sequence of changes, as of change sets
    ids: tuple[bytes, ...] = ()  # keyed digests of the ids of what was forgotten, for the audit
    cause: str = ""  # why: expired where a policy said so; empty where a caller asked
    # Nodes that stay and lost a quote: number and last revision, ascending (format 5).
    blanked: tuple[tuple[int, int], ...] = ()


NO_FACT = -1  # in place of a fact's number: the telling was refused, so there is none (format 3)
NO_NODE = -1  # in place of a node's number: it was forgotten (format 5)


class ReceiptItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one remembered fact was answered, by numbers."""

    number: int
    outcome: str
    status: str
    supersedes: tuple[int, ...] = ()
    superseded_by: tuple[int, ...] = ()
    reason: str | None = None


class ReceiptRecord(_Record, frozen=True, tag=8):
    """The answer kept under an idempotency key. `lost`: a fact it named was forgotten."""

    operation: str
    key: bytes  # keyed digest
    request: bytes  # keyed digest; empty when lost
    items: tuple[ReceiptItem, ...]
    recorded_at: int
    lost: bool = False
    count: int = 0  # the answer of operations that answer with a number


class UseRecord(_Record, frozen=True, tag=9):
    """Facts that a caller says it used."""

    numbers: tuple[int, ...]
    context: bytes
    recorded_at: int


class BlockRecord(_Record, frozen=True, tag=10):
    """Digests of ids and folded texts that may not be stored again."""

    digests: tuple[bytes, ...]
    recorded_at: int
    key: bytes = b""  # what they are keyed with, where it is not the space's own key (format 2)


class UnblockRecord(_Record, frozen=True, tag=11):
    """Digests that may be stored again."""

    digests: tuple[bytes, ...]
    recorded_at: int


class GoneRecord(_Record, frozen=True, tag=12):
    """The end of a space: all records before this one are erased, record 1 with its name too (format 2)."""

    recorded_at: int


class VectorRecord(_Record, frozen=True, tag=13):
    """The vector of a fact, or of one unit of a document; the last one told of a unit holds (format 3)."""

    number: int
    unit: int  # 0 for a fact and for the first unit of a document
    data: bytes  # float32, little-endian
    model: str  # the embedder's fingerprint; empty where the caller gave the vector
    recorded_at: int


class ConfigRecord(_Record, frozen=True, tag=14):
    """The configuration that the store keeps from now on; it stands in a space of its own (format 4)."""

    data: bytes  # JSON; empty where none is kept any longer
    recorded_at: int
    actor: str | None = None  # who had it kept


class EvidenceFields(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a node rests on; `start` and `end` are the place of the quote in its source, in code points."""

    uri: str
    digest: str
    kind: str
    occurred_at: int
    quote: str | None = None
    start: int | None = None
    end: int | None = None


class NodeRecord(_Record, frozen=True, tag=15):
    """A node as it is after one change, whole. Nodes have numbers of their own, in order of arrival (format 5)."""

    number: int
    id: str
    revision: int  # 1, 2, 3 … without gaps
    change: str  # created, activated, …
    kind: str
    status: str
    content: str
    confidence: float
    importance: float
    evidence: tuple[EvidenceFields, ...]
    relations: tuple[
        tuple[str, int], ...
    ]  # kind, and the number of the node; NO_NODE after a purge where it went
    labels: tuple[tuple[str, str], ...]  # by key
    created_at: int
    updated_at: int
    recorded_at: int
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    fact: int = NO_FACT  # the number of the fact that this revision is seen as
    actor: str | None = None
    reason: str | None = None
    retold: int = 0  # told again without a quote that was erased: the seq at which the revision stood first


class ChangeSetRecord(_Record, frozen=True, tag=16):
    """A change set that took effect: its key, and the revisions it made (format 5)."""

    key: bytes  # keyed digest; empty for what an import changed
    request: bytes  # keyed digest; empty when lost
    nodes: tuple[
        tuple[int, int], ...
    ]  # number and last revision of each changed node that was not forgotten since
    occurred_at: int
    recorded_at: int
    step: int  # its place in the sequence of changes since the last purge, from 1; 0 where it is older
    lost: bool = False  # a node it named was forgotten


class AccessRecord(_Record, frozen=True, tag=17):
    """A caller says that it admitted a revision of a node to a context, or used it (format 5)."""

    kind: str  # admission or use
    id: str
    node: int
    revision: int
    occurred_at: int
    recorded_at: int
    context: str | None = None
    actor: str | None = None


class ConversationRecord(_Record, frozen=True, tag=18):
    """A version of a session, before its turns (format 5)."""

    number: int  # in order of arrival
    session: str
    version: str
    turns: int  # how many it was told with
    recorded_at: int


class TurnRecord(_Record, frozen=True, tag=19):
    """One turn of a conversation, exact; its chunks are facts with numbers in a row (format 5)."""

    conversation: int
    position: int  # 0-based
    source_id: str
    role: str
    text: str
    observed_at: int
    first: int  # number of the first chunk
    chunks: int
    recorded_at: int


class ByRecord(_Record, frozen=True, tag=20):
    """Who had the records before it written, so many of them (format 5)."""

    actor: str
    count: int


class MarkRecord(_Record, frozen=True, tag=21):
    """What stands before it is what a purge kept: the sequence of changes of nodes begins anew (format 5).

    What is erased of those nodes later leaves the digest as it is, so that all readers name the history alike.
    """

    digest: bytes  # keyed, of the revisions of nodes that stand before it, see `space.nodes.RevisionSum`


class QuoteRecord(_Record, frozen=True, tag=22):
    """What a fact quotes of a turn, right behind the fact: it can be erased where the fact stays (format 5).

    The fact's own `source` has the uri then, and neither quote nor place.
    """

    number: int  # the fact's
    quote: str | None = None
    start: int | None = None
    end: int | None = None


Record = (
    SpaceRecord
    | FactRecord
    | LinkRecord
    | EndRecord
    | AnnotationRecord
    | HideRecord
    | RestoreRecord
    | RemovalRecord
    | ReceiptRecord
    | UseRecord
    | BlockRecord
    | UnblockRecord
    | GoneRecord
    | VectorRecord
    | ConfigRecord
    | NodeRecord
    | ChangeSetRecord
    | AccessRecord
    | ConversationRecord
    | TurnRecord
    | ByRecord
    | MarkRecord
    | QuoteRecord
)
_OF_FIFTH = (
    NodeRecord,
    ChangeSetRecord,
    AccessRecord,
    ConversationRecord,
    TurnRecord,
    ByRecord,
    MarkRecord,
    QuoteRecord,
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def encode(record: Record) -> bytes:
    """Return the record's bytes."""
    return _format_of(record) + _encode(record)


def _format_of(record: Record) -> bytes:
    if isinstance(record, FactRecord):
        return _FIFTH if record.governed else _FIRST
    if isinstance(record, _OF_FIFTH) or (
        isinstance(record, RemovalRecord) and (record.nodes or record.turns or record.step)
    ):
        return _FIFTH
    if isinstance(record, ConfigRecord):
        return _FOURTH
    if (
        isinstance(record, VectorRecord)
        or (isinstance(record, AnnotationRecord) and record.merged is not None)
        or (isinstance(record, ReceiptRecord) and any(item.number == NO_FACT for item in record.items))
    ):
        return _THIRD
    newer = isinstance(record, GoneRecord) or (isinstance(record, BlockRecord) and record.key)
    return _SECOND if newer else _FIRST


def decode(data: bytes, *, space: int | None = None, seq: int | None = None) -> Record:
    """Return the record of these bytes.

    Raises:
        Unavailable: a newer build wrote it, in a format that this one does not know.
        Corrupt: the bytes are no record.
    """
    if data[:1] not in _KNOWN:
        if not data or not data[0]:
            raise _no_record(space, seq)
        raise Unavailable(
            f"record {seq} of space {space} needs record format {data[0]}, this build reads up to {VERSION}: "
            "open the store with a newer build",
            space=space,
            seq=seq,
        )
    try:
        record: Record = _decode(memoryview(data)[1:])
    except msgspec.MsgspecError as error:
        raise _no_record(space, seq) from error
    return record


def _no_record(space: int | None, seq: int | None) -> Corrupt:
    return Corrupt(
        f"record {seq} is no record of a known type: run a verify on a copy of the store",
        space=space,
        seq=seq,
    )
