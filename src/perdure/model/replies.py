"""What writes and listings answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from perdure.base.text import counted
from perdure.model.certificate import Certificate
from perdure.model.namespace import Namespace
from perdure.model.status import Status

T = TypeVar("T")
Outcome = Literal["created", "existing", "replaced", "merged", "refused"]


class Remembered(msgspec.Struct, frozen=True):
    """The receipt of one remembered fact. `id` is None only when it was refused; of a merged one it is the id of
    the fact that it was merged into.

    `created` is True for created and replaced. `reason` says, where the outcome may surprise, why
    and what to do. `supersedes` and `superseded_by` are the ids linked by this telling, sorted. `pending`
    is True while something keeps what a replacement erased from leaving the last file; the next operation
    on the store finishes it.
    """

    id: str | None
    outcome: Outcome
    created: bool
    status: Status | None
    reason: str | None
    ingest_time: datetime | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    pending: bool = False


class Forgotten(msgspec.Struct, frozen=True):
    """The receipt of a forget. `forgotten` are the ids that went (or, in a dry run, would go), sorted.

    `derived` are the ids of facts that a consolidation made from these, directly or through others, and that stay,
    sorted; after a soft forget without those that are hidden. The replay of a key names them for what was hidden.
    `pending` is True while another process's read, or in a database the keystore, keeps the last step of the erasure from
    being done; the next operation on the store finishes it, in a database the next forget or purge. `purged` is True where a purge followed.
    `certificate` is None where nothing was to be erased: a dry run, a soft forget, the replay of a key.
    """

    forgotten: tuple[str, ...]
    derived: tuple[str, ...]
    dry_run: bool
    purged: bool
    pending: bool
    certificate: Certificate | None = None


class Erased(msgspec.Struct, frozen=True):
    """The receipt of an erasure of whole memories; a dry run names what a real one would erase.

    `spaces` are their names, sorted, `facts` counts the facts and documents in them, hidden ones included.
    `pending` as in `Forgotten`; `certificate` is None in a dry run, and where nothing was there to erase.
    """

    spaces: tuple[Namespace, ...]
    facts: int
    dry_run: bool
    purged: bool
    pending: bool
    certificate: Certificate | None = None


class PurgeReceipt(msgspec.Struct, frozen=True):
    """The receipt of a purge. `records` counts what the store holds now, `dropped` what it holds no more.

    `pending` is True while the files that were replaced are still to be overwritten; the next operation on
    the store does it.
    """

    records: int
    dropped: int
    pending: bool
    certificate: Certificate


class Reindexed(msgspec.Struct, frozen=True):
    """The receipt of a reindexing: the settings that the space has now.

    `changed` is False where it had them before, or holds nothing that could be rewritten. `pending` as in
    `PurgeReceipt`. `embedded` counts the texts that were embedded anew.
    """

    profile: str
    k1: float
    b: float
    changed: bool
    pending: bool
    embedded: int = 0


class Embedded(msgspec.Struct, frozen=True):
    """The receipt of embedding what had no vector: how many texts got one, and how many have none still.

    Those hold nothing that the model knows, or lie beyond the limit. A dry run embeds nothing, so `embedded` is 0.
    """

    embedded: int
    missing: int
    dry_run: bool = False


class Consolidated(msgspec.Struct, frozen=True):
    """The receipt of a consolidation; a dry run names what a real one would add and remove.

    `created` are the ids of the new facts in the order of the plan, `forgotten` those of removed sources,
    sorted. `pending` as in `Forgotten`.
    """

    created: tuple[str, ...]
    forgotten: tuple[str, ...]
    dry_run: bool
    pending: bool = False


class Merged(msgspec.Struct, frozen=True):
    """The receipt of a merge; a dry run says what a real one would make of the fact that stays.

    `kept` is its id, `merged` are the ids of the facts that it takes the place of by this call, sorted. The rest
    is what is noted of it then. `repr()` shows no text.
    """

    kept: str
    merged: tuple[str, ...]
    dry_run: bool
    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    metadata: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Merged {counted(len(self.merged), 'fact')}, dry_run {self.dry_run}>"


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a listing. `total` counts all that match; `cursor` continues after the last item."""

    items: tuple[T, ...]
    total: int
    has_more: bool
    cursor: str | None


class Change(msgspec.Struct, frozen=True):
    """One entry of the change feed. `ids` are the facts it concerns that still exist, in order.

    Kinds:
        remembered: a fact was stored.
        document: a document was stored, as a first version or a later one.
        superseded: a link was stored: the first fact supersedes the second one.
        corrected: likewise, where the second one was told wrong.
        ended: the validity of a fact was closed.
        retracted: a fact was said never to have been true.
        annotated: what is noted of a fact was changed.
        used: facts were counted as used.
        hidden: facts were forgotten softly.
        restored: such facts were brought back.
        forgotten: facts or documents were erased; `count` says how many.
        replaced: a fact or document was erased, because another one took its id.
        blocked: ids and texts were blocked; `count` says how many, `ids` is empty.
        unblocked: blocks were lifted; likewise.
    """

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
