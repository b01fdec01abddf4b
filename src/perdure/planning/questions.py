"""Checks of what is asked: queries and metadata filters."""

from __future__ import annotations

from typing import Any

from perdure.base.canonical import checked_json, checked_text
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import is_blank, spelled_out
from perdure.planning.checks import SHOWN_MAX


def checked_query(query: str) -> str:
    """Return a query that asks for something: visible text of at most 65,536 bytes.

    Characters that stand for words count as those, since analysis spells them out.
    """
    query = checked_text(query, field="query")
    size = len(query) if query.isascii() else max(len(query.encode()), len(spelled_out(query).encode()))
    if size > limits.QUERY_BYTES_MAX:
        raise InvalidRequest(
            f"query takes {size} bytes; at most {limits.QUERY_BYTES_MAX} are allowed", field="query"
        )
    if is_blank(query):
        raise InvalidRequest("query is blank; use list() to enumerate facts", field="query")
    return query


def checked_equalities(value: Any, field: str) -> dict[str, Any]:
    """Return a checked, non-empty object of metadata keys and the values they must equal."""
    found = checked_json(value, field=field, bytes_max=limits.METADATA_BYTES_MAX)
    if not found:
        raise InvalidRequest(f"{field} is empty and would match everything; name a key", field=field)
    operator = _find_operator(found)
    if operator is not None:
        raise InvalidRequest(
            f"{field} has the operator {operator[:SHOWN_MAX]!r}; this build matches metadata by equality only",
            field=field,
            operator=operator,
        )
    return found


def checked_filter(value: Any, field: str = "filter") -> dict[str, Any]:
    """Return a checked filter of reads: as `checked_equalities`, of plain keys.

    A key that is written like a path or like a field of the fact itself is refused rather than taken
    for a name, since such keys are to mean just that.
    """
    found = checked_equalities(value, field)
    for key in found:
        if key.startswith("@") or any(mark in key for mark in ".[]\\"):
            raise InvalidRequest(
                f"{field} has the key {key[:SHOWN_MAX]!r}; this build matches top-level keys of the metadata "
                "only, no paths (a.b, a[0]) and no fields (@subject): give the whole value of the top-level "
                "key, or use the argument of that name",
                field=field,
            )
    return found


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
