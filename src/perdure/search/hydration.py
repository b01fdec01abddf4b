"""From numbers to facts: records read in one go, dressed with what has been said of them since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.base.canonical import decode_json
from perdure.base.instants import to_datetime
from perdure.log.records import FactRecord, SourceFields
from perdure.model.fact import End, Fact, Source
from perdure.search.standing import is_known, standing, status_of
from perdure.space.apply import units_of
from perdure.space.facts import FactReader
from perdure.space.state import HIDDEN, SpaceState


class View:
    """One read's view of facts: as of an instant, as known at another (None: everything)."""

    def __init__(self, state: SpaceState, reader: FactReader, as_of: int, known_at: int | None) -> None:
        self.state, self.reader, self.as_of, self.known_at = state, reader, as_of, known_at

    def facts(self, numbers: Sequence[int]) -> list[Fact]:
        """Return the facts of these numbers, in order."""
        neighbours = self._neighbours(numbers)
        records = self.reader.get_many(self.state, [*numbers, *neighbours])
        ids = {n: r.id for n, r in zip(neighbours, records[len(numbers) :], strict=True)}
        return [self._fact(number, record, ids) for number, record in zip(numbers, records, strict=False)]

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

    def _fact(self, number: int, record: FactRecord, ids: dict[int, str]) -> Fact:
        state = self.state
        seen = state.annotations.get(number)
        told = record if seen is None else seen
        metadata = record.metadata if seen is None or seen.metadata is None else seen.metadata
        uses, last_used = state.uses.get(number, (0, None))
        start, end = record.valid_from, record.valid_to
        above = below = ()  # type: tuple[str, ...]
        if ids:
            above = tuple(sorted({ids[n] for n in self._above(number)}))
            below = tuple(sorted({ids[n] for n in self._below(number)}))
        return Fact(
            record.id,
            record.text,
            record.subject,
            state.entities_of.get(number, ()),
            {} if metadata is None else decode_json(metadata),
            told.tags,
            told.kind,
            told.importance,
            told.pinned,
            None if record.event_time is None else to_datetime(record.event_time),
            None if start is None else to_datetime(start),
            None if end is None else to_datetime(end),
            to_datetime(record.ingest_time),
            self._ends(number),
            uses,
            None if last_used is None else to_datetime(last_used),
            state.presence[number] == HIDDEN,
            None if record.source is None else _source(record.source),
            below,
            above,
            status_of(state, number, self.as_of, self.known_at),
        )

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

    def valid_interval(self, number: int) -> tuple[int, int]:
        """Return (valid_from, valid_to) as known, with the sentinels of `temporal.columns`."""
        known = standing(self.state, number, self.known_at)
        return known.valid_from, known.valid_to


def _source(fields: SourceFields) -> Source:
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
    seen = state.annotations.get(number)
    metadata = record.metadata if seen is None or seen.metadata is None else seen.metadata
    return {} if metadata is None else dict(decode_json(metadata))
