"""Between streams of HTTP, which the event loop reads and writes, and lines of the engine, which a thread does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator

CHUNK_BYTES = 1 << 16
AHEAD = 4  # chunks that wait for a slow reader


class Outflow:
    """Chunks that a thread puts in and the event loop takes out; whoever is ahead waits."""

    def __init__(self) -> None:
        """Make one; on the event loop that will read it."""
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        self._stopped = False

    def pour(self, lines: Iterable[bytes]) -> None:
        """Put all lines in, in chunks; on a thread. Ends early where nobody reads them any more.

        Raises what the lines raise.
        """
        for chunk in _chunks(lines):
            self._room.acquire()
            if self._stopped:
                return
            self._loop.call_soon_threadsafe(self._items.put_nowait, chunk)

    def end(self, error: BaseException | None) -> None:
        """Say that nothing more comes; on the event loop, after all that was poured."""
        self._items.put_nowait(error)

    async def next(self) -> bytes | None:
        """Return the next chunk, None after the last; raises what the pouring ended with."""
        item = await self._items.get()
        if isinstance(item, BaseException):
            raise item
        self._room.release()
        return item

    def stop(self) -> None:
        """Say that nobody reads on."""
        self._stopped = True
        self._room.release()


def pulled(parts: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """Give on a thread what the event loop reads; each part is read when it is asked for.

    Raises what reading it raises.
    """
    while (part := asyncio.run_coroutine_threadsafe(_next(parts), loop).result()) is not None:
        yield part


async def _next(parts: AsyncIterator[bytes]) -> bytes | None:
    return await anext(parts, None)


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
