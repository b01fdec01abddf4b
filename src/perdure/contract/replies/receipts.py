"""The replies of writes."""

from __future__ import annotations

from typing import Any

from perdure.contract.replies.fields import Millis, Outcome, Reply, Status


class Remembered(Reply, frozen=True):
    """The receipt of one fact."""

    id: str | None
    outcome: Outcome
    created: bool
    status: Status | None
    reason: str | None
    ingest_time: Millis | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    pending: bool


class RememberedMany(Reply, frozen=True):
    """The receipts of a batch, in its order."""

    remembered: tuple[Remembered, ...]


class StepObject(Reply, frozen=True):
    """A step of an erasure."""

    name: str
    done: bool


class CertificateObject(Reply, frozen=True):
    """The certificate of an erasure: no text and no id, only keyed digests of them."""

    version: int
    operation: str
    at: Millis
    store: str
    epoch: int
    spaces: int
    facts: int
    records: int
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    steps: tuple[StepObject, ...]
    pending: bool
    backups: tuple[Millis, ...]
    outside: tuple[str, ...]
    seal: str


class Forgotten(Reply, frozen=True):
    """The receipt of a forget."""

    forgotten: tuple[str, ...]
    derived: tuple[str, ...]
    dry_run: bool
    purged: bool
    pending: bool
    certificate: CertificateObject | None


class Restored(Reply, frozen=True):
    """The ids that came back, sorted."""

    restored: tuple[str, ...]


class Unblocked(Reply, frozen=True):
    """How many blocks were lifted."""

    unblocked: int


class Consolidated(Reply, frozen=True):
    """The receipt of a consolidation."""

    created: tuple[str, ...]
    forgotten: tuple[str, ...]
    dry_run: bool
    pending: bool


class Merged(Reply, frozen=True):
    """The receipt of a merge."""

    kept: str
    merged: tuple[str, ...]
    dry_run: bool
    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    metadata: dict[str, Any]


class Used(Reply, frozen=True):
    """Of how many facts a use was counted."""

    counted: int
