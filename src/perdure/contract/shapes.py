"""A look at a long body before it is decoded: what is no request, or holds too much, is refused at little cost.

A decoded object takes up to a hundred times the room of its text, and all threads wait while it is made. Here texts
are walked in C and next to nothing is made of them. What passes may still be refused by `decode_request` and after.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from operator import or_
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from perdure.base.canonical import DEPTH_MAX, decode_json
from perdure.contract import limits as bound
from perdure.contract.decoding import refusal, too_many, with_number
from perdure.contract.limits import SurfaceLimits
from perdure.contract.operations import Operation
from perdure.contract.requests import FactInput, ForgetScope, Request
from perdure.errors import InvalidJson, InvalidRequest

BYTES_MIN = 64 << 10  # of a body that is worth the look
RAW_BYTES_MAX = 1 << 20  # of an object as it was sent: 64 KiB, every character escaped, and much white space
PARTS_MAX = 1 << 19  # in all free objects of a request: some 500 in each of 1,000 facts
Decode = Callable[[Any], Any]
_TOO_LONG = "Expected `array` of at most length "
_AT = " - at `$"
_WIDER = "int | float"  # as the codec writes a whole number that is looked at as any
_BYTE = re.compile(r"\(byte (\d+)\)")


class _Field(NamedTuple):
    """A field that is looked at apart: its names in Python and on the wire, and what its value may be."""

    name: str
    wire: str
    annotation: Any


def check_shape(operation: Operation, body: bytes, limits: SurfaceLimits) -> None:
    """Refuse a body that is no request of this operation, or holds more than this surface takes.

    Fields that are missing are not looked for: what else tells of the request may have them.

    Args:
        operation: the one that is asked for.
        body: JSON in UTF-8.
        limits: of the surface.

    Raises:
        InvalidRequest: in the words of `decode_request` where the form is wrong; a list has too many members; or
            free objects (metadata, filters) hold more than could be stored.
        InvalidJson: it is no JSON.
    """
    kind = operation.request
    try:
        if operation.many is not None and _tells(operation.many[0])(body):
            kind = operation.many[1]
        _Look(operation, kind, limits).at_struct(body, (kind,), "")
    except RecursionError:
        raise InvalidRequest(f"body is nested deeper than {DEPTH_MAX} levels", field="body") from None
    except msgspec.DecodeError as error:
        found = _BYTE.search(str(error))
        where = f" at byte {int(found[1]) + 1}" if found else ": it ends early or has a lone surrogate"
        raise InvalidJson(f"body is not valid JSON{where}", field="body") from error


def parts_of(data: bytes) -> int:
    """Return at least as many as a text of JSON has members, objects and lists, less one.

    Each of the signs that are counted takes a byte of the canonical form too, wherever it stands.
    """
    return data.count(b",") + data.count(b"[") + data.count(b"{")


class _Look:
    """One look at one body. A place is like `.facts[3].tags`, "" for the body itself."""

    def __init__(self, operation: Operation, kind: type[Request], limits: SurfaceLimits) -> None:
        self._operation, self._kind, self._limits = operation, kind, limits
        self._parts = 0

    def at_struct(self, raw: Any, kinds: tuple[Any, ...], place: str) -> None:
        """Look at an object of one of these structs."""
        decode, fields_of = _outline(kinds)
        found = self._decoded(decode, raw, place)
        for field in fields_of[type(found)]:
            value = getattr(found, field.name)
            if value is not None and (text := bytes(value)) != b"null":
                self._at_field(text, field, f"{place}.{field.wire}")

    def _at_field(self, raw: bytes, field: _Field, place: str) -> None:
        kinds = tuple(one for one in _choices(field.annotation) if one is not type(None))
        if all(_is_struct(one, Request) for one in kinds):
            self.at_struct(raw, kinds, place)
        elif get_origin(kinds[0]) is dict:
            self._at_free(raw, place)
        elif self._limits.members_max(field.wire) is not None:
            self._at_list(raw, field.wire, get_args(kinds[0])[0], place)
        else:
            _bound(raw, RAW_BYTES_MAX, place)
            self._decoded(_decoder(field.annotation), raw, place)

    def _at_list(self, raw: bytes, name: str, item: Any, place: str) -> None:
        limit = self._limits.members_max(name)
        assert limit is not None  # or it is looked at as a whole
        is_apart = _is_struct(item, Request) or len(_choices(item)) > 1
        try:
            found = self._decoded(_list_decoder(msgspec.Raw if is_apart else item, limit), raw, place)
        except _TooLong:
            raise too_many(place[1:], name, self._limits) from None
        for number, one in enumerate(msgspec.structs.astuple(found) if is_apart else ()):
            if one is None:
                break
            text, there = bytes(one), f"{place}[{number}]"
            if all(_is_struct(kind, Request) for kind in _choices(item)):
                self.at_struct(text, _choices(item), there)
            elif text.startswith(b"["):  # a vector of a document's unit
                self._at_list(text, name, float, there)

    def _at_free(self, raw: bytes, place: str) -> None:
        if not raw.startswith(b"{"):
            self._decoded(_decoder(dict[str, msgspec.Raw] | None), raw, place)
        parts = parts_of(raw)
        _bound(raw, bound.METADATA_BYTES_MAX if parts > bound.METADATA_BYTES_MAX else RAW_BYTES_MAX, place)
        self._parts += parts
        if self._parts > PARTS_MAX:
            raise InvalidRequest(
                f"{place[1:]} and what came before it have more than {PARTS_MAX} parts; send several requests",
                field=place[1:],
            )

    def _decoded(self, decode: Decode, raw: bytes, place: str) -> Any:
        try:
            return decode(raw)
        except msgspec.ValidationError as error:
            message = str(error).replace(_WIDER, "int")
            if message.startswith(_TOO_LONG) and _AT not in message:
                raise _TooLong from None
            if not place and message.startswith("Expected `object`") and _AT not in message:
                raise InvalidRequest("the body must be an object", field="body") from None
            if len(raw) <= BYTES_MIN:  # else it takes too much to look for the number
                message = with_number(message, decode_json(raw))
            raise refusal(_placed(message, place), self._operation, self._kind) from None


class _TooLong(Exception):
    """A list has more members than it may."""


def _bound(raw: bytes, bytes_max: int, place: str) -> None:
    if len(raw) > bytes_max:
        raise InvalidRequest(
            f"{place[1:]} takes {len(raw)} bytes as JSON; at most {min(bytes_max, bound.METADATA_BYTES_MAX)} are "
            "allowed",
            field=place[1:],
        )


def _placed(message: str, place: str) -> str:
    """Return the codec's message about a value as one about the body that it stands in."""
    if not place:
        return message
    said, sign, path = message.rpartition(_AT)
    return f"{said}{_AT}{place}{path}" if sign else f"{message}{_AT}{place}`"


@cache
def _outline(kinds: tuple[Any, ...]) -> tuple[Decode, dict[type, tuple[_Field, ...]]]:
    """Return what decodes these structs without their lists and objects, and by its results which those are."""
    fields_of: dict[type, tuple[_Field, ...]] = {}
    for kind in kinds:
        hints = get_type_hints(kind)
        names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        apart = tuple(
            _Field(name, wire, hints[name]) for name, wire in names.items() if _holds_many(hints[name])
        )
        looked_at = {one.name for one in apart}
        fields_of[_loose(kind, frozenset(looked_at))] = apart
    return msgspec.json.Decoder(Union[tuple(fields_of)]).decode, fields_of  # noqa: UP007 - of a tuple


@cache
def _loose(kind: type[Request], raw: frozenset[str] = frozenset()) -> type:
    """Return the struct with no field required, any number for a whole one, and some fields as they were sent."""
    hints, told = get_type_hints(kind), kind.__struct_config__
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    tag: dict[str, Any] = {} if told.tag is None else {"tag": told.tag, "tag_field": told.tag_field}
    return msgspec.defstruct(
        kind.__name__,
        [(name, msgspec.Raw if name in raw else _wider(hints[name]), None) for name in names],
        rename=names,
        forbid_unknown_fields=True,
        kw_only=True,
        **tag,
    )


@cache
def _decoder(annotation: Any) -> Decode:
    return msgspec.json.Decoder(_wider(annotation)).decode


def _wider(annotation: Any) -> Any:
    """Return the annotation with any number for a whole one: `decode_request` tells 5.0 from 5.5."""
    if annotation is int:
        return int | float
    if _is_union(annotation):
        return Union[tuple(map(_wider, get_args(annotation)))]  # noqa: UP007 - of a tuple
    if get_origin(annotation) is list:
        return list[_wider(get_args(annotation)[0])]  # type: ignore[misc]
    return _loose(annotation) if _is_struct(annotation, Request) else annotation


@cache
def _list_decoder(item: Any, length_max: int) -> Decode:
    """Return what decodes a list of at most this many, and gives up at the first member beyond.

    The codec's own bound of a list is asked once all of the list is made; that of a struct as a list is not.
    """
    fields = [(f"at{number}", _wider(item), None) for number in range(length_max)]
    return msgspec.json.Decoder(
        msgspec.defstruct("Listed", fields, array_like=True, forbid_unknown_fields=True)
    ).decode


@cache
def _tells(name: str) -> Callable[[bytes], bool]:
    """Return what says whether an object has a field."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Telling", [(name, msgspec.Raw, None)])).decode

    def tells(body: bytes) -> bool:
        try:
            return getattr(decode(body), name) is not None
        except msgspec.ValidationError:  # no object: the look itself says so
            return False

    return tells


def _holds_many(annotation: Any) -> bool:
    """Whether a value may be, or hold, a list or a free object."""
    return any(
        get_origin(one) in (list, dict)
        or (
            _is_struct(one, Request)
            and (one is FactInput or any(map(_holds_many, get_type_hints(one).values())))
        )
        or _is_struct(one, ForgetScope)
        for one in _choices(annotation)
    )


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, without what is noted of them; of anything else, itself."""
    return get_args(annotation) if _is_union(annotation) else (annotation,)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, type(or_(int, str)))


def _is_struct(kind: Any, of: type[Request]) -> bool:
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, of)
