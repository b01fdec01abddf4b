"""What of the found turns goes into the answer: each with all that it rests on, or not at all."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from perdure.conversation.stored import Place, StoredConversations
from perdure.errors import NotFound
from perdure.model.conversation import (
    Anchor,
    ConversationContext,
    ConversationContextLimits,
    Dropped,
    DropReason,
    SourceTurn,
)
from perdure.model.conversation_forms import source_size

# Words of questions whose answer takes many turns together.
_AGGREGATION = re.compile(
    r"\b(?:how\s+many|how\s+much|total|count|list|all|every|each|average|most|least)\b", re.IGNORECASE
)


def asks_for_many(query: str) -> bool:
    """Whether a query counts, lists or compares, as far as its words tell."""
    return _AGGREGATION.search(query) is not None


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an answer may hold: turns, and bytes of the sources as compact JSON."""

    sources: int
    bytes: int


@dataclass
class Admitted:
    """An answer in the making."""

    stored: StoredConversations
    sources: dict[Place, SourceTurn] = field(default_factory=dict)
    anchors: dict[Place, float] = field(default_factory=dict)  # best first
    dropped: dict[Place, tuple[DropReason, float]] = field(default_factory=dict)
    size: int = 2  # of the array of sources, in bytes

    def admit(self, place: Place, score: float, budget: Budget) -> None:
        """Add a found turn and what it rests on by one link, or note why not."""
        needed = (place, *self.stored.premises(place))
        if any(self.stored.find_turn(one) is None for one in needed):
            self.dropped[place] = ("incomplete", score)
            return
        reason = self.add(needed, budget)
        if reason is None:
            self.anchors[place] = score
            self.dropped.pop(place, None)
        else:
            self.dropped[place] = (reason, score)

    def add(self, places: Iterable[Place], budget: Budget) -> DropReason | None:
        """Add all of these turns that are not there yet; none of them where they do not fit. Return why not."""
        missing = [one for one in dict.fromkeys(places) if one not in self.sources]
        if not missing:
            return None
        if len(self.sources) + len(missing) > budget.sources:
            return "max-sources"
        turns = self.stored.sources(missing)
        commas = max(0, len(self.sources) + len(turns) - 1) - max(0, len(self.sources) - 1)
        size = self.size + commas + sum(map(source_size, turns))
        if size > budget.bytes:
            return "max-bytes"
        self.sources.update(zip(missing, turns, strict=True))
        self.size = size
        return None

    def restore(self, places: Iterable[Place]) -> None:
        """Add turns that are there, whatever room they take."""
        self.add(places, Budget(sys.maxsize, sys.maxsize))

    def context(self, query: str) -> ConversationContext:
        """Return the answer as it stands, without what a planner sees."""
        unresolved = self._unresolved()
        return ConversationContext(
            query=query,
            sources=tuple(self.sources[place] for place in self._in_order()),
            anchors=tuple(Anchor(self.stored.uri(place), score) for place, score in self.anchors.items()),
            dropped=tuple(
                Dropped(self.stored.uri(place), reason, score)
                for place, (reason, score) in self.dropped.items()
            ),
            verified=bool(self.sources) and not unresolved,
            unresolved=unresolved,
            byte_count=self.size,
        )

    def _in_order(self) -> list[Place]:
        """Return the turns by session, sessions in the order of their best anchors."""
        first: dict[int, int] = {}
        for place in self.anchors:
            first.setdefault(place.conversation, len(first))
        return sorted(self.sources, key=lambda one: (first.get(one.conversation, len(first)), one))

    def _unresolved(self) -> tuple[str, ...]:
        missing = {
            premise
            for place in self.sources
            for premise in self.stored.premises(place)
            if premise not in self.sources
        }
        return tuple(sorted(self.stored.uri(place) for place in missing))


def expand(admitted: Admitted, limits: ConversationContextLimits) -> None:
    """Add what was dropped for want of room, then what anchors rest on at any remove, best anchor first.

    Other candidates come before premises of premises, so that one long episode does not take their room.

    Raises NotFound where a premise of an anchor was forgotten.
    """
    budget = Budget(limits.max_sources, limits.max_bytes)
    for place, (reason, score) in list(admitted.dropped.items()):
        if reason != "incomplete":
            admitted.admit(place, score, budget)
    admitted.anchors = dict(sorted(admitted.anchors.items(), key=lambda one: -one[1]))
    for place in admitted.anchors:
        closure = _closure(admitted.stored, place, limits.max_rounds)
        if closure is not None:
            admitted.add(closure, budget)


def _closure(stored: StoredConversations, anchor: Place, rounds: int) -> Sequence[Place] | None:
    """Return an anchor with all that it rests on; None where that takes more rounds, one link each.

    Raises NotFound where a part of it was forgotten, as far as it was followed.
    """
    found: dict[Place, None] = {anchor: None}
    newest = [anchor]
    for done in range(rounds + 1):
        reached = [premise for place in newest for premise in stored.premises(place)]
        newest = [premise for premise in dict.fromkeys(reached) if premise not in found]
        if not newest:
            return list(found)
        if done == rounds:
            break
        for premise in newest:
            if stored.find_turn(premise) is None:
                raise NotFound(
                    f"the turn at {premise.position} that an anchor rests on was forgotten; recall without expanding, "
                    "or leave the anchor out",
                    field="expand",
                    kind="premise_forgotten",
                    position=premise.position,
                )
        found.update(dict.fromkeys(newest))
    return None
