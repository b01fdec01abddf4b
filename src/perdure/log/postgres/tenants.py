"""The name of a tenant, and what stands for it in every key."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

from perdure.base.ids import checked_id, keyed_hash
from perdure.errors import InvalidRequest

DOMAIN = b"perdure tenant"
VERIFIER_BYTES = 16
PARTS = ("audit",)  # that a tenant may have a log of beside its own, which is named and unnamed with it
BURIED = b""
"""Told as the verifier of a tenant whose rows were deleted, and whose keys may be there still: no secret has it."""


def tenant_id(name: str, part: str = "") -> UUID:
    """Return what stands for a tenant, or a log beside its own: 16 bytes of a digest, so that nobody has to number them.

    Raises InvalidRequest where no tenant can have the name: it takes 1 to 256 bytes, without control characters.
    """
    told = checked_id(name, field="tenant").encode()
    return UUID(bytes=blake2b(told, digest_size=16, person=DOMAIN, key=part.encode()).digest())


def check_new(name: str) -> None:
    """Raise InvalidRequest for a name that nobody can read or tell from another, so that no tenant is made under it.

    One that has such a name from before can be opened and deleted, so this is asked only where one is made.
    """
    for position, character in enumerate(name):
        if not character.isprintable():
            raise InvalidRequest(
                f"tenant has a character that is not printable at position {position} (U+{ord(character):04X}): no tenant is "
                "made under such a name",
                field="tenant",
            )
    if name != name.strip():
        raise InvalidRequest(
            "tenant begins or ends with a space: no tenant is made under such a name", field="tenant"
        )


def verifier_of(secret: bytes) -> bytes:
    """Return what tells whether a secret is a tenant's, and nothing of the secret."""
    return keyed_hash(secret, b"verifier", b"", VERIFIER_BYTES)
