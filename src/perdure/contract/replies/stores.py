"""The replies about whole spaces and stores."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from perdure.contract.replies.fields import DryRun, Pending, Purged, Reply, SpaceObject, says
from perdure.contract.replies.receipts import CertificateObject


class FeaturesObject(Reply, frozen=True):
    """What is there and what is not."""

    as_of: bool
    known_at: bool
    supersession: bool
    explain: bool
    history: bool
    purge: bool
    consolidation: bool
    embeddings: bool
    embedding_dimension: Annotated[int | None, says("null where it is not settled.")]
    encryption: bool
    documents: bool
    repository: Annotated[bool, says("Governed knowledge.")]
    conversation: bool
    pagination: bool
    analysis_profile: Annotated[str, says("How texts become words.")]
    embedder_model: Annotated[str | None, says("null without an embedder.")]


class LimitsObject(Reply, frozen=True):
    """The limits of a surface that are stricter than the engine's."""

    k: Annotated[int, says("Results at most.")]
    query_bytes: Annotated[int, says("Of a query at most.")]
    batch: Annotated[int, says("Facts of one remember at most.")]
    body_bytes: Annotated[int, says("Of a request at most.")]


class CapabilitiesReply(Reply, frozen=True):
    """What is offered: the operations of all groups; over MCP those that a tool does. `limits` over HTTP only."""

    contract_version: int
    profile: str
    operations: tuple[str, ...]
    features: FeaturesObject
    limits: LimitsObject | UnsetType = UNSET


class ReindexedReply(Reply, frozen=True):
    """The settings that the space has now."""

    profile: str
    k1: float
    b: float
    changed: Annotated[bool, says("False where it had these before.")]
    pending: Pending
    embedded: Annotated[int, says("Texts that were embedded anew.")]


class EmbeddedReply(Reply, frozen=True):
    """How many texts got a vector, and how many have none still."""

    embedded: Annotated[int, says("0 in a dry run.")]
    missing: Annotated[int, says("Texts that have none still.")]
    dry_run: DryRun


class SpacesReply(Reply, frozen=True):
    """Names, sorted."""

    spaces: tuple[SpaceObject, ...]


class StatsReply(Reply, frozen=True):
    """Sizes of a store, or of the spaces that the caller may see."""

    backend: str
    spaces: int
    facts: int
    records: Annotated[int, says("Entries of the log.")]
    size_bytes: Annotated[int | None, says("null where it cannot be told.")]
    reclaimable_bytes: Annotated[int | None, says("What a purge would give back, about.")]
    without_vector: Annotated[int, says("Texts without a vector.")]


class FindingObject(Reply, frozen=True):
    """Something that a verification found wrong."""

    message: str
    space: Annotated[int | None, says("Its number; null where it is about the whole store.")]
    seq: Annotated[int | None, says("The record, by its place in the space.")]


class VerifiedReply(Reply, frozen=True):
    """What a verification found."""

    ok: Annotated[bool, says("Nothing was found.")]
    findings: tuple[FindingObject, ...]
    spaces: Annotated[int, says("That were looked at.")]
    records: Annotated[int, says("That were looked at.")]


class PurgedReply(Reply, frozen=True):
    """The receipt of a purge."""

    records: Annotated[int, says("What the store holds now.")]
    dropped: Annotated[int, says("What it holds no more.")]
    pending: Pending
    certificate: CertificateObject


class ErasedReply(Reply, frozen=True):
    """The receipt of an erasure of whole memories."""

    spaces: Annotated[tuple[SpaceObject, ...], says("Names, sorted.")]
    facts: Annotated[int, says("Facts and documents in them, hidden ones included.")]
    dry_run: DryRun
    purged: Purged
    pending: Pending
    certificate: Annotated[CertificateObject | None, says("null where nothing was erased by this call.")]


class ProblemObject(Reply, frozen=True):
    """A line that cannot be imported, and why."""

    line: Annotated[int, says("From 1.")]
    reason: str


class ImportedReply(Reply, frozen=True):
    """What an import did, or would do."""

    created: Annotated[int, says("Lines about a space that were stored now.")]
    existing: Annotated[int, says("Lines that were there before.")]
    skipped: Annotated[int, says("Lines that were left out.")]
    facts: Annotated[int, says("Facts and documents among those created.")]
    spaces: Annotated[tuple[SpaceObject, ...], says("As named in the file, in its order.")]
    problems: Annotated[tuple[ProblemObject, ...], says("Lines that are wrong.")]
    foreign_receipts: Annotated[
        int, says("Answers under idempotency keys of another secret, which answer nobody here.")
    ]
    dry_run: DryRun


class ExportLine(Reply, frozen=True):
    """An export is not one object but lines of JSON."""
