"""From the bytes of an export to its lines, one at a time, each with its number and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from perdure.base.canonical import strict_json
from perdure.base.text import shown_number
from perdure.contract.naming import on_the_wire
from perdure.errors import InvalidRequest
from perdure.transfer.lines import (
    FORMAT,
    TYPES,
    VERSION,
    Header,
    Line,
    decode_header,
    decode_line,
    encode_line,
)

LINE_BYTES_MAX = 32 * 1024 * 1024  # a document of the largest size takes a fifth of it, escaped throughout
HEAD_BYTES = 64 * 1024  # more than any header without a list of spaces
SHOWN_MAX = 32  # characters of a name of a field that a reason shows
BOM = b"\xef\xbb\xbf"
_BEGINS = b'{"format":"' + FORMAT.encode() + b'"'


class Refused(Exception):
    """What is wrong with one line; `reason` names fields as they are in the file.

    `kind` is the type of a line which is a whole object all the same. Where it is "" the line may stand for any number
    of lines that damage made one.
    """

    def __init__(self, reason: str, *, kind: str = "") -> None:
        super().__init__(reason)
        self.reason, self.kind = named_as_in_file(reason), kind


def named_as_in_file(reason: str) -> str:
    """Return what is wrong with fields named as in the file; a kind of relation is spelled like a field and is none."""
    return on_the_wire(reason, "superseded_by")


class Read(NamedTuple):
    """A line of the file, counted from 1, or what is wrong with it. `size` is its length in bytes."""

    number: int
    size: int
    line: Line | Refused


def is_export(head: bytes) -> bool:
    """Whether a file that begins with these HEAD_BYTES is an export, of whatever version."""
    told = head.removeprefix(BOM).lstrip()
    if told.translate(None, b" \t\r\n").startswith(_BEGINS):
        return True
    line, _, _ = told.partition(b"\n")
    return _object(line).get("format") == FORMAT


def read_header(stream: BinaryIO) -> Header:
    """Return the header, line 1; the stream then stands at line 2.

    Raises:
        Refused: it is none, or that of a newer format: nothing of the file can be read.
    """
    data = stream.readline(LINE_BYTES_MAX + 1).removeprefix(BOM)
    try:
        told = strict_json(_text(data), field="the header")
    except (Refused, InvalidRequest) as error:
        reason = error.reason if isinstance(error, Refused) else error.message
        raise Refused(f"not the header of an export: {reason}") from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise Refused(f'not the header of an export, which has the format "{FORMAT}"')
    found = told.get("version")
    if type(found) is not int or found < 1:
        raise Refused("the header's version must be an integer from 1 on")
    if found > VERSION:
        raise Refused(
            f"the file has format version {shown_number(found)}, this build reads up to {VERSION}: import it "
            "with a newer build; nothing was read"
        )
    try:
        return decode_header(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Refused(_reason(error)) from error


def read_lines(stream: BinaryIO) -> Iterator[Read]:
    """Yield the lines after the header; blank ones give nothing.

    Carriage returns before a line feed are accepted. Of a line that is too long no more than the limit is ever
    in memory.
    """
    number = 1
    while data := stream.readline(LINE_BYTES_MAX + 1):
        number += 1
        size = len(data)
        line: Line | Refused
        if size > LINE_BYTES_MAX:
            size += _skip_line(stream, data)
            line = Refused(f"longer than {LINE_BYTES_MAX} bytes, which no line of an export is")
        elif not data.strip():
            continue
        else:
            try:
                line = _line_of(data)
            except Refused as error:
                line = error
        yield Read(number, size, line)


def _line_of(data: bytes) -> Line:
    try:
        found = decode_line(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Refused(_why_not(data, error), kind=_kind_of(data)) from error
    if encode_line(found) != data:
        # Written by somebody else: only what we write ourselves is known to have no key twice.
        try:
            _told(data)
        except Refused as refused:
            raise Refused(refused.reason, kind=_kind_of(data)) from refused
    return found


def _kind_of(data: bytes) -> str:
    """Return the type of a line that is a whole object; "" where it is none or tells none."""
    found = _object(data).get("type")
    return found if isinstance(found, str) else ""


def _object(data: bytes) -> dict[str, Any]:
    """Return the object that a line is, whatever else is wrong with it; an empty one where it is none."""
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _told(data: bytes) -> Any:
    """Return what a line holds as plain values."""
    text = _text(data)
    try:
        return strict_json(text, field="the line")
    except InvalidRequest as error:
        hint = (
            ""
            if data.endswith(b"\n")
            else "; it is the last one and has no line end, so the file may be cut off"
        )
        raise Refused(error.message + hint) from error


def _why_not(data: bytes, error: Exception) -> str:
    """Return why the typed decoder refused a line, in words that hold nothing of it but names of fields."""
    try:
        told = _told(data)
    except Refused as refused:
        return refused.reason
    if not isinstance(told, dict):
        return "a line must be an object"
    kind = told.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        return f"type must be one of {', '.join(sorted(TYPES))}"
    return _reason(error)


def _reason(error: Exception) -> str:
    # The decoder's messages name fields and types; a value that is not allowed is the one thing they quote.
    message = str(error)
    if message.startswith("Invalid"):
        _, _, place = message.rpartition(" - at ")
        return f"{place or 'a field'} has a value that is not allowed"
    _, quote, name = message.partition("unknown field `")
    if quote:
        return f"unknown field {name.partition('`')[0][:SHOWN_MAX]!r}"
    return message[:1].lower() + message[1:]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"not UTF-8 at byte {error.start + 1} of the line") from error


def _skip_line(stream: BinaryIO, line: bytes) -> int:
    size = 0
    while line and not line.endswith(b"\n"):
        line = stream.readline(1 << 20)
        size += len(line)
    return size
