"""The mark beside an index: how its key is derived, and the last change that was acknowledged.

256 bytes, written at once: magic (8), made (1), name of the derivation (32), salt (16), tag (32), then nonce (32),
revision (8), head digest (32) of the index as it was acknowledged, zeros, and a checksum (16). Only the first part,
which says how to open an index, is synced; the rest may lag behind the database and never runs ahead of it. So it
tells a copy or an older file that took the database's place; and as it changes with every change that returned,
whoever reads it knows whether what it has in memory is still the present.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import NamedTuple

from perdure.base.disk import open_private, sync
from perdure.base.sqlite.ciphers import PLAIN, RAW, Cipher, Key
from perdure.errors import WrongKey
from perdure.vectors.partitioned.errors import StorageCorrupted

MAGIC = b"PERDVIX1"
SIZE_BYTES = 256
CHECK_BYTES = 16
_fields = Struct("<8s?32s16s32s32sQ32s")
_BODY_BYTES = SIZE_BYTES - CHECK_BYTES

NO_KEY = "the vector index is encrypted, and no key was given: give its key"
PLAIN_INDEX = "the vector index is not encrypted, but a key was given: leave the key out"
OTHER_KEY = "the vector index is encrypted with another key: give that one"
# Of a file without a mark, whose bytes do not tell an encrypted index from anything else.
NO_INDEX_OR_NO_KEY = (
    "the file is no vector index, or it is an encrypted one and its key was not given: name another path, or give "
    "the key"
)
NO_INDEX_OR_OTHER_KEY = (
    "the file is no vector index, or it is one that is encrypted with another key: name another path, or give that "
    "key"
)


class Point(NamedTuple):
    """Where the history of an index is: whose it is, how many changes there were, and what it holds."""

    nonce: bytes
    revision: int
    head: bytes


NOWHERE = Point(bytes(32), 0, bytes(32))


class Seal(NamedTuple):
    """How the key of an index is derived, and what only this key makes. All empty for a plain one."""

    derivation: str = ""
    salt: bytes = b""
    tag: bytes = b""

    @classmethod
    def of(cls, cipher: Cipher) -> Seal:
        if not cipher.encrypts:
            return cls()
        return cls(cipher.derivation, cipher.salt, _tag(cipher))

    def cipher(self, key: Key | None) -> Cipher:
        """Return the cipher that the key makes. WrongKey for another one, one too many or none."""
        if not self.derivation:
            if key is not None:
                raise WrongKey(PLAIN_INDEX)
            return PLAIN
        if key is None:
            raise WrongKey(NO_KEY)
        if key.is_passphrase and self.derivation == RAW:
            raise WrongKey(OTHER_KEY)
        cipher = key.cipher(self.derivation, self.salt)
        if not compare_digest(_tag(cipher), self.tag):
            raise WrongKey(OTHER_KEY)
        return cipher


class Told(NamedTuple):
    """What a mark says; `made` is whether the index was once whole."""

    made: bool
    seal: Seal
    point: Point


class Mark:
    """The open file of a mark. Thread-safe to read; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private(path)
        self._guard = Lock()

    def read(self) -> bytes:
        """Return the bytes of the mark, b"" when there are none; another value means another state."""
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, SIZE_BYTES, 0)
        with self._guard:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            return os.read(self._descriptor, SIZE_BYTES)

    def write(self, told: Told, *, durable: bool = False) -> bytes:
        """Replace the mark and return its bytes."""
        data = packed(told)
        with self._guard:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, data)
            if durable:
                sync(self._descriptor)
        return data

    def close(self) -> None:
        os.close(self._descriptor)


def packed(told: Told) -> bytes:
    """Return the bytes of a mark."""
    seal, point = told.seal, told.point
    body = _fields.pack(MAGIC, told.made, seal.derivation.encode(), seal.salt, seal.tag, *point)
    body = body.ljust(_BODY_BYTES, b"\0")
    return body + blake2b(body, digest_size=CHECK_BYTES).digest()


def unpacked(data: bytes) -> Told:
    """Return what a mark says. StorageCorrupted for bytes that are none."""
    body, check = data[:_BODY_BYTES], data[_BODY_BYTES:]
    if len(data) != SIZE_BYTES or blake2b(body, digest_size=CHECK_BYTES).digest() != check:
        raise StorageCorrupted("its mark, the file beside it, is not whole")
    magic, made, derivation, salt, tag, nonce, revision, head = _fields.unpack_from(body)
    if magic != MAGIC:
        raise StorageCorrupted("its mark is of another format")
    name = derivation.rstrip(b"\0").decode("ascii", "replace")
    salted = name not in ("", RAW)
    return Told(made, Seal(name, salt if salted else b"", tag if name else b""), Point(nonce, revision, head))


def _tag(cipher: Cipher) -> bytes:
    return cipher.keyed(b"vector tag")(cipher.derivation.encode() + b"\0" + cipher.salt)
