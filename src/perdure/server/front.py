"""The outermost part of the server: who may speak to it at all, and what is told, counted and logged of each request."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from perdure.errors import PerdureError
from perdure.server.api import ASKED, PREFIX, Api
from perdure.server.asked import CAME_AT, Asked, request_id
from perdure.server.bodies import Gone, Receive
from perdure.server.engine import Engine
from perdure.server.failures import WrongPlace, internal
from perdure.server.guard import check_place, single_headers
from perdure.server.metrics import Metrics
from perdure.server.replying import Send, reply_error

log = logging.getLogger("perdure.server")

# They tell nothing of anybody, and what asks for them often knows the server by its address alone.
OF_ANY_HOST = frozenset({"/health/live", "/health/ready"})
CLOSED = "closed"  # the code of a request whose connection was closed before its reply


class Front:
    """An ASGI application around others, which raise PerdureError for what they refuse.

    What is below /api/v1/ goes to `api`, which finds its routes by itself, and the rest to `inner`.
    """

    def __init__(self, inner: Any, api: Api, engine: Engine, metrics: Metrics) -> None:
        self._inner, self._api, self.engine, self.metrics = inner, api, engine, metrics
        self._hosts, self._schemes = engine.settings.hosts, engine.settings.schemes

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def close(self) -> None:
        """Close what is behind the server; for an application that no server runs. Idempotent."""
        self.engine.close()

    async def _answer(self, scope: Any, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        asked = scope[ASKED] = Asked(_told_id(scope), loop.time(), scope.get(CAME_AT))
        try:
            asked.headers = single_headers(scope["headers"])
            path = scope["path"]
            check_place(asked.headers, None if path in OF_ANY_HOST else self._hosts, self._schemes)
            await (self._api if path.startswith(PREFIX) else self._inner)(scope, receive, send)
        except PerdureError as error:
            if isinstance(error, WrongPlace):
                asked.refused = error.place
            if asked.status:  # the reply has begun: only breaking it off tells that it is not whole
                raise
            await self._refuse(send, asked, error)
        except Gone:
            asked.code = CLOSED
        except asyncio.CancelledError:
            asked.code = CLOSED
            raise
        except Exception as error:  # the edge of the process: logged, and answered with a fixed text
            asked.code = "internal"
            log.error(
                "a request failed", exc_info=error, extra={"fields": {"request": asked.id, "op": asked.op}}
            )
            if asked.status:
                raise
            await reply_error(send, asked, internal(asked.id))
        finally:
            self._tell(asked, loop.time() - asked.began)

    async def _refuse(self, send: Send, asked: Asked, error: PerdureError) -> None:
        if error.status >= 500 and error.status != 503:
            log.error(
                "a request failed", exc_info=error, extra={"fields": {"request": asked.id, "op": asked.op}}
            )
        try:
            await reply_error(send, asked, error)
        finally:
            # Its frames hold the body, and are held in turn by what carried the error here: without this the body
            # would stay until the next collection of garbage.
            error.__traceback__ = error.__context__ = error.__cause__ = None

    def _tell(self, asked: Asked, seconds: float) -> None:
        self.metrics.count(asked.op, asked.code, seconds)
        if log.isEnabledFor(logging.INFO):
            fields = {
                "request": asked.id,
                "tenant": asked.tenant,
                "key": asked.key_id,
                "op": asked.op,
                "status": asked.status,
                "code": asked.code,
                "ms": round(seconds * 1000, 3),
            }
            if asked.refused:
                fields["refused"] = asked.refused
            log.info("request", extra={"fields": fields})

    async def _live(self, scope: Any, receive: Receive, send: Send) -> None:
        async def closing(message: Any) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                await asyncio.to_thread(self.engine.close)
            await send(message)

        await self._inner(scope, receive, closing)


def _told_id(scope: Any) -> str:
    return request_id(next((value for name, value in scope["headers"] if name == b"x-request-id"), None))
