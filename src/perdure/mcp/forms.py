"""What an argument may look like: read from the contract's schemas, told to models, and used to read what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from perdure.contract.naming import snake_case

Schema = dict[str, Any]
_KEPT = ("enum", "minimum", "maximum")  # what of a field's schema helps a model


@dataclass(frozen=True)
class Form:
    """The kinds of JSON that a value may be of, by their names in JSON Schema.

    `items` is the form of a list's members. `fields` are those of an object of the contract, by their names in
    snake_case; an object without them is the caller's own.
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
    """Return the form of a schema of the contract; null counts as absence, so it is none of the kinds.

    Of several kinds of object it takes the fields of each, and requires what all of them do.
    """
    known = schema.get("$defs", {}) if definitions is None else definitions
    forms = [_form_of_one(one, known) for one in _alternatives(schema, known)]
    return reduce(_either, [form for form in forms if form.kinds], Form(frozenset()))


def _form_of_one(schema: Schema, known: Mapping[str, Schema]) -> Form:
    kinds = _kinds(schema)
    items = form_of(schema["items"], known) if "array" in kinds and "items" in schema else None
    inner = schema.get("properties", {}) if "object" in kinds else {}
    fields = {snake_case(name): form_of(told, known) for name, told in inner.items()}
    required = frozenset(snake_case(name) for name in schema.get("required", ()) if inner)
    return Form(kinds, items, fields, required, {name: schema[name] for name in _KEPT if name in schema})


def _kinds(schema: Schema) -> frozenset[str]:
    """Return the kinds that a schema without alternatives tells; the tag of a union has its values only."""
    if "type" in schema:
        return frozenset({schema["type"]} - {"null"})
    are_texts = "enum" in schema and all(isinstance(value, str) for value in schema["enum"])
    return frozenset({"string"} if are_texts else ())


def _either(one: Form, other: Form) -> Form:
    """Return the form of what is of either form."""
    if not one.kinds:
        return other
    items = [form for form in (one.items, other.items) if form is not None]
    shared = {
        name: _either(one.fields[name], form) for name, form in other.fields.items() if name in one.fields
    }
    told = {**one.told, **other.told}
    if "enum" in one.told and "enum" in other.told:
        told["enum"] = list(dict.fromkeys((*one.told["enum"], *other.told["enum"])))
    return Form(
        one.kinds | other.kinds,
        reduce(_either, items) if items else None,
        {**one.fields, **other.fields, **shared},
        one.required & other.required if one.fields and other.fields else one.required | other.required,
        told,
    )


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
