"""What happened, told by the records of a space: each kind of record makes its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.audit.numbers import Entries, Numbers
from perdure.audit.rows import CODES, NO_DIGEST, Details, Row, details_of
from perdure.errors import Corrupt, Unavailable
from perdure.log.digests import checksum
from perdure.log.records import (
    AccessRecord,
    AnnotationRecord,
    BlockRecord,
    ByRecord,
    ConfigRecord,
    ConversationRecord,
    EndRecord,
    FactRecord,
    GoneRecord,
    HideRecord,
    LinkRecord,
    NodeRecord,
    Record,
    RemovalRecord,
    RestoreRecord,
    UnblockRecord,
    UseRecord,
    decode,
)

CREATED = CODES["created"]
HOLE = Row(CODES["gap"], 0)  # a record that was erased before anybody looked, and what it told with it
CHUNK_RECORDS = 50_000  # of which events are kept in memory before they are appended

Pending = list[tuple[int, list[Row]]]
Load = Callable[[], None]
"""Has the numbers learnt that records before the first one gave out."""
Flush = Callable[[Pending], None]


def derive(space: int, entries: Entries, numbers: Numbers, load: Load, flush: Flush) -> Pending:
    """Return each record's seq and its events, in order, but what was flushed; many kinds of records have none.

    What is no record is passed over: verifying is others' work. A record that was erased is a HOLE: the audit follows
    before each erasure, so this one happened without it, or its events are those of an older copy. A record of a
    later format is where it ends, until a build that knows it goes on.

    Args:
        flush: given the first CHUNK_RECORDS of twice as many. Who wrote a record may be told only after all records
            of its request, and no request writes as many.
    """
    pending: Pending = []
    data: bytes | None = None
    for seq, data in entries:
        record: Record | None = None
        if data is not None:
            try:
                record = decode(data, space=space, seq=seq)
            except Corrupt:
                record = None
            except Unavailable:
                break
        if type(record) is FactRecord:  # the one kind that comes in great numbers
            document: Details = (("document", record.version),) if record.version else ()
            row = Row(
                CREATED,
                record.ingest_time,
                numbers.learn_fact(record.number, record.id),
                NO_DIGEST,
                None,
                document,
            )
            pending.append((seq, [row]))
        elif isinstance(record, ByRecord):
            for place in range(max(0, len(pending) - record.count), len(pending)):
                pending[place] = pending[place][0], _of_actor(pending[place][1], record.actor)
            pending.append((seq, []))
        elif record is None:
            pending.append((seq, [HOLE] if data is None else []))
        else:
            numbers.learn(record)
            told = _TOLD.get(type(record))
            pending.append((seq, [] if told is None else told(record, _Lookup(numbers, load))))
        numbers.upto = seq
        if len(pending) >= 2 * CHUNK_RECORDS:
            flush(pending[:CHUNK_RECORDS])
            del pending[:CHUNK_RECORDS]
    numbers.check = b"" if data is None else checksum(space, numbers.upto, data)
    return pending


def _of_actor(rows: list[Row], actor: str) -> list[Row]:
    """Return the events as that actor's, but those that name one themselves."""
    return [
        row
        if row.actor is not None or row is HOLE
        else Row(row.type, row.at, row.fact, row.other, actor, row.details)
        for row in rows
    ]


class _Lookup:
    """Digests by number; reads what is not known yet."""

    def __init__(self, numbers: Numbers, load: Load) -> None:
        self._numbers, self._load = numbers, load
        self.of_id = numbers.id_digest

    def fact(self, number: int) -> bytes:
        if self._numbers.since and not self._numbers.knows_fact(number):
            self._load()
        return self._numbers.fact(number)

    def node(self, number: int) -> bytes:
        if self._numbers.since and not self._numbers.knows_node(number):
            self._load()
        return self._numbers.node(number)


def _link(record: LinkRecord, known: _Lookup) -> list[Row]:
    kind = CODES["corrected" if record.corrects else "superseded"]
    return [Row(kind, record.known_from, known.fact(record.older), known.fact(record.newer))]


def _end(record: EndRecord, known: _Lookup) -> list[Row]:
    kind = CODES["retracted" if record.at is None else "ended"]
    return [Row(kind, record.recorded_at, known.fact(record.number))]


def _annotation(record: AnnotationRecord, known: _Lookup) -> list[Row]:
    merged: Details = () if record.merged is None else (("merged", record.merged.count),)
    row = Row(CODES["annotated"], record.recorded_at, known.fact(record.number), NO_DIGEST, None, merged)
    return [row]


def _numbered(kind: str) -> Callable[[Any, _Lookup], list[Row]]:
    def told(record: HideRecord | RestoreRecord | UseRecord, known: _Lookup) -> list[Row]:
        return [Row(CODES[kind], record.recorded_at, known.fact(number)) for number in record.numbers]

    return told


def _removal(record: RemovalRecord, known: _Lookup) -> list[Row]:
    cause = "replaced" if record.replaced else record.cause
    kind = CODES["expired" if cause == "expired" else "forgotten"]
    pairs = {} if cause in ("", "expired") else {"cause": cause}
    if record.ids:
        return [
            Row(kind, record.recorded_at, digest, NO_DIGEST, None, details_of(pairs.items()))
            for digest in record.ids
        ]
    count = len(record.numbers) + len(record.nodes) + len(record.turns)
    counted = details_of([*pairs.items(), ("count", count)])
    return [Row(kind, record.recorded_at, NO_DIGEST, NO_DIGEST, None, counted)] if count else []


def _counted(kind: str) -> Callable[[Any, _Lookup], list[Row]]:
    def told(record: BlockRecord | UnblockRecord, known: _Lookup) -> list[Row]:
        count = (("count", len(record.digests)),)
        return [Row(CODES[kind], record.recorded_at, NO_DIGEST, NO_DIGEST, None, count)]

    return told


def _node(record: NodeRecord, known: _Lookup) -> list[Row]:
    if record.retold:  # nobody changed the node
        return []
    details = details_of(
        (("change", record.change), ("revision", record.revision), ("status", record.status))
    )
    fact = known.fact(record.fact) if record.fact >= 0 else NO_DIGEST
    node = known.of_id(record.id)
    return [Row(CODES["revised"], record.recorded_at, fact, node, record.actor, details)]


def _access(record: AccessRecord, known: _Lookup) -> list[Row]:
    kind = CODES["used" if record.kind == "use" else "admitted"]
    details = (("revision", record.revision),)
    return [Row(kind, record.recorded_at, NO_DIGEST, known.node(record.node), record.actor, details)]


def _conversation(record: ConversationRecord, known: _Lookup) -> list[Row]:
    turns = (("turns", record.turns),)
    return [Row(CODES["conversed"], record.recorded_at, NO_DIGEST, NO_DIGEST, None, turns)]


def _gone(record: GoneRecord, known: _Lookup) -> list[Row]:
    return [Row(CODES["erased"], record.recorded_at)]


def _config(record: ConfigRecord, known: _Lookup) -> list[Row]:
    return [Row(CODES["configured"], record.recorded_at, actor=record.actor)]


_TOLD: dict[type, Callable[[Any, _Lookup], list[Row]]] = {
    LinkRecord: _link,
    EndRecord: _end,
    AnnotationRecord: _annotation,
    HideRecord: _numbered("hidden"),
    RestoreRecord: _numbered("restored"),
    UseRecord: _numbered("used"),
    RemovalRecord: _removal,
    BlockRecord: _counted("blocked"),
    UnblockRecord: _counted("unblocked"),
    GoneRecord: _gone,
    ConfigRecord: _config,
    NodeRecord: _node,
    AccessRecord: _access,
    ConversationRecord: _conversation,
}
