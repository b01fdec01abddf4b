"""Checks of what is told and asked, all before anything is written or read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from perdure.base.canonical import checked_text
from perdure.base.ids import checked_id
from perdure.base.instants import to_datetime, to_millis
from perdure.contract import limits
from perdure.conversation.chunks import chunks_of
from perdure.errors import InvalidRequest
from perdure.lexical.profile import is_blank
from perdure.memory.spaces import BYTES_MAX
from perdure.model.conversation import (
    ROLES,
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
    ConversationTurn,
    Role,
    SourceTurn,
)
from perdure.model.conversation_forms import manifest_size, source_size, turn_uri
from perdure.planning.checks import checked_choice, checked_count, checked_flag, checked_real, members_of

TEXT_BYTES_MAX = 2 * 1024 * 1024  # of all turns together
RECORDS_MAX = 4_096  # turns, chunks and the record of the version
STORED_BYTES_MAX = 60 * 1024  # of one turn, and of the list of turns, as compact JSON
SOURCES_MAX = 4_096
SUBQUERIES_MAX = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CheckedTurn:
    """A turn ready to be stored, with its chunks."""

    source: SourceTurn
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedConversation:
    """A version of a session, checked against every limit."""

    session_id: str
    version: str
    turns: tuple[CheckedTurn, ...]

    @property
    def chunks(self) -> list[str]:
        """The chunks of all turns, in order."""
        return [chunk for turn in self.turns for chunk in turn.chunks]


def checked_conversation(told: ConversationInput) -> CheckedConversation:
    """Return the conversation with every field checked. Raises InvalidRequest, which names the field by its path."""
    if not isinstance(told, ConversationInput):
        raise InvalidRequest(f"a conversation must be a ConversationInput, got {type(told).__name__}")
    session_id = checked_id(told.session_id, field="session_id")
    version = checked_id(told.version, field="version")
    turns = [*members_of(told.turns, "turns", "turns")]
    if not turns:
        raise InvalidRequest("turns is empty; a conversation has at least one turn", field="turns")
    if len(turns) > RECORDS_MAX:  # told before any of them is looked at
        raise _too_many(len(turns))
    sources = [_checked_turn(turn, (session_id, version), place) for place, turn in enumerate(turns)]
    _check_unique(sources)
    _check_sizes(sources)
    checked = tuple(CheckedTurn(source, tuple(chunks_of(source.text))) for source in sources)
    records = 1 + sum(1 + len(turn.chunks) for turn in checked)
    if records > RECORDS_MAX:
        raise _too_many(records)
    return CheckedConversation(session_id, version, checked)


def _too_many(records: int) -> InvalidRequest:
    return InvalidRequest(
        f"turns take {records} records with their chunks; at most {RECORDS_MAX} are allowed: split the session",
        field="turns",
    )


def _checked_turn(told: Any, names: tuple[str, str], position: int) -> SourceTurn:
    at = f"turns[{position}]"
    if not isinstance(told, ConversationTurn):
        raise InvalidRequest(f"{at} must be a ConversationTurn, got {type(told).__name__}", field=at)
    source_id = checked_id(told.source_id, field=f"{at}.source_id")
    role = checked_role(told.role, f"{at}.role")
    text = checked_text(told.text, field=f"{at}.text")
    if is_blank(text):
        raise InvalidRequest(f"{at}.text is blank; leave the turn out", field=f"{at}.text")
    observed_at = to_millis(told.observation_time, field=f"{at}.observation_time")
    return SourceTurn(
        uri=turn_uri(*names, source_id),
        session_id=names[0],
        version=names[1],
        position=position,
        source_id=source_id,
        role=role,
        text=text,
        observation_time=to_datetime(observed_at),
    )


def checked_role(value: Any, field: str) -> Role:
    """Return a role by its name."""
    checked_choice(value, field, ROLES)
    return "user" if value == "user" else "assistant"


def _check_unique(sources: Sequence[SourceTurn]) -> None:
    seen: dict[str, int] = {}
    for source in sources:
        first = seen.setdefault(source.source_id, source.position)
        if first != source.position:
            field = f"turns[{source.position}].source_id"
            raise InvalidRequest(
                f"{field} is that of turns[{first}] too; each turn of a version needs its own", field=field
            )


def _check_sizes(sources: Sequence[SourceTurn]) -> None:
    size = sum(len(source.text.encode()) for source in sources)
    if size > TEXT_BYTES_MAX:
        raise InvalidRequest(
            f"the texts of turns take {size} bytes; at most {TEXT_BYTES_MAX} are allowed: split the session",
            field="turns",
        )
    for source in sources:
        stored = source_size(source)
        if stored > STORED_BYTES_MAX:
            raise InvalidRequest(
                f"turns[{source.position}] takes {stored} bytes as JSON with where it comes from; at most "
                f"{STORED_BYTES_MAX} are allowed: split it into several turns",
                field=f"turns[{source.position}]",
            )
    listed = manifest_size(
        sources[0].session_id, sources[0].version, [source.source_id for source in sources]
    )
    if listed > STORED_BYTES_MAX:
        raise InvalidRequest(
            f"the source ids of turns take {listed} bytes as JSON; at most {STORED_BYTES_MAX} are allowed: split "
            "the session, or use shorter ids",
            field="turns",
        )


def checked_options(told: ConversationRecallOptions | None) -> ConversationRecallOptions:
    """Return options with every field checked; the defaults for None."""
    asked = _of_kind(told, ConversationRecallOptions, "options")
    k = checked_count(asked.k, "k", 1, limits.K_MAX)
    return ConversationRecallOptions(
        roles=_checked_roles(asked.roles),
        k=k,
        candidate_limit=checked_count(asked.candidate_limit, "candidate_limit", k, limits.K_MAX),
        max_sources=checked_count(asked.max_sources, "max_sources", 1, SOURCES_MAX),
        max_bytes=checked_count(asked.max_bytes, "max_bytes", 1, BYTES_MAX),
        subqueries=usable_subqueries(asked.subqueries, is_told=True),
        subquery_weight=checked_real(asked.subquery_weight, "subquery_weight", 0.0, 1.0),
        expand=None if asked.expand is None else checked_limits(asked.expand, "expand"),
    )


def checked_limits(
    told: ConversationContextLimits | None, field: str = "limits"
) -> ConversationContextLimits:
    """Return the limits of an expansion with every field checked; the defaults for None."""
    asked = _of_kind(told, ConversationContextLimits, field)
    return ConversationContextLimits(
        max_sources=checked_count(asked.max_sources, f"{field}.max_sources", 1, SOURCES_MAX),
        max_rounds=checked_count(asked.max_rounds, f"{field}.max_rounds", 1, SOURCES_MAX),
        max_bytes=checked_count(asked.max_bytes, f"{field}.max_bytes", 1, BYTES_MAX),
        aggregation_only=checked_flag(asked.aggregation_only, f"{field}.aggregation_only"),
    )


def _of_kind(told: T | None, kind: type[T], field: str) -> T:
    if told is None:
        return kind()
    if not isinstance(told, kind):
        raise InvalidRequest(f"{field} must be a {kind.__name__}, got {type(told).__name__}", field=field)
    return told


def _checked_roles(told: Iterable[str]) -> tuple[Role, ...]:
    members = enumerate(members_of(told, "roles", "roles"))
    roles = tuple(checked_role(one, f"roles[{place}]") for place, one in members)
    if not roles or len(set(roles)) < len(roles):
        raise InvalidRequest(
            "roles must name user, assistant or both, each once; nothing else is asked", field="roles"
        )
    return roles


def usable_subqueries(told: Any, *, is_told: bool) -> tuple[str, ...]:
    """Return the first four that are distinct, not blank and no longer than a query may be.

    Those of a caller are checked: what is no text raises InvalidRequest. Those of a planner are passed over.
    """
    found: dict[str, None] = {}
    for place, one in enumerate(members_of(told, "subqueries", "texts")):
        if is_told:
            text = checked_text(one, field=f"subqueries[{place}]")
        else:
            try:
                text = checked_text(one, field="subqueries")
            except InvalidRequest:
                continue
        if not is_blank(text) and len(text.encode()) <= limits.QUERY_BYTES_MAX:
            found[text] = None
        if len(found) == SUBQUERIES_MAX:
            break
    return tuple(found)
