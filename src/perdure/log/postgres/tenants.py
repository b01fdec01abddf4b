"""The name of a tenant, and what stands for it in every key."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

from perdure.base.ids import checked_id, keyed_hash

DOMAIN = b"perdure tenant"
VERIFIER_BYTES = 16
BURIED = b""
"""Told as the verifier of a tenant whose rows were deleted, and whose keys may be there still: no secret has it."""


def tenant_id(name: str, part: str = "") -> UUID:
    """Return what stands for a tenant, or a log beside its own: 16 bytes of a digest, so that nobody has to number them.

    Raises InvalidRequest where the name is none: 1 to 256 bytes of printable text.
    """
    told = checked_id(name, field="tenant").encode()
    return UUID(bytes=blake2b(told, digest_size=16, person=DOMAIN, key=part.encode()).digest())


def verifier_of(secret: bytes) -> bytes:
    """Return what tells whether a secret is a tenant's, and nothing of the secret."""
    return keyed_hash(secret, b"verifier", b"", VERIFIER_BYTES)
