"""The replies that show facts."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from perdure.contract.replies.fields import Millis, Reply, SpaceObject, Status, says
from perdure.contract.replies.nodes import NodeReferenceObject


class SourceObject(Reply, frozen=True):
    """Where a fact comes from; only the fields that it has."""

    uri: str | UnsetType = UNSET
    quote: Annotated[str | UnsetType, says("What it says there.")] = UNSET
    start: Annotated[int | UnsetType, says("Where the quote begins.")] = UNSET
    end: Annotated[int | UnsetType, says("Where the quote ends.")] = UNSET
    position: Annotated[
        int | UnsetType, says("Its place in a sequence, such as the turn of a conversation.")
    ] = UNSET
    actor: Annotated[str | UnsetType, says("Who said it.")] = UNSET


class EndObject(Reply, frozen=True):
    """A close of validity told later; `at` is null for a retraction."""

    at: Millis | None
    recorded_at: Annotated[Millis, says("When this was told.")]
    reason: str | None


class MergesObject(Reply, frozen=True):
    """How many tellings were merged into a fact, and when the last of them was."""

    count: int
    last_at: Millis


class FactObject(Reply, frozen=True):
    """A stored fact as seen by one read."""

    id: str
    text: str
    subject: Annotated[str | None, says("The slot that it fills.")]
    entities: Annotated[tuple[str, ...], says("Names that it mentions.")]
    metadata: Annotated[dict[str, Any], says("An object of the caller's.")]
    tags: tuple[str, ...]
    kind: Annotated[str | None, says("episodic, semantic, procedural or working.")]
    importance: Annotated[float | None, says("0 to 1.")]
    pinned: Annotated[bool, says("Forgetting policies leave it alone.")]
    event_time: Annotated[Millis | None, says("The moment that it describes.")]
    valid_from: Annotated[Millis | None, says("Holds from then on; null: always before, too.")]
    valid_to: Annotated[Millis | None, says("Holds until before then; null: without end.")]
    ingest_time: Annotated[Millis, says("When it was recorded.")]
    ends: Annotated[tuple[EndObject, ...], says("Closes that were told later, in order of arrival.")]
    uses: Annotated[int, says("How often a use was counted.")]
    last_used_at: Millis | None
    hidden: Annotated[bool, says("Softly forgotten.")]
    source: SourceObject | None
    supersedes: Annotated[tuple[str, ...], says("Ids that it replaces directly.")]
    superseded_by: Annotated[tuple[str, ...], says("Ids that replace it directly.")]
    status: Annotated[Status, says("As this read sees it.")]
    merged: MergesObject | None


class PartObject(Reply, frozen=True):
    """One named part of a score."""

    name: str
    value: Annotated[float, says("All parts add up to the score.")]


class ChainObject(Reply, frozen=True):
    """A fact of the same supersession component."""

    id: str
    text: str
    relation: Annotated[str, says("How it stands to the explained fact.")]
    direct: Annotated[bool, says("One link joins the two.")]
    effective_time: Millis | None
    status: Status


class NeighbourObject(Reply, frozen=True):
    """A fact of the same source whose words counted for the explained one."""

    id: str
    distance: Annotated[int, says("In positions; negative before it.")]
    weight: Annotated[float, says("How much its words count.")]
    terms: Annotated[tuple[str, ...], says("Words of the query that it holds.")]


class ExplanationObject(Reply, frozen=True):
    """Why a fact came back from a recall, or why it did not."""

    id: str
    reason: Annotated[str, says("Why it came back, or why not: a name such as no-vector.")]
    retrieved: Annotated[bool, says("Whether it is among the results.")]
    rank: Annotated[int | None, says("From 1, among the ranked candidates; it may exceed k.")]
    lexical_score: Annotated[float, says("By words; of the fact alone, ranked or not.")]
    semantic_score: Annotated[float | None, says("The cosine, -1 to 1; null without vectors.")]
    retrieval_score: Annotated[
        float | None, says("By words and vectors together; null where it was not ranked.")
    ]
    weights: Annotated[dict[str, float], says("Of words and vectors in a hybrid recall.")]
    fusion: Annotated[str | None, says("minmax or rrf, of a hybrid recall.")]
    matched_terms: Annotated[tuple[str, ...], says("Words of the query that are in it, as analysed.")]
    recency_factor: Annotated[float, says("1 without decay.")]
    historical_factor: Annotated[float, says("1 for a current fact.")]
    final_score: Annotated[float | None, says("What results are ordered by; null where it was not ranked.")]
    parts: Annotated[tuple[PartObject, ...], says("What the score is made of.")]
    status: Status | None
    as_of: Annotated[Millis, says("The moment in the world that was asked about.")]
    known_at: Annotated[Millis | None, says("Recorded later was ignored; null: nothing was.")]
    valid_from: Millis | None
    valid_to: Millis | None
    within_validity: bool
    filtered_by: Annotated[tuple[str, ...], says("The options that leave it out.")]
    chain: Annotated[tuple[ChainObject, ...], says("The others that supersession joins it with.")]
    source: SourceObject | None
    uses: int
    last_used_at: Millis | None
    marks: Annotated[tuple[tuple[int, int], ...], says("Start and end of each matched word, in code points.")]
    neighbours: Annotated[tuple[NeighbourObject, ...], says("Facts of the same source whose words counted.")]
    actor: Annotated[str | None, says("Whom the query names, where that counted.")]
    period: Annotated[str | None, says("When the query means, in ISO 8601; --05 is every May.")]
    node: Annotated[
        NodeReferenceObject | None, says("What governed knowledge it stands for, with its evidence.")
    ] = None


class HitObject(Reply, frozen=True):
    """One result of recall; `space` where several were asked, `explanation` where one was asked for."""

    fact: FactObject
    score: Annotated[float, says("From 0; higher is better, within one call.")]
    status: Annotated[Status, says("At the asOf of the read.")]
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
    filter: Annotated[tuple[str, ...], says("The options that leave it out.")]


class TraceObject(Reply, frozen=True):
    """A recall with what it left out."""

    query: str
    options: Annotated[dict[str, Any], says("As asked.")]
    seen: Annotated[int, says("Facts and documents that the memory shows at all.")]
    eligible: Annotated[int, says("Those that the options allow.")]
    matched: Annotated[int, says("Those among them that the query matches.")]
    scored: Annotated[int, says("Candidates that were ranked.")]
    returned: int
    results: tuple[HitObject, ...]
    rejected: Annotated[
        tuple[RejectedObject, ...], says("At most traceLimit of the others; ranked ones first.")
    ]


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
    total: Annotated[int, says("How many match, on all pages.")]
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]


class ChangeObject(Reply, frozen=True):
    """One entry of the change feed."""

    sequence: Annotated[int, says("Grows with each entry.")]
    kind: Annotated[str, says("Such as remembered, superseded, ended, forgotten.")]
    at: Millis | None
    ids: Annotated[tuple[str, ...], says("Of the facts that it concerns and that still exist.")]
    count: Annotated[int, says("Of how many facts.")]


class ChangesReply(Reply, frozen=True):
    """A part of the change feed; give `cursor` as `since` to go on."""

    items: tuple[ChangeObject, ...]
    has_more: bool
    cursor: Annotated[str, says("Give it as `since` to go on, later too.")]


class DifferenceObject(Reply, frozen=True):
    """A fact that stands differently."""

    fact: FactObject
    before: Annotated[Status | None, says("null where it was not known.")]
    after: Status
    by: Annotated[tuple[str, ...], says("Ids of the facts that supersede or correct it.")]


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
