"""The application: routes of the contract, health, metrics and the pages, with one guard before all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

if not all(map(find_spec, ("litestar", "prometheus_client", "opentelemetry"))):
    raise ImportError("perdure.server.app needs the server's packages: pip install 'perdure[server]'")

from litestar import Litestar, asgi

from perdure.base.clock import Clock
from perdure.contract.operations import OPERATIONS
from perdure.contract.schema import openapi
from perdure.errors import PerdureError
from perdure.server.access import check_measures
from perdure.server.api import ASKED, Api
from perdure.server.asked import Asked
from perdure.server.engine import Engine, Ready
from perdure.server.failures import NoRoute, WrongMethod
from perdure.server.front import Front
from perdure.server.mcp_mount import McpMount, is_installed
from perdure.server.metrics import CONTENT_TYPE, Metrics
from perdure.server.pages import POLICY, docs_page
from perdure.server.replying import Send, encode, reply
from perdure.server.settings import Settings, checked_settings
from perdure.server.tenants import OpenStore
from perdure.server.tracing import Tracing

Answer = Callable[[Asked, Any], Any]
HTML = b"text/html; charset=utf-8"


def create_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    open_store: OpenStore | None = None,
    metrics: Metrics | None = None,
    tracer_provider: Any = None,
) -> Front:
    """Return the server as an ASGI application. Close it, unless a server ends its lifespan.

    Args:
        settings: of the server.
        clock: tells ingest times and the present; the system's when absent.
        open_store: opens (or creates) the store of a place, in the settings' stead.
        metrics: where it counts; a place of its own when absent.
        tracer_provider: of OpenTelemetry, in place of the process's own; where settings.tracing is on.

    Raises:
        InvalidRequest: a setting is wrong, or the server would be open to others without any key.
        Corrupt, Busy, StorageFull, Unavailable: the keys cannot be read, or the token not made.
    """
    engine = Engine(checked_settings(settings), clock=clock, open_store=open_store)
    tracing = Tracing(tracer_provider) if settings.tracing else None
    counted = metrics or Metrics()
    pages = Pages(engine, counted)
    handlers = pages.handlers()
    if settings.mcp and is_installed():
        handlers.append(_mounted("/mcp", McpMount(engine, lambda scope: scope[ASKED])))
    inner = Litestar(
        handlers, openapi_config=None, logging_config=None, exception_handlers={Exception: _raise}
    )
    return Front(inner, Api(engine, tracing), engine, counted)


class Pages:
    """What is not of the contract: health, metrics, and the description of the API."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine, self._metrics = engine, metrics
        self._openapi, self._docs = _described()

    def handlers(self) -> list[Any]:
        return [
            _page("/health/live", "health_live", self._live),
            _page("/health/ready", "health_ready", self._ready),
            _page("/metrics", "metrics", self._told),
            _page("/openapi.json", "openapi", self._describe),
            _page("/docs", "docs", self._show),
        ]

    async def _live(self, asked: Asked, send: Send) -> None:
        await reply(send, asked, b'{"status":"ok"}')

    async def _ready(self, asked: Asked, send: Send) -> None:
        try:
            found = await self._engine.run(OPERATIONS["get"], self._engine.health)
        except PerdureError as error:  # the line is full, or the server ends
            found = Ready(error.code)
        told: dict[str, Any] = {"status": found.status}
        if found.failing:
            told["failingStores"] = found.failing
        await reply(send, asked, encode(told), status=200 if found.status in ("ok", "degraded") else 503)

    async def _told(self, asked: Asked, send: Send) -> None:
        access = self._engine.authenticator.access(_authorization(asked))
        check_measures(access, has_tenants=self._engine.has_tenants())
        sizes = await asyncio.to_thread(self._engine.sizes)
        self._metrics.set_stores(**sizes)
        self._metrics.set_counters(await asyncio.to_thread(self._engine.counters))
        for line in (self._engine.reads, self._engine.writes, self._engine.long):
            self._metrics.set_pending(line.name, line.pending)
        await reply(send, asked, self._metrics.page(), media=CONTENT_TYPE)

    async def _describe(self, asked: Asked, send: Send) -> None:
        self._check(asked)
        await reply(send, asked, self._openapi)

    async def _show(self, asked: Asked, send: Send) -> None:
        self._check(asked)
        await reply(send, asked, self._docs, media=HTML, headers=[(b"content-security-policy", POLICY)])

    def _check(self, asked: Asked) -> None:
        """Ask for a key where there are any. Without, browsers of this machine may look, which send no token."""
        engine = self._engine
        if engine.authenticator.has_keys() or not engine.settings.is_loopback:
            engine.authenticator.access(_authorization(asked))


def _authorization(asked: Asked) -> list[bytes]:
    told = asked.headers.get(b"authorization")
    return [] if told is None else [told]


@cache
def _described() -> tuple[bytes, bytes]:
    described = openapi()
    return encode(described), docs_page(described)


def _page(path: str, name: str, answer: Answer) -> Any:
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        del receive
        asked: Asked = scope[ASKED]
        asked.op = name
        if scope["method"] not in ("GET", "HEAD"):
            raise WrongMethod("GET", "HEAD")
        await answer(asked, send)

    return asgi(path, copy_scope=False)(handler)


def _mounted(path: str, app: Any) -> Any:
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return asgi(path, is_mount=True, copy_scope=False)(handler)


def _raise(request: Any, error: Exception) -> Any:
    """Hand on what Litestar itself refuses, so that it gets the one shape."""
    del request
    if getattr(error, "status_code", None) == 404:
        raise NoRoute from None
    raise error
