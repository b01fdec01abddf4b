"""A server over standard input and output, until its client closes them."""

from __future__ import annotations

import asyncio
from typing import Any

from perdure.dispatch import Caller
from perdure.mcp.sdk import make_server
from perdure.mcp.service import Service, Settings
from perdure.mcp.stdio import Lines, Open, Sink, Wire


def serve_stdio(caller: Caller, settings: Settings, wire: Wire) -> None:
    """Serve one client on descriptors that `stdio.claimed` gave; return when it has closed its side."""
    asyncio.run(_serve(make_server(Service(settings), lambda _: caller), wire))


async def _serve(server: Any, wire: Wire) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - only this transport needs it

    requests = Open()
    lines: Any = Lines(wire.source, requests)
    sink: Any = Sink(wire.sink, requests)
    async with stdio_server(lines, sink) as (read, write):
        await server.run(read, write, server.create_initialization_options())
