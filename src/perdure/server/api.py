"""The routes of the contract: each request is let in, read, carried out on a thread, and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from perdure.contract.limits import HTTP
from perdure.contract.shapes import BYTES_MIN, check_shape
from perdure.errors import Forbidden, InvalidRequest, NotFound
from perdure.server.access import PLACE_HEADERS, Access, Allowed, check_role, place, read_headers
from perdure.server.asked import Asked
from perdure.server.bodies import Gone, Receive, decode_body, read_body, read_parts
from perdure.server.engine import Engine
from perdure.server.guard import check_body
from perdure.server.quick import BODY_BYTES_MAX
from perdure.server.replying import JSON, Send, encode, reply, start
from perdure.server.routes import Route, route
from perdure.server.streaming import Outflow, pulled
from perdure.server.tracing import Tracing

PREFIX = "/api/v1/"
LINES = b"application/x-ndjson"
ASKED = "perdure.asked"
PLACES_MAX = 1_024
_FINISHED = frozenset({"capabilities", "getDocument", "putDocument"})  # whose replies tell more over HTTP


class Api:
    """An ASGI application for what is below /api/v1/."""

    def __init__(self, engine: Engine, tracing: Tracing | None = None) -> None:
        self._engine, self._tracing = engine, tracing
        self._limits = engine.settings.limits
        self._places: dict[tuple[Any, ...], Allowed] = {}
        self._told_limits = {
            "k": HTTP.k_max,
            "queryBytes": HTTP.query_bytes_max,
            "batch": HTTP.batch_max,
            "bodyBytes": self._limits.body_bytes_max,
        }

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request. Raises PerdureError for what is refused; nothing was sent then."""
        asked: Asked = scope[ASKED]
        access = self._access(asked)
        try:
            await self._answer(scope, asked, access, receive, send)
        except Forbidden:
            await self._engine.note_denied(access)
            raise

    async def _answer(self, scope: Any, asked: Asked, access: Access, receive: Receive, send: Send) -> None:
        allowed, gone = self._admit(scope, asked, access)
        if gone.operation.name == "export":
            await self._export(asked, allowed, gone, receive, send)
        elif gone.operation.name == "import":
            await self._import(asked, allowed, gone, receive, send)
        else:
            body = await self._body(asked, gone, receive)
            headers, data = await self._carry_out(asked, allowed, gone, body)
            await reply(send, asked, data, headers=headers)

    def _access(self, asked: Asked) -> Access:
        """Say who asks, before anything is said of what is asked for."""
        told = asked.headers.get(b"authorization")  # it came once, as `single_headers` saw
        access = self._engine.authenticator.access(() if told is None else (told,))
        asked.key_id = access.key_id
        self._engine.rates.take(access.key_id or "", asyncio.get_running_loop().time())
        return access

    def _admit(self, scope: Any, asked: Asked, access: Access) -> tuple[Allowed, Route]:
        path = scope["raw_path"].partition(b"?")[0][len(PREFIX) :]
        gone = route(scope["method"], path, scope["query_string"], asked.headers)
        asked.op = gone.operation.name
        check_role(access, gone.operation, gone.fields)
        needed = gone.operation.group != "store" or bool(gone.fields.get("here"))
        allowed = self._placed(access, asked.headers, needed)
        asked.tenant = allowed.tenant
        return allowed, gone

    def _placed(self, access: Access, headers: dict[bytes, bytes], needed: bool) -> Allowed:
        """Say where a request goes. The same key and headers lead to the same place, whatever happened meanwhile."""
        told = (access, needed, *map(headers.get, PLACE_HEADERS))
        found = self._places.get(told)
        if found is None:
            default = self._engine.settings.default_principal
            found = place(access, read_headers(headers.items()), default_principal=default, needed=needed)
            if len(self._places) >= PLACES_MAX:
                self._places.clear()
            self._places[told] = found
        return found

    async def _body(self, asked: Asked, gone: Route, receive: Receive) -> bytes:
        if not gone.has_body:
            return b""
        check_body(asked.headers, self._limits.body_bytes_max, JSON)
        return await read_body(receive, self._limits.body_bytes_max, self._limits.body_timeout_s)

    async def _carry_out(
        self, asked: Asked, allowed: Allowed, gone: Route, body: bytes
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        def work() -> tuple[list[tuple[bytes, bytes]], bytes]:
            request = merged(_decoded(gone, body), gone.fields)
            with self._engine.caller(allowed, gone.operation) as caller:
                if gone.operation.name not in _FINISHED:
                    return [], caller.encoded(gone.operation, request)
                return self._finished(gone, caller.call(gone.operation.name, request))

        # A purge takes long; that a text merely spells it does no harm.
        long = gone.purges or b'"purge"' in body
        # A span tells of all of a request, so that its work may not be tried twice.
        at = allowed if self._tracing is None and len(body) <= BODY_BYTES_MAX else None
        traced = self._traced(asked, work)
        return await self._engine.run(gone.operation, traced, long=long, at=at, came_at=asked.came_at)

    def _finished(self, gone: Route, answer: dict[str, Any]) -> tuple[list[tuple[bytes, bytes]], bytes]:
        headers: list[tuple[bytes, bytes]] = []
        name = gone.operation.name
        if name == "capabilities":
            answer = {**answer, "limits": self._told_limits}
        if name == "getDocument" and gone.fields:
            if answer["document"] is None:
                raise NotFound("there is no document of this id", field="id")
            headers.append((b"etag", b'"%d"' % answer["document"]["version"]))
        if name == "putDocument" and gone.fields:
            headers.append((b"etag", b'"%d"' % answer["version"]))
        return headers, encode(answer)

    async def _export(
        self, asked: Asked, allowed: Allowed, gone: Route, receive: Receive, send: Send
    ) -> None:
        body = await self._body(asked, gone, receive)
        flow = Outflow()

        def work() -> None:
            request = _decoded(gone, body)
            with self._engine.caller(allowed, gone.operation) as caller:
                flow.pour(caller.export_lines(request))

        pouring = asyncio.create_task(self._engine.run(gone.operation, self._traced(asked, work)))
        pouring.add_done_callback(lambda done: flow.end(None if done.cancelled() else done.exception()))
        try:
            chunk = await flow.next()  # raises what keeps it from beginning, while that can still be told
            await start(send, asked, 200, LINES)
            while chunk is not None:
                await self._send(send, chunk)
                chunk = await flow.next()
            await send({"type": "http.response.body", "body": b""})
        finally:
            flow.stop()

    async def _send(self, send: Send, chunk: bytes) -> None:
        """Send a part of a reply; who does not read it would hold a thread for as long.

        Raises Gone where it is not read within the time that a body may take.
        """
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError as error:
            raise Gone from error

    async def _import(
        self, asked: Asked, allowed: Allowed, gone: Route, receive: Receive, send: Send
    ) -> None:
        check_body(asked.headers, self._limits.import_bytes_max, LINES)
        request: dict[str, Any] = {name: told for name, told in gone.fields.items() if name != "here"}
        if gone.fields.get("here"):
            request["into"] = {"principal": allowed.namespace.principal, "scope": allowed.namespace.scope}
        loop = asyncio.get_running_loop()
        parts = read_parts(receive, self._limits.import_bytes_max, self._limits.long_timeout_s)

        def work() -> dict[str, Any]:
            with self._engine.caller(allowed, gone.operation) as caller:
                return caller.import_lines(pulled(parts, loop), request)

        answer = await self._engine.run(gone.operation, self._traced(asked, work))
        await reply(send, asked, encode(answer))

    def _traced(self, asked: Asked, work: Callable[[], Any]) -> Callable[[], Any]:
        return work if self._tracing is None else self._tracing.around(asked, work)


def _decoded(gone: Route, body: bytes) -> dict[str, Any]:
    if len(body) > BYTES_MIN:
        check_shape(gone.operation, body, HTTP)
    return decode_body(body)


def merged(told: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return what a body tells, with what the address and the headers do.

    Raises:
        InvalidRequest: both tell the same field.
    """
    if not fields:
        return told
    if twice := told.keys() & fields.keys():
        name = min(twice)
        raise InvalidRequest(
            f"{name} is told by the address or a header; leave it out of the body", field=name
        )
    return {**told, **fields}
