"""The Model Context Protocol below /mcp: the same keys, spaces and limits as the routes of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.shapes import BYTES_MIN, PARTS_MAX, parts_of
from perdure.contract.wire import JsonObject
from perdure.errors import InvalidRequest
from perdure.mcp.catalogue import TOOLS, Tool
from perdure.mcp.messages import CALLS, is_request
from perdure.server.access import place, read_headers
from perdure.server.asked import Asked
from perdure.server.bodies import Receive, decode_body, read_body
from perdure.server.engine import Engine
from perdure.server.failures import Malformed, WrongMethod
from perdure.server.guard import SECURITY_HEADERS, check_body
from perdure.server.replying import JSON, Send

PREPARED = "perdure.prepared"


def is_installed() -> bool:
    """Whether the packages of the extra `mcp` are there."""
    return find_spec("mcp") is not None


class McpMount:
    """An ASGI application that says who asks, opens his store, and hands the request on."""

    def __init__(self, engine: Engine, asked_of: Callable[[Any], Asked]) -> None:
        """Take the engine, and what finds the request that a scope is of."""
        from perdure.mcp.http import asgi_app  # noqa: PLC0415 - of another extra

        self._engine, self._asked_of = engine, asked_of
        self._inner = asgi_app(lambda scope: scope[PREPARED], run=self._run)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request. Raises PerdureError for what is refused before anything was sent."""
        asked = self._asked_of(scope)
        asked.op = "mcp"
        access = self._engine.authenticator.access(
            [v for name, v in scope["headers"] if name == b"authorization"]
        )
        asked.key_id = access.key_id
        self._engine.rates.take(access.key_id or "", asyncio.get_running_loop().time())
        if scope["method"] != "POST":
            raise WrongMethod("POST")
        default = self._engine.settings.default_principal
        allowed = place(access, read_headers(scope["headers"]), default_principal=default)
        asked.tenant = allowed.tenant
        limits = self._engine.settings.limits
        check_body(asked.headers, limits.body_bytes_max, JSON)
        body = await read_body(receive, limits.body_bytes_max, limits.body_timeout_s)
        operation = _operation_like(await _decoded(body))
        with ExitStack() as inside:
            scope[PREPARED] = await self._engine.run(
                operation, lambda: inside.enter_context(self._engine.caller(allowed, operation))
            )
            await self._inner(scope, _again(body, receive), _guarded(send, asked))

    async def _run(self, work: Callable[[], JsonObject]) -> JsonObject:
        return await self._engine.run(OPERATIONS["remember"], work)


async def _decoded(body: bytes) -> dict[str, Any]:
    """Return the object of a body; a long one is bounded first, and decoded beside the event loop.

    Raises:
        InvalidRequest: it holds more than PARTS_MAX parts. As `decode_body`.
    """
    if len(body) <= BYTES_MIN:
        return decode_body(body)
    if parts_of(body) > PARTS_MAX:
        raise InvalidRequest(
            f"the message has more than {PARTS_MAX} parts; send its content in several messages", field="body"
        )
    return await asyncio.to_thread(decode_body, body)


def _operation_like(message: dict[str, Any]) -> Operation:
    """Return an operation that needs as much of a store as the message does: what only reads never makes one.

    Raises:
        Malformed: this is no message of JSON-RPC. The SDK would say so too, and repeat what is in it.
    """
    if not is_request(message):
        raise Malformed("the body must be a request or a notification of JSON-RPC 2.0", field="body")
    params = message.get("params")
    tool = None if message["method"] != CALLS or params is None else _tool_of(params.get("name"))
    return OPERATIONS["get" if tool is None else tool.operation]


def _tool_of(name: object) -> Tool | None:
    return next((tool for tool in TOOLS if tool.name == name), None)


def _guarded(send: Send, asked: Asked) -> Send:
    """Give replies of the SDK the headers that every reply has."""

    async def guarded(message: Any) -> None:
        if message["type"] == "http.response.start":
            asked.status = message["status"]
            own = (b"x-request-id", asked.id.encode("ascii"))
            message = {**message, "headers": [*message["headers"], own, *SECURITY_HEADERS]}
        await send(message)

    return guarded


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, and then what comes after it."""
    told = False

    async def again() -> Any:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
