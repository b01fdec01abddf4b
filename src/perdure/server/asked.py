"""What is known of one request while it is answered, and of its reply once there is one: no text, query or key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perdure.base.ids import random_secret

CAME_AT = "perdure.came_at"  # in a request's scope
UNKNOWN = "unknown"
OK = "ok"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


@dataclass(slots=True)
class Asked:
    """One request. `op` and `code` come from closed sets, so that logs and metrics can count by them."""

    id: str
    began: float  # seconds of the event loop's clock
    came_at: float | None = None  # likewise: when its headers had come, where it came over a connection
    headers: dict[bytes, bytes] = field(default_factory=dict, repr=False)
    op: str = UNKNOWN
    tenant: str | None = None
    key_id: str | None = None
    status: int = 0
    code: str = OK
    refused: str | None = None  # a host or origin that is not served


def request_id(told: bytes | None) -> str:
    """Return the id that a caller gave the request, where it has the form of one, else one of our own."""
    if told is not None and _REQUEST_ID.fullmatch(told):
        return told.decode("ascii")
    return random_secret(8).hex()
