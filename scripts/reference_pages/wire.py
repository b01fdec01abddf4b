"""Tells JSON Schemas in words: what kind of value a field takes, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
Shown = Callable[[str], str]  # from the name of a schema to what stands for it on the page
KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
    "null": "null",
}
PLURALS = {
    "text": "texts",
    "whole number": "whole numbers",
    "number": "numbers",
    "object": "objects",
    "a moment": "moments",
}
MILLISECONDS = "Milliseconds since"  # how the description of a moment in a reply begins
ENUM_SHOWN_MAX = 12


def alternatives(schema: Schema) -> list[Schema]:
    """Return what a value may be of: the schema itself, or each of those it joins."""
    found: Sequence[Schema] | None = schema.get("anyOf") or schema.get("oneOf")
    if found is None or is_moment(schema):
        return [schema]
    return [one for option in found for one in alternatives(option)]


def is_moment(schema: Schema) -> bool:
    """Whether a schema is that of a moment: milliseconds, or ISO text."""
    kinds = [one.get("type") for one in schema.get("anyOf", ())]
    return kinds == ["integer", "string"]


def kind(schema: Schema, shown: Shown, *, with_null: bool) -> str:
    """Return in words what kind of value a schema takes.

    Args:
        shown: says what stands for another schema that it names.
        with_null: whether null tells something; in requests it is the same as absence.
    """
    told = [_kind(one, shown) for one in alternatives(schema)]
    kept = [word for word in dict.fromkeys(told) if word != "null"]
    nothing = ["null"] if with_null and "null" in told else []
    return ", or ".join([*kept, *nothing])


def description(schema: Schema) -> str:
    """Return what a schema, or the first of its alternatives that says something, says of the value."""
    told = [one.get("description", "") for one in (schema, *alternatives(schema)) if not is_moment(one)]
    return next((text for text in told if text and not text.startswith(MILLISECONDS)), "")


def properties(schema: Schema) -> list[tuple[str, Schema, bool]]:
    """Return the fields of an object in order, and whether each must be there."""
    required = schema.get("required", ())
    return [(name, told, name in required) for name, told in schema.get("properties", {}).items()]


def _kind(schema: Schema, shown: Shown) -> str:
    if "$ref" in schema:
        return shown(str(schema["$ref"]).rsplit("/", 1)[1])
    if is_moment(schema):
        return "a moment"
    if "enum" in schema:
        return ", ".join(f"`{name}`" for name in schema["enum"][:ENUM_SHOWN_MAX])
    told = schema.get("type")
    if told == "integer" and schema.get("description", "").startswith(MILLISECONDS):
        return "milliseconds"
    if isinstance(told, list):
        return " or ".join(KINDS[one] for one in told)
    if told == "array":
        return _list(schema, shown)
    return KINDS.get(str(told), "any JSON") + _range(schema)


def _list(schema: Schema, shown: Shown) -> str:
    items = schema.get("items")
    if not items:
        return "list"
    inner = kind(items, shown, with_null=True)
    size = f", at most {schema['maxItems']:,}" if "maxItems" in schema else ""
    if schema.get("minItems") == schema.get("maxItems") and "minItems" in schema:
        return f"list of {schema['minItems']} {PLURALS.get(inner, inner)}"
    return f"list of {PLURALS.get(inner, inner)}{size}"


def _range(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return ""
    if most is None or most >= 2**53 - 1:
        return f", {least:,} or more"
    return f", {least:,} to {most:,}"
