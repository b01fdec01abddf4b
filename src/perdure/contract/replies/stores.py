"""The replies about whole spaces and stores."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from perdure.contract.replies.fields import Reply, SpaceObject
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
    embedding_dimension: int | None
    encryption: bool
    conversation: bool
    pagination: bool
    analysis_profile: str
    embedder_model: str | None


class LimitsObject(Reply, frozen=True):
    """The limits of a surface that are stricter than the engine's."""

    k: int
    query_bytes: int
    batch: int
    body_bytes: int


class CapabilitiesReply(Reply, frozen=True):
    """What a memory offers; `limits` over HTTP only."""

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
    changed: bool
    pending: bool
    embedded: int


class EmbeddedReply(Reply, frozen=True):
    """How many texts got a vector, and how many have none still."""

    embedded: int
    missing: int
    dry_run: bool


class SpacesReply(Reply, frozen=True):
    """Names, sorted."""

    spaces: tuple[SpaceObject, ...]


class StatsReply(Reply, frozen=True):
    """Sizes of a store, or of the spaces that the caller may see."""

    backend: str
    spaces: int
    facts: int
    records: int
    size_bytes: int | None
    reclaimable_bytes: int | None
    without_vector: int


class FindingObject(Reply, frozen=True):
    """Something that a verification found wrong."""

    message: str
    space: int | None
    seq: int | None


class VerifiedReply(Reply, frozen=True):
    """What a verification found."""

    ok: bool
    findings: tuple[FindingObject, ...]
    spaces: int
    records: int


class PurgedReply(Reply, frozen=True):
    """The receipt of a purge."""

    records: int
    dropped: int
    pending: bool
    certificate: CertificateObject


class ErasedReply(Reply, frozen=True):
    """The receipt of an erasure of whole memories."""

    spaces: tuple[SpaceObject, ...]
    facts: int
    dry_run: bool
    purged: bool
    pending: bool
    certificate: CertificateObject | None


class ProblemObject(Reply, frozen=True):
    """A line that cannot be imported, and why."""

    line: int
    reason: str


class ImportedReply(Reply, frozen=True):
    """What an import did, or would do."""

    created: int
    existing: int
    skipped: int
    facts: int
    spaces: tuple[SpaceObject, ...]
    problems: tuple[ProblemObject, ...]
    foreign_receipts: int
    dry_run: bool


class ExportLine(Reply, frozen=True):
    """An export is not one object but lines of JSON."""
