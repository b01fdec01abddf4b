"""A sighting of where a log stands, and whether a state answers a read that began with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from perdure.log.protocol import EMPTY, Head
from perdure.space.heads import may_follow
from perdure.space.state import SpaceState


class Sighting(NamedTuple):
    """Where the log stood, and where the state was before the log was asked."""

    passed: deque[Head] | None  # of the state that there was, and by which it is known again
    known: Head
    head: Head

    def is_answered_by(self, state: SpaceState) -> bool:
        """Whether the state holds what was there, and what this process has added to it since at most."""
        if state.head == self.head:
            return True
        # Further on, because it went on while the log was asked: else the log has gone back.
        return state.passed is self.passed and may_follow(self.known, self.head) and self.head in state.passed


def sight(head_of: Callable[[int], Head], number: int, view: tuple[SpaceState, object] | None) -> Sighting:
    """Ask where a space stands, as `Log.head` does; `view` is what there is of it in memory."""
    if view is None:
        return Sighting(None, EMPTY, head_of(number))
    known = view[0].head
    return Sighting(view[0].passed, known, head_of(number))
