"""The replies of all operations, as they are on the wire: one type each, from which schemas and clients are made.

Times are integer milliseconds since 1970-01-01T00:00:00Z. Fields stand in the order in which they are sent.
`perdure.contract.wire` makes the objects; a test holds them against these types.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Millis = Annotated[int, Meta(description="Milliseconds since 1970-01-01T00:00:00Z.")]
Status = Annotated[
    str, Meta(extra_json_schema={"enum": ["current", "superseded", "expired", "not-yet-valid", "hidden"]})
]
Outcome = Annotated[
    str, Meta(extra_json_schema={"enum": ["created", "existing", "replaced", "merged", "refused"]})
]


class Reply(Struct, frozen=True, rename="camel"):
    """What all replies share. A newer server may tell more: unknown fields are passed over.

    `repr()` shows no value, for it may be somebody's text.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class SourceObject(Reply, frozen=True):
    """Where a fact comes from; only the fields that it has."""

    uri: str | UnsetType = UNSET
    quote: str | UnsetType = UNSET
    start: int | UnsetType = UNSET
    end: int | UnsetType = UNSET
    position: int | UnsetType = UNSET
    actor: str | UnsetType = UNSET


class EndObject(Reply, frozen=True):
    """A close of validity told later; `at` is null for a retraction."""

    at: Millis | None
    recorded_at: Millis
    reason: str | None


class MergesObject(Reply, frozen=True):
    """How many tellings were merged into a fact, and when the last of them was."""

    count: int
    last_at: Millis


class FactObject(Reply, frozen=True):
    """A stored fact as seen by one read."""

    id: str
    text: str
    subject: str | None
    entities: tuple[str, ...]
    metadata: dict[str, Any]
    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    event_time: Millis | None
    valid_from: Millis | None
    valid_to: Millis | None
    ingest_time: Millis
    ends: tuple[EndObject, ...]
    uses: int
    last_used_at: Millis | None
    hidden: bool
    source: SourceObject | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    status: Status
    merged: MergesObject | None


class PartObject(Reply, frozen=True):
    """One named part of a score."""

    name: str
    value: float


class ChainObject(Reply, frozen=True):
    """A fact of the same supersession component."""

    id: str
    text: str
    relation: str
    direct: bool
    effective_time: Millis | None
    status: Status


class NeighbourObject(Reply, frozen=True):
    """A fact of the same source whose words counted for the explained one."""

    id: str
    distance: int
    weight: float
    terms: tuple[str, ...]


class ExplanationObject(Reply, frozen=True):
    """Why a fact came back from a recall, or why it did not."""

    id: str
    reason: str
    retrieved: bool
    rank: int | None
    lexical_score: float
    semantic_score: float | None
    retrieval_score: float | None
    weights: dict[str, float]
    fusion: str | None
    matched_terms: tuple[str, ...]
    recency_factor: float
    historical_factor: float
    final_score: float | None
    parts: tuple[PartObject, ...]
    status: Status | None
    as_of: Millis
    known_at: Millis | None
    valid_from: Millis | None
    valid_to: Millis | None
    within_validity: bool
    filtered_by: tuple[str, ...]
    chain: tuple[ChainObject, ...]
    source: SourceObject | None
    uses: int
    last_used_at: Millis | None
    marks: Annotated[
        tuple[tuple[int, int], ...], Meta(description="Start and end of each matched word, in code points.")
    ]
    neighbours: tuple[NeighbourObject, ...]
    actor: str | None
    period: str | None


class SpaceObject(Reply, frozen=True):
    """The name of a space."""

    principal: str
    scope: str


class HitObject(Reply, frozen=True):
    """One result of recall; `space` where several were asked, `explanation` where one was asked for."""

    fact: FactObject
    score: float
    status: Status
    explanation: ExplanationObject | UnsetType = UNSET
    space: SpaceObject | UnsetType = UNSET


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


class Recalled(Reply, frozen=True):
    """Hits, best first; ties by arrival."""

    results: tuple[HitObject, ...]


class Explained(Reply, frozen=True):
    """The explanation of one fact."""

    explanation: ExplanationObject


class RejectedObject(Reply, frozen=True):
    """A fact that did not come back, and why."""

    id: str
    reason: str
    status: Status | None
    filter: tuple[str, ...]


class TraceObject(Reply, frozen=True):
    """A recall with what it left out."""

    query: str
    options: dict[str, Any]
    seen: int
    eligible: int
    matched: int
    scored: int
    returned: int
    results: tuple[HitObject, ...]
    rejected: tuple[RejectedObject, ...]


class Traced(Reply, frozen=True):
    """The trace of a recall."""

    trace: TraceObject


class Got(Reply, frozen=True):
    """A fact, or null where there is none."""

    fact: FactObject | None


class OneFact(Reply, frozen=True):
    """The fact as it is now."""

    fact: FactObject


class HistoryReply(Reply, frozen=True):
    """Connected facts in the order in which they take effect."""

    history: tuple[FactObject, ...]


class FactPage(Reply, frozen=True):
    """A part of a listing."""

    items: tuple[FactObject, ...]
    total: int
    has_more: bool
    cursor: str | None


class ChangeObject(Reply, frozen=True):
    """One entry of the change feed."""

    sequence: int
    kind: str
    at: Millis | None
    ids: tuple[str, ...]
    count: int


class ChangesReply(Reply, frozen=True):
    """A part of the change feed; give `cursor` as `since` to go on."""

    items: tuple[ChangeObject, ...]
    has_more: bool
    cursor: str


class DifferenceObject(Reply, frozen=True):
    """A fact that stands differently."""

    fact: FactObject
    before: Status | None
    after: Status
    by: tuple[str, ...]


class DiffObject(Reply, frozen=True):
    """What came to be known after one moment and until another."""

    known_from: Millis
    known_to: Millis
    as_of: Millis
    learnt: tuple[DifferenceObject, ...]
    ended: tuple[DifferenceObject, ...]
    retracted: tuple[DifferenceObject, ...]
    superseded: tuple[DifferenceObject, ...]
    corrected: tuple[DifferenceObject, ...]


class Differed(Reply, frozen=True):
    """The differences."""

    diff: DiffObject


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


class PutReply(Reply, frozen=True):
    """The outcome of a put."""

    id: str
    outcome: Outcome
    version: int
    pending: bool
    reason: str | None


class HasReply(Reply, frozen=True):
    """Whether there is one."""

    exists: bool


class DocumentObject(Reply, frozen=True):
    """A stored document."""

    id: str
    text: str
    metadata: dict[str, Any]
    version: int


class DocumentReply(Reply, frozen=True):
    """A document, or null where there is none."""

    document: DocumentObject | None


class DeletedReply(Reply, frozen=True):
    """The receipt of a delete."""

    deleted: bool
    purged: bool
    pending: bool
    certificate: CertificateObject | None


class DocumentHitObject(Reply, frozen=True):
    """One result of a search: the text of the best unit, and its index from 0."""

    id: str
    text: str
    unit: int
    metadata: dict[str, Any]
    score: float


class DocumentsFound(Reply, frozen=True):
    """Documents, best first; ties by arrival."""

    results: tuple[DocumentHitObject, ...]


class DocumentPage(Reply, frozen=True):
    """A part of a listing of documents."""

    items: tuple[DocumentObject, ...]
    total: int
    has_more: bool
    cursor: str | None


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


class ErrorBody(Reply, frozen=True):
    """What is wrong, and what to do."""

    code: str
    message: str
    field: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


class ErrorReply(Reply, frozen=True):
    """The one shape of an error on every surface."""

    error: ErrorBody


def decode_reply(data: bytes, reply: type[Reply]) -> Reply:
    """Return a reply of this type; raises msgspec.ValidationError where it has another shape."""
    return msgspec.json.decode(data, type=reply)
