"""What a client is told when it is made, and what it says with each request."""

from __future__ import annotations

import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from perdure.base.canonical import checked_text
from perdure.base.text import shown_real
from perdure.client.retrying import RETRIES_MAX, Retries
from perdure.client.vectors import VectorMask
from perdure.errors import InvalidRequest
from perdure.model.namespace import checked_namespace

URL_OF_APP = "http://localhost"
SECONDS_MAX = 86_400.0
_KEY_CHARACTERS_MAX = 4_096


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the server is, and how it is talked to. `headers` hold the key, so that no `repr()` shows them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    long_timeout_s: float
    retries: Retries
    mask: VectorMask | None
    trust: ssl.SSLContext | bool = field(default=True, repr=False)  # as httpx takes it


@dataclass(frozen=True)
class Space:
    """The space that requests mean: None leaves it to the key, an empty text is the empty name."""

    principal: str | None = field(default=None, repr=False)
    scope: str | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        told = {"Perdure-Principal": self.principal, "Perdure-Scope": self.scope}
        return {name: quote(value, safe="") for name, value in told.items() if value is not None}


def checked_space(principal: str | None, scope: str | None) -> Space:
    """Return the space of these names; raises InvalidRequest for a malformed one."""
    name = checked_namespace(principal, scope)
    return Space(None if principal is None else name.principal, None if scope is None else name.scope)


def checked_url(url: str | None) -> str:
    """Return the server's address without a slash at its end.

    Raises:
        InvalidRequest: it is no address of the web, or holds more than one: what else is in an address is shown
            wherever the address is.
    """
    if not isinstance(url, str):
        raise InvalidRequest(f"url must be text, got {type(url).__name__}", field="url")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidRequest(
            "url is no web address; give one such as http://localhost:8420", field="url"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or " " in url:
        raise InvalidRequest(
            "url must begin with http:// or https:// and a host, in ASCII; give one such as "
            "http://localhost:8420",
            field="url",
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidRequest(
            "url must hold no user, password, query or fragment; give the key as api_key", field="url"
        )
    if parts.path.strip("/"):
        raise InvalidRequest(
            "url must be the server's address alone: give it without a path, such as http://localhost:8420",
            field="url",
        )
    return url.rstrip("/")


def checked_headers(api_key: str | None, tenant: str | None) -> dict[str, str]:
    """Return what every request says of its sender.

    Raises:
        InvalidRequest: the key or the tenant cannot stand in a header; the message does not show it.
    """
    headers = {}
    if api_key is not None:
        if isinstance(api_key, str) and api_key.strip() != api_key and api_key.strip():
            raise InvalidRequest(
                "api_key has white space around it, such as the line's end of a file: strip it",
                field="api_key",
            )
        if not (
            isinstance(api_key, str)
            and api_key.isascii()
            and api_key.isprintable()
            and " " not in api_key
            and 1 <= len(api_key) <= _KEY_CHARACTERS_MAX
        ):
            raise InvalidRequest(
                "api_key must be one word of ASCII; give the key as `perdure keys create` showed it",
                field="api_key",
            )
        headers["Authorization"] = f"Bearer {api_key}"
    if tenant is not None:
        headers["Perdure-Tenant"] = quote(checked_text(tenant, field="tenant"), safe="")
    return headers


def checked_seconds(value: float, name: str) -> float:
    """Return a time-out; raises InvalidRequest unless it is a number of seconds above 0, at most a day."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (math.isfinite(value) and 0 < value <= SECONDS_MAX)
    ):
        shown = shown_real(value) if isinstance(value, int | float) else type(value).__name__
        raise InvalidRequest(
            f"{name} must be above 0 and at most {SECONDS_MAX:g} seconds, got {shown}", field=name
        )
    return float(value)


def checked_retries(value: int) -> Retries:
    """Return how often a request may be sent again; raises InvalidRequest unless it is 0 to 10."""
    if type(value) is not int or not 0 <= value <= RETRIES_MAX:
        shown = value if type(value) is int and abs(value) < 10**9 else type(value).__name__
        raise InvalidRequest(f"retries must be 0 to {RETRIES_MAX}, got {shown}", field="retries")
    return Retries(value)
