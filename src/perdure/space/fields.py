"""Metadata by its values: for each path that filters ask about, which facts hold what there.

Nothing is kept until a filter first asks for more than the equality of a top-level key. From then on the table holds
every fact's metadata, as reads see it, and a column for each path that was asked about lately; `apply.py` says which
facts came, changed or went. What a fact held leaves the table with it.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from pyroaring import BitMap

from perdure.base.canonical import canonical_json, decode_json
from perdure.filters.grammar import Condition, Operator, is_number
from perdure.filters.paths import ABSENT, Path, find_value
from perdure.log.records import FactRecord

COLUMNS_MAX = 64  # paths; more than an application's filters name, and a bound on what odd ones may take
READ_TOGETHER = 256  # facts whose metadata is read at once
_VALUE_BYTES, _FACT_BYTES = 150, 100  # of a value with its facts, and of a fact's entry; estimates

V = TypeVar("V")


class Records(Protocol):
    """Reads the records of facts."""

    def get_many(self, state: Any, numbers: Sequence[int]) -> list[FactRecord]: ...


class _Postings(Generic[V]):
    """Values and the facts that hold them. A value of one fact alone, as numbers of things have, takes no bitmap."""

    def __init__(self) -> None:
        self._held: dict[V, int | BitMap] = {}
        # Once a range was asked for: the values in order, of one fact alone with that fact beside, and of several.
        self._alone: list[Any] | None = None
        self._beside = array("I")
        self._shared: list[Any] = []

    def __len__(self) -> int:
        return len(self._held)

    def add(self, value: V, number: int) -> None:
        held = self._held.get(value)
        if held is None:
            self._held[value] = number
            if self._alone is not None:
                place = bisect_left(self._alone, value)
                self._alone.insert(place, value)
                self._beside.insert(place, number)
        elif isinstance(held, BitMap):
            held.add(number)
        else:
            self._held[value] = BitMap((held, number))
            if self._alone is not None:
                self._take_out(value)
                insort(self._shared, value)

    def discard(self, value: V, number: int) -> None:
        held = self._held.get(value)
        if isinstance(held, BitMap):
            held.discard(number)
            if not held:
                del self._held[value]
                if self._alone is not None:
                    del self._shared[bisect_left(self._shared, value)]
        elif held == number:
            del self._held[value]
            if self._alone is not None:
                self._take_out(value)

    def _take_out(self, value: V) -> None:
        assert self._alone is not None
        place = bisect_left(self._alone, value)
        del self._alone[place], self._beside[place]

    def of(self, values: Iterable[V]) -> BitMap:
        """Return the facts that hold any of these values."""
        alone, shared = array("I"), []
        for value in values:
            held = self._held.get(value)
            if isinstance(held, BitMap):
                shared.append(held)
            elif held is not None:
                alone.append(held)
        return BitMap.union(BitMap(alone), *shared)

    def where(self, test: Callable[[V], bool]) -> BitMap:
        """Return the facts that hold a value which passes the test."""
        return self.of([value for value in self._held if test(value)])

    def between(self, operator: Operator, bound: Any) -> BitMap:
        """Return the facts that hold a value on the operator's side of the bound."""
        if self._alone is None:
            self._alone = sorted(v for v, held in self._held.items() if not isinstance(held, BitMap))
            beside = (self._held[value] for value in self._alone)
            self._beside = array("I", [number for number in beside if not isinstance(number, BitMap)])
            self._shared = sorted(v for v, held in self._held.items() if isinstance(held, BitMap))
        alone = self._beside[_side(self._alone, operator, bound)]
        return self.of(self._shared[_side(self._shared, operator, bound)]) | BitMap(alone)


def _side(order: Sequence[Any], operator: Operator, bound: Any) -> slice:
    """Return the part of an ascending sequence that is on the operator's side of the bound."""
    if operator is Operator.GT:
        return slice(bisect_right(order, bound), None)
    if operator is Operator.GTE:
        return slice(bisect_left(order, bound), None)
    return slice(bisect_left(order, bound) if operator is Operator.LT else bisect_right(order, bound))


class Column:
    """What facts hold at one path, by type, since values of different types are never equal nor in order."""

    def __init__(self) -> None:
        self._numbers: _Postings[float] = _Postings()
        self._texts: _Postings[str] = _Postings()
        self._others: _Postings[bytes] = _Postings()  # true, false, null, arrays, objects: as canonical JSON
        self._elements: _Postings[str | bytes] = _Postings()  # of arrays: text, or canonical JSON
        self._present = BitMap()

    def add(self, number: int, value: Any) -> None:
        self._present.add(number)
        if isinstance(value, str):
            self._texts.add(value, number)
        elif is_number(value):
            self._numbers.add(value, number)
        else:
            self._others.add(canonical_json(value), number)
            for element in _elements(value):
                self._elements.add(element, number)

    def discard(self, number: int, value: Any) -> None:
        """Take out what `add` was given."""
        self._present.discard(number)
        if isinstance(value, str):
            self._texts.discard(value, number)
        elif is_number(value):
            self._numbers.discard(value, number)
        else:
            self._others.discard(canonical_json(value), number)
            for element in _elements(value):
                self._elements.discard(element, number)

    def find(self, condition: Condition) -> BitMap:
        """Return the facts whose value is what the condition asks for."""
        operator, operand = condition.operator, condition.operand
        if operator is Operator.EXISTS:
            return self._present
        if operator is Operator.EQ:
            return self._equal(operand)
        if operator is Operator.IN:
            return self._any_of(operand)
        if operator is Operator.CONTAINS:
            found = self._elements.of([_exact(operand)])
            return (
                found | self._texts.where(lambda text: operand in text) if isinstance(operand, str) else found
            )
        if isinstance(operand, str):
            return self._texts.between(operator, operand)
        return self._numbers.between(operator, operand) if is_number(operand) else BitMap()

    def _equal(self, value: Any) -> BitMap:
        if isinstance(value, str):
            return self._texts.of([value])
        return self._numbers.of([value]) if is_number(value) else self._others.of([canonical_json(value)])

    def _any_of(self, values: Sequence[Any]) -> BitMap:
        # Of an array the elements count, never the whole.
        whole = [canonical_json(v) for v in values if not isinstance(v, str | list) and not is_number(v)]
        return BitMap.union(
            self._texts.of([v for v in values if isinstance(v, str)]),
            self._numbers.of([v for v in values if is_number(v)]),
            self._others.of(whole),
            self._elements.of([_exact(v) for v in values]),
        )

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""
        values = len(self._numbers) + len(self._texts) + len(self._others) + len(self._elements)
        return _VALUE_BYTES * values + 2 * len(self._present)


def _elements(value: Any) -> set[str | bytes]:
    return {_exact(element) for element in value} if isinstance(value, list) else set()


def _exact(value: Any) -> str | bytes:
    """Return what equal JSON values share and no others."""
    return value if isinstance(value, str) else canonical_json(value)


class FieldTable:
    """See the module's text. `lock` is held while a filter is decided: columns come and go."""

    def __init__(self) -> None:
        self.records: Records | None = None  # where metadata is read from; the space's own
        self.lock = threading.RLock()
        self._metadata: dict[int, bytes] | None = None  # JSON; None until asked for
        self._size = 0  # bytes of it
        self._columns: dict[Path, Column] = {}  # oldest first
        self._waiting: set[int] = set()  # facts that came or changed since the last filter

    def note(self, number: int) -> None:
        """A fact came, or its metadata changed: it is read when next asked about."""
        if self._metadata is None:
            return
        self.drop(number)
        with self.lock:
            self._waiting.add(number)

    def drop(self, number: int) -> None:
        """A fact went, or what it held is no longer so."""
        if self._metadata is None:
            return
        with self.lock:
            self._waiting.discard(number)
            told = self._metadata.pop(number, None)
            if told is None:
                return
            self._size -= len(told)
            metadata = decode_json(told)
            for path, column in self._columns.items():
                if (value := find_value(metadata, path)) is not ABSENT:
                    column.discard(number, value)

    def fill(self, everyone: Iterable[int], read: Callable[[Sequence[int]], list[bytes | None]]) -> None:
        """Read what is missing: of everyone at first, later of those that came or changed.

        Whatever `read` raises, the table is as complete as before.
        """
        with self.lock:
            missing = list(everyone) if self._metadata is None else sorted(self._waiting)
            found: dict[int, bytes] = {}
            known: dict[bytes, bytes] = {}  # many facts are told with the same metadata
            for start in range(0, len(missing), READ_TOGETHER):
                some = missing[start : start + READ_TOGETHER]
                for number, told in zip(some, read(some), strict=True):
                    if told is not None:
                        found[number] = known.setdefault(told, told)
            self._waiting.clear()
            if self._metadata is None:
                self._metadata = {}
            self._metadata.update(found)
            self._size += sum(map(len, found.values()))
            if self._columns:
                for number, told in found.items():
                    self._add(number, decode_json(told))

    def _add(self, number: int, metadata: Any) -> None:
        for path, column in self._columns.items():
            if (value := find_value(metadata, path)) is not ABSENT:
                column.add(number, value)

    def column(self, path: Path) -> Column:
        """Return the column of a path, built if nobody asked for it lately. The table has been filled."""
        column = self._columns.get(path)
        if column is not None:
            return column
        assert self._metadata is not None
        column = Column()
        for number, told in self._metadata.items():
            if (value := find_value(decode_json(told), path)) is not ABSENT:
                column.add(number, value)
        if len(self._columns) >= COLUMNS_MAX:
            del self._columns[next(iter(self._columns))]
        self._columns[path] = column
        return column

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""
        with self.lock:
            if self._metadata is None:
                return 0
            facts = _FACT_BYTES * (len(self._metadata) + len(self._waiting)) + self._size
            return facts + sum(column.memory_bytes() for column in self._columns.values())
