"""Bodies of requests: read as they come, no further than the limit, and decoded strictly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from typing import Any

from perdure.base.canonical import strict_json_bytes
from perdure.errors import InvalidRequest
from perdure.server.failures import Slow
from perdure.server.guard import too_large

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """Whoever made the request has closed the connection."""


def decode_body(data: bytes) -> dict[str, Any]:
    """Return the object that a body holds; an empty body is an empty object.

    Raises as `strict_json_bytes`; InvalidRequest also where it is no object.
    """
    if not data:
        return {}
    value = strict_json_bytes(data, field="body")
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be an object", field="body")
    return value


async def read_body(receive: Receive, bytes_max: int, timeout_s: float) -> bytes:
    """Return the whole body.

    Raises as `read_parts`.
    """
    size, more = 0, True
    parts: list[bytes] = []
    message = _find_come(receive)
    try:
        # Most bodies are there as a whole, and a timer for each of them would cost more than to read it.
        async with (
            asyncio.timeout(timeout_s) if message is None or message.get("more_body") else nullcontext()
        ):
            while more:
                part, more = _part(message or await receive())
                message = None
                size += len(part)
                if size > bytes_max:
                    raise too_large(bytes_max)
                parts.append(part)
    except TimeoutError as error:
        raise _slow(timeout_s) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _find_come(receive: Receive) -> Message | None:
    """Return the next message if it has come; None, and nothing is taken, where one would have to wait."""
    waiting = receive().__await__()
    try:
        next(waiting)
    except StopIteration as come:
        message: Message = come.value
        return message
    waiting.close()
    return None


async def read_parts(receive: Receive, bytes_max: int, timeout_s: float) -> AsyncIterator[bytes]:
    """Give the body's parts as they come.

    Args:
        receive: of the request.
        bytes_max: how many are taken.
        timeout_s: how long the whole may take.

    Raises:
        TooLarge: there are more; they are not read.
        Slow: the time is over.
        Gone: the connection was closed before the end.
    """
    deadline = asyncio.get_running_loop().time() + timeout_s
    size, more = 0, True
    while more:
        try:
            async with asyncio.timeout_at(deadline):
                part, more = _part(await receive())
        except TimeoutError as error:
            raise _slow(timeout_s) from error
        size += len(part)
        if size > bytes_max:
            raise too_large(bytes_max)
        if part:
            yield part


def _part(message: MutableMapping[str, Any]) -> tuple[bytes, bool]:
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


def _slow(timeout_s: float) -> Slow:
    return Slow(f"the body did not come within {timeout_s:g} s")
