"""The requests of all operations: one type each, camelCase on the wire, unknown fields refused.

A field that is absent and one that is null mean the same. Only shapes are told here; values are judged by what
carries the request out, so that every surface gives the same message. Limits in the schemas are for readers.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from perdure.contract import limits
from perdure.model.fact import FACT_KINDS


def _limited(description: str, **schema: Any) -> Meta:
    return Meta(description=description, extra_json_schema=schema)


def _choice(description: str, *names: str) -> Meta:
    return Meta(description=description, extra_json_schema={"enum": list(names)})


Moment = Annotated[
    int | str,
    Meta(
        description="Milliseconds since 1970-01-01T00:00:00Z, or ISO 8601 text; without a zone it is UTC.",
        examples=[1_704_067_200_000, "2024-01-01T00:00:00Z"],
    ),
]
Id = Annotated[str, _limited("1 to 256 bytes, no control characters.", minLength=1, maxLength=256)]
Name = Annotated[str, _limited("1 to 1,024 bytes, compared exactly.", minLength=1)]
Tags = Annotated[list[str], _limited("Exact names.", maxItems=limits.TAGS_MAX)]
Kind = Annotated[str, _limited("What sort of fact it is.", enum=list(FACT_KINDS))]
JsonObject = Annotated[dict[str, Any], _limited("An object of the caller's, at most 64 KiB.")]
Filter = Annotated[dict[str, Any], Meta(description="A filter over metadata and @fields.")]
Vector = Annotated[
    list[float],
    _limited(
        "Finite numbers, not all 0, of the memory's dimension.", minItems=1, maxItems=limits.DIMENSION_MAX
    ),
]
IdempotencyKey = Annotated[
    str,
    _limited(
        "A retry under the same key gives the first reply and writes nothing.", minLength=1, maxLength=256
    ),
]
Interval = Annotated[
    list[Moment], _limited("From the first moment until before the second.", minItems=2, maxItems=2)
]
Importance = Annotated[float, _limited("0 to 1.", minimum=0, maximum=1)]
K = Annotated[int, _limited("How many results at most.", minimum=1, maximum=limits.K_MAX)]
PageSize = Annotated[
    int, _limited("How many items at most; 50 when absent.", minimum=1, maximum=limits.LIST_MAX)
]
Text = Annotated[str, _limited("1 to 4,096 words, at most 65,536 bytes; kept byte for byte.", minLength=1)]
HistoryFilter = Annotated[
    str,
    _choice(
        "Which facts: those that hold (the default), all, or those that do not.",
        "current",
        "all",
        "historical",
    ),
]
Mode = Annotated[str, _choice("By words, by vectors, or by both.", "lexical", "semantic", "hybrid")]
Fusion = Annotated[str, _choice("How hybrid makes one score of two.", "minmax", "rrf")]
StatusFilter = Annotated[
    str, _choice("Only facts of this status.", "current", "superseded", "expired", "not-yet-valid")
]
Order = Annotated[
    str,
    _choice(
        "Ties by arrival.",
        "ingest",
        "-ingest",
        "event",
        "-event",
        "importance",
        "-importance",
        "last_used",
        "id",
    ),
]
CorrectClear = Annotated[
    str,
    _choice(
        "What the corrected fact does not inherit.",
        "subject",
        "entities",
        "metadata",
        "eventTime",
        "validFrom",
        "validTo",
        "tags",
        "kind",
        "importance",
        "source",
    ),
]
AnnotateClear = Annotated[
    str, _choice("What the fact shall have no longer.", "tags", "kind", "importance", "metadata")
]
Query = Annotated[str, Meta(description="Words to find; no syntax, every character is text.")]
Cursor = Annotated[str, Meta(description="What the page before gave, with the same arguments.")]
Version = Annotated[
    int, _limited("Only at this version; 0: only where the id is free.", minimum=0, maximum=2**53 - 1)
]


class Request(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What all requests share. `repr()` shows no value, for it may be somebody's text."""

    def __repr__(self) -> str:
        told = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"<{type(self).__name__} of {', '.join(told) or 'nothing'}>"


def told(request: Request) -> dict[str, Any]:
    """Return the fields that are given, by their names in Python; what is nested as plain objects, but a scope."""
    return {
        name: _plain(value)
        for name in request.__struct_fields__
        if (value := getattr(request, name)) is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Request):
        return value if isinstance(value, ForgetScope) else told(value)
    if isinstance(value, list) and any(isinstance(one, Request) for one in value):
        return [_plain(one) for one in value]
    return value


class SourceInput(Request, frozen=True, kw_only=True):
    """Where a fact comes from."""

    uri: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    position: int | None = None
    actor: str | None = None


class FactInput(Request, frozen=True, kw_only=True):
    """A fact to remember."""

    text: Text
    id: Id | None = None
    subject: Name | None = None
    entities: list[str] | None = None
    metadata: JsonObject | None = None
    event_time: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    supersedes: list[str] | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    source: SourceInput | None = None
    reassert: bool | None = None
    embedding: Vector | None = None


class Remember(FactInput, frozen=True, kw_only=True):
    """One fact to remember."""

    idempotency_key: IdempotencyKey | None = None


class RememberMany(Request, frozen=True, kw_only=True):
    """Facts to remember in one transaction, all or none."""

    facts: list[FactInput]
    idempotency_key: IdempotencyKey | None = None


class ContextInput(Request, frozen=True, kw_only=True):
    """How to count what stands around a match in its source, and whom and when the query names."""

    neighbours: list[float] | None = None
    actor: float | None = None
    period: float | None = None


class WeightsInput(Request, frozen=True, kw_only=True):
    """How much words and vectors count in a hybrid recall."""

    lexical: float | None = None
    semantic: float | None = None


class SpaceInput(Request, frozen=True, kw_only=True):
    """The name of a space."""

    principal: str = ""
    scope: str = ""


class Asking(Request, frozen=True, kw_only=True):
    """What recall, explain and trace share."""

    query: Query
    k: K | None = None
    as_of: Moment | None = None
    known_at: Moment | None = None
    history: HistoryFilter | None = None
    subject: Name | None = None
    entity: Name | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    pinned: bool | None = None
    filter: Filter | None = None
    min_score: Annotated[float, _limited("Leave out lower scores.", minimum=0)] | None = None
    candidate_limit: (
        Annotated[int, _limited("k to 4,096.", minimum=1, maximum=limits.CANDIDATES_MAX)] | None
    ) = None
    mode: Mode | None = None
    embedding: Vector | None = None
    fusion: Fusion | None = None
    weights: WeightsInput | None = None
    context: bool | ContextInput | None = None
    valid_during: Interval | None = None


class Recall(Asking, frozen=True, kw_only=True):
    """Find the facts that match best and hold."""

    explain: bool | None = None
    spaces: list[str | SpaceInput] | None = None
    max_bytes: Annotated[int, _limited("Bytes of the results at most.", minimum=2)] | None = None


class Explain(Asking, frozen=True, kw_only=True):
    """Say why a fact comes back from a recall, or why not."""

    id: Id


class Trace(Asking, frozen=True, kw_only=True):
    """A recall with what it left out, and why."""


class Get(Request, frozen=True, kw_only=True):
    """One fact."""

    id: Id
    as_of: Moment | None = None
    known_at: Moment | None = None


class History(Get, frozen=True, kw_only=True):
    """Every fact connected with one by supersession."""


class Scoped(Request, frozen=True, kw_only=True):
    """The scope of a listing."""

    filter: Filter | None = None
    subject: Name | None = None
    entity: Name | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    pinned: bool | None = None


class List(Scoped, frozen=True, kw_only=True):
    """A page of all visible facts that match."""

    status: StatusFilter | None = None
    as_of: Moment | None = None
    known_at: Moment | None = None
    valid_during: Interval | None = None
    order: Order | None = None
    hidden: bool | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class Diff(Scoped, frozen=True, kw_only=True):
    """What came to be known after the first moment and until the second."""

    known_at: Interval
    as_of: Moment | None = None


class Changes(Request, frozen=True, kw_only=True):
    """What happened to the space's facts, in order."""

    since: Cursor | None = None
    limit: PageSize | None = None


class Correct(Request, frozen=True, kw_only=True):
    """Say that a fact was told wrong; name it by one of `id`, `text` and `containing`."""

    new_text: Text
    id: Id | None = None
    text: str | None = None
    containing: str | None = None
    new_id: Id | None = None
    subject: Name | None = None
    entities: list[str] | None = None
    metadata: JsonObject | None = None
    event_time: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    source: SourceInput | None = None
    embedding: Vector | None = None
    clear: list[CorrectClear] | None = None
    idempotency_key: IdempotencyKey | None = None


class Annotate(Request, frozen=True, kw_only=True):
    """Change what is noted of a fact; `clear` names what it shall have no longer."""

    id: Id
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    metadata: JsonObject | None = None
    clear: list[AnnotateClear] | None = None
    idempotency_key: IdempotencyKey | None = None


class End(Request, frozen=True, kw_only=True):
    """Close a fact's validity without a successor."""

    id: Id
    at: Moment | None = None
    reason: str | None = None
    idempotency_key: IdempotencyKey | None = None


class Retract(Request, frozen=True, kw_only=True):
    """Say that a fact was never true."""

    id: Id
    reason: str | None = None
    idempotency_key: IdempotencyKey | None = None


class ForgetScope(Request, frozen=True, kw_only=True, tag_field="kind"):
    """Which facts a forget means: exactly one kind of scope."""

    @property
    def keyword(self) -> str:
        """Its name among the arguments of `Memory.forget`."""
        kind = str(self.__struct_config__.tag)
        return {"ingestedBefore": "ingested_before", "eventBefore": "event_before"}.get(kind, kind)


class IdsScope(ForgetScope, frozen=True, kw_only=True, tag="ids"):
    """The facts of these ids."""

    ids: list[str]


class SubjectScope(ForgetScope, frozen=True, kw_only=True, tag="subject"):
    """The facts of a subject."""

    subject: Name


class EntityScope(ForgetScope, frozen=True, kw_only=True, tag="entity"):
    """The facts that mention an entity."""

    entity: Name


class IngestedBeforeScope(ForgetScope, frozen=True, kw_only=True, tag="ingestedBefore"):
    """The facts that were told before a moment."""

    before: Moment


class EventBeforeScope(ForgetScope, frozen=True, kw_only=True, tag="eventBefore"):
    """The facts that describe a moment before this one."""

    before: Moment


class MatchingScope(ForgetScope, frozen=True, kw_only=True, tag="matching"):
    """The facts whose metadata has all of these pairs."""

    metadata: JsonObject


class TagScope(ForgetScope, frozen=True, kw_only=True, tag="tag"):
    """The facts with a tag."""

    tag: Name


class TextScope(ForgetScope, frozen=True, kw_only=True, tag="text"):
    """The facts of exactly this text, after folding white space."""

    text: str


class ContainingScope(ForgetScope, frozen=True, kw_only=True, tag="containing"):
    """The facts whose text holds this, case and white space folded."""

    containing: str


class KindScope(ForgetScope, frozen=True, kw_only=True, tag="kind"):
    """The facts of a kind."""

    fact_kind: Kind


class FilterScope(ForgetScope, frozen=True, kw_only=True, tag="filter"):
    """The facts that a filter matches."""

    filter: Filter


class AllScope(ForgetScope, frozen=True, kw_only=True, tag="all"):
    """All facts of the space."""


AnyScope = (
    IdsScope
    | SubjectScope
    | EntityScope
    | IngestedBeforeScope
    | EventBeforeScope
    | MatchingScope
    | TagScope
    | TextScope
    | ContainingScope
    | KindScope
    | FilterScope
    | AllScope
)


class Forget(Request, frozen=True, kw_only=True):
    """Remove the facts of one scope from every read, and erase them from every file."""

    scope: AnyScope
    include_chain: bool | None = None
    include_derived: bool | None = None
    dry_run: bool | None = None
    purge: bool | None = None
    soft: bool | None = None
    block: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class Restore(Request, frozen=True, kw_only=True):
    """Bring softly forgotten facts back."""

    ids: list[str]
    idempotency_key: IdempotencyKey | None = None


class Unblock(Request, frozen=True, kw_only=True):
    """Allow ids and texts again that were forgotten with a block."""

    ids: list[str] | None = None
    texts: list[str] | None = None
    idempotency_key: IdempotencyKey | None = None


class ApplyForgetting(Request, frozen=True, kw_only=True):
    """Remove what the configuration's forgetting policy names; a dry run unless told otherwise."""

    include_chain: bool | None = None
    include_derived: bool | None = None
    dry_run: bool | None = None
    purge: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class Consolidate(Request, frozen=True, kw_only=True):
    """Add what the configuration's consolidation policy plans; a dry run unless told otherwise."""

    dry_run: bool | None = None
    allow_destructive: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class Merge(Request, frozen=True, kw_only=True):
    """Say that current facts are all told by another current one."""

    keep: Id
    ids: list[str]
    dry_run: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class RecordUse(Request, frozen=True, kw_only=True):
    """Count that facts were used."""

    ids: list[str]
    context_id: Id | None = None
    idempotency_key: IdempotencyKey | None = None


class Capabilities(Request, frozen=True, kw_only=True):
    """What this memory offers."""

    contract_version: Annotated[int, _limited("The one that this build speaks.", const=1)] | None = None


class Reindex(Request, frozen=True, kw_only=True):
    """Analyse all texts of a space anew, under other settings."""

    profile: str | None = None
    k1: float | None = None
    b: float | None = None
    embeddings: bool | None = None


class EmbedMissing(Request, frozen=True, kw_only=True):
    """Embed what has no vector."""

    limit: Annotated[int, _limited("Texts at most.", minimum=1, maximum=100_000)] | None = None
    dry_run: bool | None = None


class PutDocument(Request, frozen=True, kw_only=True):
    """Store a text under an id, in place of what was there."""

    id: Id
    text: Annotated[str, _limited("At most 1,048,576 bytes; kept byte for byte.", minLength=1)]
    metadata: JsonObject | None = None
    embedding: (
        Annotated[list[float | list[float]], Meta(description="A vector, or one for each unit.")] | None
    ) = None
    if_version: Version | None = None
    idempotency_key: IdempotencyKey | None = None


class DocumentBody(Request, frozen=True, kw_only=True):
    """What is stored under the id of a path."""

    text: Annotated[str, _limited("At most 1,048,576 bytes; kept byte for byte.", minLength=1)]
    metadata: JsonObject | None = None
    embedding: (
        Annotated[list[float | list[float]], Meta(description="A vector, or one for each unit.")] | None
    ) = None
    idempotency_key: IdempotencyKey | None = None


class HasDocument(Request, frozen=True, kw_only=True):
    """Whether there is a document of an id."""

    id: Id


class GetDocument(Request, frozen=True, kw_only=True):
    """One document with its whole text."""

    id: Id


class DeleteDocument(Request, frozen=True, kw_only=True):
    """Erase a document."""

    id: Id
    if_version: Version | None = None
    purge: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class SearchDocuments(Request, frozen=True, kw_only=True):
    """Find the documents that match best, each by its best unit."""

    query: Query
    k: K | None = None
    filter: Filter | None = None
    mode: Mode | None = None
    embedding: Vector | None = None
    fusion: Fusion | None = None
    weights: WeightsInput | None = None


class ListDocuments(Request, frozen=True, kw_only=True):
    """A page of all documents, by id."""

    filter: Filter | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class Spaces(Request, frozen=True, kw_only=True):
    """The names of all spaces that hold records."""


class Stats(Request, frozen=True, kw_only=True):
    """The store's sizes."""


class Verify(Request, frozen=True, kw_only=True):
    """Check that all of the store is as it was written."""

    quick: bool | None = None


class Purge(Request, frozen=True, kw_only=True):
    """Rewrite the store so that nothing of what was forgotten is left in it."""


class Erase(Request, frozen=True, kw_only=True):
    """Erase every memory of a principal, or that of one scope."""

    principal: str
    scope: str | None = None
    dry_run: bool | None = None


class Export(Request, frozen=True, kw_only=True):
    """Write all that spaces hold as lines of JSON."""

    spaces: list[SpaceInput] | None = None
    filter: Filter | None = None
    blocks: bool | None = None


class Import(Request, frozen=True, kw_only=True):
    """Store what an export holds."""

    dry_run: bool | None = None
    strict: bool | None = None
    spaces: list[SpaceInput] | None = None
    into: SpaceInput | None = None
