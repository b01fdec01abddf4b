"""Checks of what is asked: queries and metadata filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.base.canonical import checked_json, checked_text
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.filters.grammar import Filter, parse_filter
from perdure.lexical.profile import is_blank, spelled_out
from perdure.planning.checks import SHOWN_MAX


def checked_query(query: str, *, blank: bool = False) -> str:
    """Return a query that asks for something: visible text of at most 65,536 bytes; `blank` may be blank.

    Characters that stand for words count as those, since analysis spells them out.
    """
    query = checked_text(query, field="query")
    size = len(query) if query.isascii() else max(len(query.encode()), len(spelled_out(query).encode()))
    if size > limits.QUERY_BYTES_MAX:
        raise InvalidRequest(
            f"query takes {size} bytes; at most {limits.QUERY_BYTES_MAX} are allowed", field="query"
        )
    if not blank and is_blank(query):
        raise InvalidRequest("query is blank; to see facts without one, list them", field="query")
    return query


def checked_equalities(value: Any, field: str) -> dict[str, Any]:
    """Return a checked, non-empty object of metadata keys and the values they must equal."""
    found = checked_json(value, field=field, bytes_max=limits.METADATA_BYTES_MAX)
    if not found:
        raise InvalidRequest(f"{field} is empty and would match everything; name a key", field=field)
    operator = _find_operator(found)
    if operator is not None:
        raise InvalidRequest(
            f"{field} has the operator {operator[:SHOWN_MAX]!r}, but compares by equality only; use filter",
            field=field,
            operator=operator,
        )
    return found


def checked_filter(value: Any, field: str = "filter") -> Filter:
    """Return the filter that a JSON object describes; errors as of `parse_filter`."""
    return parse_filter(value, field)


def find_filter(value: Mapping[str, Any] | None) -> Filter | None:
    """Return the filter that was given, None where there is none; errors as of `parse_filter`."""
    return None if value is None else checked_filter(value)


def _find_operator(value: Any) -> str | None:
    """Return the first key that begins with $ at any depth, or None."""
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            for key in at:
                if key.startswith("$"):
                    return str(key)
            waiting.extend(at.values())
        elif isinstance(at, list):
            waiting.extend(at)
    return None
