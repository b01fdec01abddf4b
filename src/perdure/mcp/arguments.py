"""The arguments and results of each tool, made from the contract's types: schemas for models, forms for what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import msgspec

from perdure.contract.limits import HTTP
from perdure.contract.operations import OPERATIONS
from perdure.mcp.catalogue import Profile, Tool
from perdure.mcp.forms import Form, Schema, form_of, outline, told_schema

# A purge rewrites the whole store, of which this is one space; and the space is the server's to choose.
WITHHELD = frozenset({"purge", "spaces"})
TOKEN = "token"  # noqa: S105 - the name of an argument
_HINTS: Mapping[str, str] = {
    "text": "one statement, understandable alone",
    "facts": "several at once: objects of these arguments",
    "query": "words",
    "subject": "the slot it fills, e.g. alice/city",
    "entities": "names it mentions",
    "event_time": "when it happened",
    "valid_from": "true from",
    "valid_to": "true until",
    "supersedes": "ids it replaces",
    "as_of": "what was true then",
    "known_at": "as recorded by then",
    "history": "default current",
    "filter": 'of metadata, e.g. {"team":"a","prio":{"$gte":4}}',
    "new_text": "what is right",
    "containing": "part of its text",
    "cursor": "of the page before",
    "operations": (
        'objects such as {"operation": "create", "draft": {"id": "x", "kind": "semantic", "content": "…", "evidence": '
        '[{"uri": "chat/7", "digest": "…", "kind": "user_statement", "occurred_at": "2024-05-31", "quote": "…"}]}}; or '
        "activate, corroborate, revise (content, mode), relabel, add_relation, remove_relation (relation), set_status "
        "(status), resolve, each with node_id, expected_revision and evidence"
    ),
    "turns": "objects of source_id, role, text and observation_time",
}
_FORGET_HINTS: Mapping[str, str] = {
    "text": "the exact text",
    "containing": "part of the text",
    "matching": "metadata pairs",
    "ingested_before": "told before",
    "event_before": "happened before",
    "session": "what it brought",
    "all": "everything",
    "include_chain": "with all versions",
    "soft": "only hide",
    "block": "refuse it from now on",
    "token": "of the preview",
}
SCOPES: Mapping[str, tuple[str, str]] = {
    "ids": ("ids", "ids"),
    "subject": ("subject", "subject"),
    "entity": ("entity", "entity"),
    "tag": ("tag", "tag"),
    "text": ("text", "text"),
    "containing": ("containing", "containing"),
    "kind": ("kind", "factKind"),
    "matching": ("matching", "metadata"),
    "filter": ("filter", "filter"),
    "session": ("session", "session"),
    "ingested_before": ("ingestedBefore", "before"),
    "event_before": ("eventBefore", "before"),
}
"""The arguments of forget that name facts: the contract's kind of scope, and the field that it has there."""
PREVIEWED = frozenset({"forget", "apply_forgetting", "consolidate", "forget_conversation"})
"""The tools that answer first with a preview and a token."""
_RESULTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "memory_status": (
        *(("space", "object"), ("facts", "integer"), ("current", "integer")),
        *(("capabilities", "object"), ("server", "object")),
    ),
    "search": (("results", "array"),),
    "fetch": (("id", "string"), ("title", "string"), ("text", "string"), ("url", "string")),
}
_TOKEN_FORM = Form(frozenset({"string"}))
_FLAG_FORM = Form(frozenset({"boolean"}))


@cache
def form_for(tool: Tool, profile: Profile) -> Form:
    """Return the form of a tool's arguments in a profile: the chosen ones, or with `all` those of the contract."""
    whole = _whole(tool)
    if tool.takes and (profile == "default" or not tool.by_default):
        chosen = {name: whole.fields[name] for name in tool.takes}
        return replace(whole, fields=chosen)
    if not tool.takes and tool.by_default:
        return Form(frozenset({"object"}))
    return whole


@cache
def input_schema(tool: Tool, profile: Profile) -> Schema:
    """Return the schema of a tool's arguments as models are told it."""
    form = form_for(tool, profile)
    hints = {**_HINTS, **(_FORGET_HINTS if tool.operation == "forget" else {})}
    properties = {name: told_schema(field, hints.get(name)) for name, field in form.fields.items()}
    if "k" in properties:
        properties["k"]["maximum"] = HTTP.k_max
    told: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [name for name in form.fields if name in form.required]
    return {**told, "required": required} if required else told


@cache
def output_schema(tool: Tool) -> Schema:
    """Return the schema of a tool's structured result: its fields, without what is inside them."""
    operation = OPERATIONS[tool.operation]
    if tool.name in _RESULTS:
        return _object_of(*_RESULTS[tool.name])
    told = outline(msgspec.json.schema(operation.reply))
    if operation.many is not None:  # either of two replies
        many = outline(msgspec.json.schema(operation.many[2]))
        told = {"type": "object", "properties": {**told["properties"], **many["properties"]}}
    if tool.name in PREVIEWED:
        told["properties"]["preview"] = {"type": "object"}
    return told


def _whole(tool: Tool) -> Form:
    """Return the form of all arguments that a tool may take."""
    operation = OPERATIONS[tool.operation]
    schema = msgspec.json.schema(operation.request)
    form = form_of(schema)
    fields = {name: field for name, field in form.fields.items() if name not in WITHHELD}
    required = form.required
    if operation.many is not None:
        plural, kind, _ = operation.many
        fields = {
            "text": fields.pop("text"),
            plural: form_of(msgspec.json.schema(kind)).fields[plural],
            **fields,
        }
        required = frozenset()  # one of the two forms; the contract says which field is missing
    if tool.operation == "forget":
        del fields["scope"]
        fields = {**_scopes(schema["$defs"]), **fields}
        required = frozenset()
    if tool.name in PREVIEWED:
        fields[TOKEN] = _TOKEN_FORM
    return replace(form, fields=fields, required=required)


def _scopes(definitions: Mapping[str, Schema]) -> dict[str, Form]:
    by_kind = {
        one["properties"]["kind"]["enum"][0]: one["properties"]
        for one in definitions.values()
        if "enum" in one.get("properties", {}).get("kind", {})
    }
    named = {name: form_of(by_kind[kind][field], definitions) for name, (kind, field) in SCOPES.items()}
    return {**named, "all": _FLAG_FORM}


def _object_of(*fields: tuple[str, str]) -> Schema:
    properties = {name: {"type": kind} for name, kind in fields}
    return {"type": "object", "properties": properties, "required": list(properties)}
