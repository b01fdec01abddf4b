"""Cursors: where a listing goes on, bound to what was listed."""

from __future__ import annotations

import base64
import hmac

import msgspec

from perdure.base.ids import keyed_hash
from perdure.errors import Conflict, InvalidRequest
from perdure.space.state import SpaceState

_MAC_BYTES = 16
_BLOCK_BYTES = 64
_MARK_BYTES = 8  # of a record's checksum

NO_NUMBER = 0

Key = int | float | str | None


class _Body(msgspec.Struct, array_like=True):
    epoch: int
    position: int
    key: Key
    number: int = NO_NUMBER


class CursorCodec:
    """Opaque cursors: a position, sealed together with the space, the arguments and the epoch.

    Nothing of a position can be read from its cursor, also where it is an id. Equal positions give equal cursors.
    """

    def __init__(self, secret: bytes, namespace: bytes, state: SpaceState, bound: bytes) -> None:
        self._key, self._epoch, self._number = secret, state.head.epoch, state.number
        self._context = namespace + b"\0" + bound
        self._checks = state.checks

    def encode(self, position: int, key: Key = None) -> str:
        """Return the cursor of an item: its number, and the key that it was sorted by."""
        body = msgspec.msgpack.encode((self._epoch, position, key, self._number))
        mac = self._mac(body)
        return base64.urlsafe_b64encode(mac + self._sealed(mac, body)).decode().rstrip("=")

    def encode_record(self, seq: int) -> str:
        """Return the cursor of a record of the log, 0 for none, that knows the record again."""
        return self.encode(seq, self._mark(seq))

    def decode_record(self, cursor: str, *, field: str = "cursor") -> int:
        """Return the record's seq.

        Raises as `decode_keyed`, Conflict also where another record is there: the log was put back to an earlier moment
        and went on another way. A record that was erased since is not looked at.
        """
        seq, mark = self.decode_keyed(cursor, field=field)
        if seq > len(self._checks) or (mark is not None and self._mark(seq) not in (None, mark)):
            raise Conflict(
                "what this cursor stood at is no more: the store was put back to an earlier moment since it was given; "
                "start over",
                kind="epoch",
            )
        return seq

    def _mark(self, seq: int) -> int | None:
        return next(
            (int.from_bytes(check[:_MARK_BYTES], "little") for _, check in self._checks.live([seq])), None
        )

    def decode(self, cursor: str, *, field: str = "cursor") -> int:
        """Return the position; raises as `decode_keyed`."""
        return self.decode_keyed(cursor, field=field)[0]

    def decode_keyed(self, cursor: str, *, field: str = "cursor") -> tuple[int, Key]:
        """Return the position and its key.

        Raises InvalidRequest for a cursor of another listing, Conflict(kind="epoch") after a purge.
        """
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError as error:
            raise InvalidRequest(f"{field} is not a cursor that a page gave", field=field) from error
        mac, sealed = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        body = self._sealed(mac, sealed)
        if not hmac.compare_digest(mac, self._mac(body)):
            raise InvalidRequest(
                f"{field} is not a cursor of this listing: pass the same arguments as for its page",
                field=field,
            )
        told = msgspec.msgpack.decode(body, type=_Body)
        # A space that was still empty had no number; a name that was erased is another space when it is used again.
        if told.epoch != self._epoch or told.number not in (NO_NUMBER, self._number):
            raise Conflict(
                "the store was purged, or this memory erased, since this cursor was given; start over",
                kind="epoch",
            )
        return told.position, told.key

    def _sealed(self, mac: bytes, body: bytes) -> bytes:
        # The MAC of the body is the nonce, so that no two bodies share a stream. Sealing twice opens again.
        blocks = range(0, len(body), _BLOCK_BYTES)
        stream = b"".join(
            keyed_hash(self._key, b"cursor stream", mac + at.to_bytes(8, "little"), _BLOCK_BYTES)
            for at in blocks
        )
        return bytes(a ^ b for a, b in zip(body, stream, strict=False))

    def _mac(self, body: bytes) -> bytes:
        return keyed_hash(self._key, b"cursor", body + b"\0" + self._context, _MAC_BYTES)
