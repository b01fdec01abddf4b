"""Why a call got no answer: whether the server can have carried it out, and what is to be done."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

# Of OpenSSL, where the bytes of the other side are no TLS; which it is depends on its version.
_NO_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "RECORD_LAYER_FAILURE",
        "PACKET_LENGTH_TOO_LONG",
        "UNKNOWN_PROTOCOL",
    }
)
_CAUSES_MAX = 16


@dataclass(frozen=True)
class Break:
    """The end of an attempt without an answer.

    `arrived`: whether the request may have come to the server. `lasts`: whether another attempt is of no use.
    """

    message: str
    arrived: bool = False
    lasts: bool = False


def break_of(error: httpx.RequestError, url: str, seconds: float) -> Break:
    """Return what an error of httpx means for a call to the server at `url` that had so many seconds."""
    name = type(error).__name__
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return Break(f"there was no connection to the server within {seconds:g} s", lasts=True)
    if isinstance(error, httpx.TimeoutException):
        return Break(f"the server did not answer within {seconds:g} s", arrived=True, lasts=True)
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        return _unconnected(error, name)
    more = ""
    if url.startswith("http://") and isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        more = "; if it speaks TLS, url must begin with https://"
    return Break(
        f"the server broke off without an answer ({name}): check that it runs, and url{more}", arrived=True
    )


def _unconnected(error: BaseException, name: str) -> Break:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Break(
                f"the server's certificate is not trusted ({cause.verify_message}): give the file of it, or of who "
                "signed it, as ca_file, and in url the host that it is made for",
                lasts=True,
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return Break(
                "url begins with https://, and what answers there speaks no TLS: use http://, or give the server "
                "a certificate",
                lasts=True,
            )
        if isinstance(cause, ssl.SSLError):
            return Break(
                f"no TLS connection came about ({cause.reason or name}): check url, and the server's TLS"
            )
        if isinstance(cause, socket.gaierror):
            return Break(
                f"the server cannot be reached, for the host of url has no address ({cause.strerror}): check its "
                "name, and the network"
            )
        if isinstance(cause, ConnectionRefusedError):
            return Break(
                "the server cannot be reached, for the connection was refused: check that it runs, and the host "
                "and port of url"
            )
    reasons = (cause.strerror for cause in reversed(causes) if isinstance(cause, OSError) and cause.strerror)
    return Break(f"the server cannot be reached ({next(reasons, name)}): check that it runs, and url")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give the error and what led to it, the members of groups too."""
    waiting, count = [error], 0
    while waiting and count < _CAUSES_MAX:
        one = waiting.pop()
        count += 1
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += reversed(one.exceptions)
        cause = one.__cause__ or one.__context__
        if cause is not None:
            waiting.append(cause)
