"""The state of a space as one blob, so that opening a large space does not analyse its texts again.

A snapshot is derived and may be dropped at any time. It names the analysis and the layout that made
it; another build's snapshot is ignored, never converted.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
from pyroaring import BitMap

from perdure.lexical.index import load_index
from perdure.lexical.profile import get_profile
from perdure.log.protocol import Cached
from perdure.log.records import (
    AnnotationRecord,
    EndRecord,
    LinkRecord,
    ReceiptRecord,
    SpaceRecord,
)
from perdure.space.checks import Checks
from perdure.space.conversations import ConversationHead, ConversationTable
from perdure.space.idmap import IdMap
from perdure.space.nodes import NodesDump, NodeTable
from perdure.space.preparing import link_of
from perdure.space.state import Labels, Receipt, SpaceState
from perdure.temporal.links import LinkKind, against_order

NAME = "state"
LAYOUT = 8  # grows with any change of this module, of the analysis or of the index's dump
# What a state holds by kind; comparing.py goes by the same lists.
COLUMNS = (
    "seqs",
    "ingested",
    "event",
    "valid_from",
    "valid_to",
    "superseded_from",
    "places",
    "vector_seqs",
    "retold",
)
BITMAPS = ("timed", "plain", "hidden", "pinned", "governed")
POSTINGS = ("entities", "tags", "kinds", "metadata", "actors", "vector_models")
PLAIN_MAPS = (
    "told_valid_to",
    "effective_from",
    "subject_of",
    "entities_of",
    "tags_of",
    "kind_of",
    "importance_of",
    "pairs_of",
    "versions",
    "unit_counts",
    "unit_owner",
    "uses",
    "owned",
    "made_from",
    "uri_of",
    "quote_seqs",
    "actor_of",
)
_TUPLES = frozenset({"entities_of", "tags_of", "pairs_of", "uses", "made_from"})


class _Receipt(msgspec.Struct, array_like=True):
    seq: int
    record: ReceiptRecord


class _Snapshot(msgspec.Struct, array_like=True):
    layout: int
    analysis: str
    settings: SpaceRecord
    newest_ingest: int
    index: bytes
    labels: tuple[bytes, bytes]
    columns: list[bytes]
    presence: bytes
    ids: tuple[bytes, bytes]
    used_in: tuple[bytes, bytes]
    bitmaps: list[bytes]
    postings: list[dict[Any, bytes]]
    subjects: dict[str, bytes]
    maps: list[dict[Any, Any]]
    links: list[LinkRecord]
    ends: list[EndRecord]
    annotations: list[AnnotationRecord]
    receipts: list[_Receipt]
    blocked: list[bytes]
    block_keys: list[bytes]
    dimension: int
    nodes: NodesDump
    conversations: list[ConversationHead]
    next_conversation: int
    checks: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Snapshot).decode


def cached_state(state: SpaceState) -> Cached:
    """Return the state as a blob with the head it was taken at."""
    links = [link for above in state.links.above.values() for link in above]
    blob = _encode(
        _Snapshot(
            layout=LAYOUT,
            analysis=_analysis(state),
            settings=state.settings,
            newest_ingest=state.newest_ingest,
            index=state.index.dump(),
            labels=(state.labels.index.dump(), state.labels.numbers.tobytes()),
            columns=[getattr(state, name).tobytes() for name in COLUMNS],
            presence=bytes(state.presence),
            ids=state.ids.dump(),
            used_in=state.used_in.dump(),
            bitmaps=[getattr(state, name).serialize() for name in BITMAPS],
            postings=[{k: v.serialize() for k, v in getattr(state, name).items()} for name in POSTINGS],
            subjects={subject: order.tobytes() for subject, order in state.subjects.items()},
            maps=[getattr(state, name) for name in PLAIN_MAPS],
            links=[
                LinkRecord(
                    k.newer,
                    k.older,
                    k.kind is LinkKind.CORRECTS,
                    k.effective_at,
                    k.known_from,
                    (k.newer, k.older) in state.links.told,
                )
                for k in links
            ],
            ends=[end for ends in state.ends.values() for end in ends],
            annotations=list(state.annotations.values()),
            receipts=[_Receipt(r.seq, r.record) for r in state.receipts.values()],
            blocked=sorted(state.blocked),
            block_keys=sorted(state.block_keys),
            dimension=state.dimension,
            nodes=state.nodes.dump(),
            conversations=state.conversations.dump(),
            next_conversation=state.conversations.next_number,
            checks=state.checks.dump(),
        )
    )
    return Cached(state.head, blob)


def find_state(cached: Cached) -> SpaceState | None:
    """Return the state of a snapshot, or None when another build made it or it does not hold together."""
    try:
        snapshot = _decode(cached.blob)
        if snapshot.layout != LAYOUT:
            return None
        state = _state(snapshot)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, IndexError):
        return None
    if snapshot.analysis != _analysis(state) or len(state.checks) not in (0, cached.head.seq):
        return None
    state.stand_at(cached.head)
    state.from_snapshot = True
    return state


def find_settings(blob: bytes) -> SpaceRecord | None:
    """Return record 1 of the space of a snapshot; None where the blob is none."""
    try:
        return _decode(blob).settings
    except msgspec.MsgspecError:
        return None


def _analysis(state: SpaceState) -> str:
    return f"{state.profile.name} {state.profile.version}"


def _state(snapshot: _Snapshot) -> SpaceState:
    settings = snapshot.settings
    state = SpaceState(
        settings=settings,
        profile=get_profile(settings.profile),
        index=load_index(snapshot.index),
        labels=_labels(*snapshot.labels),
    )
    state.newest_ingest = snapshot.newest_ingest
    state.dimension, state.checks = snapshot.dimension, Checks(snapshot.checks)
    for name, data in zip(COLUMNS, snapshot.columns, strict=True):
        getattr(state, name).frombytes(data)
    state.presence[:] = snapshot.presence
    state.ids = IdMap.load(*snapshot.ids)
    state.used_in = IdMap.load(*snapshot.used_in)
    for name, data in zip(BITMAPS, snapshot.bitmaps, strict=True):
        setattr(state, name, BitMap.deserialize(data))
    for name, table in zip(POSTINGS, snapshot.postings, strict=True):
        setattr(state, name, {key: BitMap.deserialize(data) for key, data in table.items()})
    for subject, data in snapshot.subjects.items():
        state.subjects[subject] = order = array("i")
        order.frombytes(data)
    for name, plain in zip(PLAIN_MAPS, snapshot.maps, strict=True):
        # Arrays come back as lists; some maps hold tuples.
        restored = {key: tuple(value) for key, value in plain.items()} if name in _TUPLES else plain
        setattr(state, name, restored)
    _restore_records(state, snapshot)
    lengths = {len(getattr(state, name)) for name in COLUMNS} | {len(state.presence), state.index.rows}
    if len(lengths) != 1:
        raise ValueError("the columns of a snapshot have different lengths")
    return state


def _labels(index: bytes, numbers: bytes) -> Labels:
    labels = Labels(load_index(index))
    labels.numbers.frombytes(numbers)
    if len(labels.numbers) != labels.index.rows:
        raise ValueError("the label rows of a snapshot do not fit their index")
    labels.row_of = {n: row for row, n in enumerate(labels.numbers) if labels.index.is_live(row)}
    return labels


def _restore_records(state: SpaceState, snapshot: _Snapshot) -> None:
    for link in snapshot.links:
        restored = link_of(link)
        state.links.add(restored)
        if against_order(link.newer, link.older, state):
            state.links.against.add(restored)
        if link.told:
            state.links.told.add((link.newer, link.older))
    for end in snapshot.ends:
        state.ends.setdefault(end.number, []).append(end)
    state.annotations = {record.number: record for record in snapshot.annotations}
    state.receipts = {r.record.key: Receipt(r.record, r.seq) for r in snapshot.receipts}
    state.blocked = set(snapshot.blocked)
    state.block_keys = set(snapshot.block_keys)
    state.nodes = NodeTable.load(snapshot.nodes)
    state.conversations = ConversationTable.load(snapshot.conversations, snapshot.next_conversation)
