"""Which facts of a space a filtered export holds: it reads as though all that do not match had been forgotten.

So links over facts that are left out are bridged, as forgetting bridges them: no older version comes back. A node, or a
turn, goes with any of its facts; a node that was never seen as one has nothing that could match, and goes too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from perdure.base.canonical import decode_json
from perdure.filters.evaluate import matches
from perdure.filters.grammar import Filter, FirstClass
from perdure.log.protocol import Entry, Head, Log, Read
from perdure.log.records import (
    AnnotationRecord,
    FactRecord,
    LinkRecord,
    Record,
    RemovalRecord,
    decode,
    encode,
)
from perdure.space.parting import Parting
from perdure.space.preparing import link_of
from perdure.space.state import seen_metadata
from perdure.temporal.columns import begins_at
from perdure.temporal.links import Link, LinkKind, relinks

READ_TOGETHER = 256  # facts whose annotations are read at once

_Found = tuple[int, FactRecord]


def read_matching(log: Log, space: int, head: Head, tree: Filter) -> Read:
    """Return what reads a space up to a head as though the facts that do not match had been forgotten there.

    Metadata, tags, kind and importance are those that reads see; hidden and superseded facts may match. Reads the
    space twice and keeps a few numbers per fact.

    Raises:
        Moved: something was erased from the space after the head.
        Corrupt, Unavailable: a record cannot be read.
    """
    links, parting = _Links(), Parting()
    annotated: dict[int, int] = {}
    for seq, data in log.read(space, 0, head.seq):
        record = None if data is None else decode(data, space=space, seq=seq)
        if record is not None:
            parting.see(seq, record)
        if isinstance(record, AnnotationRecord):
            annotated[record.number] = seq
        elif isinstance(record, LinkRecord):
            links.add(link_of(record))
    left_out: dict[int, int] = {}  # seqs by number
    for (seq, fact), seen in _with_annotations(log, space, head, annotated):
        links.see(fact)
        if not _is_match(tree, fact, seen):
            left_out[fact.number] = seq
    parted = parting.part(left_out.keys(), set(left_out.values()), seen_only=True)
    numbers = left_out.keys() | parted.facts
    gone = frozenset({*left_out.values(), *parted.seqs})
    added: list[Record] = [RemovalRecord(tuple(sorted(numbers)), 0, tuple(sorted(gone)), 0)] if gone else []
    added += [*map(_record_of, relinks(numbers, links)), *parted.added]
    return _without(log, space, head, gone, [encode(record) for record in added])


def _without(log: Log, space: int, head: Head, gone: frozenset[int], added: Sequence[bytes]) -> Read:
    def read() -> Iterator[Entry]:
        for entry in log.read(space, 0, head.seq):
            yield Entry(entry.seq, None) if entry.seq in gone else entry
        for seq, data in enumerate(added, head.seq + 1):
            yield Entry(seq, data)

    return read


def _record_of(link: Link) -> LinkRecord:
    corrects = link.kind is LinkKind.CORRECTS
    return LinkRecord(link.newer, link.older, corrects, link.effective_at, link.known_from)


def _with_annotations(
    log: Log, space: int, head: Head, annotated: dict[int, int]
) -> Iterator[tuple[_Found, AnnotationRecord | None]]:
    """Yield every fact, in order, with the last annotation of it."""
    facts = _facts(log, space, head)
    while some := list(islice(facts, READ_TOGETHER)):
        wanted = sorted(annotated[fact.number] for _, fact in some if fact.number in annotated)
        seen: dict[int, AnnotationRecord] = {}
        for seq, data in zip(wanted, log.get(space, wanted, head) if wanted else (), strict=True):
            record = None if data is None else decode(data, space=space, seq=seq)
            if isinstance(record, AnnotationRecord):
                seen[record.number] = record
        for found in some:
            yield found, seen.get(found[1].number)


def _facts(log: Log, space: int, head: Head) -> Iterator[_Found]:
    for seq, data in log.read(space, 0, head.seq):
        record = None if data is None else decode(data, space=space, seq=seq)
        if isinstance(record, FactRecord):
            yield seq, record


def _is_match(tree: Filter, fact: FactRecord, seen: AnnotationRecord | None) -> bool:
    metadata = seen_metadata(fact, seen)
    # Of a plain document filters see the metadata alone.
    fields = {} if fact.version else _fields(fact, fact if seen is None else seen)
    return matches(tree, {} if metadata is None else decode_json(metadata), fields)


def _fields(fact: FactRecord, told: FactRecord | AnnotationRecord) -> dict[str, Any]:
    fields = {
        FirstClass.SUBJECT: fact.subject,
        FirstClass.ENTITIES: sorted({*fact.entities, *fact.extracted}) or None,
        FirstClass.TAGS: list(told.tags) or None,
        FirstClass.KIND: told.kind,
        FirstClass.IMPORTANCE: told.importance,
        FirstClass.EVENT_TIME: fact.event_time,
        FirstClass.VALID_FROM: fact.valid_from,
        FirstClass.VALID_TO: fact.valid_to,
        FirstClass.INGEST_TIME: fact.ingest_time,
        FirstClass.SOURCE_URI: None if fact.source is None else fact.source.uri,
    }
    return {name: value for name, value in fields.items() if value is not None}


class _Links:
    """The links of a space, and the times of the facts that they join: what bridging asks for."""

    is_ordered = False

    def __init__(self) -> None:
        self._above: dict[int, dict[tuple[int, LinkKind], Link]] = {}
        self._below: dict[int, dict[tuple[int, LinkKind], Link]] = {}
        self._times: dict[int, tuple[int, int]] = {}  # when it takes effect, when it was recorded

    def add(self, link: Link) -> None:
        self._above.setdefault(link.older, {})[link.newer, link.kind] = link
        self._below.setdefault(link.newer, {})[link.older, link.kind] = link

    def see(self, fact: FactRecord) -> None:
        if fact.number in self._above or fact.number in self._below:
            takes_effect = begins_at(
                fact.ingest_time,
                valid_from=fact.valid_from,
                event_time=fact.event_time,
                effective_from=fact.effective_from,
            )
            self._times[fact.number] = takes_effect, fact.ingest_time

    def above(self, number: int) -> list[Link]:
        return [link for link in self._above.get(number, {}).values() if link.newer in self._times]

    def below(self, number: int) -> list[Link]:
        return [link for link in self._below.get(number, {}).values() if link.older in self._times]

    def eff(self, number: int) -> int:
        return self._times[number][0]

    def ingest(self, number: int) -> int:
        return self._times[number][1]
