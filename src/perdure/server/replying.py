"""Replies: bytes out, with the headers that every reply has, and errors in the one shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from perdure.contract.wire import error_object
from perdure.errors import PerdureError
from perdure.server.asked import Asked
from perdure.server.guard import SECURITY_HEADERS
from perdure.server.lines import RETRY_AFTER_S

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
JSON = b"application/json"
encode = msgspec.json.Encoder().encode
_COMMON = frozenset(name for name, _ in SECURITY_HEADERS)


async def reply(
    send: Send, asked: Asked, body: bytes, *, status: int = 200, media: bytes = JSON, headers: Headers = ()
) -> None:
    """Send a whole reply. A header that is given takes the place of the one that every reply has."""
    await start(send, asked, status, media, (*headers, (b"content-length", b"%d" % len(body))))
    await send({"type": "http.response.body", "body": body})


async def start(send: Send, asked: Asked, status: int, media: bytes, headers: Headers = ()) -> None:
    """Begin a reply whose body is sent by the caller."""
    asked.status = status
    told = [(b"content-type", media), (b"x-request-id", asked.id.encode("ascii")), *headers]
    if _COMMON.isdisjoint(name for name, _ in told):
        told += SECURITY_HEADERS
    else:
        names = {name for name, _ in told}
        told += [one for one in SECURITY_HEADERS if one[0] not in names]
    await send({"type": "http.response.start", "status": status, "headers": told})


async def reply_error(send: Send, asked: Asked, error: PerdureError) -> None:
    """Send an error in the one shape, with what its status asks for."""
    asked.code = error.code
    headers: list[tuple[bytes, bytes]] = []
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="perdure"'))
    if error.status == 503:
        after = error.details.get("retry_after", RETRY_AFTER_S)
        headers.append((b"retry-after", b"%d" % after))
    if error.status == 405:
        headers.append((b"allow", ", ".join(error.details["allowed"]).encode("ascii")))
    if error.status in (408, 413):  # what is left of the body is not read
        headers.append((b"connection", b"close"))
    await reply(send, asked, encode(error_object(error)), status=error.status, headers=headers)
