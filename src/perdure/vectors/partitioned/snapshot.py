"""One revision of an index, never changed; and how a change leads to the next one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from struct import Struct
from typing import NamedTuple

from perdure.base.ids import random_secret
from perdure.vectors.partitioned.errors import (
    BudgetExceeded,
    PartitionRevisionConflict,
    RevisionConflict,
    RevisionExhausted,
)
from perdure.vectors.partitioned.partition import Partition, shown_digest
from perdure.vectors.partitioned.types import (
    REVISION_MAX,
    TOKEN_PROFILE,
    PartitionStatus,
    VectorChangeToken,
    VectorDescriptor,
    VectorObservation,
    VectorStatus,
)

NONCE_BYTES = 32
HISTORY_DOMAIN = b"perdure.vector-index-history.v1\0"
HEAD_DOMAIN = b"perdure.vector-index-head.v1\0"
_size = Struct("<Q").pack


class Kept(NamedTuple):
    """A partition and the revision of the index that made it what it is."""

    partition: Partition
    revision: int


class Change(NamedTuple):
    """What is to become of a partition: its new content, or None to remove it."""

    name: str
    partition: Partition | None
    expected_revision: int | None = None


class Batch(NamedTuple):
    """Changes that are made in one step, if the index is at the expected revision."""

    changes: Sequence[Change]
    expected_revision: int | None = None
    clears: bool = False  # also removes every partition that is there


class Snapshot:
    """All partitions at one revision, ascending by name. What did not change is shared with earlier ones."""

    def __init__(
        self, descriptor: VectorDescriptor, nonce: bytes, revision: int, kept: Mapping[str, Kept]
    ) -> None:
        self.descriptor, self.nonce, self.revision = descriptor, nonce, revision
        self.kept = {name: kept[name] for name in sorted(kept)}
        self.record_count = sum(each.partition.record_count for each in kept.values())
        self.byte_count = sum(each.partition.byte_count for each in kept.values())

    @classmethod
    def empty(cls, descriptor: VectorDescriptor) -> Snapshot:
        """Return revision 0 of a new history."""
        return cls(descriptor, random_secret(NONCE_BYTES), 0, {})

    @property
    def status(self) -> VectorStatus:
        return VectorStatus(
            revision=self.revision,
            partition_count=len(self.kept),
            record_count=self.record_count,
            byte_count=self.byte_count,
        )

    @cached_property
    def head(self) -> bytes:
        """SHA-256 over what the index is and holds, whatever it held before."""
        digests = [each.partition.digest for each in self.kept.values()]
        return head_of(self.descriptor, self.revision, digests)

    @property
    def token(self) -> VectorChangeToken:
        return VectorChangeToken(
            profile=TOKEN_PROFILE,
            history_id=shown_digest(hashlib.sha256(HISTORY_DOMAIN + self.nonce).digest()),
            revision=self.revision,
            head_digest=shown_digest(self.head),
        )

    @property
    def observation(self) -> VectorObservation:
        return VectorObservation(status=self.status, token=self.token)

    def partition_statuses(self) -> tuple[PartitionStatus, ...]:
        return tuple(
            PartitionStatus(
                name=name,
                revision=each.revision,
                record_count=each.partition.record_count,
                byte_count=each.partition.byte_count,
            )
            for name, each in self.kept.items()
        )

    def after(self, batch: Batch) -> Snapshot:
        """Return the snapshot after a batch; this one where nothing is to be done.

        Raises:
            RevisionConflict, PartitionRevisionConflict: a condition does not hold.
            BudgetExceeded: the index would hold more than it may.
            RevisionExhausted: there is no further revision.
        """
        self._check_conditions(batch)
        kept: dict[str, Kept] = {} if batch.clears else dict(self.kept)
        effective = batch.clears and bool(self.kept)
        for change in batch.changes:
            effective = effective or change.partition is not None or change.name in kept
            kept.pop(change.name, None)
            if change.partition is not None:
                kept[change.name] = Kept(change.partition, self.revision + 1)
        if not effective:
            return self
        if self.revision >= REVISION_MAX:
            raise RevisionExhausted(REVISION_MAX)
        following = Snapshot(self.descriptor, self.nonce, self.revision + 1, kept)
        check_budgets(self.descriptor, following.record_count, following.byte_count)
        return following

    def _check_conditions(self, batch: Batch) -> None:
        if batch.expected_revision not in (None, self.revision):
            raise RevisionConflict(expected=batch.expected_revision or 0, actual=self.revision)
        for change in batch.changes:
            kept = self.kept.get(change.name)
            actual = kept.revision if kept is not None else 0
            if change.expected_revision not in (None, actual):
                raise PartitionRevisionConflict(expected=change.expected_revision or 0, actual=actual)


def check_budgets(descriptor: VectorDescriptor, record_count: int, byte_count: int) -> None:
    """Raise BudgetExceeded where so many records, or so many bytes, are more than an index may hold."""
    if record_count > descriptor.max_records:
        raise BudgetExceeded("records", descriptor.max_records, record_count)
    if byte_count > descriptor.max_bytes:
        raise BudgetExceeded("bytes", descriptor.max_bytes, byte_count)


def head_of(descriptor: VectorDescriptor, revision: int, digests: Sequence[bytes]) -> bytes:
    """Return the head digest of an index whose partitions, ascending by name, have these digests."""
    identity = descriptor.identity()
    hashed = hashlib.sha256(HEAD_DOMAIN + _size(len(identity)) + identity + _size(revision))
    for digest in digests:
        hashed.update(digest)
    return hashed.digest()
