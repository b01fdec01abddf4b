"""What a filter means, one row at a time: the reference that faster ways must agree with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.base.canonical import canonical_json
from perdure.filters.grammar import (
    ORDERING,
    All,
    AnyOf,
    Condition,
    Filter,
    FirstClass,
    Node,
    Not,
    Operator,
    is_number,
)
from perdure.filters.paths import ABSENT, find_value


def matches(tree: Filter | Node, metadata: Mapping[str, Any], first_class: Mapping[str, Any]) -> bool:
    """Return whether a filter matches a row.

    Args:
        metadata: the caller's, as reads see it.
        first_class: the fields of `FirstClass` that the row has, by their names; times as milliseconds.
    """
    node = tree.root if isinstance(tree, Filter) else tree
    if isinstance(node, All):
        return all(matches(part, metadata, first_class) for part in node.parts)
    if isinstance(node, AnyOf):
        return any(matches(part, metadata, first_class) for part in node.parts)
    if isinstance(node, Not):
        return not matches(node.part, metadata, first_class)
    if isinstance(node.target, FirstClass):
        return holds(node, first_class.get(node.target, ABSENT))
    return holds(node, find_value(metadata, node.target))


def holds(condition: Condition, value: Any) -> bool:
    """Return whether a value is what the condition asks for. Of ABSENT nothing holds."""
    operator, operand = condition.operator, condition.operand
    if value is ABSENT:
        return False
    if operator is Operator.EXISTS:
        return True
    if operator is Operator.EQ:
        return is_same(value, operand)
    if operator is Operator.IN:
        found = value if isinstance(value, list | tuple) else [value]
        return any(is_same(one, other) for one in found for other in operand)
    if operator is Operator.CONTAINS:
        return _contains(value, operand)
    assert operator in ORDERING
    return _are_ordered(value, operator, operand)


def _contains(value: Any, operand: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(is_same(element, operand) for element in value)
    return isinstance(value, str) and isinstance(operand, str) and operand in value


def is_same(value: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: 1 equals 1.0, true is not 1, arrays are in order."""
    return canonical_json(value) == canonical_json(other)


def _are_ordered(value: Any, operator: Operator, operand: Any) -> bool:
    # Numbers compare exactly, whatever their size; texts by code point.
    numbers = is_number(value) and is_number(operand)
    if not numbers and not (isinstance(value, str) and isinstance(operand, str)):
        return False
    if operator is Operator.GT:
        return bool(value > operand)
    if operator is Operator.GTE:
        return bool(value >= operand)
    if operator is Operator.LT:
        return bool(value < operand)
    return bool(value <= operand)
