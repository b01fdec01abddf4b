"""Conversations as evidence: what was said, word for word, and what a recall brings back of it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

import msgspec

from perdure.base.instants import Instant
from perdure.base.text import counted

Role = Literal["user", "assistant"]
ROLES: tuple[Role, ...] = get_args(Role)
DropReason = Literal["incomplete", "max-sources", "max-bytes"]


class ConversationTurn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn to remember.

    Args:
        source_id: names the turn within its session: 1 to 256 bytes, no two alike in one version.
        role: `user` or `assistant`. What an assistant said stays an assistant's statement.
        text: kept to the byte; not blank.
        observation_time: when it was said. It dates no fact, and takes nothing said later away.
    """

    source_id: str
    role: str
    text: str
    observation_time: Instant

    def __repr__(self) -> str:
        return f"<ConversationTurn {self.role if self.role in ROLES else '?'}>"


class ConversationInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version of a session, whole: its turns in the order in which they were said, at least one."""

    session_id: str
    version: str
    turns: tuple[ConversationTurn, ...]

    def __repr__(self) -> str:
        return f"<ConversationInput {counted(len(self.turns), 'turn')}>"


class ConversationRemembered(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt of a conversation. `outcome` is `existing` where the very same was told before.

    `chunks` counts the searchable pieces. `reason` says why some have no vector where they should have one.
    """

    outcome: Literal["created", "existing"]
    session_id: str
    version: str
    turns: int
    chunks: int
    recorded_at: datetime
    reason: str | None = None


class SourceTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn as it was told, never clipped, with where it comes from. `position` counts from 0."""

    uri: str
    session_id: str
    version: str
    position: int
    source_id: str
    role: Role
    text: str
    observation_time: datetime

    def __repr__(self) -> str:
        return f"<SourceTurn {self.role} at {self.position}, {counted(len(self.text), 'character')}>"


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a session: the turns that are left, in order, and the positions of those that were forgotten."""

    session_id: str
    version: str
    recorded_at: datetime
    turns: tuple[SourceTurn, ...]
    gaps: tuple[int, ...] = ()


class ConversationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a session in a list: how many turns it was told with, and which were forgotten since."""

    session_id: str
    version: str
    recorded_at: datetime
    turns: int
    gaps: tuple[int, ...] = ()


class ConversationContextLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far an expansion may go.

    Args:
        max_sources: turns of the whole context, 1 to 4,096.
        max_rounds: links in a row from an anchor, 1 to 4,096.
        max_bytes: of the sources as compact JSON.
        aggregation_only: expand only for a query that counts or lists (how many, total, every, …).
    """

    max_sources: int = 64
    max_rounds: int = 8
    max_bytes: int = 131_072
    aggregation_only: bool = True


class ConversationRecallOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to recall.

    Args:
        roles: whose turns are looked for; of equal ranks, the role that is named first comes first.
        k: turns found of each role, 1 to 1,000.
        candidate_limit: chunks of each role that are ranked to find them, k to 1,000.
        max_sources: turns of the answer, those that anchors bring with them included, 1 to 4,096.
        max_bytes: of the answer's sources as compact JSON, exactly. No budget of tokens.
        subqueries: other ways to ask, of which the first four that are distinct and not blank are used.
        subquery_weight: their share of the ranking, 0 to 1, in equal parts. With 0 they are not asked.
        expand: go on to the premises of premises, within these limits.
    """

    roles: tuple[str, ...] = ROLES
    k: int = 10
    candidate_limit: int = 100
    max_sources: int = 32
    max_bytes: int = 65_536
    subqueries: tuple[str, ...] = ()
    subquery_weight: float = 0.0
    expand: ConversationContextLimits | None = None


class Anchor(msgspec.Struct, frozen=True):
    """A turn that was found, by its uri, and its fused score."""

    source: str
    score: float


class Dropped(msgspec.Struct, frozen=True):
    """A turn that was found and left out: what it needs does not fit (`max-sources`, `max-bytes`), or was forgotten
    (`incomplete`)."""

    source: str
    reason: DropReason
    score: float


class QueryPlan(msgspec.Struct, frozen=True):
    """What a planner of queries makes of one: other ways to ask, and the times that are meant, as far as it sees."""

    subqueries: tuple[str, ...] = ()
    time_ranges: tuple[tuple[datetime | None, datetime | None], ...] = ()


class ConversationContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a recall brings back. `repr()` shows no text.

    `sources` are turns by session, in the order of their best anchors, each session's in order. `anchors` are those
    that were found, best first; the others are there because an anchor needs them. `verified` is True where every
    link from a source to what it rests on leads to a source that is there; it says nothing of what was not found.
    `byte_count` is the size of `sources` as compact JSON. `time_ranges` are a planner's; nothing was filtered by them.
    """

    query: str
    sources: tuple[SourceTurn, ...]
    anchors: tuple[Anchor, ...]
    dropped: tuple[Dropped, ...]
    verified: bool
    unresolved: tuple[str, ...] = ()
    byte_count: int = 2
    time_ranges: tuple[tuple[datetime | None, datetime | None], ...] = ()

    def unresolved_premise_ids(self) -> tuple[str, ...]:
        """Return the uris of turns that sources rest on and that are not among them, sorted; of a forgotten turn, of
        which nothing is kept, where it stood."""
        return self.unresolved

    def __repr__(self) -> str:
        return f"<ConversationContext {counted(len(self.sources), 'source')}, {counted(len(self.anchors), 'anchor')}>"
