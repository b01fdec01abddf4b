"""Servers of a database, for tests: in this process, or in processes of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from perdure.server.app import create_app
from perdure.server.front import Front
from perdure.server.settings import Limits, Opening, Settings


def app_on(address: str, keys: Path | str, **told: Any) -> Front:
    """Return a server of a database that asks for no key, unless told otherwise."""
    opening = Opening(keystore=keys, secret=told.pop("secret", None), replica=told.pop("replica", None))
    limits, clock = Limits(**told.pop("limits", {})), told.pop("clock", None)
    settings = Settings(address, opening=opening, limits=limits, **{"auth": False, **told})
    return create_app(settings, clock=clock)


def ask(app: Front, path: str, body: Any = None, **headers: str) -> httpx.Response:
    """Return the reply to one request; with a body it is a POST below /api/v1/."""

    async def asking() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            told = {
                f"Perdure-{name.title()}" if name != "authorization" else name: v
                for name, v in headers.items()
            }
            if body is None:
                return await client.get(path, headers=told)
            return await client.post(f"/api/v1/{path}", json=body, headers=told)

    return asyncio.run(asking())


def remember(app: Front, text: str, **headers: str) -> httpx.Response:
    return ask(app, "memory/remember", {"text": text}, **headers)


def texts(app: Front, **headers: str) -> list[str]:
    reply = ask(app, "memory/list", {}, **headers)
    assert reply.status_code == 200, reply.text
    return [fact["text"] for fact in reply.json()["items"]]


def ready(app: Front) -> tuple[int, str]:
    reply = ask(app, "/health/ready")
    return reply.status_code, reply.json()["status"]
