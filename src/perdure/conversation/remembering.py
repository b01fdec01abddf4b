"""Planning a conversation: its version, its originals and their chunks, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.base.canonical import canonical_json
from perdure.base.instants import to_datetime, to_millis
from perdure.base.members import within
from perdure.base.text import counted
from perdure.conversation.checks import CheckedConversation, CheckedTurn
from perdure.conversation.stored import StoredConversations
from perdure.errors import Conflict
from perdure.log.protocol import Log
from perdure.log.records import ConversationRecord, FactRecord, SourceFields, TurnRecord
from perdure.model.conversation import ConversationRemembered, SourceTurn
from perdure.model.conversation_forms import chunk_id, version_uri
from perdure.planning.blocks import refuse_blocked
from perdure.planning.embedding import Vectors
from perdure.planning.vectors import add_vectors
from perdure.space.draft import Draft
from perdure.space.facts import FactReader

_FIELDS = ("source_id", "text")  # of a turn: what its id is made of, and what it says


@dataclass(frozen=True, slots=True)
class Prepared:
    """One chunk with what was made of it before any lock: its words, its entities and its vector."""

    units: tuple[list[str], ...]
    entities: tuple[str, ...]
    vectors: Vectors


def find_existing(stored: StoredConversations, told: CheckedConversation) -> ConversationRemembered | None:
    """Return the receipt of a version that is there and says the same; None where there is none.

    Raises Conflict (kind "version") where it says something else, or turns of it were forgotten.
    """
    head = stored.table.find(told.session_id, told.version)
    if head is None:
        return None
    if gone := head.told - len(head.turns):
        raise Conflict(
            f"of the {counted(head.told, 'turn')} of this version of the session {counted(gone, 'was', 'were')} forgotten; "
            "what was forgotten does not come back: tell a version of another name",
            kind="version",
            field="version",
        )
    kept = stored.find(told.session_id, told.version)
    if kept is None or kept.turns != tuple(turn.source for turn in told.turns):
        raise Conflict(
            "this version of the session is stored with other turns; versions do not change: tell another version",
            kind="version",
            field="version",
        )
    chunks = sum(turn.chunks for turn in head.turns.values())
    return _receipt(told, "existing", chunks, head.recorded_at)


def plan_remember(
    draft: Draft, log: Log, told: CheckedConversation, prepared: Sequence[Prepared]
) -> ConversationRemembered:
    """Plan the conversation. The draft is the state itself: it was asked for alone.

    Args:
        prepared: one for each chunk of each turn, in order.

    Raises Blocked where a chunk or a turn was forgotten with block=True; else as `find_existing` and `add_vectors`.
    """
    # The reader knows the space by its number, which a purge may have changed since the caller last read.
    stored = StoredConversations(draft.state, FactReader(log, draft.state.number))
    existing = find_existing(stored, told)
    if existing is not None:
        return existing
    number = draft.state.conversations.next_number
    draft.add(ConversationRecord(number, told.session_id, told.version, len(told.turns), draft.now))
    pieces = iter(prepared)
    for place, turn in enumerate(told.turns):
        with within(f"turns[{place}]"):
            _plan_turn(draft, number, turn, [next(pieces) for _ in turn.chunks])
    reason = next((one.vectors.reason for one in prepared if one.vectors.reason), None)
    return _receipt(told, "created", len(prepared), draft.now, reason)


def _plan_turn(draft: Draft, number: int, turn: CheckedTurn, pieces: Sequence[Prepared]) -> None:
    source = turn.source
    refuse_blocked(draft, source.uri, source.text, _FIELDS)
    draft.add(
        TurnRecord(
            conversation=number,
            position=source.position,
            source_id=source.source_id,
            role=source.role,
            text=source.text,
            observed_at=to_millis(source.observation_time, field="observation_time"),
            first=draft.next_number,
            chunks=len(turn.chunks),
            recorded_at=draft.now,
        )
    )
    for index, (text, piece) in enumerate(zip(turn.chunks, pieces, strict=True)):
        record = _chunk(draft, source, index, text, piece)
        refuse_blocked(draft, record.id, text, _FIELDS)
        draft.add_fact(record, piece.units)
        add_vectors(draft, record.number, piece.vectors.units, piece.vectors.model)


def _chunk(draft: Draft, source: SourceTurn, index: int, text: str, piece: Prepared) -> FactRecord:
    """Return the fact that a chunk is found as.

    Its source is the version, not the turn, so that the turns before and after stand beside it in recalls. It has no
    time but that of its arrival: when something was said is not when it holds.
    """
    metadata = {
        "session": source.session_id,
        "version": source.version,
        "position": source.position,
        "role": source.role,
    }
    return FactRecord(
        number=draft.next_number,
        id=chunk_id(source.uri, index),
        text=text,
        ingest_time=draft.now,
        metadata=canonical_json(metadata),
        extracted=piece.entities,
        source=SourceFields(
            uri=version_uri(source.session_id, source.version), position=source.position, actor=source.role
        ),
        governed=True,
    )


def _receipt(
    told: CheckedConversation, outcome: str, chunks: int, recorded_at: int, reason: str | None = None
) -> ConversationRemembered:
    return ConversationRemembered(
        outcome="created" if outcome == "created" else "existing",
        session_id=told.session_id,
        version=told.version,
        turns=len(told.turns),
        chunks=chunks,
        recorded_at=to_datetime(recorded_at),
        reason=reason,
    )
