"""Transports that call an ASGI application in this process, its beginning and its end included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

import httpx

from perdure.errors import Unavailable

T = TypeVar("T")


class AsyncAppTransport(httpx.AsyncBaseTransport):
    """Calls the application on the running event loop. It begins with the first request and ends with `aclose`."""

    def __init__(self, app: Any) -> None:
        self._app, self._inner = app, httpx.ASGITransport(app, raise_app_exceptions=False)
        self._life: _Life | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._life is None:
            self._life = _Life(self._app)
        await self._life.begun()
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        if self._life is not None:
            await self._life.end()
        await self._inner.aclose()


class AppTransport(httpx.BaseTransport):
    """Calls the application on an event loop in a thread of its own, so that whoever calls need not have one."""

    def __init__(self, app: Any) -> None:
        self._inner = AsyncAppTransport(app)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._turn = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        return self._run(
            self._answered(
                httpx.Request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    content=body,
                    extensions=request.extensions,
                )
            )
        )

    def close(self) -> None:
        with self._turn:
            (loop, thread), (self._loop, self._thread) = (self._loop, self._thread), (None, None)
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(self._inner.aclose(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _answered(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        body = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=body)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._turn:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="perdure-app", daemon=True
                )
                self._thread.start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()


class _Life:
    """The beginning and the end of an application, by ASGI's protocol for that ("lifespan")."""

    def __init__(self, app: Any) -> None:
        self._to_app: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._startup, self._shutdown = loop.create_future(), loop.create_future()
        self._to_app.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.create_task(self._run(app))

    async def begun(self) -> None:
        """Wait until the application has begun.

        Raises:
            Unavailable: it failed to.
        """
        if await asyncio.shield(self._startup) == "lifespan.startup.failed":
            raise Unavailable("the application did not start; what it logs says why")

    async def end(self) -> None:
        """Let the application end, and wait for it. Idempotent."""
        if not self._task.done():
            self._to_app.put_nowait({"type": "lifespan.shutdown"})
            await asyncio.shield(self._shutdown)
            await self._task

    async def _run(self, app: Any) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        with suppress(Exception):  # by the protocol, an application without a beginning raises here
            await app(scope, self._to_app.get, self._heard)
        for waited in (self._startup, self._shutdown):
            if not waited.done():
                waited.set_result("")

    async def _heard(self, message: MutableMapping[str, Any]) -> None:
        told = message["type"]
        waited = self._startup if told.startswith("lifespan.startup") else self._shutdown
        if not waited.done():
            waited.set_result(told)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
