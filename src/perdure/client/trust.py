"""Which certificates a client trusts."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import httpx

from perdure.errors import InvalidRequest

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def trusted(url: str, ca_file: str | Path | None, *, connects: bool = True) -> ssl.SSLContext | bool:
    """Return what the server's certificate is checked with, as httpx takes it.

    Args:
        url: the server's address, checked.
        ca_file: of certificates in PEM, trusted in place of all others. Without it the environment's
            SSL_CERT_FILE or SSL_CERT_DIR says which are, and without those the list that comes with httpx.
        connects: whether the client makes connections of its own; what an application or a given transport
            trusts is theirs to say.

    Raises:
        InvalidRequest: there is nothing to check with this file, or the certificates cannot be read.
    """
    is_tls = url.startswith("https://")
    if ca_file is None:
        return _usual() if is_tls and connects else True
    if not connects:
        raise InvalidRequest(
            "ca_file is for connections of the client's own: leave it out where app or transport is given",
            field="ca_file",
        )
    if not is_tls:
        raise InvalidRequest(
            "ca_file is of no use with an http:// address: give one that begins with https://",
            field="ca_file",
        )
    try:
        return ssl.create_default_context(cafile=Path(ca_file))
    except TypeError as error:
        raise InvalidRequest(
            f"ca_file must be the path of a file, got {type(ca_file).__name__}", field="ca_file"
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"ca_file {_unusable(error)}", field="ca_file") from error


def _usual() -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except (OSError, ValueError) as error:
        told = next((name for name in VARIABLES if os.environ.get(name)), "the list of certificates")
        raise InvalidRequest(f"{told} {_unusable(error)}", field="ca_file") from error


def _unusable(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
    return f"cannot be used ({reason}): give a file of certificates in PEM"
