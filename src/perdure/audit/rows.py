"""Events as the audit keeps them: rows, the chain over them, and the sealed records that hold runs of them.

A record is a version byte, a seal and a body. The seal is keyed with the store's secret, so that only who has it
can write a record; the chain is keyed with nothing, so that whoever kept a head can hold exported events against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from hmac import compare_digest
from struct import Struct

import msgspec

from perdure.base.ids import keyed_hash
from perdure.errors import Corrupt, Unavailable
from perdure.model.event import EVENT_TYPES

VERSION = 1
SEAL_BYTES = 32
CHAIN_BYTES = 32
START = bytes(CHAIN_BYTES)  # the chain before the first event
NO_DIGEST = b""
RUN_MAX = 4_096  # events of one record, which is read whole

TYPES = tuple(EVENT_TYPES)  # a type's place is its code, so that types are only ever added at the end
CODES = {name: code for code, name in enumerate(TYPES)}

_NUMBER = Struct("<Q")

Details = tuple[tuple[str, int | str | bool], ...]  # by name


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event, without what its record says of all."""

    type: int
    at: int  # ms
    fact: bytes = NO_DIGEST
    other: bytes = NO_DIGEST  # of the fact that took the place of the first, or of a node
    actor: str | None = None
    details: Details = ()


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Up to which record of a space there are events."""

    number: int
    name: bytes  # the keyed hash of the space's name
    seq: int


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """What the next purge leaves, noted before it takes effect: where it did, the marks are these."""

    epoch: int
    kept: tuple[tuple[bytes, int], ...]  # a space's name, and how many records it has from then on
    dropped: int
    at: int
    operation: str
    actor: str | None


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far the log was followed."""

    epoch: int
    marks: tuple[Mark, ...]
    is_whole: bool  # these are all marks, not only those that changed
    plan: Plan | None


class Body(msgspec.Struct, frozen=True, array_like=True):
    """A run of events of one space, or of none, and the chain behind it."""

    first: int  # the sequence of its first event
    count: int
    space: bytes
    types: int  # bit by code: which types there are
    oldest: int
    newest: int
    rows: msgspec.Raw
    chain: bytes
    position: Position | None = None  # in the last record of each append


_encode = msgspec.msgpack.Encoder().encode
_rows = msgspec.msgpack.Decoder(tuple[Row, ...]).decode
_body = msgspec.msgpack.Decoder(Body).decode


def fact_digest(secret: bytes, namespace: bytes, id_: str) -> bytes:
    """Return the keyed digest of an id in a space, as events, removals and certificates name it.

    Args:
        namespace: what `Namespace.key` gives.
    """
    return keyed_hash(secret, b"certified id", _encode((namespace, id_.encode())))


class FactDigests:
    """The same digests, of many ids of one space."""

    def __init__(self, secret: bytes, namespace: bytes) -> None:
        start = _encode((namespace, b""))[:-2]  # all of it but the head of an empty last member
        self._base = hashlib.blake2b(
            start, digest_size=16, key=secret, person=b"certified id".ljust(16, b"\0")
        )

    def of(self, id_: str) -> bytes:
        """Return the digest of an id."""
        digest = self._base.copy()
        digest.update(_encode(id_.encode()))
        return digest.digest()


def extend(chain: bytes, space: bytes, first: int, rows: Sequence[bytes]) -> bytes:
    """Return the chain after these events: each digest is over the one before and all that the event says."""
    blake2b, prefix, pack = hashlib.blake2b, len(space).to_bytes(1, "little") + space, _NUMBER.pack
    for sequence, row in enumerate(rows, first):
        chain = blake2b(chain + prefix + pack(sequence) + row, digest_size=CHAIN_BYTES).digest()
    return chain


def row_bytes(row: Row) -> bytes:
    """Return the row as it is chained."""
    return _encode(row)


def make_body(
    first: int, space: bytes, rows: Sequence[Row], chain: bytes, position: Position | None = None
) -> Body:
    """Return the body of the record of these rows, which follow the chain."""
    encoded = [_encode(row) for row in rows]
    types = 0
    for code in {row.type for row in rows}:
        types |= 1 << code
    moments = [row.at for row in rows]
    return Body(
        first,
        len(rows),
        space,
        types,
        min(moments, default=0),
        max(moments, default=0),
        msgspec.Raw(_array_head(len(rows)) + b"".join(encoded)),
        extend(chain, space, first, encoded),
        position,
    )


def rows_of(body: Body) -> tuple[Row, ...]:
    """Return the events of a record.

    Raises:
        Corrupt: they are none.
    """
    try:
        rows = _rows(body.rows)
    except msgspec.MsgspecError as error:
        raise damaged() from error
    if len(rows) != body.count or any(not 0 <= row.type < len(TYPES) for row in rows):
        raise damaged()
    return rows


def encode(secret: bytes, body: Body) -> bytes:
    """Return the record of a body."""
    data = _encode(body)
    return bytes([VERSION]) + _seal(secret, data) + data


def decode(secret: bytes, data: bytes | None) -> Body:
    """Return the body of a record.

    Raises:
        Corrupt: it is none, or its seal does not fit.
        Unavailable: a newer build wrote it.
    """
    if not data:
        raise damaged()
    if data[0] != VERSION:
        raise Unavailable(
            f"the audit has format {data[0]}, this build reads up to {VERSION}: open the store with a newer build"
        )
    seal, body = data[1 : 1 + SEAL_BYTES], data[1 + SEAL_BYTES :]
    if not compare_digest(seal, _seal(secret, body)):
        raise damaged()
    try:
        return _body(body)
    except msgspec.MsgspecError as error:
        raise damaged() from error


def damaged() -> Corrupt:
    return Corrupt(
        "the audit is damaged, or was changed: verify its events, and restore it from a backup, or move its files "
        "away and keep them"
    )


def details_of(pairs: Iterable[tuple[str, int | str | bool]]) -> Details:
    """Return details in the one order that they are chained in."""
    return tuple(sorted(pairs))


def _seal(secret: bytes, body: bytes) -> bytes:
    return keyed_hash(secret, b"audit record", body, SEAL_BYTES)


def _array_head(count: int) -> bytes:
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
