"""Tokens that let a previewed erasure be carried out: sealed, short-lived, and good for what was shown only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from perdure.base.ids import keyed_hash
from perdure.log.protocol import Log
from perdure.model.namespace import Namespace
from perdure.space.names import hashed_name

LIFE_MS = 10 * 60 * 1000
_MAC_BYTES = 16
_SEPARATOR = "-"


@dataclass(frozen=True)
class Previewed:
    """What a preview showed: an operation with its options, in a space, of these ids.

    `erasures` is how often the space was erased from by then, with the epoch of its store: once a token was used,
    it fits no more.
    """

    operation: str
    options: tuple[Any, ...]
    namespace: Namespace
    ids: tuple[str, ...]
    erasures: tuple[int, int]


def make_token(secret: bytes, previewed: Previewed, now: int) -> str:
    """Return the token; it is good until `now`, in milliseconds, is LIFE_MS later."""
    expiry = now + LIFE_MS
    return f"{expiry:x}{_SEPARATOR}{_mac(secret, previewed, expiry).hex()}"


def fits(secret: bytes, previewed: Previewed, now: int, token: str) -> bool:
    """Whether the token was made for exactly this and has not run out."""
    told, _, mac = token.partition(_SEPARATOR)
    try:
        expiry = int(told, 16)
    except ValueError:
        return False
    if not now <= expiry <= now + LIFE_MS:
        return False
    return hmac.compare_digest(mac.encode(), _mac(secret, previewed, expiry).hex().encode())


def erasures_of(log: Log, namespace: Namespace) -> tuple[int, int]:
    """Return the epoch and how many records of the space were erased in it; of an absent space the epoch and 0."""
    number = log.find_space(hashed_name(log.secret, namespace))
    if number is None:
        return log.epoch(), 0
    head = log.head(number)
    return head.epoch, head.erasures


def _mac(secret: bytes, previewed: Previewed, expiry: int) -> bytes:
    told = (
        previewed.operation,
        previewed.options,
        previewed.namespace.key(),
        _digest(previewed.ids),
        previewed.erasures,
        expiry,
    )
    return keyed_hash(secret, b"mcp token", msgspec.msgpack.encode(told), _MAC_BYTES)


def _digest(ids: Iterable[str]) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(sorted(ids))).digest()
