"""What is stored of an index, read whole and verified: nothing that was not written so is served."""

from __future__ import annotations

import struct
from typing import NamedTuple

import apsw
import msgspec

from perdure.errors import InvalidRequest
from perdure.vectors.coding import Coding
from perdure.vectors.partitioned.admission import check_admitted
from perdure.vectors.partitioned.errors import (
    BudgetExceeded,
    DescriptorMismatch,
    InvalidDescriptor,
    StorageCorrupted,
)
from perdure.vectors.partitioned.partition import Partition, decoded, digest_of
from perdure.vectors.partitioned.snapshot import Kept, Snapshot, check_budgets, head_of
from perdure.vectors.partitioned.sqlite.rows import (
    Meta,
    Part,
    check_blocks,
    read_content,
    read_meta,
    read_parts,
)
from perdure.vectors.partitioned.types import IDENTITY_FIELDS, VectorDescriptor

UNREADABLE = (struct.error, ValueError, TypeError, ArithmeticError, LookupError)
"""What Python says of values that no index writes, and that no check of them has named."""


class Loaded(NamedTuple):
    """A snapshot, and which number of the directory each of its partitions has."""

    snapshot: Snapshot
    numbers: dict[str, int]


def load(db: apsw.Connection, coding: Coding, known: Loaded | None) -> Loaded:
    """Return what is stored, in the transaction that is open; partitions that are known are not read again.

    Without anything known, all of the file is read.

    Raises:
        StorageCorrupted: something is not as it was written.
    """
    try:
        return _loaded(db, coding, known)
    except UNREADABLE as error:
        raise StorageCorrupted("what it holds cannot be read") from error


def _loaded(db: apsw.Connection, coding: Coding, known: Loaded | None) -> Loaded:
    meta = read_meta(db)
    descriptor = stored_descriptor(meta)
    if known is not None and known.snapshot.nonce == meta.nonce and known.snapshot.revision == meta.revision:
        if known.snapshot.head != meta.head:
            raise StorageCorrupted("another content has the revision that is known")
        if known.snapshot.descriptor == descriptor:
            return known
        kept = known.snapshot.kept
        return Loaded(Snapshot(descriptor, meta.nonce, meta.revision, kept), known.numbers)
    parts = read_parts(db)
    check_blocks(db, parts)
    loaded = _kept(db, coding, descriptor, parts, known)
    snapshot = Snapshot(
        descriptor, meta.nonce, meta.revision, {name: kept for name, (_, kept) in loaded.items()}
    )
    _check_totals(meta, snapshot)
    # Already verified, part by part, against the digests of the directory.
    digests = [parts[loaded[name][0]].digest for name in snapshot.kept]
    if head_of(descriptor, meta.revision, digests) != meta.head:
        raise StorageCorrupted("its head digest is not that of its content")
    return Loaded(snapshot, {name: number for name, (number, _) in loaded.items()})


def stored_descriptor(meta: Meta) -> VectorDescriptor:
    """Return the descriptor of an index; StorageCorrupted where it is none."""
    try:
        told = msgspec.json.decode(meta.identity, type=dict[str, object])
        if not set(told) <= set(IDENTITY_FIELDS):
            raise InvalidDescriptor("unknown field", field="descriptor")
        descriptor = msgspec.convert(
            {**told, "max_records": meta.max_records, "max_bytes": meta.max_bytes}, VectorDescriptor
        )
        descriptor.verify()
    except (msgspec.MsgspecError, UnicodeError, InvalidDescriptor) as error:
        raise StorageCorrupted("its descriptor is malformed") from error
    if descriptor.identity() != meta.identity:
        raise StorageCorrupted("its descriptor is not in the form in which it is written")
    return descriptor


def check_descriptor(stored: VectorDescriptor, told: VectorDescriptor) -> None:
    """Raise DescriptorMismatch where they describe different indexes, whatever their budgets."""
    differing = tuple(field for field in IDENTITY_FIELDS if getattr(stored, field) != getattr(told, field))
    if differing:
        raise DescriptorMismatch(differing)


def _kept(
    db: apsw.Connection,
    coding: Coding,
    descriptor: VectorDescriptor,
    parts: dict[int, Part],
    known: Loaded | None,
) -> dict[str, tuple[int, Kept]]:
    """Return number and content of each partition, by name."""
    names = {} if known is None else {number: name for name, number in known.numbers.items()}
    loaded: dict[str, tuple[int, Kept]] = {}
    for number, part in parts.items():
        kept = None if known is None else known.snapshot.kept.get(names.get(number, ""))
        if kept is None or (kept.revision, kept.partition.digest) != (part.revision, part.digest):
            kept = Kept(_partition(db, coding, descriptor, number, part), part.revision)
        if kept.partition.name in loaded:
            raise StorageCorrupted("two of its partitions have the same name")
        loaded[kept.partition.name] = number, kept
    return loaded


def _partition(
    db: apsw.Connection, coding: Coding, descriptor: VectorDescriptor, number: int, part: Part
) -> Partition:
    encoded = read_content(db, number, part)
    if digest_of(encoded) != part.digest:
        raise StorageCorrupted(f"the digest of partition {number} is not that of its content")
    try:
        words, vectors = decoded(encoded, descriptor.dimension)
        check_admitted(words, vectors, descriptor)
    except (ValueError, InvalidRequest) as error:
        raise StorageCorrupted(f"partition {number} is none that was admitted") from error
    partition = Partition(words, vectors, coding, part.digest)
    if (partition.record_count, partition.byte_count) != (part.record_count, part.byte_count):
        raise StorageCorrupted(f"the counts of partition {number} are not those of its content")
    return partition


def _check_totals(meta: Meta, snapshot: Snapshot) -> None:
    found = len(snapshot.kept), snapshot.record_count, snapshot.byte_count
    if found != (meta.partition_count, meta.record_count, meta.byte_count):
        raise StorageCorrupted("its counts are not those of its content")
    if any(not 1 <= kept.revision <= meta.revision for kept in snapshot.kept.values()):
        raise StorageCorrupted("a partition is of a revision that there was not")
    try:
        check_budgets(snapshot.descriptor, snapshot.record_count, snapshot.byte_count)
    except BudgetExceeded as error:
        raise StorageCorrupted("it holds more than its budgets allow") from error
