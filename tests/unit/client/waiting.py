"""An AsyncClient that is used like a Client: each call is waited for, on an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect

from perdure.client import AsyncClient


class WaitingClient:
    """Has the names of Client."""

    def __init__(self, *args, **options):
        self._held, self._loop = AsyncClient(*args, **options), asyncio.new_event_loop()

    def memory(self, *names, **more):
        return _Waited(self._loop, self._held.memory(*names, **more))

    def documents(self, *names, **more):
        return _Waited(self._loop, self._held.documents(*names, **more))

    def repository(self, *names, **more):
        return _Waited(self._loop, self._held.repository(*names, **more))

    def conversation(self, *names, **more):
        return _Waited(self._loop, self._held.conversation(*names, **more))

    @property
    def store(self):
        return _Waited(self._loop, self._held.store)

    def close(self):
        self._loop.run_until_complete(self._held.close())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def __repr__(self):
        return repr(self._held)


class _Waited:
    def __init__(self, loop, held):
        self._loop, self._held = loop, held

    def __getattr__(self, name):
        def call(*args, **kwargs):
            return self._loop.run_until_complete(_finished(getattr(self._held, name)(*args, **kwargs)))

        return call


async def _finished(answer):
    """Return what a call answers; of an asynchronous iterator, all of it."""
    told = await answer
    return [one async for one in told] if inspect.isasyncgen(told) else told
