"""Requests out and replies in, sent again where that is safe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import httpx

from perdure.client.breaking import break_of
from perdure.client.calling import (
    Answer,
    Call,
    broken,
    call_of,
    check_unpacked,
    error_of,
    pause_after_answer,
    pause_after_break,
    reply_of,
)
from perdure.client.retrying import Retries, pause_async
from perdure.client.settings import Settings, Space
from perdure.errors import Unavailable

R = TypeVar("R")

EVERYWHERE = Space()
ONCE = Retries(0)
LINES = "application/x-ndjson"
BROKEN = httpx.RequestError  # time-outs are among them


class AsyncExchange:
    """The connections of one client. Several calls may run at once."""

    def __init__(self, settings: Settings, transport: httpx.AsyncBaseTransport | None) -> None:
        self.settings, self._closed = settings, False
        self._http = httpx.AsyncClient(
            base_url=settings.url,
            # What is not compressed cannot be a small body that becomes a large one: neither asked for, nor read.
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **settings.headers},
            transport=transport,
            verify=settings.trust,
            trust_env=False,  # neither the key of another service from a .netrc, nor a proxy that nobody named
            follow_redirects=False,
            event_hooks={"response": [_check_unpacked]},
        )

    async def call(self, name: str, request: dict[str, Any], kind: type[R], space: Space = EVERYWHERE) -> R:
        """Carry out an operation and return its reply.

        Raises:
            PerdureError: the server's error, of the class of its code.
            Unavailable: there was no answer in time, or none of a Perdure server.
        """
        self._check_open()
        call = call_of(name, request, self.settings.retries)
        headers = {**call.headers(), **space.headers()}
        attempt, arrived = 0, False
        while True:
            try:
                answer = await self._sent(call, headers)
            except BROKEN as error:
                end = break_of(error, self.settings.url, self._seconds(call))
                arrived = arrived or end.arrived
                wait_ms = None if end.lasts else pause_after_break(call, attempt, self.settings.retries)
                if wait_ms is None:
                    raise broken(call, end.message, arrived=arrived) from error
            else:
                wait_ms = pause_after_answer(call, answer, attempt, self.settings.retries)
                if wait_ms is None:
                    return reply_of(answer, kind)
                arrived = True
            await pause_async(wait_ms)
            attempt += 1

    async def pull(self, name: str, request: dict[str, Any]) -> AsyncIterator[bytes]:
        """Carry out an operation that answers with lines; return their bytes as they come. Sent once.

        Raises as `call`, and while the lines come.
        """
        self._check_open()
        call = call_of(name, request, ONCE)
        sending = self._http.build_request(
            "POST", call.path, content=call.body, headers=call.headers(), timeout=self._seconds(call)
        )
        try:
            response = await self._http.send(sending, stream=True)
            if response.status_code != 200:
                await response.aread()
        except BROKEN as error:
            raise self._broken(call, error) from error
        if response.status_code != 200:
            raise error_of(Answer(response.status_code, response.content))
        return self._chunks(call, response)

    async def push(
        self, name: str, flags: Mapping[str, Any], space: Space, chunks: AsyncIterator[bytes], kind: type[R]
    ) -> R:
        """Carry out an operation that takes lines; return its reply. Sent once, for the lines come once.

        Raises as `call`.
        """
        self._check_open()
        call = call_of(name, {}, ONCE)
        try:
            response = await self._http.post(
                call.path,
                params={flag: "true" if told else "false" for flag, told in flags.items()},
                content=chunks,
                headers={**call.headers(), **space.headers(), "Content-Type": LINES},
                timeout=self._seconds(call),
            )
        except BROKEN as error:
            raise self._broken(call, error) from error
        return reply_of(Answer(response.status_code, response.content), kind)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        self._closed = True
        await self._http.aclose()

    async def _sent(self, call: Call, headers: Mapping[str, str]) -> Answer:
        response = await self._http.post(
            call.path, content=call.body, headers=headers, timeout=self._seconds(call)
        )
        return Answer(response.status_code, response.content, response.headers.get("Retry-After"))

    async def _chunks(self, call: Call, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except BROKEN as error:
            raise self._broken(call, error) from error
        finally:
            await response.aclose()

    def _broken(self, call: Call, error: httpx.RequestError) -> Unavailable:
        end = break_of(error, self.settings.url, self._seconds(call))
        return broken(call, end.message, arrived=end.arrived)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the client is closed; make another one")

    def _seconds(self, call: Call) -> float:
        return self.settings.long_timeout_s if call.is_long else self.settings.timeout_s


async def _check_unpacked(response: httpx.Response) -> None:
    """Look at an answer before its body is read."""
    check_unpacked(response.headers.get("Content-Encoding"))
