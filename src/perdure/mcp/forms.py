"""What an argument may look like: read from the contract's schemas, told to models, and used to read what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.contract.naming import snake_case

Schema = dict[str, Any]
_KEPT = ("enum", "minimum", "maximum")  # what of a field's schema helps a model


@dataclass(frozen=True)
class Form:
    """The kinds of JSON that a value may be of, by their names in JSON Schema.

    `items` is the form of a list's members. `fields` are those of an object of the contract, by their names in
    snake_case, and `wire` their names in camelCase; an object without them is the caller's own.
    """

    kinds: frozenset[str]
    items: Form | None = None
    fields: Mapping[str, Form] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    told: Schema = field(default_factory=dict, compare=False)

    @property
    def is_moment(self) -> bool:
        return self.kinds == {"integer", "string"}


def form_of(schema: Schema, definitions: Mapping[str, Schema] | None = None) -> Form:
    """Return the form of a schema of the contract; null counts as absence, so it is none of the kinds."""
    known = schema.get("$defs", {}) if definitions is None else definitions
    kinds: set[str] = set()
    items: Form | None = None
    fields: dict[str, Form] = {}
    required: set[str] = set()
    told: Schema = {}
    for one in _alternatives(schema, known):
        kind = one.get("type")
        if kind is None or kind == "null":
            continue
        kinds.add(kind)
        told |= {name: one[name] for name in _KEPT if name in one}
        if kind == "array" and "items" in one:
            items = form_of(one["items"], known)
        if kind == "object" and "properties" in one:
            fields |= {snake_case(name): form_of(told, known) for name, told in one["properties"].items()}
            required |= {snake_case(name) for name in one.get("required", ())}
    return Form(frozenset(kinds), items, fields, frozenset(required), told)


def told_schema(form: Form, hint: str | None = None) -> Schema:
    """Return a schema for models of this form, with a hint as its description: short, since each token of it is
    paid in every conversation. Moments are told as text, which is how models write them."""
    told: Schema = {"type": "string"} if form.is_moment else _types(form.kinds)
    told |= form.told
    if form.items is not None and told.get("type") == "array":
        told["items"] = {"type": "string"} if "string" in form.items.kinds else _types(form.items.kinds)
    if hint:
        told["description"] = hint
    return told


def outline(schema: Schema) -> Schema:
    """Return the schema of a reply without what is inside the objects within it."""
    definitions = schema.get("$defs", {})
    (whole,) = _alternatives(schema, definitions)
    properties = {name: _outlined(told, definitions) for name, told in whole["properties"].items()}
    return {"type": "object", "properties": properties, "required": list(whole.get("required", ()))}


def _outlined(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    kinds = [one["type"] for one in _alternatives(schema, definitions) if "type" in one]
    told: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    return told


def _types(kinds: frozenset[str]) -> Schema:
    ordered = sorted(kinds)
    return {} if not ordered else {"type": ordered[0] if len(ordered) == 1 else ordered}


def _alternatives(schema: Schema, definitions: Mapping[str, Schema]) -> list[Schema]:
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return [one for option in several for one in _alternatives(option, definitions)]
    kind = schema.get("type")
    if isinstance(kind, list):
        return [{**schema, "type": one} for one in kind]
    return [schema]
