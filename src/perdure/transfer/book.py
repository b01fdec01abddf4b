"""What an import has told and stored of one space so far: numbers of facts, counts, and what the file blocks."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from perdure.errors import Conflict
from perdure.log.records import EndRecord, FactRecord, HideRecord
from perdure.space.draft import Draft
from perdure.space.state import DEAD, SpaceState
from perdure.temporal.columns import BEGINNING
from perdure.transfer.governed import GovernedBook
from perdure.transfer.reading import Refused


@dataclass(slots=True)
class _Notes:
    """What the records so far have told: the numbers of facts in the file and here, and running counts."""

    told: array[int] = field(default_factory=lambda: array("q"))  # in the file, ascending
    here: array[int] = field(default_factory=lambda: array("q"))  # in the space, at the same places
    taken: BitMap = field(default_factory=BitMap)  # all of `here`
    added: BitMap = field(default_factory=BitMap)  # those that this import has stored
    documents: BitMap = field(default_factory=BitMap)
    governed: BitMap = field(default_factory=BitMap)
    ends: Counter[int] = field(default_factory=Counter)  # told, by the hash of all that makes one
    uses: Counter[int] = field(default_factory=Counter)  # told, by fact
    counted: Counter[int] = field(default_factory=Counter)  # of those the ones that were missing
    blocked: set[bytes] = field(default_factory=set)
    block_keys: set[bytes] = field(default_factory=set)
    newest_told: int = BEGINNING  # ingest time of the last fact in the file

    def find(self, number: int) -> int | None:
        place = bisect_left(self.told, number)
        return self.here[place] if place < len(self.told) and self.told[place] == number else None

    def add(self, other: _Notes) -> None:
        self.told += other.told
        self.here += other.here
        self.taken |= other.taken
        self.added |= other.added
        self.documents |= other.documents
        self.governed |= other.governed
        self.ends.update(other.ends)
        self.uses.update(other.uses)
        self.blocked |= other.blocked
        self.block_keys |= other.block_keys
        self.newest_told = max(self.newest_told, other.newest_told)


class Book:
    """What an import knows of one space of the file. Plans note into it and may be made anew before `keep`."""

    def __init__(
        self,
        block_key: bytes,
        units_of: Callable[[FactRecord], Any],
        restored_of: Callable[[SpaceState], BitMap],
        governed: GovernedBook,
    ) -> None:
        """Begin with a space.

        Args:
            block_key: what blocks of the file are keyed with that name no key; b"" where it says none.
            units_of: gives the terms of each unit of a fact.
            restored_of: gives the facts of the space that were hidden once and restored.
            governed: what is known of nodes and conversations.
        """
        self.governed = governed
        self.block_key, self.units_of, self.restored_of = block_key, units_of, restored_of
        self._kept, self._fresh = _Notes(), _Notes()
        self._known_of, self._seen = _Place(0, 0), _Place(0, 0)
        self._exists: Callable[[int], bool] = _never
        self._newest: int | None = None

    def check(self, state: SpaceState) -> None:
        """See that the facts which are remembered still have their numbers.

        Raises:
            Conflict: the space was purged or erased since the last `keep`.
        """
        if self._known_of.number and self._known_of != _place_of(state):
            raise Conflict(
                "the store was purged meanwhile, or this memory erased, so that facts have other numbers: import "
                "again",
                kind="epoch",
            )

    def begin(self, draft: Draft) -> None:
        """Begin a plan: drop what was noted since the last `keep`. Raises as `check`."""
        self.check(draft.state)
        self._fresh, self._seen = _Notes(), _place_of(draft.state)
        self._exists, self._newest = draft.exists, None

    def keep(self) -> None:
        """Keep what was noted: it is written."""
        self._kept.add(self._fresh)
        self.governed.keep()
        self._fresh, self._known_of = _Notes(), self._seen

    @property
    def notes(self) -> _Notes:
        """Where new notes go."""
        return self._fresh

    def number(self, told: int) -> int:
        """Return the number here of a fact of the file.

        Raises:
            Refused: no line has told it, or it is here no more.
        """
        found = self._number(told)
        if not self._exists(found):
            raise Refused(f"names fact {told}, which was forgotten meanwhile")
        return found

    def fact_number(self, told: int) -> int:
        """As `number`, but refuses documents, which have no history."""
        found = self.number(told)
        if found in self._fresh.documents or found in self._kept.documents:
            raise Refused(f"names {told} as a fact, but that is a document")
        return found

    def refuse_governed(self, told: int) -> None:
        """Raise Refused for a fact of a node or of a turn, which nothing else changes."""
        found = self._number(told)
        if found in self._fresh.governed or found in self._kept.governed:
            raise Refused(f"names fact {told}, which is governed: a node or a turn alone changes it")

    def numbers(self, told: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(self.number, told))

    def living(self, told: Sequence[int]) -> tuple[int, ...]:
        """As `numbers`, without those that are here no more."""
        return tuple(filter(self._exists, map(self._number, told)))

    def _number(self, told: int) -> int:
        found = self._fresh.find(told)
        if found is None:
            found = self._kept.find(told)
        if found is None:
            raise Refused(f"names fact {told}, which no line before this one has told, or which was left out")
        return found

    def is_taken(self, here: int) -> bool:
        """Whether a line has told of this fact."""
        return here in self._fresh.taken or here in self._kept.taken

    def is_added(self, here: int) -> bool:
        """Whether this import has stored the fact."""
        return here in self._fresh.added or here in self._kept.added

    def hides_others(self, record: HideRecord) -> bool:
        """Whether the facts that were told before and are to be hidden are not all of this import."""
        return any(
            here is not None and not self.is_added(here) for here in map(self._kept.find, record.numbers)
        )

    def last_told(self) -> int:
        """Return the last fact's number in the file, or -1."""
        for notes in (self._fresh, self._kept):
            if notes.told:
                return notes.told[-1]
        return -1

    def newest_told(self) -> int:
        return max(self._fresh.newest_told, self._kept.newest_told)

    def newest_before(self, state: SpaceState) -> int:
        """Return the ingest time of the last fact that was here before the plan, or BEGINNING."""
        if self._newest is None:
            self._newest = _newest_ingest(state)
        return self._newest

    def count_end(self, here: EndRecord) -> int:
        """Return how many times the file has told this end, this time included."""
        # Of a text: the hashes of -1 and -2 are equal, also in a tuple.
        key = hash(f"{here.number} {here.at} {here.recorded_at} {here.reason!r}")
        self._fresh.ends[key] += 1
        return self._fresh.ends[key] + self._kept.ends[key]

    def counts_use(self, state: SpaceState, here: int) -> bool:
        """Whether one more use of the fact is missing here."""
        notes = self._fresh
        notes.uses[here] += 1
        told = notes.uses[here] + self._kept.uses[here]
        if told <= state.uses.get(here, (0, 0))[0] + notes.counted[here]:
            return False
        notes.counted[here] += 1
        return True

    def is_blocked(self, digest: bytes) -> bool:
        """Whether the file itself has told this block."""
        return digest in self._fresh.blocked or digest in self._kept.blocked

    @property
    def block_keys(self) -> set[bytes]:
        """What the blocks are keyed with that the file has told."""
        return self._fresh.block_keys | self._kept.block_keys


class _Place(NamedTuple):
    """Where numbers of facts mean something: the log's epoch and the space's number, 0 where it has none."""

    epoch: int
    number: int


def _place_of(state: SpaceState) -> _Place:
    return _Place(state.head.epoch, state.number)


def _never(number: int) -> bool:
    return False


def _newest_ingest(state: SpaceState) -> int:
    if not state.presence:
        return BEGINNING
    ingested = np.frombuffer(state.ingested, dtype=np.int64)
    living = np.frombuffer(state.presence, dtype=np.uint8) != DEAD
    return int(ingested[living].max(initial=BEGINNING))
