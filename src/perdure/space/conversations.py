"""The conversations of a space as its records tell of them: versions of sessions, and where their turns stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from perdure.errors import Corrupt
from perdure.log.records import ConversationRecord, TurnRecord


class TurnHead(msgspec.Struct, array_like=True):
    """A living turn without its text: its record's seq and its chunks, facts with numbers in a row."""

    seq: int
    source_id: str
    role: str
    observed_at: int
    first: int
    chunks: int


class ConversationHead(msgspec.Struct, array_like=True):
    """A version of a session; `turns` by position, those that were forgotten left out."""

    number: int
    session: str
    version: str
    told: int  # how many turns it had
    seq: int
    recorded_at: int
    turns: dict[int, TurnHead] = {}


@dataclass(slots=True)
class ConversationTable:
    """See the module's text. Only `apply` changes it."""

    heads: dict[int, ConversationHead] = field(default_factory=dict)  # living ones, ascending by number
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)  # by session and version
    fact_owner: dict[int, tuple[int, int]] = field(default_factory=dict)  # (conversation, position) by chunk
    next_number: int = 0

    def find(self, session: str, version: str) -> ConversationHead | None:
        """Return the living version of a session."""
        number = self.numbers.get((session, version))
        return None if number is None else self.heads[number]

    def put(self, seq: int, record: ConversationRecord) -> None:
        """Add a version of a session; its turns follow."""
        if record.number < self.next_number:
            raise Corrupt(f"record {seq} repeats the conversation {record.number}: run a verify", seq=seq)
        self.heads[record.number] = ConversationHead(
            record.number, record.session, record.version, record.turns, seq, record.recorded_at, {}
        )
        self.numbers[record.session, record.version] = record.number
        self.next_number = record.number + 1

    def add(self, seq: int, record: TurnRecord) -> None:
        """Add a turn to a version that is there."""
        head = self.heads.get(record.conversation)
        if head is None or record.position in head.turns or not 0 <= record.position < head.told:
            raise Corrupt(f"record {seq} is a turn of no conversation before it: run a verify", seq=seq)
        is_last = not head.turns or record.position > next(reversed(head.turns))
        head.turns[record.position] = TurnHead(
            seq, record.source_id, record.role, record.observed_at, record.first, record.chunks
        )
        if not is_last:  # an import brought back what was forgotten
            head.turns = dict(sorted(head.turns.items()))
        owner = (record.conversation, record.position)
        self.fact_owner.update(
            (number, owner) for number in range(record.first, record.first + record.chunks)
        )

    def remove(self, turns: Iterable[tuple[int, int]]) -> None:
        """Take out turns that were forgotten, and the versions that are left with none."""
        for number, position in turns:
            self.next_number = max(self.next_number, number + 1)
            head = self.heads.get(number)
            turn = None if head is None else head.turns.pop(position, None)
            if head is None or turn is None:
                continue
            for fact in range(turn.first, turn.first + turn.chunks):
                self.fact_owner.pop(fact, None)
            if not head.turns:
                del self.heads[number], self.numbers[head.session, head.version]

    def dump(self) -> list[ConversationHead]:
        return list(self.heads.values())

    @classmethod
    def load(cls, heads: list[ConversationHead], next_number: int) -> ConversationTable:
        table = cls(
            heads={head.number: head for head in heads},
            numbers={(head.session, head.version): head.number for head in heads},
            next_number=next_number,
        )
        for head in heads:
            for position, turn in head.turns.items():
                table.fact_owner.update(
                    (fact, (head.number, position)) for fact in range(turn.first, turn.first + turn.chunks)
                )
        return table

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""
        return 500 * len(self.heads) + 300 * len(self.fact_owner)
