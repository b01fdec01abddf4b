"""HTTP on a connection: Uvicorn's, with bounds on what comes before a request is complete, and errors in the one shape."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from perdure.contract.wire import error_object
from perdure.errors import Busy, PerdureError
from perdure.server.asked import CAME_AT
from perdure.server.failures import HeadTooLarge, Malformed
from perdure.server.guard import SECURITY_HEADERS
from perdure.server.lines import RETRY_AFTER_S
from perdure.server.replying import encode
from perdure.server.settings import Limits

HEAD_BYTES_MAX = 64 << 10
TOLD_EVERY_S = 60.0  # at most, that there are as many connections as may be
_HEAD_TOO_LARGE = HeadTooLarge(f"a request's line and headers may take {HEAD_BYTES_MAX} bytes")

log = logging.getLogger("perdure.server")


class Crowd:
    """The connections of a server on which no request is under way, the one first that has been so for longest."""

    def __init__(self) -> None:
        self.idle: dict[Protocol, None] = {}  # in the order of becoming idle
        self.leaving: set[Protocol] = set()  # closed, and not gone until the rest of a reply is read
        self._told_at = -math.inf

    def tell(self, now: float, limit: int) -> None:
        """Log that there are as many connections as may be, unless that was told lately."""
        if now - self._told_at >= TOLD_EVERY_S:
            self._told_at = now
            log.warning(
                "as many connections as may be: those idle for longest are closed for new ones",
                extra={"fields": {"connections": limit}},
            )


class Protocol(HttpToolsProtocol):
    """One connection. Before the headers of a request are complete, both time and bytes are bounded.

    Where there are as many as may be, a new one takes the place of the one that has been idle for longest. Whoever
    only opens connections, without a key, so keeps nobody out.
    """

    limits = Limits()
    crowd: ClassVar[Crowd]

    def __init__(self, *told: Any, **named: Any) -> None:
        super().__init__(*told, **named)
        self._head_bytes = self._header_bytes = 0  # as they came, and as they were parsed
        self._in_head = True
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it where on each of as many as may be a request is under way."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._make_room():
            self._refuse(Busy("the server has as many connections as it takes; try again later"))
            return
        self.crowd.idle[self] = None
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the connection."""
        self._stop_timer()
        self.crowd.idle.pop(self, None)
        self.crowd.leaving.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        super().data_received(data)
        if self._in_head and self.parser is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(_HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_bytes, self._header_bytes, self._in_head = 0, 0, True
        if self._head_timer is None:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        super().on_header(name, value)
        self._header_bytes += len(name) + len(value) + len(b": \r\n")

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._stop_timer()
        self.crowd.idle.pop(self, None)
        self._in_head = False
        if self._header_bytes + len(self.url) > HEAD_BYTES_MAX:
            self._refuse(_HEAD_TOO_LARGE)
            return
        self.scope[CAME_AT] = self.loop.time()  # type: ignore[literal-required]  # a key of our own
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self.crowd.idle[self] = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        del msg
        self._refuse(Malformed("this is no request of HTTP/1.1"))

    def _make_room(self) -> bool:
        """Close the connection that has been idle for longest; return False where a request is under way on each."""
        self.crowd.tell(self.loop.time(), self.limits.connections)
        # Those that do not read their replies must not add up either.
        if not self.crowd.idle or len(self.crowd.leaving) >= self.limits.connections:
            return False
        longest = next(iter(self.crowd.idle))
        del self.crowd.idle[longest]
        if longest.transport.get_write_buffer_size():
            self.crowd.leaving.add(longest)
            longest.transport.close()
        else:
            longest.transport.abort()
        return True

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_timeout_s, self._give_up)

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, error: PerdureError) -> None:
        """Answer with an error and close; nothing reaches the application."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = encode(error_object(error))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *([(b"retry-after", b"%d" % RETRY_AFTER_S)] if error.status == 503 else []),
            *SECURITY_HEADERS,
        ]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[error.status] + lines + b"\r\n" + body)
        self.transport.close()


def protocol_of(limits: Limits) -> type[Protocol]:
    """Return the protocol with these limits."""
    return type("BoundProtocol", (Protocol,), {"limits": limits, "crowd": Crowd()})
