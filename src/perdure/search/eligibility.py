"""Who may be found: status, knowledge and scope, decided before the k best are taken."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from perdure.errors import QueryLimit
from perdure.search.query import OPEN, Question, Scope
from perdure.search.standing import column, known_columns
from perdure.space.apply import pair_digest
from perdure.space.state import SpaceState
from perdure.temporal.status import history_mask

Times = tuple[Any, Any, Any]
ROWS_MAX = 2_000  # below, rows are walked one by one; above, a mask over all rows is faster (measured)


class Eligibility(NamedTuple):
    """Every restriction given must hold; none of them means every live row.

    `times` are the columns that decide status at the question's as_of, tested by the index only when a row
    could enter the results. `rows` and `mask` narrow to a scope or to what was known.
    """

    times: Times | None = None
    mask: NDArray[np.uint8] | None = None
    rows: array[int] | None = None


EVERYTHING = Eligibility()


def eligibility(state: SpaceState, question: Question, secret: bytes) -> Eligibility:
    """Return who may be found for the question.

    Raises:
        QueryLimit: what has to be kept of the rows takes more than the budget's bytes or work.
    """
    if (
        question.scope is OPEN
        and question.known_at is None
        and question.history == "current"
        and not state.timed
    ):
        return EVERYTHING  # the common case, decided without a look at anything
    rows, mask = _narrowed(state, question, secret)
    times: Times | None
    if question.history == "all":
        times = None
    elif question.known_at is not None:
        _, valid_to, superseded = known_columns(state, question.known_at)
        times = (state.valid_from, valid_to, superseded)
    else:
        times = (state.valid_from, state.valid_to, state.superseded_from) if state.timed else None
    if question.history == "historical":
        # The complement of what the index can test by itself.
        past = _not_current(state, times, question.as_of)
        return Eligibility(mask=past if mask is None else mask & past, rows=rows)
    if times is None and rows is None and mask is None:
        return EVERYTHING
    return Eligibility(times, mask, rows)


def _narrowed(
    state: SpaceState, question: Question, secret: bytes
) -> tuple[array[int] | None, NDArray[np.uint8] | None]:
    """Return the rows (few) or the mask (many) of the scope and of what was known; kept between writes."""
    known_at, scope = question.known_at, question.scope
    if scope.is_open and known_at is None:
        return None, None
    key = ("narrowed", known_at, scope.key())
    kept = state.kept.get(key)
    if kept is None:
        kept = _narrow(state, question, secret)
        state.keep(key, kept)
    rows, mask = kept
    if mask is not None:
        _spend(question, len(mask))
    return rows, mask


def _narrow(
    state: SpaceState, question: Question, secret: bytes
) -> tuple[array[int] | None, NDArray[np.uint8] | None]:
    visible = None if question.known_at is None else known_columns(state, question.known_at).visible
    if question.scope.is_open:
        return None, visible
    rows = _unit_rows(state, numbers_in(state, question.scope, secret))
    if len(rows) <= ROWS_MAX:
        return array("i", [row for row in rows if visible is None or visible[row]]), None
    mask = np.zeros(state.next_number, dtype=np.uint8)
    mask[np.array(rows, dtype=np.int64)] = 1
    return None, mask if visible is None else mask & visible


def _not_current(state: SpaceState, times: Times | None, at: int) -> NDArray[np.uint8]:
    if times is None:
        return np.zeros(state.next_number, dtype=np.uint8)
    start, end, superseded = (column(one) for one in times)
    return history_mask("historical", start, end, superseded, at)


def numbers_in(state: SpaceState, scope: Scope, secret: bytes) -> BitMap:
    """Return the live facts and documents inside a scope that is not open."""
    found: list[BitMap] = []
    if scope.subject is not None:
        found.append(BitMap(list(state.subjects.get(scope.subject, ()))))
    if scope.entity is not None:
        found.append(state.entities.get(scope.entity, BitMap()))
    found += [state.tags.get(tag, BitMap()) for tag in scope.tags]
    if scope.kind is not None:
        found.append(state.kinds.get(scope.kind, BitMap()))
    if scope.filter is not None:
        found += _posted(state, scope.filter, secret)
    if scope.pinned is not None:
        found.append(state.pinned if scope.pinned else BitMap(state.numbers()) - state.pinned)
    numbers = BitMap.intersection(*found) if len(found) > 1 else found[0].copy()
    return numbers - state.hidden


def _posted(state: SpaceState, pairs: Mapping[str, Any], secret: bytes) -> list[BitMap]:
    return [state.metadata.get(pair_digest(key, value, secret), BitMap()) for key, value in pairs.items()]


def _unit_rows(state: SpaceState, numbers: BitMap) -> list[int]:
    if not state.unit_counts:
        return list(numbers)
    return [row for number in numbers for row in range(number, number + state.unit_counts.get(number, 1))]


def _spend(question: Question, rows: int) -> None:
    if rows > question.budget.bytes:
        raise QueryLimit("bytes", question.budget.bytes)
    if rows > question.budget.work:
        raise QueryLimit("work", question.budget.work)


def is_filtered(state: SpaceState, number: int, scope: Scope, secret: bytes) -> tuple[str, ...]:
    """Return the names of the scope's dimensions that leave the fact out, in a fixed order."""
    out: list[str] = []
    if scope.subject is not None and state.subject_of.get(number) != scope.subject:
        out.append("subject")
    if scope.entity is not None and scope.entity not in state.entities_of.get(number, ()):
        out.append("entity")
    if not set(scope.tags) <= set(state.tags_of.get(number, ())):
        out.append("tags")
    if scope.kind is not None and state.kind_of.get(number) != scope.kind:
        out.append("kind")
    if scope.pinned is not None and (number in state.pinned) != scope.pinned:
        out.append("pinned")
    if scope.filter is not None:
        pairs = set(state.pairs_of.get(number, ()))
        if any(pair_digest(key, value, secret) not in pairs for key, value in scope.filter.items()):
            out.append("filter")
    return tuple(out)
