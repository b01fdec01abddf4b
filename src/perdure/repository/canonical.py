"""The canonical form of change sets and of access events: what tells a repeated request from another one."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET

from perdure.base.canonical import canonical_json
from perdure.base.instants import to_millis
from perdure.model.node import AccessEvent, NodeDraft, Relation
from perdure.model.node_change import ChangeSet, Operation
from perdure.model.node_forms import evidence_form, shortest

_TIMES = frozenset({"valid_from", "valid_to", "created_at", "occurred_at"})


def canonical_change_set(changes: ChangeSet) -> bytes:
    """Return the canonical form of a checked change set; equal sets have equal bytes, and only they."""
    return canonical_json(
        {
            "idempotencyKey": changes.idempotency_key,
            "occurredAt": to_millis(changes.occurred_at, field="occurred_at"),
            "operations": [_operation(one) for one in changes.operations],
        }
    )


def canonical_event(event: AccessEvent) -> bytes:
    """Return the canonical form of a checked access event."""
    return canonical_json(_fields(event))


def _operation(told: Operation) -> dict[str, Any]:
    return {"operation": type(told).__name__, **_fields(told)}


def _fields(told: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct; what is None is left out but where that takes something away."""
    found = {}
    for name in told.__struct_fields__:
        value = getattr(told, name)
        if value is UNSET or (value is None and name not in _clearing(type(told))):
            continue
        found[name] = _value(name, value)
    return found


@cache
def _clearing(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of which None and absence differ."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.default is UNSET)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _TIMES:
        return to_millis(value, field=name)
    if name == "evidence":
        return [msgspec.to_builtins(evidence_form(one)) for one in value]
    if name == "relations":
        return [_fields(one) for one in value]
    if isinstance(value, NodeDraft | Relation):
        return _fields(value)
    return shortest(value) if isinstance(value, float) else value
