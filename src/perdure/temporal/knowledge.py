"""What was known at an ingest time K: time columns made from the facts, links and ends recorded by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.temporal.columns import FOREVER

Times = NDArray[np.int64]
Mask = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class FactColumns:
    """The facts of a space as told: int64 arrays of shape (n,), a fact's number being its place.

    `valid_from` and `valid_to` hold the sentinels of `columns` where absent; no end is applied to `valid_to`.
    """

    ingest: Times
    valid_from: Times
    valid_to: Times


@dataclass(frozen=True, slots=True, eq=False)
class LinkColumns:
    """Stored links: int64 arrays of shape (m,).

    `newer` and `older` are fact numbers; `effective_at` is `links.effective_time`, never absent.
    """

    newer: Times
    older: Times
    effective_at: Times
    known_from: Times


@dataclass(frozen=True, slots=True, eq=False)
class EndColumns:
    """Ends and retractions told later: int64 arrays of shape (e,). `at` is RETRACTED for a retraction."""

    number: Times
    at: Times
    known_from: Times


class KnownColumns(NamedTuple):
    """Columns of shape (n,) as known at K.

    `visible` is uint8, 1 where the fact was known; the other two mean nothing where it is 0.
    `valid_from` never changes, so it is not among them.
    """

    visible: Mask
    valid_to: Times
    superseded_from: Times


def columns_as_known(facts: FactColumns, links: LinkColumns, ends: EndColumns, known_at: int) -> KnownColumns:
    """Return the columns as they stood once everything ingested at or before `known_at` (ms) was recorded.

    A fact is visible iff its ingest time is <= known_at; a link iff both its ends are visible and its
    `known_from` is <= known_at; an end iff its `known_from` is. The earliest of a fact's links and the
    earliest of its ends count. Nothing is shared with the arguments.
    """
    visible = facts.ingest <= known_at
    linked = visible[links.newer] & visible[links.older] & (links.known_from <= known_at)
    superseded_from = np.full(facts.ingest.shape, FOREVER, dtype=np.int64)
    np.minimum.at(superseded_from, links.older[linked], links.effective_at[linked])
    ended = ends.known_from <= known_at
    valid_to = facts.valid_to.copy()
    np.minimum.at(valid_to, ends.number[ended], ends.at[ended])
    return KnownColumns(visible.view(np.uint8), valid_to, superseded_from)
