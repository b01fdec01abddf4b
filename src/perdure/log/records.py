"""Record types and their codec: one version byte, then a msgpack array whose first item is the type.

A fact's record is written once and never rewritten; every other record names facts by number.
Fields are only ever added at the end with a default, so that older records stay readable. What an older
build would misread, a new type or a field that must not be passed over, has the version of the format that
brought it: the older build then refuses the space and can say which format it needs.
"""

from __future__ import annotations

import msgspec

from perdure.errors import Corrupt, Unavailable

VERSION = 4  # the newest record format that this build knows
_FIRST, _SECOND, _THIRD, _FOURTH = bytes([1]), bytes([2]), bytes([3]), bytes([4])
_KNOWN = (_FIRST, _SECOND, _THIRD, _FOURTH)


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


NO_FACT = -1  # in place of a fact's number: the telling was refused, so there is none (format 3)


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
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def encode(record: Record) -> bytes:
    """Return the record's bytes."""
    return _format_of(record) + _encode(record)


def _format_of(record: Record) -> bytes:
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
