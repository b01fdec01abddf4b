"""What all replies share, errors among them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Millis = Annotated[int, Meta(description="Milliseconds since 1970-01-01T00:00:00Z.")]


Status = Annotated[
    str, Meta(extra_json_schema={"enum": ["current", "superseded", "expired", "not-yet-valid", "hidden"]})
]


Outcome = Annotated[
    str, Meta(extra_json_schema={"enum": ["created", "existing", "replaced", "merged", "refused"]})
]


def says(description: str) -> Meta:
    return Meta(description=description)


Pending = Annotated[
    bool,
    says(
        "Whether what was erased may lie about still; the next operation on the store ends that, in a database the next forget or purge."
    ),
]


DryRun = Annotated[bool, says("Whether nothing was changed, and this is only what would be.")]


Purged = Annotated[bool, says("Whether the store was rewritten without them.")]


class Reply(Struct, frozen=True, rename="camel"):
    """What all replies share. A newer server may tell more: unknown fields are passed over.

    `repr()` shows no value, for it may be somebody's text.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class SpaceObject(Reply, frozen=True):
    """The name of a space."""

    principal: str
    scope: str


class ErrorBody(Reply, frozen=True):
    """What is wrong, and what to do."""

    code: str
    message: str
    field: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


class ErrorReply(Reply, frozen=True):
    """The one shape of an error on every surface."""

    error: ErrorBody


def decode_reply(data: bytes, reply: type[Reply]) -> Reply:
    """Return a reply of this type; raises msgspec.ValidationError where it has another shape."""
    return msgspec.json.decode(data, type=reply)
