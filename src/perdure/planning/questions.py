"""Checks of what is asked: queries and metadata filters."""

from __future__ import annotations

from typing import Any

from perdure.base.canonical import checked_json, checked_text
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import is_blank


def checked_query(query: str) -> str:
    """Return a query that asks for something: visible text of at most 65,536 bytes."""
    checked_text(query, field="query")
    size = len(query) if query.isascii() else len(query.encode())
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
    operators = [key for key in found if key.startswith("$")]
    if operators:
        raise InvalidRequest(
            f"{field} has {len(operators)} keys that begin with $; this build matches metadata by equality only",
            field=field,
        )
    nested = [k for k, v in found.items() if isinstance(v, dict) and any(str(i).startswith("$") for i in v)]
    if nested:
        raise InvalidRequest(
            f"{field} has {len(nested)} values with operators ($…); this build matches by equality only",
            field=field,
        )
    return found
