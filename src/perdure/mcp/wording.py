"""Errors of the contract as tools tell them: under the names that their arguments have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.contract.naming import camel_case, outside_of_values, python_names
from perdure.contract.wire import JsonObject, error_object
from perdure.errors import PerdureError
from perdure.mcp.arguments import SCOPES


def told_error(error: PerdureError, told: Mapping[str, Any] | None) -> JsonObject:
    """Return `{"error": …}` in the contract's shape, with fields named as they were sent.

    Args:
        told: the tool's arguments under the names of the contract; of forget, one of them is its scope. None where
            the error is about the arguments as they were sent, and names them so.
    """
    plain = error_object(error)
    if told is None:
        return plain
    inner = plain["error"]
    place = inner.get("details", {}).get("place")
    if isinstance(place, str):
        inner["details"]["place"] = _without_scope(place, told)
    message = _without_scope(inner["message"], told)
    inner["message"] = _as_sent(message, told, _without_scope(place, told) if isinstance(place, str) else "")
    if "field" in inner:
        inner["field"] = _as_sent(_without_scope(inner["field"], told), told)
    return plain


def _without_scope(text: str, told: Mapping[str, Any]) -> str:
    """Return a text that begins with the path of the scope's field with the tool's argument in its place."""
    for name, (_, field) in SCOPES.items():
        if camel_case(name) in told and text.startswith(f"scope.{field}"):
            return name + text[len(f"scope.{field}") :]
    return text


def _as_sent(text: str, told: Mapping[str, Any], place: str = "") -> str:
    def named(part: str) -> str:
        for name, (_, field) in SCOPES.items():
            if camel_case(name) in told:
                part = part.replace(f"scope.{field}", name)
        return part

    return python_names(outside_of_values(text, named), place)
