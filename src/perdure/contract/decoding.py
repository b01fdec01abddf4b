"""From plain objects of JSON to requests, with errors that name the field as it is on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from perdure.base.canonical import DEPTH_MAX, SAFE_INTEGER
from perdure.base.text import shown_choice, shown_number
from perdure.contract.limits import BATCHES, NODE_MEMBERS, SurfaceLimits
from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.requests import (
    AnyOperation,
    AnyScope,
    Asking,
    ChangeOperation,
    Forget,
    QueryNodes,
    RecallConversation,
    Request,
    SearchDocuments,
)
from perdure.errors import InvalidRequest, NotFound
from perdure.repository_errors import LimitExceeded

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
_CODEC_NAMES = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}
_ANY_KEY = "[...]"  # in a path of the codec: some key of the caller's own
_KEY_IN = "key` in `"  # likewise, where it is the key that is refused
_NOTHING = object()
_WHOLE = re.compile(r"Expected `int\b[^`]*`, got `float`")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
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

    Only shapes are judged here: unknown and missing fields, and types (true is not 1, "5" is no number). A whole
    number may be written as 5.0, as JSON Schema has it. What values may be is said by what carries the request out.

    Raises:
        InvalidRequest: naming the field by its path on the wire.
    """
    if not isinstance(plain, Mapping):
        raise InvalidRequest(f"a request is an object, got {_kind(plain)}")
    kind = operation.request
    if operation.many is not None and operation.many[0] in plain:
        kind = operation.many[1]
    found = plain if type(plain) is dict else dict(plain)
    try:
        try:
            return msgspec.convert(found, kind)
        except msgspec.ValidationError as error:
            if not _WHOLE.match(str(error)):
                raise
            return msgspec.convert(_with_whole_numbers(found), kind)
    except msgspec.ValidationError as error:
        raise refusal(with_number(str(error), found), operation, kind) from None
    except UnicodeEncodeError:  # a field's name, or a scope's kind; values are judged later
        raise InvalidRequest("a name in the request has a lone surrogate; send valid Unicode") from None


def _with_whole_numbers(value: Any, depth: int = 0) -> Any:
    """Return the value with numbers such as 5.0 as integers, which all of JSON's readers take for the same."""
    if depth > DEPTH_MAX:  # refused where it is looked at as a whole
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= SAFE_INTEGER else value
    if isinstance(value, dict):
        return {name: _with_whole_numbers(one, depth + 1) for name, one in value.items()}
    return [_with_whole_numbers(one, depth + 1) for one in value] if isinstance(value, list) else value


def check_limits(request: Request, limits: SurfaceLimits) -> None:
    """Raise InvalidRequest where a request is outside a limit of its surface, which may be stricter than the engine's."""
    if isinstance(request, Asking | SearchDocuments | RecallConversation):
        # Both ends, or the engine would tell another range where k is below it.
        if request.k is not None and not 1 <= request.k <= limits.k_max:
            raise InvalidRequest(
                f"k must be 1 to {limits.k_max} here, got {shown_number(request.k)}", field="k"
            )
        _check_query(request.query, "query", limits)
    elif isinstance(request, QueryNodes) and request.text is not None:
        _check_query(request.text, "text", limits)
    for path, name, members in _batches(request):
        if len(members) > limits.batch_max:
            raise too_many(path, name, limits)


def _check_query(query: str, name: str, limits: SurfaceLimits) -> None:
    size = len(query.encode("utf-8", "surrogatepass"))
    if size > limits.query_bytes_max:
        raise InvalidRequest(
            f"{name} takes {size} bytes, more than the {limits.query_bytes_max} that are taken here",
            field=name,
        )


def too_many(path: str, name: str, limits: SurfaceLimits) -> InvalidRequest:
    """Return the refusal of a list with more members than it may have; those of a batch may come in several requests."""
    if name in NODE_MEMBERS:  # in the engine's own words
        return LimitExceeded(name, NODE_MEMBERS[name], NODE_MEMBERS[name] + 1)
    advice = " that are taken here; send several requests" if name in BATCHES else " that are allowed"
    return InvalidRequest(f"{path} has more than the {limits.members_max(name)} members{advice}", field=path)


def _batches(request: Request) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield the path, the name and the members of each batch of a request."""
    holder, inside = (request.scope, "scope.") if isinstance(request, Forget) else (request, "")
    for name in BATCHES:
        members = getattr(holder, name, None)
        if members is not None:
            yield f"{inside}{name}", name, members


def with_number(message: str, plain: object) -> str:
    """Return what the codec says of a plain value, with the number that is refused in the place of its type.

    A value of an object with keys of the caller's own is named by its place, as members of lists are:
    `labels[1].value`.
    """
    found = _EXPECTED.fullmatch(message)
    if found is None:
        return message
    if _ANY_KEY in (found[3] or ""):
        return _with_place(message, found, plain)
    if found[2] not in ("int", "float"):
        return message
    kinds = found[1].split(" | ")
    if "str" in kinds and "int" not in kinds:  # a number in the place of a text is somebody's text
        return message
    number = _find_number(plain, _path(found[3]))
    return (
        message if number is None else message.replace(f"got `{found[2]}`", f"got `{shown_number(number)}`")
    )


def _with_place(message: str, found: re.Match[str], plain: object) -> str:
    before, _, after = found[3].partition(_ANY_KEY)
    holder = _at(plain, _path(before))
    values = holder.values() if isinstance(holder, Mapping) else ()
    # The first that is of the refused kind there: an earlier one would have been refused in its place.
    for place, value in enumerate(values):
        if _CODEC_NAMES.get(type(_at(value, after))) == found[2]:
            return message.replace(_ANY_KEY, f"[{place}].value", 1)
    return message


def refusal(message: str, operation: Operation, kind: type[Request]) -> InvalidRequest:
    """Return the refusal of a request of this kind from what the codec says of it."""
    found = _refusal(message, operation, kind)
    found.in_wire_names = True  # what was sent is named as it was sent
    if operation.many is not None and (member := _STEP.findall(found.field or "")[:2]):
        batch, index = member[0][0], member[-1][1]
        if batch == operation.many[0] and index:
            found.details["index"] = int(index)
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
        return _of_kind(found[1].split(" | "), found[2], found[3] or "")
    if found := _VALUE.fullmatch(message):
        name = _path(found[2])
        return InvalidRequest(
            f"{name} must be one of {_choices_of(name)}, got {shown_choice(found[1])}", field=name
        )
    return InvalidRequest("the request does not have the form that the operation takes")


def _of_kind(kinds: list[str], got: str, path: str) -> InvalidRequest:
    """Return the refusal of a value, or of a key, that is of none of the kinds."""
    name = _path(path.removeprefix(_KEY_IN))
    if path.startswith(_KEY_IN):
        return InvalidRequest(f"{name} must have texts as keys", field=name)
    wanted = " or ".join(_WORDS.get(one, one) for one in kinds if one != "null")
    return InvalidRequest(
        f"{name or 'the request'} must be {wanted}, got {_WORDS.get(got, got)}", field=name or None
    )


def _find_number(plain: object, path: str) -> float | None:
    """Return the number that stands at a place like `facts[1].eventTime`; None where there is none."""
    found = _at(plain, path)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _at(plain: object, path: str) -> object:
    """Return what stands at a place like `facts[1].eventTime`; the value of this module's own where nothing does."""
    for name, index in _STEP.findall(path):
        if name and isinstance(plain, Mapping):
            plain = plain.get(name, _NOTHING)
        elif index and isinstance(plain, list) and int(index) < len(plain):
            plain = plain[int(index)]
        else:
            return _NOTHING
    return plain


def _choices_of(name: str) -> str:
    """Return what there is in place of an unknown kind of scope or of operation on nodes."""
    union: Any = (
        AnyOperation if name.endswith(f".{ChangeOperation.__struct_config__.tag_field}") else AnyScope
    )
    return ", ".join(str(one.__struct_config__.tag) for one in get_args(union))


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
