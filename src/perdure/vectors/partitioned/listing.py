"""Single records and pages of records of a snapshot."""

from __future__ import annotations

import base64
import hmac
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from perdure.base.ids import keyed_hash
from perdure.errors import InvalidRequest
from perdure.vectors.partitioned.admission import checked_name
from perdure.vectors.partitioned.errors import InvalidRecordId, InvalidSearch
from perdure.vectors.partitioned.searching import checked_filter, chosen_partitions, eligible
from perdure.vectors.partitioned.snapshot import Snapshot
from perdure.vectors.partitioned.types import LabelFilter, StoredVector, VectorPage, VectorRecord

PAGE_MAX = 1000
_MAC_BYTES = 16


class _Position(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    partition: str
    id: str


def find_record(snapshot: Snapshot, partition: str, id_: str) -> VectorRecord | None:
    """Return a record, None where there is none."""
    kept = snapshot.kept.get(checked_name(partition))
    if not isinstance(id_, str):
        raise InvalidRecordId("id must be a text")
    place = kept.partition.find_place(id_) if kept is not None else None
    return kept.partition.record(place) if kept is not None and place is not None else None


def page(
    snapshot: Snapshot,
    partitions: Sequence[str],
    labels: Mapping[str, LabelFilter],
    limit: int,
    cursor: str | None,
) -> VectorPage:
    """Return the records after the cursor, as `PartitionedVectorIndex.list` says."""
    if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
        raise InvalidSearch(f"limit must be from 1 to {PAGE_MAX}", field="limit")
    wanted = checked_filter(labels)
    chosen = chosen_partitions(snapshot, partitions)
    bound = msgspec.msgpack.encode((sorted(set(partitions)), sorted(wanted.items(), key=lambda one: one[0])))
    after = None if cursor is None else _decoded(snapshot, cursor, bound)
    items: list[StoredVector] = []
    total, left = 0, False
    for partition in chosen:
        part = eligible(partition, wanted)
        places = np.arange(part.size) if part.places is None else part.places
        total += part.size
        if after is not None:
            places = places[_first_after(after, partition.name, partition.words.ids, places) :]
        room = limit - len(items)
        left = left or len(places) > room
        records = (partition.record(place) for place in places[:room].tolist())
        items += [StoredVector(partition=partition.name, record=record) for record in records]
    last = _Position(items[-1].partition, items[-1].record.id) if left else None
    return VectorPage(
        items=tuple(items),
        total=total,
        has_more=left,
        cursor=None if last is None else _encoded(snapshot, last, bound),
    )


def _first_after(after: _Position, name: str, ids: Sequence[str], places: np.ndarray) -> int:
    """Return how many of the places, which ascend, come no later than the position."""
    if name != after.partition:
        return 0 if name > after.partition else len(places)
    return int(np.searchsorted(places, bisect_right(ids, after.id)))


def _encoded(snapshot: Snapshot, position: _Position, bound: bytes) -> str:
    body = msgspec.msgpack.encode(position)
    return base64.urlsafe_b64encode(_mac(snapshot, body, bound) + body).decode().rstrip("=")


def _decoded(snapshot: Snapshot, cursor: str, bound: bytes) -> _Position:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (TypeError, ValueError) as error:
        raise InvalidRequest("cursor is not one that a page gave", field="cursor") from error
    mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(snapshot, body, bound)):
        raise InvalidRequest(
            "cursor is not one of this listing: pass the same partitions and labels as for its page",
            field="cursor",
        )
    return msgspec.msgpack.decode(body, type=_Position)


def _mac(snapshot: Snapshot, body: bytes, bound: bytes) -> bytes:
    # The history's own secret: a cursor of another index is none of this one.
    return keyed_hash(snapshot.nonce, b"vector cursor", body + b"\0" + bound, _MAC_BYTES)
