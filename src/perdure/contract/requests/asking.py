"""The requests of operations that ask."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract import limits
from perdure.contract.requests.fields import (
    Cursor,
    Filter,
    Fusion,
    Id,
    Interval,
    K,
    Kind,
    Mode,
    Moment,
    Name,
    PageSize,
    Query,
    Request,
    SpaceInput,
    Tags,
    Vector,
    WeightsInput,
    choice,
    limited,
)
from perdure.model.event import EVENT_TYPES

HistoryFilter = Annotated[
    str,
    choice(
        "Which facts: those that hold (the default), all, or those that do not.",
        "current",
        "all",
        "historical",
    ),
]


StatusFilter = Annotated[
    str, choice("Only facts of this status.", "current", "superseded", "expired", "not-yet-valid")
]


Order = Annotated[
    str,
    choice(
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


class ContextInput(Request, frozen=True, kw_only=True):
    """How to count what stands around a match in its source, and whom and when the query names."""

    neighbours: list[float] | None = None
    actor: float | None = None
    period: float | None = None


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
    min_score: Annotated[float, limited("Leave out lower scores.", minimum=0)] | None = None
    candidate_limit: (
        Annotated[int, limited("k to 4,096.", minimum=1, maximum=limits.CANDIDATES_MAX)] | None
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
    max_bytes: Annotated[int, limited("Bytes of the results at most.", minimum=2)] | None = None


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


class Events(Request, frozen=True, kw_only=True):
    """What happened to the space, as its audit tells it: never what anything says."""

    type: Annotated[str, choice("Of one type.", *EVENT_TYPES)] | None = None
    id: (
        Annotated[str, limited("Of the fact or node that has, or had, this id.", minLength=1, maxLength=256)]
        | None
    ) = None
    since: Annotated[Moment, Meta(description="At that moment or later.")] | None = None
    until: Annotated[Moment, Meta(description="Before that moment.")] | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class StoreEvents(Events, frozen=True, kw_only=True):
    """What happened to all spaces and to the store itself, as its audit tells it: never what anything says."""


class Capabilities(Request, frozen=True, kw_only=True):
    """What this memory offers."""

    contract_version: Annotated[int, limited("The one that this build speaks.", const=1)] | None = None
