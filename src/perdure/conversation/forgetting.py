"""Forgetting turns by the names of what they are in: a session, a version of it, a source id."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from perdure.memory.citing import forget_with_citing
from perdure.memory.forgetting import ForgetRules
from perdure.model.replies import Forgotten
from perdure.planning.receipts import Keyed
from perdure.space.draft import Draft
from perdure.space.space import Space

_UNKEYED = Keyed("forget", None, b"", 1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The turns of a session that are meant: of one version or of all, of one source id or of all."""

    session_id: str
    version: str | None
    source_id: str | None

    def chunks(self, draft: Draft) -> list[int]:
        """Return the numbers of the facts that the turns are found as."""
        return [
            number
            for head in draft.state.conversations.heads.values()
            if head.session == self.session_id and self.version in (None, head.version)
            for turn in head.turns.values()
            if self.source_id in (None, turn.source_id)
            for number in range(turn.first, turn.first + turn.chunks)
        ]


def forget_turns(space: Space, beside: Space, chosen: Chosen, rules: ForgetRules) -> Forgotten:
    """Erase turns with their chunks and their places in the versions; see `ConversationMemory.forget`.

    Args:
        beside: the space of the nodes and facts that may cite them.
    """
    taken = forget_with_citing(space, beside, chosen.chunks, rules, _UNKEYED)
    gone = taken.citing if rules.include_derived else frozenset()
    return structs.replace(
        taken.receipt(space, rules),
        forgotten=tuple(sorted({*taken.turns, *gone})),
        derived=() if rules.include_derived else tuple(sorted(taken.citing)),
    )
