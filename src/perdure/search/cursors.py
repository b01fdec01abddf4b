"""Cursors: where a listing goes on, bound to what was listed."""

from __future__ import annotations

import base64
import hmac

import msgspec

from perdure.base.ids import keyed_hash
from perdure.errors import Conflict, InvalidRequest

_MAC_BYTES = 12


class CursorCodec:
    """Opaque cursors: an offset key and a MAC over the space, the arguments and the epoch; never text."""

    def __init__(self, secret: bytes, namespace: bytes, epoch: int, bound: bytes) -> None:
        self._key, self._epoch = secret, epoch
        self._context = namespace + b"\0" + bound

    def encode(self, position: int) -> str:
        body = msgspec.msgpack.encode((self._epoch, position))
        return base64.urlsafe_b64encode(body + self._mac(body)).decode().rstrip("=")

    def decode(self, cursor: str) -> int:
        """Return the position.

        Raises InvalidRequest for a cursor of another listing, Conflict(kind="epoch") after a purge.
        """
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            body, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
            epoch, position = msgspec.msgpack.decode(body, type=tuple[int, int])
        except (ValueError, msgspec.MsgspecError) as error:
            raise InvalidRequest("cursor is not one that a page gave", field="cursor") from error
        if not hmac.compare_digest(mac, self._mac(body)):
            raise InvalidRequest(
                "cursor belongs to another listing: pass the same arguments as for its page", field="cursor"
            )
        if epoch != self._epoch:
            raise Conflict("the store was purged since this cursor was given; start over", kind="epoch")
        return position

    def _mac(self, body: bytes) -> bytes:
        return keyed_hash(self._key, b"cursor", body + b"\0" + self._context, _MAC_BYTES)
