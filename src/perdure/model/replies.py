"""What writes and listings answer."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Literal, TypeVar

import msgspec

from perdure.model.status import Status

T = TypeVar("T")
Outcome = Literal["created", "existing", "replaced", "merged", "refused"]


class Remembered(msgspec.Struct, frozen=True):
    """The receipt of one remembered fact. `id` is None only when it was refused.

    `created` is True for created and replaced. `reason` says, where the outcome may surprise, why
    and what to do. `supersedes` and `superseded_by` are the ids linked by this telling, sorted.
    """

    id: str | None
    outcome: Outcome
    created: bool
    status: Status | None
    reason: str | None
    ingest_time: datetime | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """The receipt of a forget. `forgotten` are the ids that went (or, in a dry run, would go), sorted.

    `pending` is True while another process's read keeps the last step of the erasure from being
    done; the next operation on the store finishes it.
    """

    forgotten: tuple[str, ...]
    derived: tuple[str, ...]
    dry_run: bool
    purged: bool
    pending: bool


class Consolidated(msgspec.Struct, frozen=True):
    """The receipt of a consolidation; a dry run names what a real one would add and remove.

    `created` are the ids of the new facts in the order of the plan, `forgotten` those of removed sources,
    sorted.
    """

    created: tuple[str, ...]
    forgotten: tuple[str, ...]
    dry_run: bool


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a listing. `total` counts all that match; `cursor` continues after the last item."""

    items: tuple[T, ...]
    total: int
    has_more: bool
    cursor: str | None


class Change(msgspec.Struct, frozen=True):
    """One entry of the change feed. `ids` are the facts it concerns that still exist, in order."""

    sequence: int
    kind: str
    at: datetime | None
    ids: tuple[str, ...]
    count: int


class Changes(msgspec.Struct, frozen=True):
    """A part of the change feed in log order; pass `cursor` as `since` to go on."""

    items: tuple[Change, ...]
    has_more: bool
    cursor: str
