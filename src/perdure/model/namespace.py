"""A space's exact name inside a store: principal and scope (the store is the tenant)."""

from __future__ import annotations

import msgspec

from perdure.base.canonical import checked_text
from perdure.base.ids import refuse_control
from perdure.errors import InvalidRequest

NAME_BYTES_MAX = 256
CONVERSATION_SUFFIX, SESSIONS_SUFFIX = "#conversation", "#sessions"
BESIDE = (CONVERSATION_SUFFIX, SESSIONS_SUFFIX)
"""What the scopes end in that are kept beside a scope and erased with it: its conversations and its sessions."""


class Namespace(msgspec.Struct, frozen=True):
    """An exact name: compared code point by code point, never by prefix, never normalised."""

    principal: str = ""
    scope: str = ""

    def key(self) -> bytes:
        """Return bytes that no other namespace has."""
        return msgspec.msgpack.encode((self.principal, self.scope))


CONFIGURATION = Namespace("\0configuration")
"""The space of the configuration that a store keeps. No caller can name it, and no list of spaces has it."""


def checked_namespace(principal: str | None, scope: str | None) -> Namespace:
    """Return the namespace; None means the empty name.

    Raises:
        InvalidRequest: not text, longer than 256 bytes, or with a control character.
    """
    return Namespace(_checked(principal, "principal"), _checked(scope, "scope"))


def _checked(value: str | None, field: str) -> str:
    if value is None:
        return ""
    text = checked_text(value, field=field)
    if len(text.encode()) > NAME_BYTES_MAX:
        raise InvalidRequest(
            f"{field} takes {len(text.encode())} bytes; at most {NAME_BYTES_MAX} are allowed", field=field
        )
    refuse_control(text, field=field)
    return text
