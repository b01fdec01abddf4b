"""Streamable HTTP as an ASGI application, to be mounted where callers are known."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from perdure.contract.limits import BODY_BYTES_MAX
from perdure.contract.wire import error_object
from perdure.dispatch import Caller
from perdure.errors import PerdureError
from perdure.mcp.sdk import Run, in_thread, make_server
from perdure.mcp.service import Service, Settings

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
_CALLER = "perdure.caller"
_JSON = (b"content-type", b"application/json")


def asgi_app(
    caller_of: Callable[[AsgiScope], Caller], settings: Settings | None = None, *, run: Run = in_thread
) -> AsgiApp:
    """Return the application. Any path is its own, so mount it where it is to be.

    Each request stands alone: there are no sessions, so any worker may answer any request, nothing is held for
    clients that are gone, and nobody can take over what another began. It needs no lifespan events.

    Args:
        caller_of: returns who asks, from the scope of a request whose key, Host and Origin were checked. Called in
            the event loop. A PerdureError of it is the reply, with its HTTP status.
        settings: which tools there are; the default ones when absent. A caller's role leaves out more.
        run: runs calls of the engine; in threads when absent.
    """
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - starlette

    # It tells at each request that it starts and ends.
    logging.getLogger(StreamableHTTPSessionManager.__module__).setLevel(logging.WARNING)
    server = make_server(Service(settings), lambda request: request.scope[_CALLER], run)
    options: dict[str, Any] = {"json_response": True, "stateless": True}
    if "max_request_body_size" in inspect.signature(StreamableHTTPSessionManager).parameters:
        options["max_request_body_size"] = BODY_BYTES_MAX  # version 1 leaves that to whoever mounts it

    async def app(scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            scope[_CALLER] = caller_of(scope)
        except PerdureError as error:
            await _reply(send, error.status, msgspec.json.encode(error_object(error)), _JSON)
            return
        if scope["method"] != "POST":
            # Without sessions there is no stream to listen to and nothing to end.
            await _reply(send, 405, b"", (b"allow", b"POST"))
            return
        # A manager runs once, within one task: each request has its own, and thereby an end.
        manager = StreamableHTTPSessionManager(server, **options)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return app


async def _reply(send: Send, status: int, body: bytes, header: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode("ascii"))
    await send({"type": "http.response.start", "status": status, "headers": [header, length]})
    await send({"type": "http.response.body", "body": body})
