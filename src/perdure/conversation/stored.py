"""Conversations as the log holds them: turns from records, and what a turn rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perdure.base.instants import to_datetime
from perdure.errors import Corrupt
from perdure.log.records import TurnRecord
from perdure.model.conversation import Conversation, ConversationEntry, SourceTurn
from perdure.model.conversation_forms import gap_uri, names_of, turn_uri
from perdure.space.conversations import ConversationHead, TurnHead
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState

NONE = -1  # no position
_BATCH = 1_000  # records that are read from the log at a time


class Place(NamedTuple):
    """Where a turn stands, or stood: the number of its conversation, and its position there."""

    conversation: int
    position: int


class StoredConversations:
    """The conversations of one consistent view of a space."""

    def __init__(self, state: SpaceState, reader: FactReader) -> None:
        self.state, self._reader = state, reader
        self.table = state.conversations

    def find(self, session_id: str, version: str) -> Conversation | None:
        """Return a version of a session with what is left of it."""
        head = self.table.find(session_id, version)
        if head is None:
            return None
        places = [Place(head.number, position) for position in sorted(head.turns)]
        return Conversation(
            session_id=head.session,
            version=head.version,
            recorded_at=to_datetime(head.recorded_at),
            turns=tuple(self.sources(places)),
            gaps=gaps_of(head),
        )

    def find_place(self, session_id: str, version: str, position: int) -> Place | None:
        """Return the place of a turn that is there."""
        head = self.table.find(session_id, version)
        return None if head is None or position not in head.turns else Place(head.number, position)

    def find_by_uri(self, uri: str) -> Place | None:
        """Return the place of the turn of this uri; None where it is no turn that is there."""
        names = names_of(uri)
        head = None if names is None else self.table.find(names[0], names[1])
        if names is None or head is None:
            return None
        turns = head.turns.items()
        found = next((position for position, turn in turns if turn.source_id == names[2]), None)
        return None if found is None else Place(head.number, found)

    def find_turn(self, place: Place) -> TurnHead | None:
        """Return what is known of a turn without reading it; None where it was forgotten."""
        return self.table.heads[place.conversation].turns.get(place.position)

    def uri(self, place: Place) -> str:
        """Return the uri of a turn, or what stands for it where it was forgotten."""
        head, turn = self.table.heads[place.conversation], self.find_turn(place)
        if turn is None:
            return gap_uri(head.session, head.version, place.position)
        return turn_uri(head.session, head.version, turn.source_id)

    def sources(self, places: Sequence[Place]) -> list[SourceTurn]:
        """Return the originals of turns that are there, in the order asked.

        Raises Moved where an erasure overtook the view.
        """
        found: list[SourceTurn] = []
        for start in range(0, len(places), _BATCH):
            part = places[start : start + _BATCH]
            seqs = [self.table.heads[one.conversation].turns[one.position].seq for one in part]
            for place, seq, record in zip(part, seqs, self._reader.records(self.state, seqs), strict=True):
                if not isinstance(record, TurnRecord) or record.position != place.position:
                    raise Corrupt(f"record {seq} is not the turn that it should be: run a verify", seq=seq)
                found.append(_source(self.table.heads[place.conversation], record))
        return found

    # What a turn rests on

    def premises(self, place: Place) -> tuple[Place, ...]:
        """Return the turns that one rests on by one link, ascending, itself left out.

        They are the first turn of a user in the session; of an assistant's turn also the last turn of a user before it,
        and the turn right before that one where it is an assistant's. Where a turn was forgotten that may have been one
        of them, its place is named.
        """
        head = self.table.heads[place.conversation]
        found = {_opening(head)}
        if head.turns[place.position].role == "assistant":
            found.update(_exchange_before(head, place.position))
        return tuple(Place(place.conversation, at) for at in sorted(found - {NONE, place.position}))


def _opening(head: ConversationHead) -> int:
    return _first_of_user(head, range(head.told))


def _exchange_before(head: ConversationHead, position: int) -> tuple[int, ...]:
    """Return the last turn of a user before a position, and the assistant's right before that one."""
    asked = _first_of_user(head, range(position - 1, -1, -1))
    if asked <= 0 or asked not in head.turns:
        return (asked,)
    before = head.turns.get(asked - 1)
    return (asked, asked - 1) if before is None or before.role == "assistant" else (asked,)


def _first_of_user(head: ConversationHead, positions: Iterable[int]) -> int:
    """Return the first of these positions where a user's turn stands, or a forgotten one that may have been that."""
    turns = head.turns
    return next((at for at in positions if at not in turns or turns[at].role == "user"), NONE)


def gaps_of(head: ConversationHead) -> tuple[int, ...]:
    """Return the positions of the turns that were forgotten, ascending."""
    if len(head.turns) == head.told:
        return ()
    return tuple(position for position in range(head.told) if position not in head.turns)


def entry_of(head: ConversationHead) -> ConversationEntry:
    """Return a version of a session as lists name it."""
    return ConversationEntry(
        session_id=head.session,
        version=head.version,
        recorded_at=to_datetime(head.recorded_at),
        turns=head.told,
        gaps=gaps_of(head),
    )


def _source(head: ConversationHead, record: TurnRecord) -> SourceTurn:
    return SourceTurn(
        uri=turn_uri(head.session, head.version, record.source_id),
        session_id=head.session,
        version=head.version,
        position=record.position,
        source_id=record.source_id,
        role="user" if record.role == "user" else "assistant",
        text=record.text,
        observation_time=to_datetime(record.observed_at),
    )
