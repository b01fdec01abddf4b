"""The replies about conversations that are kept as evidence."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract.replies.fields import Millis, Reply, says
from perdure.model.conversation import ROLES

RoleName = Annotated[str, Meta(extra_json_schema={"enum": list(ROLES)})]


class ConversationRemembered(Reply, frozen=True):
    """The receipt of a conversation."""

    outcome: Annotated[str, Meta(extra_json_schema={"enum": ["created", "existing"]})]
    session_id: str
    version: str
    turns: int
    chunks: Annotated[int, says("Pieces that it is found by.")]
    recorded_at: Millis
    reason: Annotated[str | None, says("Why some pieces have no vector where they should have one.")]


class SourceTurnObject(Reply, frozen=True):
    """A turn as it was told, never clipped."""

    uri: str
    session_id: str
    version: str
    position: Annotated[int, says("From 0.")]
    source_id: str
    role: RoleName
    text: str
    observation_time: Millis


class AnchorObject(Reply, frozen=True):
    """A turn that was found."""

    source: Annotated[str, says("Its uri.")]
    score: float


class DroppedObject(Reply, frozen=True):
    """A turn that was found and left out."""

    source: Annotated[str, says("Its uri.")]
    reason: Annotated[str, Meta(extra_json_schema={"enum": ["incomplete", "max-sources", "max-bytes"]})]
    score: float


class ConversationContextObject(Reply, frozen=True):
    """What a recall of conversations brings back."""

    query: str
    sources: tuple[SourceTurnObject, ...]
    anchors: Annotated[tuple[AnchorObject, ...], says("Those that were found, best first.")]
    dropped: tuple[DroppedObject, ...]
    verified: Annotated[bool, says("What the sources rest on is there.")]
    unresolved: Annotated[tuple[str, ...], says("Uris that sources rest on and that are not there.")]
    byte_count: Annotated[int, says("Of sources as compact JSON.")]
    time_ranges: Annotated[
        tuple[tuple[Millis | None, Millis | None], ...], says("That are meant, as far as a planner sees.")
    ]


class ContextReply(Reply, frozen=True):
    """A context."""

    context: ConversationContextObject


class ConversationObject(Reply, frozen=True):
    """A version of a session: the turns that are left, and where others were forgotten."""

    session_id: str
    version: str
    recorded_at: Millis
    turns: tuple[SourceTurnObject, ...]
    gaps: Annotated[tuple[int, ...], says("Positions of turns that were forgotten.")]


class ConversationReply(Reply, frozen=True):
    """A conversation, or null where there is none."""

    conversation: ConversationObject | None


class ConversationEntryObject(Reply, frozen=True):
    """A version of a session in a list."""

    session_id: str
    version: str
    recorded_at: Millis
    turns: Annotated[int, says("That it was told with.")]
    gaps: Annotated[tuple[int, ...], says("Positions of turns that were forgotten.")]


class ConversationPage(Reply, frozen=True):
    """A part of a listing of conversations."""

    items: tuple[ConversationEntryObject, ...]
    total: int
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]
