"""From plain objects of JSON to requests, with errors that name the field as it is on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from perdure.base.text import shown_number
from perdure.contract.limits import SurfaceLimits
from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.requests import Asking, Forget, IdsScope, Request, SearchDocuments
from perdure.errors import InvalidRequest, NotFound

SHOWN_MAX = 64  # characters of a name that is not ours
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `(.+)`)?")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `(\$[^`]*)`)?", re.S)
_MISSING = re.compile(r"Object missing required field `([^`]+)`(?: - at `(.+)`)?")
_VALUE = re.compile(r"Invalid value '(.*)' - at `(.+)`", re.S)


def operation_of(name: object, *groups: str) -> Operation:
    """Return the operation of this name in one of the groups (in any, when none is named).

    Raises:
        NotFound: there is none. It names those that there are.
    """
    found = OPERATIONS.get(name) if isinstance(name, str) else None
    if found is None or (groups and found.group not in groups):
        known = sorted(one.name for one in OPERATIONS.values() if not groups or one.group in groups)
        shown = f" {name[:SHOWN_MAX]!r}" if isinstance(name, str) else " of that name"
        raise NotFound(f"there is no operation{shown}; there are {', '.join(known)}", field="op")
    return found


def decode_request(operation: Operation, plain: object) -> Request:
    """Return the request that an object of JSON describes.

    Only shapes are judged here: unknown and missing fields, and types (true is not 1, 5.0 is no whole number, "5" is
    no number). What values may be is said by what carries the request out.

    Raises:
        InvalidRequest: naming the field by its path on the wire.
    """
    if not isinstance(plain, Mapping):
        raise InvalidRequest(f"a request is an object, got {_kind(plain)}")
    kind = operation.request
    if operation.many is not None and operation.many[0] in plain:
        kind = operation.many[1]
    try:
        return msgspec.convert(plain if type(plain) is dict else dict(plain), kind)
    except msgspec.ValidationError as error:
        raise refusal(str(error), operation, kind) from None
    except UnicodeEncodeError:  # a field's name, or a scope's kind; values are judged later
        raise InvalidRequest("a name in the request has a lone surrogate; send valid Unicode") from None


def check_limits(request: Request, limits: SurfaceLimits) -> None:
    """Raise InvalidRequest where a request is outside a limit of its surface, which may be stricter than the engine's."""
    if isinstance(request, Asking | SearchDocuments):
        # Both ends, or the engine would tell another range where k is below it.
        if request.k is not None and not 1 <= request.k <= limits.k_max:
            raise InvalidRequest(
                f"k must be 1 to {limits.k_max} here, got {shown_number(request.k)}", field="k"
            )
        size = len(request.query.encode("utf-8", "surrogatepass"))
        if size > limits.query_bytes_max:
            raise InvalidRequest(
                f"query takes {size} bytes, more than the {limits.query_bytes_max} that are taken here",
                field="query",
            )
    for name, members in _lists(request):
        if len(members) > limits.batch_max:
            raise too_many(name, limits.batch_max, is_batch=True)


def too_many(name: str, limit: int, *, is_batch: bool) -> InvalidRequest:
    """Return the refusal of a list with more members than this; those of a batch may come in several requests."""
    advice = " that are taken here; send several requests" if is_batch else " that are allowed"
    return InvalidRequest(f"{name} has more than the {limit} members{advice}", field=name)


def _lists(request: Request) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of a request whose members are each looked up or stored."""
    if isinstance(request, Forget):
        if isinstance(request.scope, IdsScope):
            yield "scope.ids", request.scope.ids
        return
    for name in ("facts", "ids", "texts"):
        members = getattr(request, name, None)
        if members is not None:
            yield name, members


def refusal(message: str, operation: Operation, kind: type[Request]) -> InvalidRequest:
    """Return the refusal of a request of this kind from what the codec says of it."""
    found = _refusal(message, operation, kind)
    found.in_wire_names = True  # what was sent is named as it was sent
    return found


def _refusal(message: str, operation: Operation, kind: type[Request]) -> InvalidRequest:
    if found := _UNKNOWN.fullmatch(message):
        name, path = found[1][:SHOWN_MAX], _path(found[2])
        if path:
            return InvalidRequest(f"{path} has no field {name!r}", field=f"{path}.{name}")
        there = ", ".join(kind.__struct_encode_fields__) or "no fields"
        return InvalidRequest(f"there is no field {name!r}; {operation.name} takes {there}", field=name)
    if found := _MISSING.fullmatch(message):
        path = _path(found[2])
        name = f"{path}.{found[1]}" if path else found[1]
        return InvalidRequest(f"{name} is missing", field=name)
    if found := _EXPECTED.fullmatch(message):
        wanted = " or ".join(_WORDS.get(one, one) for one in found[1].split(" | ") if one != "null")
        name = _path(found[3])
        got = _WORDS.get(found[2], found[2])
        return InvalidRequest(f"{name or 'the request'} must be {wanted}, got {got}", field=name or None)
    if found := _VALUE.fullmatch(message):
        name = _path(found[2])
        return InvalidRequest(f"{name} must be one of {_kinds_of_scope()}", field=name)
    return InvalidRequest("the request does not have the form that the operation takes")


def _kinds_of_scope() -> str:
    from perdure.contract.requests import AnyScope  # noqa: PLC0415 - only where one is unknown

    return ", ".join(str(one.__struct_config__.tag) for one in AnyScope.__args__)


def _path(told: str | None) -> str:
    """Return a path without its root: `$.facts[1].text` is `facts[1].text`."""
    return "" if told is None else told.removeprefix("$").removeprefix(".")


def _kind(value: object) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (str, "str"),
        (list, "array"),
    )
    if value is None:
        return "null"
    return next((_WORDS[name] for kind, name in names if isinstance(value, kind)), type(value).__name__)
