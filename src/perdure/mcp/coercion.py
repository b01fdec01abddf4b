"""From the arguments that models send to a request of the contract: values by the form of each field.

Clients send lists and objects as JSON text, numbers and booleans as text, one text for a list of texts, and null for
what is absent. A field whose form is text takes what is sent as it is, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from perdure.base.canonical import strict_json
from perdure.base.text import shown_kind
from perdure.contract.naming import camel_case, snake_case
from perdure.errors import InvalidRequest
from perdure.mcp.forms import Form

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
# Shorter ones are years and seconds as often as not, and would be taken for moments of 1970 without a word.
_MILLISECONDS = re.compile(r"[+-]?\d{12,15}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NUMBER_LENGTH_MAX = 64
_BOOLEANS = {"true": True, "false": False}
_UNCHANGED = object()
_EXPECTED = {
    "string": "a text",
    "integer": "a whole number such as 10",
    "number": "a number such as 0.5",
    "boolean": "true or false",
    "array": "a list",
    "object": 'an object such as {"name": "value"}',
}
_MEMBERS = {"string": '"a", "b"', "number": "0.5, 1", "object": '{"name": "value"}'}


def coerced(arguments: Mapping[str, Any] | None, form: Form, *, of: str) -> dict[str, Any]:
    """Return the arguments under the names of the contract, without nulls.

    Args:
        form: of an object whose fields are the arguments.
        of: what takes them, for messages.

    Raises:
        InvalidRequest: an argument is unknown, missing, or of a form that cannot be meant; it is named as it was sent.
    """
    try:
        return _object({} if arguments is None else arguments, form, "", of)
    except InvalidRequest as error:
        error.in_wire_names = True  # no name in it is to be changed
        raise


def _object(told: Mapping[str, Any], form: Form, before: str, of: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in told.items():
        named = form.fields.get(name)
        if named is None:
            raise _unknown(name, form, before, of)
        if value is not None:
            found[camel_case(name)] = _value(value, named, before + name)
    for name in form.fields:
        if name in form.required and camel_case(name) not in found:
            raise InvalidRequest(f"{before}{name} is missing", field=before + name)
    return found


def _unknown(name: str, form: Form, before: str, of: str) -> InvalidRequest:
    """Return the refusal of an argument; one that has its name on the wire is told the one that it has here."""
    meant = snake_case(name)
    advice = f"send it as {before}{meant}" if meant in form.fields else f"{of} takes {', '.join(form.fields)}"
    return InvalidRequest(f"unknown argument {before}{name[:64]!r}: {advice}", field=f"{before}{name[:64]}")


def _value(value: Any, form: Form, field: str) -> Any:
    if isinstance(value, str):
        value = _from_text(value, form, field)
    if isinstance(value, dict) and form.fields:
        return _object(value, form, f"{field}.", field)
    if isinstance(value, list) and form.items is not None:
        members = enumerate(value)
        return [one if one is None else _value(one, form.items, f"{field}[{at}]") for at, one in members]
    return value  # what is of another kind is refused by the contract, in the same words on every surface


def _from_text(text: str, form: Form, field: str) -> Any:
    """Return what a text stands for in a field of this form; the text itself where it may be one."""
    choices = form.told.get("enum", ())
    if text not in choices and camel_case(text) in choices:  # the name of a field
        return camel_case(text)
    if form.kinds == {"string"} or (form.is_moment and not _MILLISECONDS.fullmatch(text.strip())):
        return text
    for kind, read in _READERS:
        if kind in form.kinds:
            try:
                value = read(text.strip(), field)
            except InvalidRequest as error:
                raise InvalidRequest(
                    f"{field} must be {expected(form)}; {error.message}", field=field
                ) from None
            if value is not _UNCHANGED:
                return value
    if "string" in form.kinds:
        return text
    if form.items is not None and "string" in form.items.kinds and not text.lstrip().startswith("["):
        return [text]
    raise InvalidRequest(f"{field} must be {expected(form)}, got {shown_kind(text)}", field=field)


def _boolean(text: str, _: str) -> Any:
    return _BOOLEANS.get(text.lower(), _UNCHANGED)


def _integer(text: str, _: str) -> Any:
    return int(text) if _INTEGER.fullmatch(text) else _UNCHANGED


def _number(text: str, _: str) -> Any:
    return float(text) if len(text) <= _NUMBER_LENGTH_MAX and _NUMBER.fullmatch(text) else _UNCHANGED


def _list(text: str, field: str) -> Any:
    return _json(text, "[", field)


def _mapping(text: str, field: str) -> Any:
    return _json(text, "{", field)


def _json(text: str, opening: str, field: str) -> Any:
    return strict_json(text, field=field) if text.startswith(opening) else _UNCHANGED


# In this order: a text that is a number is none of the rest.
_READERS: tuple[tuple[str, Callable[[str, str], Any]], ...] = (
    ("boolean", _boolean),
    ("integer", _integer),
    ("number", _number),
    ("array", _list),
    ("object", _mapping),
)


def expected(form: Form) -> str:
    """Return in words what a field of this form takes."""
    if form.is_moment:
        return "a time such as 2024-05-31 or 2024-05-31T13:45:00Z, or milliseconds since 1970"
    return " or ".join(_words(kind, form) for kind in _EXPECTED if kind in form.kinds)


def _words(kind: str, form: Form) -> str:
    if kind != "array" or form.items is None:
        return _EXPECTED[kind]
    members = next((example for one, example in _MEMBERS.items() if one in form.items.kinds), "")
    return f"a list such as [{members}]"
