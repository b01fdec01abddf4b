"""Errors of the contract as tools tell them: under the names that their arguments have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.contract.naming import camel_case, python_names
from perdure.contract.wire import JsonObject, error_object
from perdure.errors import PerdureError
from perdure.mcp.arguments import SCOPES


def told_error(error: PerdureError, told: Mapping[str, Any]) -> JsonObject:
    """Return `{"error": …}` in the contract's shape, with fields named as they were sent.

    Args:
        told: the tool's arguments under the names of the contract; of forget, one of them is its scope.
    """
    plain = error_object(error)
    inner = plain["error"]
    for name in ("message", "field"):
        if name in inner:
            inner[name] = _as_sent(inner[name], told)
    return plain


def _as_sent(text: str, told: Mapping[str, Any]) -> str:
    for name, (_, field) in SCOPES.items():
        if camel_case(name) in told:
            text = text.replace(f"scope.{field}", name)
    return python_names(text)
