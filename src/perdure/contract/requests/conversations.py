"""The requests of operations on conversations that are kept as evidence. Experimental."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract.requests.fields import Cursor, Id, K, Moment, PageSize, Query, Request, choice, limited
from perdure.model.conversation import ROLES

Role = Annotated[str, choice("Who said it.", *ROLES)]
Sources = Annotated[int, limited("Turns of the answer at most.", minimum=1, maximum=4_096)]
Bytes = Annotated[int, limited("Of the sources as compact JSON at most.", minimum=1)]
Uri = Annotated[str, Meta(description="Of a turn.")]


class TurnInput(Request, frozen=True, kw_only=True):
    """One turn of a conversation."""

    source_id: Id
    role: Role
    text: Annotated[str, limited("What was said; kept byte for byte.", minLength=1)]
    observation_time: Moment


class RememberConversation(Request, frozen=True, kw_only=True):
    """Store a version of a session word for word, all of it or nothing."""

    session_id: Id
    version: Id
    turns: Annotated[list[TurnInput], limited("In the order in which they were said.", minItems=1)]


class ExpandLimits(Request, frozen=True, kw_only=True):
    """How far an expansion may go."""

    max_sources: Sources | None = None
    max_rounds: Annotated[int, limited("Links in a row from an anchor.", minimum=1, maximum=4_096)] | None = (
        None
    )
    max_bytes: Bytes | None = None
    aggregation_only: (
        Annotated[bool, Meta(description="Only for a query that counts or lists; true when absent.")] | None
    ) = None


class RecallConversation(Request, frozen=True, kw_only=True):
    """Find the turns that match best, each with the turns that it rests on, whole."""

    query: Query
    roles: (
        Annotated[list[Role], limited("Whose turns are looked for; both when absent.", minItems=1)] | None
    ) = None
    k: K | None = None
    candidate_limit: (
        Annotated[int, limited("Pieces of each role that are ranked.", minimum=1, maximum=1_000)] | None
    ) = None
    max_sources: Sources | None = None
    max_bytes: Bytes | None = None
    subqueries: Annotated[list[str], Meta(description="Other ways to ask, up to four.")] | None = None
    subquery_weight: Annotated[float, limited("Their share of the ranking.", minimum=0, maximum=1)] | None = (
        None
    )
    expand: ExpandLimits | None = None


class SourceTurnInput(Request, frozen=True, kw_only=True):
    """A turn of a context, as the context had it; its text is read from the store again."""

    uri: Uri
    session_id: Id
    version: Id
    position: Annotated[int, limited("From 0.", minimum=0)]
    source_id: Id
    role: Role
    text: str
    observation_time: Moment


class AnchorInput(Request, frozen=True, kw_only=True):
    """A turn that was found, as the context had it."""

    source: Uri
    score: float


class DroppedInput(Request, frozen=True, kw_only=True):
    """A turn that was left out, as the context had it."""

    source: Uri
    reason: Annotated[str, choice("Why.", "incomplete", "max-sources", "max-bytes")]
    score: float


class ConversationContextInput(Request, frozen=True, kw_only=True):
    """A context as recallConversation gave it."""

    query: Query
    sources: list[SourceTurnInput]
    anchors: list[AnchorInput]
    dropped: list[DroppedInput]
    verified: bool | None = None
    unresolved: list[str] | None = None
    byte_count: int | None = None
    time_ranges: list[list[Moment | None]] | None = None


class ExpandConversation(Request, frozen=True, kw_only=True):
    """Go on from a context to what its anchors rest on at any remove."""

    context: ConversationContextInput
    limits: ExpandLimits | None = None


class GetConversation(Request, frozen=True, kw_only=True):
    """A version of a session with the turns that are left."""

    session_id: Id
    version: Id


class ListConversations(Request, frozen=True, kw_only=True):
    """A page of versions of sessions, in order of arrival."""

    session_id: Id | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class ForgetConversation(Request, frozen=True, kw_only=True):
    """Erase turns of a session, word and piece, from every read and every file."""

    session_id: Id
    version: Id | None = None
    source_id: Id | None = None
    include_derived: bool | None = None
    dry_run: bool | None = None
    purge: bool | None = None
