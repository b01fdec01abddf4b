"""JSON Lines: one object per line with the fields of a new fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from perdure.base.canonical import strict_json
from perdure.contract.naming import camel_case
from perdure.errors import InvalidRequest
from perdure.importers.entries import Bad, Entry, Found, Place
from perdure.model.inputs import NewFact

LINE_BYTES_MAX = 16 * 1024 * 1024  # the body limit of every surface that takes facts
BOM = b"\xef\xbb\xbf"

_FIELDS = {spelling: name for name in NewFact.__struct_fields__ for spelling in (name, camel_case(name))}


def read_lines(stream: BinaryIO, name: str) -> Iterator[Entry]:
    """Yield what each line gives, in order; blank lines give nothing.

    A byte order mark before the first line and carriage returns are accepted. A line that is too
    long is skipped without being kept in memory.
    """
    number = 0
    while line := stream.readline(LINE_BYTES_MAX + 1):
        number += 1
        place = Place(name, number)
        if len(line) > LINE_BYTES_MAX:
            _skip_line(stream, line)
            yield Bad(place, f"longer than {LINE_BYTES_MAX} bytes; split the fact, or store it as a document")
            continue
        if number == 1:
            line = line.removeprefix(BOM)
        if line.strip():
            yield _read_line(line, place)


def fact_of(told: Any) -> NewFact:
    """Return the new fact that a decoded object describes, its fields in camelCase or snake_case.

    Raises:
        InvalidRequest: not an object, an unknown field, a field given in both spellings, or no text.
    """
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"a fact must be an object, got {_json_type(told)}")
    unknown = [key for key in told if key not in _FIELDS]
    if unknown:
        raise InvalidRequest(
            f"unknown field {unknown[0][:32]!r}; a fact has {', '.join(map(camel_case, NewFact.__struct_fields__))}"
        )
    fields: dict[str, Any] = {}
    for key, value in told.items():
        name = _FIELDS[key]
        if name in fields:
            raise InvalidRequest(f"{name} is given in both spellings; keep one", field=name)
        if value is not None:
            fields[name] = value
    if "text" not in fields:
        raise InvalidRequest("text is missing", field="text")
    return NewFact(**fields)


def _read_line(line: bytes, place: Place) -> Entry:
    cut_off = not line.endswith(b"\n")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return Bad(place, f"not UTF-8 at byte {error.start + 1} of the line")
    try:
        told = strict_json(text, field="the line")
    except InvalidRequest as error:
        hint = "; it is the last one and has no line end, so the file may be cut off" if cut_off else ""
        return Bad(place, error.message + hint)
    try:
        return Found(place, fact_of(told))
    except InvalidRequest as error:
        return Bad(place, error.message)


def _skip_line(stream: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(LINE_BYTES_MAX)


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array"}
    return names.get(type(value), type(value).__name__)
