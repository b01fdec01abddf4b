"""What a request must be like before anything of it is carried out: pure checks of its headers.

A web page that somebody visits can send requests to this machine. It cannot choose the headers Host, Origin and
Sec-Fetch-Site, and cannot send application/json to a foreign place without asking first, which is never allowed here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from perdure.errors import TooLarge
from perdure.server.failures import Malformed, WrongMedia, WrongPlace

_HOST = re.compile(r"(?:\[([0-9a-z.%]*:[0-9a-z:.%]*)\]|([a-z0-9._-]+))(?::[0-9]{0,5})?", re.ASCII)
RawHeaders = Iterable[tuple[bytes, bytes]]
SINGLE = frozenset(
    (
        b"host",
        b"origin",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"authorization",
        b"if-match",
        b"if-none-match",
        b"perdure-tenant",
        b"perdure-principal",
        b"perdure-scope",
        b"sec-fetch-site",
        b"x-request-id",
    )
)
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


def single_headers(raw: RawHeaders) -> dict[bytes, bytes]:
    """Return the headers by their names in lower case; of those that we act on, each may come once.

    Raises:
        Malformed: one of them came twice, so that a proxy might have looked at the other.
    """
    found: dict[bytes, bytes] = {}
    for name, value in raw:
        if name in found and name in SINGLE:
            shown = name.decode("ascii").title()
            raise Malformed(f"the header {shown} came twice; send it once", field=shown)
        found[name] = value
    return found


def check_place(
    headers: dict[bytes, bytes], hosts: Collection[str] | None, schemes: Collection[str] = ("http",)
) -> None:
    """Refuse a host that is not served here, and a request that a web page of another place makes.

    Args:
        headers: as `single_headers` gives them.
        hosts: the names that are served, in lower case, without ports; None where any or none will do.
        schemes: those of the addresses under which web pages of this server itself may be seen.

    Raises:
        WrongPlace: the host is another one, or Origin or Sec-Fetch-Site tells of another place. It has the refused
            host or origin, for the log, where that is written as one.
    """
    told = headers.get(b"host", b"").decode("latin-1")
    if hosts is not None and _bare(told) not in hosts:
        raise WrongPlace(
            "the header Host names what is not served here; --allow-host names those that are",
            field="Host",
            place=_bare(told),
        )
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    scheme, _, place = origin.partition("://")
    if b"origin" in headers and (scheme not in schemes or place != told.lower()):
        raise WrongPlace(
            "web pages of other origins are not answered", field="Origin", place=_origin(scheme, place)
        )
    site = headers.get(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        raise WrongPlace("web pages of other sites are not answered", field="Sec-Fetch-Site")


def check_body(headers: dict[bytes, bytes], bytes_max: int, *types: bytes) -> None:
    """Refuse a body that is compressed, of another type, or told to be longer than is taken.

    Raises:
        WrongMedia: Content-Type is none of the types, or names a charset other than UTF-8, or there is a
            Content-Encoding.
        Malformed: Content-Length is no number.
        TooLarge: it is above the limit.
    """
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise WrongMedia(
            "a body is taken as it is, not compressed: leave out the header Content-Encoding",
            field="Content-Encoding",
        )
    told = headers.get(b"content-type", b"").lower().replace(b" ", b"").replace(b'"', b"")
    kind, _, parameter = told.partition(b";")
    if kind not in types or parameter not in (b"", b"charset=utf-8"):
        wanted = " or ".join(one.decode("ascii") for one in types)
        raise WrongMedia(f"the header Content-Type must be {wanted}", field="Content-Type")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit():
        raise Malformed("the header Content-Length must be a number", field="Content-Length")
    if len(length) > 15 or int(length) > bytes_max:
        raise too_large(bytes_max)


def too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"the body is longer than {bytes_max} bytes; send it in parts", limit=bytes_max)


def _bare(host: str) -> str:
    """Return a Host without its port and brackets, in lower case; "" where it is not written as one."""
    found = _HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else ""


def _origin(scheme: str, place: str) -> str:
    return f"{scheme}://{place}" if scheme in ("http", "https") and _bare(place) else ""
