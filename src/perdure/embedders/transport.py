"""One request to an endpoint: bounded in time and size, repeated where that may help."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from perdure.base.clock import SystemClock
from perdure.errors import Unavailable

_CHUNK_BYTES = 65_536
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_ADVICE = {
    400: "check model_name, and that texts are not longer than the model takes",
    401: "check the key that key_env or key_file names",
    403: "check the key that key_env or key_file names",
    404: "check url and model_name",
    413: "lower batch_size, or tell shorter texts",
    422: "check model_name, and that texts are not longer than the model takes",
    429: "it gets too many requests; ask again later",
}


class _Failed(Exception):
    """A request that may succeed when it is sent again. `wait_ms` is how long the endpoint wants that to take."""

    def __init__(self, error: Unavailable, wait_ms: float | None = None) -> None:
        super().__init__(error.message)
        self.error, self.wait_ms = error, wait_ms


@dataclass(frozen=True)
class Endpoint:
    """An address that takes JSON by POST; `perdure.embedders.http` says what the numbers mean."""

    url: str
    timeout_ms: int
    retries: int
    backoff_ms: int
    backoff_max_ms: int
    name: str = "the embedding endpoint"  # as messages call it
    field: str = "embedder"  # and the argument that it came by

    def unavailable(self, what: str, **details: object) -> Unavailable:
        """Return the error of this endpoint. It names neither a text nor anything that the endpoint said."""
        return Unavailable(f"{self.name} {what}", field=self.field, **details)

    def post(self, body: bytes, *, key: str | None, bytes_max: int) -> bytes:
        """Return the body of a successful answer of at most `bytes_max` bytes.

        Raises:
            Unavailable: the endpoint could not be reached in time, refused, or said too much; after the retries
            where they may help. `details["status"]` is the last answer's status, where there was one.
        """
        for attempt in range(self.retries + 1):
            try:
                return self._sent(body, key, bytes_max)
            except _Failed as failed:
                if attempt == self.retries:
                    raise failed.error from failed.__cause__
                wait_ms = self._wait_ms(attempt, failed)
            time.sleep(wait_ms / 1_000)
        raise AssertionError("the last attempt returns or raises")

    def _wait_ms(self, attempt: int, failed: _Failed) -> float:
        if failed.wait_ms is None:
            return min(self.backoff_ms * 2.0**attempt, self.backoff_max_ms)
        if failed.wait_ms > self.backoff_max_ms:
            raise self.unavailable(
                f"wants to be asked again in {math.ceil(failed.wait_ms / 1_000)} s, more than backoff_max_ms allows; "
                "ask again then",
                **failed.error.details,
            )
        return failed.wait_ms

    def _sent(self, body: bytes, key: str | None, bytes_max: int) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self.timeout_ms / 1_000)
        late = threading.Event()
        try:
            connection.connect()
            with _cut_off(connection.sock, self.timeout_ms / 1_000, late):
                connection.request("POST", parts.path, body, headers)
                with connection.getresponse() as response:
                    answer = self._answer(response, bytes_max)
            if late.is_set():  # without an announced length, being cut off looks like the end
                raise TimeoutError
            return answer
        except (OSError, HTTPException) as error:
            raise _Failed(self._broken(error, late.is_set())) from error
        finally:
            connection.close()

    def _broken(self, error: Exception, late: bool) -> Unavailable:
        if late or isinstance(error, TimeoutError):
            return self.unavailable(
                f"did not answer within {self.timeout_ms} ms; check that it runs, or raise timeout_ms"
            )
        return self.unavailable(
            f"cannot be reached, or broke off ({type(error).__name__}); check that it runs, and url"
        )

    def _answer(self, response: HTTPResponse, bytes_max: int) -> bytes:
        status = response.status
        if status in _RETRIED:
            raise _Failed(self._refused(status), _retry_after_ms(response.getheader("Retry-After")))
        if 300 <= status < 400:
            raise self.unavailable(
                f"sends elsewhere (status {status}), which is not followed; set url to where it is",
                status=status,
            )
        if status != 200:
            raise self._refused(status)
        read = bytearray()
        while chunk := response.read1(_CHUNK_BYTES):
            read += chunk
            if len(read) > bytes_max:
                raise self.unavailable(
                    f"answered with more than {bytes_max} bytes; check url, model_name and dimension"
                )
        if response.length:  # fewer bytes than it had announced
            raise HTTPException("cut off")
        return bytes(read)

    def _refused(self, status: int) -> Unavailable:
        advice = _ADVICE.get(status, "look at what it says of itself, and ask again later")
        return self.unavailable(f"answered with status {status}; {advice}", status=status)


@contextlib.contextmanager
def _cut_off(connected: socket.socket, seconds: float, late: threading.Event) -> Iterator[None]:
    """End a connection when its time is over, which sets the event.

    A socket's own time-out starts anew with each byte, so that a slow sender could go on for ever.
    """

    def end() -> None:
        late.set()
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _retry_after_ms(told: str | None) -> float | None:
    """Return the wait that a Retry-After header asks for, seconds or a date; None where it says nothing."""
    if told is None:
        return None
    if told.strip().isascii() and told.strip().isdigit():
        return float(told[:20]) * 1_000
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() * 1_000 - SystemClock().now())
    except (ValueError, OverflowError):
        return None
