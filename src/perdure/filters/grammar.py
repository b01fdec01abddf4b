"""From a JSON object to a filter: a frozen tree of conditions.

A filter is an object. Each member is a path with what its value must be, or `$and`, `$or` (arrays of filters) or
`$not` (a filter); all members must hold. What a value must be is either a value, which it then equals, or an object of
operators, which must all hold. An object of nothing but signs (`{">": 3}`) is a mistake and no value:

    {"team": "a", "prio": {"$gte": 4, "$lt": 9}, "$or": [{"done": true}, {"@tags": {"$contains": "red"}}]}
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from string import punctuation
from typing import Any

from perdure.base.canonical import canonical_json, checked_json
from perdure.base.instants import to_millis
from perdure.base.text import shown_choice
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.filters.paths import DEPTH_MAX, SHOWN_MAX, Path, parse_path
from perdure.model.fact import FACT_KINDS

CONDITIONS_MAX = 1_024  # of one filter: a tree of as many is decided in milliseconds
IN_FULL = 100  # characters of a place that an error shows


class FirstClass(StrEnum):
    """The fields of a fact itself that a filter can name. Absent where the fact has none."""

    SUBJECT = "@subject"  # text
    ENTITIES = "@entities"  # array of text, sorted
    TAGS = "@tags"  # array of text, sorted
    KIND = "@kind"  # text
    IMPORTANCE = "@importance"  # number
    EVENT_TIME = "@eventTime"  # milliseconds since 1970, as all times
    VALID_FROM = "@validFrom"
    VALID_TO = "@validTo"  # as told; an end that was told later does not change it
    INGEST_TIME = "@ingestTime"
    SOURCE_URI = "@sourceUri"  # text


TIMES = (FirstClass.EVENT_TIME, FirstClass.VALID_FROM, FirstClass.VALID_TO, FirstClass.INGEST_TIME)


class Operator(StrEnum):
    """What a condition asks of a value. `$ne`, `$nin` and `$exists: false` are negations of these."""

    EQ = "$eq"
    GT = "$gt"
    GTE = "$gte"
    LT = "$lt"
    LTE = "$lte"
    IN = "$in"
    EXISTS = "$exists"
    CONTAINS = "$contains"


ORDERING = (Operator.GT, Operator.GTE, Operator.LT, Operator.LTE)
_NEGATED = {"$ne": Operator.EQ, "$nin": Operator.IN}
_OPERATORS = (*Operator, *_NEGATED)
_LOGIC = ("$and", "$or", "$not")


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison. The operand is JSON; of a time it is milliseconds; of IN a list; of EXISTS None."""

    target: Path | FirstClass
    operator: Operator
    operand: Any


@dataclass(frozen=True, slots=True)
class All:
    """Every part must hold; there is at least one."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part must hold; there is at least one."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part must not hold. It does not for rows that lack the key, so that they match."""

    part: Node


Node = Condition | All | AnyOf | Not


class Filter:
    """A checked filter. Immutable; equal filters have equal keys."""

    __slots__ = ("_key", "root")

    def __init__(self, root: Node) -> None:
        self.root = root
        self._key = _key_of(root)

    def key(self) -> bytes:
        """Return bytes that filters share which differ in the order of members and of alternatives only."""
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def parse_filter(value: Any, field: str = "filter") -> Filter:
    """Return the filter that a JSON object describes.

    Args:
        value: at most 65,536 bytes in canonical form, CONDITIONS_MAX conditions, and `$and`, `$or` and `$not`
            at most DEPTH_MAX levels deep.
        field: the argument's name, with which places in errors begin.

    Raises:
        InvalidRequest: it is no filter. The message and `details["place"]` name where, such as
            `filter.$and[1].prio.$gt`; an unknown operator is also `details["operator"]`.
    """
    return Filter(
        _Parser(field).filter(checked_json(value, field=field, bytes_max=limits.METADATA_BYTES_MAX), field, 1)
    )


class _Parser:
    """Walks one filter and counts its conditions."""

    def __init__(self, field: str) -> None:
        self._field, self._count = field, 0

    def filter(self, value: Any, place: str, depth: int) -> Node:
        if not isinstance(value, dict):
            raise self._refusal(place, f"must be an object, got {_kind(value)}")
        if not value:
            raise self._refusal(place, "is empty and would match everything; name a key")
        if depth > DEPTH_MAX:
            raise self._refusal(place, f"lies deeper than {DEPTH_MAX} levels of $and, $or and $not")
        return _all([self._member(key, item, place, depth) for key, item in value.items()])

    def _member(self, key: str, value: Any, place: str, depth: int) -> Node:
        inner = _under(place, key)
        if key in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise self._refusal(inner, f"must be an array of one or more filters, got {_kind(value)}")
            parts = [self.filter(item, f"{inner}[{n}]", depth + 1) for n, item in enumerate(value)]
            return _all(parts) if key == "$and" else AnyOf(tuple(parts))
        if key == "$not":
            return Not(self.filter(value, inner, depth + 1))
        if key in _OPERATORS:
            raise self._refusal(inner, f"compares nothing: write {{key: {{{key!r}: …}}}}", operator=key)
        if key.startswith("$"):
            raise self._unknown(inner, key, f"; a key of that name is written {chr(92) + key[:SHOWN_MAX]}")
        target = self._target(key, place)
        if isinstance(value, dict) and any(name.startswith("$") for name in value):
            return _all([self._compared(target, name, item, inner) for name, item in value.items()])
        if isinstance(value, dict) and value and all(map(_is_sign, value)):
            name = next(iter(value))
            raise self._unknown(
                _under(inner, name), name, "; compare with an object that has such a key by $eq"
            )
        self._refuse_operators(value, inner)
        return self._condition(target, Operator.EQ, value, inner)

    def _target(self, key: str, place: str) -> Path | FirstClass:
        if not key.startswith("@"):
            return parse_path(key, field=self._field, place=place)
        try:
            return FirstClass(key)
        except ValueError:
            raise self._refusal(
                place,
                f"has the key {key[:SHOWN_MAX]!r}, which is no field of a fact; there are {', '.join(FirstClass)}; "
                f"a key of that name is written {chr(92) + key[:SHOWN_MAX]}",
            ) from None

    def _compared(self, target: Path | FirstClass, name: str, operand: Any, place: str) -> Node:
        inner = _under(place, name)
        if not name.startswith("$"):
            raise self._refusal(
                inner, "stands among operators; give operators only, or compare with the whole object by $eq"
            )
        if name in _LOGIC:
            raise self._refusal(
                inner, f"stands within a key; write {{{name!r}: …}} around whole filters", operator=name
            )
        if name not in _OPERATORS:
            raise self._unknown(inner, name)
        if name == Operator.EXISTS:
            if not isinstance(operand, bool):
                raise self._refusal(inner, f"must be true or false, got {_kind(operand)}")
            found = self._condition(target, Operator.EXISTS, None, inner)
            return found if operand else Not(found)
        if name in _NEGATED:
            return Not(self._condition(target, _NEGATED[name], operand, inner))
        return self._condition(target, Operator(name), operand, inner)

    def _condition(
        self, target: Path | FirstClass, operator: Operator, operand: Any, place: str
    ) -> Condition:
        self._count += 1
        if self._count > CONDITIONS_MAX:
            raise self._refusal(
                self._field, f"has more than {CONDITIONS_MAX} conditions; use $in for many values"
            )
        if operator is Operator.IN and not isinstance(operand, list):
            raise self._refusal(place, f"must be an array of values, got {_kind(operand)}")
        if isinstance(target, FirstClass) and operator is not Operator.EXISTS:
            if operator is Operator.IN:
                operand = [
                    self._of_field(target, operator, item, f"{place}[{n}]") for n, item in enumerate(operand)
                ]
            else:
                operand = self._of_field(target, operator, operand, place)
        return Condition(target, operator, operand)

    def _of_field(self, target: FirstClass, operator: Operator, value: Any, place: str) -> Any:
        """Return what a fact's own field is compared with; refuse what no such field can ever be."""
        if isinstance(value, dict):
            raise self._refusal(
                place, f"is an object, and {target} never is; there are {', '.join(_OPERATORS)}"
            )
        if target in TIMES:
            return self._moment(value, place)
        if operator is not Operator.CONTAINS:
            if target is FirstClass.IMPORTANCE and not is_number(value):
                raise self._refusal(
                    place,
                    f"must be a number from 0 to 1, as an importance is, got {_kind(value)}{_absent(value)}",
                )
            is_named = operator in (Operator.EQ, Operator.IN)
            if target is FirstClass.KIND and is_named and value not in FACT_KINDS:
                raise self._refusal(
                    place,
                    f"must be one of the kinds {', '.join(FACT_KINDS)}, got {shown_choice(value)}{_absent(value)}",
                )
        return value

    def _moment(self, value: Any, place: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows one kind of number
        if value is None:
            raise self._refusal(
                place, "is null, and a time is never null; ask with $exists whether there is one"
            )
        try:
            return to_millis(value, field=place)
        except InvalidRequest as error:
            raise InvalidRequest(error.message, field=self._field, place=place) from error

    def _refuse_operators(self, value: Any, place: str) -> None:
        """Refuse a key that begins with $ at any depth: where it is meant as an operator it would do nothing."""
        waiting = [(value, place)]
        while waiting:
            at, where = waiting.pop()
            if isinstance(at, dict):
                for key, item in at.items():
                    if key.startswith("$"):
                        raise self._refusal(
                            _under(where, key),
                            f"has the operator {key[:SHOWN_MAX]!r} within a value; address the key by its path, "
                            "or compare with an object that has such a key by $eq",
                            operator=key,
                        )
                    waiting.append((item, _under(where, key)))
            elif isinstance(at, list):
                waiting.extend((item, f"{where}[{n}]") for n, item in enumerate(at))

    def _unknown(self, place: str, name: str, advice: str = "") -> InvalidRequest:
        return self._refusal(
            place,
            f"has the unknown operator {name[:SHOWN_MAX]!r}; there are {', '.join(_OPERATORS)} for values and "
            f"{', '.join(_LOGIC)} for filters{advice}",
            operator=name,
        )

    def _refusal(self, place: str, reason: str, **details: Any) -> InvalidRequest:
        return InvalidRequest(f"{place} {reason}", field=self._field, place=place, **details)


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_sign(name: str) -> bool:
    """Whether a key looks like an operator of another language: `>`, `==`, `~~`."""
    return bool(name) and set(name) <= set(punctuation)


def _absent(value: Any) -> str:
    return "; ask with $exists whether there is one" if value is None else ""


def _under(place: str, key: str) -> str:
    """Return the place of a member; a long one keeps its end, which tells most."""
    whole = f"{place}.{key[:SHOWN_MAX]}"
    return whole if len(whole) <= IN_FULL else "…" + whole[-IN_FULL:]


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
    return ("an empty array" if value == [] else None) or names.get(type(value), "a number")


def _all(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _key_of(node: Node) -> bytes:
    if isinstance(node, Condition):
        operand = node.operand
        if node.operator is Operator.IN:
            operand = sorted({canonical_json(item).decode() for item in operand})
        return canonical_json([node.operator, node.target, operand])
    if isinstance(node, Not):
        return b"(!" + _key_of(node.part) + b")"
    return (
        (b"(&" if isinstance(node, All) else b"(|")
        + b",".join(sorted({_key_of(p) for p in node.parts}))
        + b")"
    )
