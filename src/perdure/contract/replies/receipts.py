"""The replies of writes."""

from __future__ import annotations

from typing import Annotated, Any

from perdure.contract.replies.fields import DryRun, Millis, Outcome, Pending, Purged, Reply, Status, says


class Remembered(Reply, frozen=True):
    """The receipt of one fact."""

    id: Annotated[
        str | None,
        says("null only when it was refused; of a merged one that of the fact it was merged into."),
    ]
    outcome: Outcome
    created: Annotated[bool, says("True for created and replaced.")]
    status: Status | None
    reason: Annotated[str | None, says("Why, where the outcome may surprise, and what to do.")]
    ingest_time: Annotated[Millis | None, says("When it was recorded.")]
    supersedes: Annotated[tuple[str, ...], says("Ids that this telling linked.")]
    superseded_by: Annotated[tuple[str, ...], says("Ids that this telling linked.")]
    pending: Pending


class RememberedMany(Reply, frozen=True):
    """The receipts of a batch, in its order."""

    remembered: tuple[Remembered, ...]


class StepObject(Reply, frozen=True):
    """A step of an erasure."""

    name: str
    done: bool


class EventReferenceObject(Reply, frozen=True):
    """An event of the audit that an erasure left."""

    sequence: int
    chain: Annotated[str, says("The digest of all events up to it.")]


class CertificateObject(Reply, frozen=True):
    """The certificate of an erasure: no text and no id, only keyed digests of them."""

    version: Annotated[int, says("Of this form.")]
    operation: Annotated[str, says("forget, erase or purge.")]
    at: Millis
    store: Annotated[str, says("A keyed digest that recognises the store.")]
    epoch: Annotated[int, says("How many purges the store had seen.")]
    spaces: Annotated[int, says("That were erased whole.")]
    facts: int
    records: Annotated[int, says("That were erased; of a purge by itself, that it left out.")]
    ids: Annotated[tuple[str, ...], says("Keyed digests.")]
    texts: Annotated[tuple[str, ...], says("Keyed digests.")]
    steps: tuple[StepObject, ...]
    pending: Pending
    backups: Annotated[tuple[Millis, ...], says("Copies that were noted and may hold the facts.")]
    outside: Annotated[tuple[str, ...], says("What the store cannot erase.")]
    seal: Annotated[str, says("Keyed digest of all the rest: only the store can check it.")]
    event: Annotated[
        EventReferenceObject | None, says("The last of the audit's that tell of it; null without an audit.")
    ] = None


class Forgotten(Reply, frozen=True):
    """The receipt of a forget."""

    forgotten: Annotated[tuple[str, ...], says("Ids that went, or in a dry run would go; sorted.")]
    derived: Annotated[tuple[str, ...], says("Ids of what a consolidation made of them, and stays.")]
    dry_run: DryRun
    purged: Purged
    pending: Pending
    certificate: Annotated[CertificateObject | None, says("null where nothing was erased by this call.")]


class Restored(Reply, frozen=True):
    """The ids that came back, sorted."""

    restored: tuple[str, ...]


class Unblocked(Reply, frozen=True):
    """How many blocks were lifted."""

    unblocked: int


class Consolidated(Reply, frozen=True):
    """The receipt of a consolidation."""

    created: Annotated[tuple[str, ...], says("Ids of new facts, in the order of the plan.")]
    forgotten: Annotated[tuple[str, ...], says("Ids of removed sources, sorted.")]
    dry_run: DryRun
    pending: Pending


class Merged(Reply, frozen=True):
    """The receipt of a merge."""

    kept: Annotated[str, says("The id of the fact that stays.")]
    merged: Annotated[tuple[str, ...], says("Ids of the facts that it takes the place of.")]
    dry_run: DryRun
    tags: Annotated[tuple[str, ...], says("This and what follows is what is noted of it then.")]
    kind: str | None
    importance: float | None
    pinned: bool
    metadata: dict[str, Any]


class Used(Reply, frozen=True):
    """Of how many facts a use was counted."""

    counted: int
