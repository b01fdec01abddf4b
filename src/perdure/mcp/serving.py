"""A server over standard input and output, until its client closes them or a signal ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from perdure.dispatch import Caller
from perdure.mcp.sdk import make_server, serve_messages
from perdure.mcp.service import Service, Settings
from perdure.mcp.stdio import Messages, Open, Sink, Wire

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_stdio(caller: Caller, settings: Settings, wire: Wire) -> signal.Signals | None:
    """Serve one client on descriptors that `stdio.claimed` gave.

    Return when it has closed its side, or with the signal, SIGINT or SIGTERM, after which what had been read was
    answered. A second signal is not waited for: it ends the process.
    """
    return asyncio.run(_serve(make_server(Service(settings), lambda _: caller), wire))


async def _serve(server: Any, wire: Wire) -> signal.Signals | None:
    requests = Open()
    sink = Sink(wire.sink, requests)
    messages = Messages(wire.source, requests, sink)
    with _signalled(messages.end) as received:
        await serve_messages(server, messages, sink.write)
    return received[0] if received else None


@contextmanager
def _signalled(end: Callable[[], None]) -> Iterator[list[signal.Signals]]:
    """Call `end` at the first signal, and give the one that it was. Where no loop takes signals, none is caught."""
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def first(one: signal.Signals) -> None:
        received.append(one)
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        end()

    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        for each in _SIGNALS:
            loop.add_signal_handler(each, first, each)
    try:
        yield received
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for each in _SIGNALS:
                loop.remove_signal_handler(each)
