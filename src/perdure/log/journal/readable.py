"""Records as people read them: a JSON object with the names of the fields, where it gives the same bytes back.

An object begins with the record's type and the version of its format; its other fields come in the record's own
order, as many as were written. Nested structures are objects too, lists are lists. Bytes are an object of one
field: `utf8` where they are printable text, else `base64`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import get_args

import msgspec

from perdure.errors import Corrupt, Unavailable
from perdure.log.records import Record, decode

_TAGS = {kind.__name__: kind.__struct_config__.tag for kind in get_args(Record)}
_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def find_readable(data: bytes) -> bytes | None:
    """Return a record as one line of JSON, or None where `record_bytes` would not give these very bytes back."""
    try:
        record = decode(data)
        _, *values = _unpack(memoryview(data)[1:])
    except (Corrupt, Unavailable, RecursionError):
        return None
    names = record.__struct_fields__
    if len(values) > len(names):
        return None
    shown: dict[str, object] = {"type": type(record).__name__, "format": data[0]}
    for name, value in zip(names, values, strict=False):
        shown[name] = _shown(getattr(record, name), value)
    text = _to_json(shown)
    return text if record_bytes(_from_json(text)) == data else None


def record_bytes(shown: dict[str, object]) -> bytes:
    """Return the bytes of the record that an object shows.

    Raises:
        Unavailable: its type is not one that this build knows.
    """
    kind, form, *values = shown.values()
    tag = _TAGS.get(str(kind))
    if tag is None:
        raise Unavailable(
            "the journal has a record of a type that this build does not know: open it with a newer build; "
            "nothing was changed"
        )
    return bytes([int(str(form))]) + _pack([tag, *map(_plain, values)])


def _shown(typed: object, plain: object) -> object:
    """Return a value for JSON: `typed` knows the names, `plain` how many of them were written."""
    if isinstance(plain, bytes):
        return _shown_bytes(plain)
    if isinstance(plain, list) and isinstance(typed, msgspec.Struct):
        names = typed.__struct_fields__
        pairs = zip(names, plain, strict=False)
        return {name: _shown(getattr(typed, name), value) for name, value in pairs}
    if isinstance(plain, list) and isinstance(typed, tuple):
        return [_shown(item, value) for item, value in zip(typed, plain, strict=True)]
    return plain


def _shown_bytes(data: bytes) -> dict[str, str]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return {"utf8": text}
    return {"base64": b64encode(data).decode()}


def _plain(shown: object) -> object:
    match shown:
        case {"utf8": str(text), **others} if not others:
            return text.encode()
        case {"base64": str(text), **others} if not others:
            return b64decode(text)
        case dict():
            return [_plain(value) for value in shown.values()]
        case list():
            return [_plain(value) for value in shown]
        case _:
            return shown
