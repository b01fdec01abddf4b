"""A server within the test's process: the real application on real files, asked as by httpx or by plain ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from perdure import ManualClock
from perdure.contract.operations import OPERATIONS, Role
from perdure.server.app import create_app
from perdure.server.keys import Grant, Keyring
from perdure.server.roots import admit
from perdure.server.settings import Settings
from perdure.server.tenants import OpenStore

NOW = 1_772_366_400_000  # 2026-03-01 12:00 UTC
JSON = {"content-type": "application/json"}
Message = dict[str, Any]


def path_of(op: str) -> str:
    return f"/api/v1/{OPERATIONS[op].group}/{op}"


class Site:
    """A server and its keys. Use it as a context manager; one thread asks."""

    def __init__(
        self,
        directory: Path,
        *,
        tenants: Iterable[str] = (),
        open_store: OpenStore | None = None,
        **settings: Any,
    ) -> None:
        """Serve the directory; tenants make it a root of them. Settings are those of the server.

        Stores draw their own secrets, as they do where nobody gives any.
        """
        self.directory, self.clock = directory, ManualClock(NOW)
        self._tenants, self._settings, self._open_store = tuple(tenants), settings, open_store
        self._runner = asyncio.Runner()

    def __enter__(self) -> Site:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        for tenant in self._tenants:
            admit(self.directory, tenant)
        self.keyring = Keyring(self.directory, clock=self.clock)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.app.close()
        self.keyring.close()
        self._runner.close()

    def start(self) -> None:
        """Make the application (anew: as after a restart)."""
        settings = Settings(store=self.directory, **self._settings)
        self.app = create_app(settings, clock=self.clock, open_store=self._open_store)
        # raise_app_exceptions stays on: what escapes the application is a fault.
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://localhost"
        )

    def restart(self) -> None:
        self.app.close()
        self.start()

    def key(self, tenant: str = "default", role: Role = "write", **grant: Any) -> str:
        """Make a key and return it."""
        return self.keyring.create(Grant(tenant, role=role, **grant))[1]

    def token(self) -> str:
        return (self.directory / "server.token").read_text().strip()

    def send(self, method: str, path: str, key: str | None = None, **told: Any) -> httpx.Response:
        """Send a request as it is told; a key becomes the header."""
        return self._runner.run(self._send(method, path, key, told))

    def call(self, op: str, request: object = None, key: str | None = None, **headers: str) -> httpx.Response:
        """Ask for an operation; headers are named with underscores."""
        return self._runner.run(self._call(op, request, key, headers))

    def calls(self, *asked: tuple[Any, ...]) -> list[httpx.Response]:
        """Ask for several at once."""

        async def together() -> list[httpx.Response]:
            return await asyncio.gather(*(self._call(op, request, key, {}) for op, request, key in asked))

        return self._runner.run(together())

    def raw(
        self,
        headers: Iterable[tuple[bytes, bytes]],
        *parts: bytes,
        method: str = "POST",
        path: bytes = b"/api/v1/memory/list",
        query: bytes = b"",
        leaves: bool = False,
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        """Ask with any bytes; `leaves` closes the connection after the parts. Status 0 is no reply."""
        return self._runner.run(self._raw(list(headers), parts, method, path, query, leaves))

    async def _call(
        self, op: str, request: object, key: str | None, headers: dict[str, str]
    ) -> httpx.Response:
        content = json.dumps({} if request is None else request).encode()
        told = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        if op == "import":
            told["content-type"] = "application/x-ndjson"
        return await self._send("POST", path_of(op), key, {"content": content, "headers": told})

    async def _send(self, method: str, path: str, key: str | None, told: dict[str, Any]) -> httpx.Response:
        headers = dict(told.pop("headers", {}))
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return await self._client.request(method, path, headers=headers, **told)

    async def _raw(
        self,
        headers: list[tuple[bytes, bytes]],
        parts: tuple[bytes, ...],
        method: str,
        path: bytes,
        query: bytes,
        leaves: bool,
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        messages.append(
            {"type": "http.disconnect"}
            if leaves
            else {"type": "http.request", "body": b"", "more_body": False}
        )
        sent: list[Message] = []

        async def receive() -> Message:
            return messages.pop(0) if messages else await asyncio.Future()

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path.decode("latin-1"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8420),
        }
        await self.app(scope, receive, send)
        if not sent:
            return 0, {}, b""
        body = b"".join(one.get("body", b"") for one in sent[1:])
        return sent[0]["status"], dict(sent[0]["headers"]), body
