"""How facts stand at an instant, as known at another: the columns that status is decided on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.model.status import Status
from perdure.space.state import HIDDEN, LIVE, SpaceState
from perdure.temporal.columns import FOREVER, RETRACTED
from perdure.temporal.knowledge import EndColumns, FactColumns, KnownColumns, LinkColumns, columns_as_known
from perdure.temporal.links import effective_time
from perdure.temporal.status import status_at

Int64 = NDArray[np.int64]


class Standing(NamedTuple):
    """One fact's times as known: what `status_at` decides on."""

    valid_from: int
    valid_to: int
    superseded_from: int

    def status(self, at: int) -> Status:
        return status_at(self.valid_from, self.valid_to, self.superseded_from, at)


def standing(state: SpaceState, number: int, known_at: int | None) -> Standing:
    """Return the fact's times, as known now or at `known_at`."""
    start = state.valid_from[number]
    if known_at is None:
        return Standing(start, state.valid_to[number], state.superseded_from[number])
    valid_to = state.told_valid_to.get(number, state.valid_to[number])
    for end in state.ends.get(number, ()):
        if end.recorded_at <= known_at:
            valid_to = min(valid_to, RETRACTED if end.at is None else end.at)
    superseded = FOREVER
    for link in state.above(number):
        if link.known_from <= known_at and is_known(state, link.newer, known_at):
            superseded = min(superseded, effective_time(link, state))
    return Standing(start, valid_to, superseded)


def status_of(state: SpaceState, number: int, at: int, known_at: int | None) -> Status:
    """Return the fact's status at an instant; HIDDEN for one that was softly forgotten."""
    if state.presence[number] == HIDDEN:
        return Status.HIDDEN
    return standing(state, number, known_at).status(at)


def is_known(state: SpaceState, number: int, known_at: int | None) -> bool:
    """Whether the fact is visible to a reader who knows what was recorded by `known_at`."""
    return state.presence[number] == LIVE and (known_at is None or state.ingested[number] <= known_at)


def column(values: object) -> Int64:
    """Return an int64 view of a column. It must not outlive the read: a column cannot grow under a view."""
    return np.frombuffer(values, dtype=np.int64)  # type: ignore[call-overload, no-any-return]


def known_columns(state: SpaceState, known_at: int) -> KnownColumns:
    """Return all facts' columns as known at an instant; hidden and forgotten ones are not visible.

    Kept between writes, as a conversation tends to stay at one instant.
    """
    key = ("known", known_at)
    kept = state.kept.get(key)
    if kept is None:
        kept = _known_columns(state, known_at)
        state.keep(key, kept)
    found: KnownColumns = kept
    return found


def _known_columns(state: SpaceState, known_at: int) -> KnownColumns:
    told = np.array(state.valid_to, dtype=np.int64)
    for number, valid_to in state.told_valid_to.items():
        told[number] = valid_to
    facts = FactColumns(column(state.ingested), column(state.valid_from), told)
    columns = columns_as_known(facts, _link_columns(state), _end_columns(state), known_at)
    live = np.frombuffer(state.presence, dtype=np.uint8) == LIVE
    return columns._replace(visible=columns.visible & live.view(np.uint8))


def _link_columns(state: SpaceState) -> LinkColumns:
    rows = [
        (link.newer, link.older, effective_time(link, state), link.known_from)
        for above in state.links.above.values()
        for link in above
        if state.presence[link.newer] == LIVE and state.presence[link.older] == LIVE
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 4).T
    return LinkColumns(*table)


def _end_columns(state: SpaceState) -> EndColumns:
    rows = [
        (end.number, RETRACTED if end.at is None else end.at, end.recorded_at)
        for ends in state.ends.values()
        for end in ends
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 3).T
    return EndColumns(*table)
