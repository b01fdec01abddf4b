"""Which facts a filter matches, by bitmaps: from the digests of pairs, the state's own maps, or the field table.

Agrees with `filters.evaluate.matches` on every fact.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from perdure.filters.evaluate import holds
from perdure.filters.grammar import TIMES, All, Condition, Filter, FirstClass, Node, Not, Operator
from perdure.filters.paths import Path
from perdure.space.preparing import pair_digest
from perdure.space.state import DEAD, NO_TIME, SpaceState, seen_metadata
from perdure.temporal.columns import BEGINNING, FOREVER

_ARRAYS = (FirstClass.ENTITIES, FirstClass.TAGS)
_LOOKED_UP = (FirstClass.SUBJECT, FirstClass.KIND, *_ARRAYS)  # have a map from value to facts


def numbers_matching(state: SpaceState, tree: Filter, secret: bytes) -> BitMap:
    """Return the facts and documents that the filter matches, hidden ones included; not to be changed.

    Kept between writes. Callers hold the space's shared lock or the writer's turn. Raises Moved when an erasure
    overtook the caller's state.
    """
    key = ("filter", tree.key())
    kept = state.kept.get(key)
    if kept is None:
        with state.fields.lock:
            kept = _Deciding(state, secret).decide(tree.root)
        state.keep(key, kept)
    found: BitMap = kept
    return found


def rows_visited(state: SpaceState, tree: Filter) -> int:
    """Return how many rows deciding the filter may look at: all, for each condition that nothing is posted for.

    The same whether the answer is kept or not.
    """
    return state.next_number * sum(not _is_posted(one) for one in _conditions(tree.root))


def _conditions(node: Node) -> Iterable[Condition]:
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if isinstance(at, Condition):
            yield at
        else:
            waiting += [at.part] if isinstance(at, Not) else at.parts


def _is_posted(condition: Condition) -> bool:
    if isinstance(condition.target, FirstClass):
        return condition.target in _LOOKED_UP
    return _is_pair(condition.target, condition.operator)


def _is_pair(path: Path, operator: Operator) -> bool:
    return operator is Operator.EQ and len(path) == 1


class _Deciding:
    """Decides one filter over one state."""

    def __init__(self, state: SpaceState, secret: bytes) -> None:
        self._state, self._secret = state, secret
        self._is_filled = False
        self._everyone: BitMap | None = None

    def decide(self, node: Node) -> BitMap:
        if isinstance(node, Condition):
            return self._found(node)
        if isinstance(node, Not):
            return self.everyone() - self.decide(node.part)
        parts = [self.decide(part) for part in node.parts]
        return BitMap.intersection(*parts) if isinstance(node, All) else BitMap.union(*parts)

    def everyone(self) -> BitMap:
        """Return all facts and documents, hidden ones included."""
        if self._everyone is None:
            stored = np.frombuffer(self._state.presence, dtype=np.uint8) != DEAD
            self._everyone = _numbers(stored) - BitMap(list(self._state.unit_owner))
        return self._everyone

    def _found(self, condition: Condition) -> BitMap:
        target, state = condition.target, self._state
        if isinstance(target, FirstClass):
            if target in TIMES:
                return _numbers(_timed(state, condition)) & self.everyone()
            return _FIRST_CLASS[target](state, condition)
        if _is_pair(target, condition.operator):
            digest = pair_digest(str(target[0]), condition.operand, self._secret)
            return state.metadata.get(digest, BitMap())
        if not self._is_filled:
            state.fields.fill(state.pairs_of, self._read)
            self._is_filled = True
        return state.fields.column(target).find(condition)

    def _read(self, numbers: Sequence[int]) -> list[bytes | None]:
        state, records = self._state, self._state.fields.records
        assert records is not None, "a state that was loaded has its reader"
        return [
            seen_metadata(record, state.annotations.get(number))
            for number, record in zip(numbers, records.get_many(state, numbers), strict=True)
        ]


def _numbers(mask: NDArray[np.bool_]) -> BitMap:
    # By way of an array, which the bitmap takes whole.
    return BitMap(array("I", np.flatnonzero(mask).astype(np.uint32).tobytes()))


def _subjects(state: SpaceState, condition: Condition) -> BitMap:
    if condition.operator is Operator.EXISTS:
        return BitMap(list(state.subject_of))
    found = [BitMap(list(state.subjects[s])) for s in _matching(state.subjects, condition)]
    # Slots hold what is live only.
    hidden = {n: state.subject_of[n] for n in state.hidden if n in state.subject_of}
    return BitMap.union(_by_value(hidden, condition), *found)


def _kinds(state: SpaceState, condition: Condition) -> BitMap:
    return BitMap.union(BitMap(), *(state.kinds[kind] for kind in _matching(state.kinds, condition)))


def _matching(values: Mapping[str, Any], condition: Condition) -> list[str]:
    """Return the keys that are what the condition asks for; those that it names are looked up."""
    operand = condition.operand
    if condition.operator is Operator.EQ:
        return [operand] if isinstance(operand, str) and operand in values else []
    if condition.operator is Operator.IN:
        return [value for value in operand if isinstance(value, str) and value in values]
    return [value for value in values if holds(condition, value)]


def _arrays(
    posted: Mapping[str, BitMap], held: Mapping[int, tuple[str, ...]], condition: Condition
) -> BitMap:
    operator, operand = condition.operator, condition.operand
    if operator is Operator.EXISTS:
        return BitMap(list(held))
    if operator is Operator.EQ:
        if not isinstance(operand, list) or not operand or not all(isinstance(one, str) for one in operand):
            return BitMap()
        having = BitMap.intersection(*(posted.get(one, BitMap()) for one in operand))
        return BitMap([number for number in having if list(held[number]) == operand])
    if operator in (Operator.IN, Operator.CONTAINS):
        named = operand if operator is Operator.IN else [operand]
        return BitMap.union(BitMap(), *(posted.get(one, BitMap()) for one in named if isinstance(one, str)))
    return BitMap()


def _by_value(held: Mapping[int, Any], condition: Condition) -> BitMap:
    """Return the facts whose value is what the condition asks for, each value being asked about once."""
    verdicts = {value: holds(condition, value) for value in set(held.values())}
    return BitMap([number for number, value in held.items() if verdicts[value]])


_FIRST_CLASS: dict[FirstClass, Callable[[SpaceState, Condition], BitMap]] = {
    FirstClass.SUBJECT: _subjects,
    FirstClass.KIND: _kinds,
    FirstClass.ENTITIES: lambda state, condition: _arrays(state.entities, state.entities_of, condition),
    FirstClass.TAGS: lambda state, condition: _arrays(state.tags, state.tags_of, condition),
    FirstClass.IMPORTANCE: lambda state, condition: _by_value(state.importance_of, condition),
    FirstClass.SOURCE_URI: lambda state, condition: _by_value(state.uri_of, condition),
}


def _timed(state: SpaceState, condition: Condition) -> NDArray[np.bool_]:
    """Return a mask of the rows whose time is what the condition asks for."""
    values, absent = _time_column(state, condition.target)
    told: NDArray[np.bool_] = values != absent
    return (
        told
        if condition.operator is Operator.EXISTS
        else told & _COMPARE[condition.operator](values, condition.operand)
    )


_COMPARE: dict[Operator, Callable[[NDArray[np.int64], Any], NDArray[np.bool_]]] = {
    Operator.EQ: lambda values, moment: values == moment,
    Operator.GT: lambda values, moment: values > moment,
    Operator.GTE: lambda values, moment: values >= moment,
    Operator.LT: lambda values, moment: values < moment,
    Operator.LTE: lambda values, moment: values <= moment,
    Operator.IN: lambda values, moments: np.isin(values, np.array(moments, dtype=np.int64)),
    Operator.CONTAINS: lambda values, moment: np.zeros(len(values), dtype=np.bool_),
}


def _time_column(state: SpaceState, target: Path | FirstClass) -> tuple[NDArray[np.int64], int]:
    """Return a copy of a column of times, and what stands in it where none was told.

    Documents have no times; the rows of their later units hold what those of documents do.
    """
    if target is FirstClass.EVENT_TIME:
        return np.array(state.event, dtype=np.int64), NO_TIME
    if target is FirstClass.VALID_FROM:
        return np.array(state.valid_from, dtype=np.int64), BEGINNING
    if target is FirstClass.INGEST_TIME:
        return np.array(state.ingested, dtype=np.int64), BEGINNING
    values = np.array(state.valid_to, dtype=np.int64)
    for number, valid_to in state.told_valid_to.items():
        values[number] = valid_to
    return values, FOREVER
