"""Messages of JSON-RPC as clients send them, judged strictly: what the SDK would take laxly, or drop without an answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from perdure.base.canonical import strict_json_bytes
from perdure.base.text import shown_kind
from perdure.contract.limits import BODY_BYTES_MAX
from perdure.errors import InvalidJson, InvalidRequest, PerdureError, TooLarge
from perdure.mcp.service import failure

JsonObject = dict[str, Any]
Id = int | str

CALLS = "tools/call"
LINE_BYTES_MAX = BODY_BYTES_MAX
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# A string that has no end reaches to the end of the line, so that every byte is looked at once.
_MARKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True)
class Refused:
    """A line that goes no further, and the message to answer it with."""

    reply: JsonObject


def judged(line: bytes) -> JsonObject | Refused:
    """Return the message that a line holds, or the answer to what is none that is taken.

    The answer has the id of the line wherever that can be read, for somebody waits for it: also where what is wrong
    lies in the parameters alone. Of a tool's arguments it is then a result of the tool, as of any wrong argument.

    Args:
        line: at most LINE_BYTES_MAX bytes; of a longer one, at least one byte more than that.
    """
    if len(line) > LINE_BYTES_MAX:
        error = TooLarge(f"the message is longer than {LINE_BYTES_MAX} bytes; send it in parts")
        head = _decoded(_outline(line[:LINE_BYTES_MAX], 1) + b"}")
        return refused(_id_of(head), INVALID_REQUEST, error)
    try:
        message = strict_json_bytes(line, field="message")
    except (InvalidJson, InvalidRequest) as found:
        return _undecoded(line, found)
    if is_request(message) or _is_reply(message):
        taken: JsonObject = message
        return _fault_of_arguments(taken) or taken
    if isinstance(message, list):
        return refused(
            None, INVALID_REQUEST, InvalidRequest("a line must be one message, not a batch of them")
        )
    id_ = _id_of(message)
    if id_ is not None and is_request({**message, "params": None}):
        return refused(id_, INVALID_PARAMS, InvalidRequest("params must be an object", field="params"))
    return refused(
        id_, INVALID_REQUEST, InvalidRequest("a message must be a request or a notification of JSON-RPC 2.0")
    )


def _fault_of_arguments(message: JsonObject) -> Refused | None:
    """Return the answer to a call of a tool whose arguments are no object."""
    if "id" not in message or message.get("method") != CALLS:
        return None
    told = (message.get("params") or {}).get("arguments")
    if told is None or isinstance(told, dict):
        return None
    fault = InvalidRequest(f"arguments must be an object, got {shown_kind(told)}", field="arguments")
    return Refused({"jsonrpc": "2.0", "id": message["id"], "result": failure(fault, {})})


def is_request(message: object) -> bool:
    """Whether this is a request or a notification of JSON-RPC 2.0, as the Model Context Protocol has them."""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and _is_unicode(message["method"])
        and isinstance(message.get("params"), dict | None)
        and ("id" not in message or _is_id(message["id"]))
    )


def refused(id_: Id | None, code: int, error: PerdureError) -> Refused:
    """Return the answer that is an error of the protocol, of one of its codes."""
    told = {"code": code, "message": error.message, "data": {"code": error.code}}
    return Refused({"jsonrpc": "2.0", "id": id_, "error": told})


def encoded(message: JsonObject) -> str:
    """Return a message as a line, with its end."""
    return json.dumps(message, separators=(",", ":")) + "\n"


def _undecoded(line: bytes, error: PerdureError) -> Refused:
    """Return the answer to what could not be decoded, by what can be read around that."""
    malformed = isinstance(error, InvalidJson)
    around = _decoded(_outline(line, 1))
    id_ = _id_of(around) if is_request(around) else None
    if malformed:
        return refused(id_, PARSE_ERROR, error)
    if id_ is None:
        return refused(None, INVALID_REQUEST, error)
    closer = _decoded(_outline(line, 2))
    if is_request(closer) and closer["method"] == CALLS and "arguments" in (closer["params"] or {}):
        _, _, fault = error.message.partition(" ")
        told = InvalidRequest(f"one of the arguments {fault}", field="arguments")
        return Refused({"jsonrpc": "2.0", "id": id_, "result": failure(told, {})})
    return refused(id_, INVALID_PARAMS, error)


def _outline(data: bytes, levels: int) -> bytes:
    """Return JSON with null in place of all objects and arrays that are inside that many others or more.

    What is cut off within such a one ends with its null.
    """
    parts: list[bytes] = []
    depth = kept = 0
    for mark in _MARKS.finditer(data):
        sign = mark[0]
        if sign in (b"{", b"["):
            depth += 1
            if depth == levels + 1:
                parts += data[kept : mark.start()], b"null"
        elif sign in (b"}", b"]"):
            depth -= 1
            if depth == levels:
                kept = mark.end()
    if depth <= levels:
        parts.append(data[kept:])
    return b"".join(parts)


def _decoded(data: bytes) -> Any:
    try:
        return strict_json_bytes(data, field="message")
    except (InvalidJson, InvalidRequest):
        return None


def _id_of(message: object) -> Id | None:
    id_ = message.get("id") if isinstance(message, dict) else None
    return id_ if _is_id(id_) else None


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return _is_unicode(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate, which could not be written to anybody."""
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


def _is_reply(message: object) -> bool:
    """Whether this answers a request; then whoever asked knows it, and to anybody else it is nothing."""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and "method" not in message
        and _is_id(message.get("id"))
        and ("result" in message) != ("error" in message)
    )
