"""Standard input and output for the protocol alone: whatever else is printed goes to standard error."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from perdure.mcp.messages import LINE_BYTES_MAX, JsonObject, Refused, encoded, judged

END_WAIT_S = 30.0  # as long as a write waits for the turn of others
READ_BYTES = 65_536
LINES_WAITING_MAX = 64


@dataclass(frozen=True)
class Wire:
    """The file descriptors of the client: what it writes is read from `source`, what it reads is written to `sink`."""

    source: int
    sink: int


@contextmanager
def claimed() -> Iterator[Wire]:
    """Take standard input and output away from everybody else in this process, and from its children.

    Until the end of the block descriptor 0 reads nothing and descriptor 1 writes to standard error, so that no print
    of a plug-in, no warning and no library of C gets between the messages.
    """
    sys.stdout.flush()
    wire = Wire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield wire
    finally:
        with suppress(OSError):  # standard error may be gone by now
            sys.stdout.flush()
        os.dup2(wire.source, 0)
        os.dup2(wire.sink, 1)
        os.close(nothing)


class _Written(msgspec.Struct):
    """What of a message that was written says whether it is a reply, and to which request."""

    id: int | str | None = None
    method: str | None = None


class Open:
    """The requests that were read and are not answered yet. For one event loop."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._changed = asyncio.Event()

    def read(self, message: JsonObject) -> None:
        """Note what the client sent: a request, or that it gives one up."""
        if "method" not in message:
            return
        if "id" in message:
            self._ids.add(message["id"])
        elif message["method"] == "notifications/cancelled" and isinstance(message.get("params"), dict):
            self._done(message["params"].get("requestId"))

    def written(self, text: str) -> None:
        """Note what the client is sent."""
        message = msgspec.json.decode(text, type=_Written)
        if message.method is None:
            self._done(message.id)

    async def none_left(self) -> None:
        """Return when all are answered."""
        while self._ids:
            self._changed.clear()
            await self._changed.wait()

    def _done(self, id_: object) -> None:
        if isinstance(id_, int | str):
            self._ids.discard(id_)
            self._changed.set()


class Sink:
    """Where messages go. What is written to a client that has gone is lost, and that is no error."""

    def __init__(self, sink: int, requests: Open) -> None:
        self._sink, self._requests = sink, requests
        self._turn = asyncio.Lock()

    async def write(self, text: str) -> None:
        """Write lines, and nothing of others between them."""
        async with self._turn:
            await asyncio.to_thread(self._write, text.encode())
        self._requests.written(text)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        with suppress(BrokenPipeError, ConnectionResetError):
            while rest:
                rest = rest[os.write(self._sink, rest) :]


class Messages:
    """The messages on the lines of a descriptor, to iterate over asynchronously, once. Other lines are answered here.

    They end when the client has closed its side, or `end` was called, and its requests are answered, or END_WAIT_S
    later: a client may close as soon as it has asked. A thread that dies with the process reads and judges them, so
    that one which waits for a client keeps nobody from ending.
    """

    def __init__(self, source: int, requests: Open, sink: Sink) -> None:
        self._source, self._requests, self._sink = source, requests, sink
        self._waiting: asyncio.Queue[JsonObject | Refused | None] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_WAITING_MAX)

    async def __aiter__(self) -> AsyncIterator[JsonObject]:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="perdure-mcp-input", daemon=True).start()
        while (found := await self._waiting.get()) is not None:
            self._room.release()
            if isinstance(found, Refused):
                await self._sink.write(encoded(found.reply))
            else:
                self._requests.read(found)
                yield found
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requests.none_left(), END_WAIT_S)

    def end(self) -> None:
        """Take no more than was read by now. Called in the event loop."""
        self._waiting.put_nowait(None)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop has ended, so nobody wants the rest
            for line in lines_of(self._source):
                if line.strip():
                    self._room.acquire()
                    loop.call_soon_threadsafe(self._waiting.put_nowait, judged(line))
            loop.call_soon_threadsafe(self._waiting.put_nowait, None)


def lines_of(source: int) -> Iterator[bytes]:
    """Yield the lines of a descriptor until its end, or until it fails, which is the end of a client too.

    Of a line longer than LINE_BYTES_MAX it yields one byte more than that; the rest is not kept.
    """
    line = bytearray()
    with suppress(OSError):
        while data := os.read(source, READ_BYTES):
            first, *others = data.split(b"\n")
            line += first[: LINE_BYTES_MAX + 1 - len(line)]
            for other in others:
                yield bytes(line)
                line = bytearray(other[: LINE_BYTES_MAX + 1])
    if line:
        yield bytes(line)
