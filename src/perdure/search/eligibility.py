"""Who may be found: status, knowledge and scope, decided before the k best are taken."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from perdure.errors import QueryLimit
from perdure.search.query import Question, Scope
from perdure.search.standing import column, known_columns
from perdure.space.apply import pair_digest
from perdure.space.state import LIVE, SpaceState
from perdure.temporal.status import history_mask, status_at

Times = tuple[Any, Any, Any]
ROWS_MAX = 2_000  # below, rows are walked one by one; above, a mask over all rows is faster (measured)


class Eligibility(NamedTuple):
    """At most one of the three restricts; none of them means every live row."""

    times: Times | None = None
    mask: NDArray[np.uint8] | None = None
    rows: array[int] | None = None


EVERYTHING = Eligibility()


def eligibility(state: SpaceState, question: Question, secret: bytes) -> Eligibility:
    """Return who may be found for the question.

    Raises:
        QueryLimit: the eligible rows take more than the budget's bytes, or more than its work.
    """
    plain = question.known_at is None and question.scope.is_open
    if plain and (question.history == "all" or (question.history == "current" and not state.timed)):
        return EVERYTHING
    if plain and question.history == "current":
        return Eligibility(times=(state.valid_from, state.valid_to, state.superseded_from))
    scoped = None if question.scope.is_open else numbers_in(state, question.scope, secret)
    if scoped is not None and len(scoped) <= ROWS_MAX and question.known_at is None:
        return Eligibility(rows=_rows(state, scoped, question))
    _spend(question, state.next_number)
    return Eligibility(mask=_mask(state, scoped, question))


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
    numbers = BitMap.intersection(*found) if len(found) > 1 else found[0].copy()
    return numbers - state.hidden


def _posted(state: SpaceState, pairs: Mapping[str, Any], secret: bytes) -> list[BitMap]:
    return [state.metadata.get(pair_digest(key, value, secret), BitMap()) for key, value in pairs.items()]


def _rows(state: SpaceState, numbers: BitMap, question: Question) -> array[int]:
    at, history = question.as_of, question.history
    rows = array("i")
    for number in numbers:
        if history != "all":
            status = status_at(
                state.valid_from[number], state.valid_to[number], state.superseded_from[number], at
            )
            if (status.value == "current") != (history == "current"):
                continue
        rows.extend(range(number, number + state.unit_counts.get(number, 1)))
    return rows


def _mask(state: SpaceState, numbers: BitMap | None, question: Question) -> NDArray[np.uint8]:
    if question.known_at is None:
        visible = (np.frombuffer(state.presence, dtype=np.uint8) == LIVE).view(np.uint8)
        valid_to, superseded = column(state.valid_to), column(state.superseded_from)
    else:
        visible, valid_to, superseded = known_columns(state, question.known_at)
    seen = history_mask(question.history, column(state.valid_from), valid_to, superseded, question.as_of)
    mask: NDArray[np.uint8] = visible & seen
    if numbers is not None:
        scoped = np.zeros(len(mask), dtype=np.uint8)
        scoped[np.array(_unit_rows(state, numbers), dtype=np.int64)] = 1
        mask &= scoped
    return mask


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
    if scope.filter is not None:
        pairs = set(state.pairs_of.get(number, ()))
        if any(pair_digest(key, value, secret) not in pairs for key, value in scope.filter.items()):
            out.append("filter")
    return tuple(out)
