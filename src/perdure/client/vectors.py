"""Vectors as they are sent: plain numbers, masked where the caller has a key for that."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from perdure.base.text import counted
from perdure.errors import InvalidRequest

MASK_KEY_BYTES = 32
_DOMAIN = b"perdure vector mask 1\0"  # the stream of a key is used for nothing else


class VectorMask:
    """Flips the signs of some dimensions, always the same ones under one key; its own inverse.

    Dot products and lengths of masked vectors are those of the plain ones, bit for bit, and so is every score made of
    them. That is also what a mask does not hide: who holds masked vectors knows how alike they are, how large each
    number is, and with a few vectors whose texts he can guess, the mask itself. It is obfuscation, not encryption.
    """

    def __init__(self, key: bytes) -> None:
        """Take the 32 bytes of a key. Raises InvalidRequest for anything else."""
        if not isinstance(key, bytes | bytearray) or len(key) != MASK_KEY_BYTES:
            told = (
                f"{counted(len(key), 'byte')}" if isinstance(key, bytes | bytearray) else type(key).__name__
            )
            raise InvalidRequest(
                f"vector_mask must be {MASK_KEY_BYTES} random bytes, got {told}", field="vector_mask"
            )
        self._stream = hashlib.shake_256(_DOMAIN + bytes(key))
        self._bits = 0, 0  # how many are known, and these

    def flipped(self, vector: list[float]) -> list[float]:
        """Return the vector with the signs of the masked dimensions flipped, those of zeros too.

        A zero that kept its sign would give products of another sign than the plain one.
        """
        known, bits = self._bits
        if known < len(vector):
            size = (len(vector) + 7) // 8
            # A longer stream of one key begins with the shorter one: a dimension's sign does not depend on the rest.
            known, bits = self._bits = size * 8, int.from_bytes(self._stream.digest(size), "little")
        return [-number if bits >> place & 1 else number for place, number in enumerate(vector)]

    def __repr__(self) -> str:
        return "<VectorMask>"


def plain_vector(value: Any, *, field: str = "embedding") -> list[float]:
    """Return a vector as a list of floats.

    Raises:
        InvalidRequest: it is no list of finite numbers.
    """
    plain = value.tolist() if callable(getattr(value, "tolist", None)) else value
    if isinstance(plain, str | bytes) or not isinstance(plain, Iterable):
        raise InvalidRequest(f"{field} must be a list of numbers, got {type(value).__name__}", field=field)
    numbers = []
    for place, number in enumerate(plain):
        if isinstance(number, bool) or not hasattr(number, "__float__"):
            raise InvalidRequest(f"{field}[{place}] is a {type(number).__name__}, not a number", field=field)
        try:
            numbers.append(float(number))
        except OverflowError as error:
            raise InvalidRequest(f"{field}[{place}] is not finite", field=field) from error
        if not math.isfinite(numbers[-1]):
            raise InvalidRequest(f"{field}[{place}] is {numbers[-1]}; numbers must be finite", field=field)
    return numbers
