"""Who may be found: status, knowledge and scope, decided before the k best are taken."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from perdure.errors import QueryLimit
from perdure.filters.grammar import Filter
from perdure.search.query import OPEN, Budget, Question, Scope
from perdure.search.standing import column, known_columns
from perdure.space.filtering import numbers_matching, rows_visited
from perdure.space.state import SpaceState
from perdure.temporal.status import during_mask, history_mask

Times = tuple[Any, Any, Any]
FEWER_CONDITIONS = "each condition of the filter but equality of a top-level key looks at every fact: use equality where it will do, or "
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
        and question.during is None
    ):
        return EVERYTHING  # the common case, decided without a look at anything
    rows, mask = _narrowed(state, question, secret)
    if question.during is not None:
        _spend(question, state.next_number)
        current = _during(state, question)
        return Eligibility(mask=current if mask is None else mask & current, rows=rows)
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
        _spend(question, state.next_number)
        past = _not_current(state, times, question.as_of)
        return Eligibility(mask=past if mask is None else mask & past, rows=rows)
    if times is None and rows is None and mask is None:
        return EVERYTHING
    return Eligibility(times, mask, rows)


def _during(state: SpaceState, question: Question) -> NDArray[np.uint8]:
    """Return who is current at some instant of the question's interval, as known at its known_at."""
    assert question.during is not None
    times: Times = (state.valid_from, state.valid_to, state.superseded_from)
    if question.known_at is not None:
        _, valid_to, superseded = known_columns(state, question.known_at)
        times = (state.valid_from, valid_to, superseded)
    start, end, over = (column(one) for one in times)
    return during_mask(start, end, over, question.during)


def _narrowed(
    state: SpaceState, question: Question, secret: bytes
) -> tuple[array[int] | None, NDArray[np.uint8] | None]:
    """Return the rows (few) or the mask (many) of the scope and of what was known; kept between writes."""
    known_at, scope = question.known_at, question.scope
    if scope.is_open and known_at is None:
        return None, None
    if scope.filter is not None:
        spend_on_filter(question.budget, state, scope.filter)
    key = ("narrowed", known_at, scope.key())
    kept = state.kept.get(key)
    if kept is None:
        kept = _narrow(state, question, secret)
        state.keep(key, kept)
    rows, mask = kept
    if mask is not None:
        _spend(question, len(mask))
    if rows is not None:
        question.budget.keep(len(rows) * rows.itemsize)
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
    mask[np.frombuffer(rows, dtype=np.uint32)] = 1
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
        found.append(numbers_matching(state, scope.filter, secret))
    if scope.pinned is not None:
        found.append(state.pinned if scope.pinned else BitMap(state.numbers()) - state.pinned)
    if scope.plain:
        found.append(BitMap(state.numbers()) - state.governed)
    numbers = BitMap.intersection(*found) if len(found) > 1 else found[0].copy()
    return numbers - state.hidden


def _unit_rows(state: SpaceState, numbers: BitMap) -> array[int]:
    """Return the rows of facts and documents, ascending, as unsigned integers of 32 bits."""
    if not state.unit_counts:
        return numbers.to_array()
    several = [number for number in state.unit_counts if number in numbers]
    later = [row for number in several for row in range(number + 1, number + state.unit_counts[number])]
    return (numbers | BitMap(later)).to_array()


def _spend(question: Question, rows: int) -> None:
    question.budget.keep(rows)
    question.budget.spend(rows, QueryLimit.NARROW)


def spend_on_filter(budget: Budget, state: SpaceState, tree: Filter, *, looked_at: int = 0) -> None:
    """Raise QueryLimit where deciding a filter, after looking at as many rows, takes more than the budget's work."""
    budget.spend(looked_at + rows_visited(state, tree), FEWER_CONDITIONS)


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
    if scope.filter is not None and number not in numbers_matching(state, scope.filter, secret):
        out.append("filter")
    return tuple(out)
