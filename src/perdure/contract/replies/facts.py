"""The replies that show facts."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from perdure.contract.replies.fields import Millis, Reply, SpaceObject, Status


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


class HitObject(Reply, frozen=True):
    """One result of recall; `space` where several were asked, `explanation` where one was asked for."""

    fact: FactObject
    score: float
    status: Status
    explanation: ExplanationObject | UnsetType = UNSET
    space: SpaceObject | UnsetType = UNSET


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
