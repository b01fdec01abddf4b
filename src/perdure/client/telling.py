"""From change sets, access events, conversations and contexts to requests of the contract. Pure.

As in `sending`, what a value may be is for the server to say; here moments become milliseconds, and what is no value of
its type at all is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from perdure.base.instants import to_millis
from perdure.client.sending import members, request_of
from perdure.contract.naming import camel_case, snake_case
from perdure.contract.wire_governed import context_object, token_object
from perdure.errors import InvalidRequest
from perdure.model.conversation import (
    ConversationContext,
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
    ConversationTurn,
)
from perdure.model.node import AccessEvent, Evidence, NodeDraft, Relation
from perdure.model.node_change import ChangeSet, ChangeToken, Create, Operation
from perdure.model.node_snapshot import SnapshotRequest

JsonObject = dict[str, Any]
_CLEARABLE = ("labels", "subject", "valid_from", "valid_to")
_KINDS: Mapping[str, type[msgspec.Struct]] = {
    "draft": NodeDraft,
    "evidence": Evidence,
    "relation": Relation,
    "relations": Relation,
    "turns": ConversationTurn,
}


def change_set_request(told: Any) -> JsonObject:
    """Return the request of a change set. Raises InvalidRequest where something in it is of another type."""
    change_set = _checked(told, ChangeSet, "change_set")
    return {
        "idempotencyKey": change_set.idempotency_key,
        "occurredAt": to_millis(change_set.occurred_at, field="occurred_at"),
        "operations": [_operation(one) for one in members(change_set.operations, "operations")],
    }


def event_request(told: Any) -> JsonObject:
    """Return the request that notes an access event; which kind it is, the operation says."""
    event = _checked(told, AccessEvent, "event")
    return {name: value for name, value in _object(event).items() if name != "kind"}


def snapshot_request(told: SnapshotRequest | None) -> JsonObject:
    return {} if told is None else _object(_checked(told, SnapshotRequest, "request"))


def token_request(told: ChangeToken | None) -> JsonObject | None:
    return None if told is None else token_object(_checked(told, ChangeToken, "since"))


def conversation_request(told: Any) -> JsonObject:
    """Return the request that remembers a conversation."""
    return _object(_checked(told, ConversationInput, "conversation"))


def options_request(told: ConversationRecallOptions | None) -> JsonObject:
    """Return the options of a recall of conversations; all of them, for the defaults are the engine's own."""
    return {} if told is None else _object(_checked(told, ConversationRecallOptions, "options"))


def context_request(told: Any, limits: ConversationContextLimits | None) -> JsonObject:
    """Return the request that expands a context."""
    context = context_object(_checked(told, ConversationContext, "context"))
    wanted = None if limits is None else _object(_checked(limits, ConversationContextLimits, "limits"))
    return request_of(context=context, limits=wanted)


def _operation(told: Any) -> JsonObject:
    operation = _checked(told, Operation, "operations")
    return {"operation": snake_case(type(operation).__name__), **_object(operation)}


def _object(struct: msgspec.Struct) -> JsonObject:
    """Return the fields that are given, by their names on the wire."""
    fields = {name: getattr(struct, name) for name in struct.__struct_fields__}
    given = {name: value for name, value in fields.items() if value is not None and value is not UNSET}
    shown = {camel_case(name): _value(name, value) for name, value in given.items()}
    if not isinstance(struct, Operation) or isinstance(struct, Create):
        return shown
    clear = [camel_case(name) for name in _CLEARABLE if fields.get(name, UNSET) is None]
    return {**shown, "clear": clear} if clear else shown


def _value(name: str, value: Any) -> Any:
    kind = _KINDS.get(name)
    if name in ("evidence", "relations", "turns") and kind is not None:
        return [_object(_checked(one, kind, name)) for one in members(value, name)]
    if kind is not None:
        return _object(_checked(value, kind, name))
    if isinstance(value, ConversationContextLimits):
        return _object(value)
    (plain,) = request_of(**{name: value}).values()
    return plain


def _checked(value: Any, kind: type[Any], field: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidRequest(f"{field} must be {kind.__name__}, got {type(value).__name__}", field=field)
    return value
