"""Ids: checked when told, derived from content when not, looked up by keyed hash."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata

from perdure.base.canonical import checked_text
from perdure.errors import InvalidRequest

ID_BYTES_MAX = 256
RESERVED_PREFIX = "perdure:"
RESERVED_BYTES_MAX = 4 * 1024  # of ids that begin so: they hold names of nodes, sessions and turns, escaped
_DERIVED_TAG = b"perdure fact id 1\0"  # a domain tag: the digest of a fact is no digest of anything else


def checked_id(value: str, *, field: str = "id") -> str:
    """Return an id to be given as a plain str if it is 1 to 256 bytes of valid text without control characters or
    our prefix."""
    text = checked_known_id(value, field=field)
    if text.startswith(RESERVED_PREFIX):
        raise InvalidRequest(f"{field} starts with {RESERVED_PREFIX!r}, which is reserved", field=field)
    return text


def checked_known_id(value: str, *, field: str = "id") -> str:
    """Return an id that names what is stored, as `checked_id` does; those of our prefix may be longer."""
    text = checked_text(value, field=field)
    size = len(text.encode())
    most = RESERVED_BYTES_MAX if text.startswith(RESERVED_PREFIX) else ID_BYTES_MAX
    if not 1 <= size <= most:
        raise InvalidRequest(f"{field} must take 1 to {most} bytes, got {size}", field=field)
    if not text.isprintable():
        refuse_control(text, field=field)
    return text


def refuse_control(text: str, *, field: str) -> None:
    """Raise InvalidRequest when the text holds a control character (Unicode category Cc)."""
    for position, character in enumerate(text):
        if unicodedata.category(character) == "Cc":
            raise InvalidRequest(f"{field} has a control character at position {position}", field=field)


def derived_id(canonical: bytes) -> str:
    """Return `mem-` and 128 bits in hex of SHA-256 over a domain tag and the canonical payload."""
    return "mem-" + hashlib.sha256(_DERIVED_TAG + canonical).hexdigest()[:32]


def keyed_hash(secret: bytes, domain: bytes, value: bytes, size: int = 16) -> bytes:
    """Return blake2b(value) keyed with the store's secret; `domain` (at most 16 bytes) separates uses."""
    return hashlib.blake2b(value, digest_size=size, key=secret, person=domain.ljust(16, b"\0")).digest()


def random_secret(size: int = 32) -> bytes:
    """Return random bytes from the system; the one source of randomness in the package."""
    return secrets.token_bytes(size)
