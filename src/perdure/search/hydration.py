"""From numbers to facts: records read in one go, dressed with what has been said of them since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from perdure.base.canonical import decode_json
from perdure.base.instants import to_datetime
from perdure.contract.wire import fact_json
from perdure.log.records import FactRecord, SourceFields
from perdure.model.fact import EMPTY, End, Fact, Merges, Source
from perdure.model.status import Status
from perdure.search.governed import quoted_sources
from perdure.search.standing import is_known, status_of
from perdure.space.facts import KEPT_CHARACTERS_MAX, FactReader
from perdure.space.preparing import units_of
from perdure.space.state import HIDDEN, LIVE, SpaceState, seen_metadata
from perdure.temporal.status import status_at

JSON_BYTES_MAX = 1_024  # of a fact that is kept as JSON too: 8 MB a space at most


class Dressed:
    """A fact but for its status: what is kept of it for the readers to come, until anything about it changes.

    Metadata is decoded for every reader anew, since a caller may change what it got; a fact without any is one
    object for all readers.
    """

    __slots__ = ("after", "before", "current", "is_constant", "json", "merged", "metadata")

    def __init__(
        self, before: tuple[Any, ...], metadata: bytes | None, after: tuple[Any, ...], merged: Merges | None
    ) -> None:
        """Take the fields before the metadata, it as JSON, the fields after it but the status, and what was merged."""
        self.before, self.metadata, self.after, self.merged = before, metadata, after, merged
        self.current = None if metadata is not None else self.built(Status.CURRENT)
        self.is_constant = False  # whether its status is CURRENT at every instant
        self.json: dict[Status, bytes] = {}

    def built(self, status: Status) -> Fact:
        found = EMPTY if self.metadata is None else decode_json(self.metadata)
        return Fact(*self.before, found, *self.after, status, self.merged)  # type: ignore[call-arg]  # two runs of fields

    def worn(self, status: Status) -> Fact:
        """Return the fact with this status."""
        if status is Status.CURRENT and self.current is not None:
            return self.current
        return self.built(status)

    def told(self, status: Status) -> bytes:
        """Return the fact with this status as JSON."""
        found = self.json.get(status)
        if found is None:
            found = fact_json(self.worn(status))
            if len(found) <= JSON_BYTES_MAX:
                self.json[status] = found
        return found


class View:
    """One read's view of facts: as of an instant, as known at another (None: everything)."""

    def __init__(self, state: SpaceState, reader: FactReader, as_of: int, known_at: int | None) -> None:
        self.state, self.reader, self.as_of, self.known_at = state, reader, as_of, known_at

    def facts(self, numbers: Sequence[int]) -> list[Fact]:
        """Return the facts of these numbers, in order."""
        return [
            one.worn(self._status(one, number))
            for one, number in zip(self._find(numbers), numbers, strict=True)
        ]

    def facts_as_json(self, numbers: Sequence[int]) -> list[tuple[bytes, Status]]:
        """Return the facts of these numbers as on the wire, each with its status, in order."""
        found: list[tuple[bytes, Status]] = []
        for one, number in zip(self._find(numbers), numbers, strict=True):
            status = self._status(one, number)
            found.append((one.told(status), status))
        return found

    def _find(self, numbers: Sequence[int]) -> list[Dressed]:
        if self.known_at is not None:
            return self._dress(numbers)
        kept = self.reader.dressed
        try:
            return [kept[number] for number in numbers]
        except KeyError:
            return self._dress_missing(numbers)

    def _dress_missing(self, numbers: Sequence[int]) -> list[Dressed]:
        kept, state = self.reader.dressed, self.state
        missing = [number for number in numbers if number not in kept]
        fresh = dict(zip(missing, self._dress(missing), strict=True))
        for number, dressed in fresh.items():
            dressed.is_constant = number not in state.timed and state.presence[number] == LIVE
            if len(dressed.before[1]) <= KEPT_CHARACTERS_MAX:
                self.reader.keep_dressed(number, dressed)
        return [fresh.get(number) or kept[number] for number in numbers]

    def fact(self, number: int) -> Fact:
        return self.facts([number])[0]

    def _neighbours(self, numbers: Sequence[int]) -> list[int]:
        links = self.state.links
        if not links.count:
            return []
        found: set[int] = set()
        for number in numbers:
            found.update(self._above(number))
            found.update(self._below(number))
        return sorted(found)

    def _above(self, number: int) -> list[int]:
        return [
            link.newer
            for link in self.state.above(number)
            if self._sees(link.newer) and (self.known_at is None or link.known_from <= self.known_at)
        ]

    def _below(self, number: int) -> list[int]:
        return [
            link.older
            for link in self.state.below(number)
            if self._sees(link.older) and (self.known_at is None or link.known_from <= self.known_at)
        ]

    def _sees(self, number: int) -> bool:
        return is_known(self.state, number, self.known_at)

    def _dress(self, numbers: Sequence[int]) -> list[Dressed]:
        neighbours = self._neighbours(numbers)
        records = self.reader.get_many(self.state, [*numbers, *neighbours])
        ids = {n: r.id for n, r in zip(neighbours, records[len(numbers) :], strict=True)}
        told = quoted_sources(self.state, self.reader, records[: len(numbers)])
        return [
            self._dressed(number, record, ids, told.get(number, record.source))
            for number, record in zip(numbers, records, strict=False)
        ]

    def _status(self, dressed: Dressed, number: int) -> Status:
        """Return the fact's status at this view's instants."""
        if dressed.is_constant:
            return Status.CURRENT
        state = self.state
        if self.known_at is not None or state.presence[number] == HIDDEN:
            return status_of(state, number, self.as_of, self.known_at)
        return status_at(
            state.valid_from[number], state.valid_to[number], state.superseded_from[number], self.as_of
        )

    def _dressed(
        self, number: int, record: FactRecord, ids: dict[int, str], source: SourceFields | None
    ) -> Dressed:
        state = self.state
        seen = state.annotations.get(number)
        told = record if seen is None else seen
        metadata = seen_metadata(record, seen)
        uses, last_used = state.uses.get(number, (0, None))
        above: tuple[str, ...] = ()
        below: tuple[str, ...] = ()
        if ids:
            above = tuple(sorted({ids[n] for n in self._above(number)}))
            below = tuple(sorted({ids[n] for n in self._below(number)}))
        before = (record.id, record.text, record.subject, state.entities_of.get(number, ()))
        after = (
            told.tags,
            told.kind,
            told.importance,
            told.pinned,
            _moment(record.event_time),
            _moment(record.valid_from),
            _moment(record.valid_to),
            to_datetime(record.ingest_time),
            self._ends(number),
            uses,
            _moment(last_used),
            state.presence[number] == HIDDEN,
            None if source is None else source_of(source),
            below,
            above,
        )
        merged = None
        if seen is not None and seen.merged is not None:
            merged = Merges(seen.merged.count, to_datetime(seen.merged.last_at))
        return Dressed(before, metadata, after, merged)

    def _ends(self, number: int) -> tuple[End, ...]:
        ends = self.state.ends.get(number)
        if ends is None:
            return ()
        return tuple(
            End(None if end.at is None else to_datetime(end.at), to_datetime(end.recorded_at), end.reason)
            for end in ends
            if self.known_at is None or end.recorded_at <= self.known_at
        )

    def unit_text(self, number: int, row: int) -> str | None:
        """Return the text of one unit of a document of several, or None where the text is whole."""
        if number not in self.state.unit_counts:
            return None
        return units_of(self.reader.get(self.state, number))[row - number]


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else to_datetime(millis)


def find_source(state: SpaceState, reader: FactReader, record: FactRecord) -> Source | None:
    """Return a fact's source as readers see it, with the quote that its node has of it."""
    fields = quoted_sources(state, reader, [record]).get(record.number, record.source)
    return None if fields is None else source_of(fields)


def source_of(fields: SourceFields) -> Source:
    """Return a record's source as readers see it."""
    return Source(
        uri=fields.uri,
        quote=fields.quote,
        start=fields.start,
        end=fields.end,
        position=fields.position,
        actor=fields.actor,
    )


def metadata_of(state: SpaceState, number: int, record: FactRecord) -> dict[str, Any]:
    """Return the metadata as reads see it: annotated, else as told."""
    metadata = seen_metadata(record, state.annotations.get(number))
    return {} if metadata is None else dict(decode_json(metadata))


def with_unit_texts(view: View, ranked: Sequence[tuple[int, int] | tuple[Any, ...]]) -> list[Fact]:
    """Return the facts of ranked candidates, which begin with number and row."""
    facts = view.facts([one[0] for one in ranked])
    if not view.state.unit_counts:
        return facts
    # A document of several units is shown by the unit that matched; get() has the whole.
    return [
        fact if (text := view.unit_text(one[0], one[1])) is None else msgspec.structs.replace(fact, text=text)
        for fact, one in zip(facts, ranked, strict=True)
    ]
