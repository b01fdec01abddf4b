"""Mending what is left of a space's records: what was lost counts as removed, so that the rest holds together.

The mended records are what a log could have held, had the lost ones been forgotten; they are then folded as for a
purge. Nothing that was forgotten comes back: what a removal names stays away, whether it was zeroed or not.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perdure.errors import Corrupt
from perdure.log.protocol import Entry, Finding, Read
from perdure.log.records import (
    BlockRecord,
    ChangeSetRecord,
    FactRecord,
    GoneRecord,
    LinkRecord,
    ReceiptRecord,
    Record,
    RemovalRecord,
    SpaceRecord,
    UnblockRecord,
    decode,
    encode,
)
from perdure.space.parting import Parted, Parting
from perdure.space.preparing import link_of
from perdure.temporal.columns import BEGINNING, begins_at
from perdure.temporal.links import Link, LinkKind, relinks

NO_FACT = BEGINNING  # in the column of times: no fact of this number was found


@dataclass(slots=True)
class Mended:
    """What is left of a space. `first` is its record 1, None where that is lost; `gone`: it was erased whole."""

    first: SpaceRecord | None
    gone: bool
    lost: list[Finding]
    _space: int
    _read: Read
    _survey: _Survey

    def entries(self, first: SpaceRecord, *, receipts: bool, blocks: bool) -> Iterator[Entry]:
        """Yield entries that hold together, as `folding.fold` asks for them.

        Args:
            first: record 1 from now on.
            receipts: keep them; they mean something under the old secret only.
            blocks: keep those under the space's own key; they mean something with that key only.
        """
        erased: list[int] = []
        position = 1
        yield Entry(1, encode(first))
        for seq, data in self._read():
            if seq == 1:
                continue
            for hole in range(position + 1, seq):
                erased.append(hole)
                yield Entry(hole, None)
            position = seq
            if data is None or not self._keeps(seq, data, receipts=receipts, blocks=blocks):
                erased.append(seq)
                data = None  # noqa: PLW2901 - left out, or erased before
            yield Entry(seq, data)
        yield Entry(position + 1, encode(RemovalRecord((), self._survey.next_number, tuple(erased), 0)))
        for record in (*self._survey.bridges(), *self._survey.parted.added):
            position += 1
            yield Entry(position + 1, encode(record))

    def _keeps(self, seq: int, data: bytes, *, receipts: bool, blocks: bool) -> bool:
        if seq in self._survey.left_out:
            return False
        record = decode(data, space=self._space, seq=seq)
        if isinstance(record, FactRecord):
            return record.number not in self._survey.removed
        if isinstance(record, ReceiptRecord | ChangeSetRecord):
            return receipts
        if isinstance(record, BlockRecord | UnblockRecord):
            return blocks or (isinstance(record, BlockRecord) and bool(record.key))
        return not isinstance(record, SpaceRecord)


def mend(space: int, last: int, read: Read) -> Mended:
    """Look through what is left of a space and say what is lost.

    Args:
        last: the number of the last record that the space is known to have had.
        read: yields what is whole in order, None in place of what was erased; what is lost is left out.

    Raises:
        Unavailable: a newer build wrote a record that this one does not know.
    """
    survey = _Survey()
    lost: list[Finding] = []
    holes: list[int] = []
    zeroed: list[int] = []
    position = 0
    for seq, data in read():
        holes += range(position + 1, seq)
        position = seq
        if data is None:
            zeroed.append(seq)
            continue
        try:
            survey.see(seq, decode(data, space=space, seq=seq))
        except Corrupt:
            survey.left_out.add(seq)
            lost.append(Finding(f"record {seq} of space {space} is no record of a known type", space, seq))
    holes += range(position + 1, last + 1)
    lost += [
        Finding(f"{_run(first, end)} of space {space} {'is' if first == end else 'are'} lost", space, first)
        for first, end in _runs(seq for seq in holes if seq not in survey.covered)
    ]
    lost += [
        Finding(f"record {seq} of space {space} was zeroed, and nothing that is left says why", space, seq)
        for seq in zeroed
        if seq not in survey.covered
    ]
    survey.left_out |= survey.covered
    lost += [Finding(f"record {seq} of space {space}: {what}", space, seq) for what, seq in survey.part()]
    return Mended(
        survey.first, survey.gone, sorted(lost, key=lambda finding: finding.seq or 0), space, read, survey
    )


def _runs(seqs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of ascending numbers without a gap."""
    first = before = 0
    for seq in seqs:
        if first and seq > before + 1:
            yield first, before
            first = seq
        first, before = first or seq, seq
    if first:
        yield first, before


def _run(first: int, last: int) -> str:
    return f"record {first}" if first == last else f"records {first} to {last}"


@dataclass(slots=True)
class _Survey:
    """What the whole records say of facts and links; the view of them that bridging needs."""

    first: SpaceRecord | None = None
    gone: bool = False
    next_number: int = 0
    removed: set[int] = field(default_factory=set)  # numbers
    covered: set[int] = field(default_factory=set)  # seqs that a removal names
    left_out: set[int] = field(default_factory=set)  # seqs
    links: dict[tuple[int, int, LinkKind], Link] = field(default_factory=dict)
    _begins: array[int] = field(default_factory=lambda: array("q"))
    _ingested: array[int] = field(default_factory=lambda: array("q"))
    _above: dict[int, list[Link]] = field(default_factory=dict)
    _below: dict[int, list[Link]] = field(default_factory=dict)
    is_ordered: bool = False
    parted: Parted = field(default_factory=Parted)
    _parting: Parting = field(default_factory=Parting)

    def part(self) -> list[tuple[str, int]]:
        """Leave out what is not whole of nodes and turns; return what that is, each with a seq."""
        self.parted = self._parting.part(self.removed, self.left_out)
        self.removed |= self.parted.facts
        self.left_out |= self.parted.seqs
        return self.parted.found

    def see(self, seq: int, record: Record) -> None:
        self._parting.see(seq, record)
        if isinstance(record, SpaceRecord) and seq == 1:
            self.first = record
        elif isinstance(record, FactRecord):
            self._see_fact(record)
        elif isinstance(record, LinkRecord):
            link = link_of(record)
            self.links[link.newer, link.older, link.kind] = link
        elif isinstance(record, RemovalRecord):
            self.next_number = max(self.next_number, record.units)
            self.removed.update(record.numbers)
            self.covered.update(record.seqs)
        elif isinstance(record, GoneRecord):
            self.gone = True

    def _see_fact(self, record: FactRecord) -> None:
        missing = record.number + 1 - len(self._begins)
        self._begins.extend([NO_FACT] * missing)
        self._ingested.extend([NO_FACT] * missing)
        self._ingested[record.number] = record.ingest_time
        self._begins[record.number] = begins_at(
            record.ingest_time,
            valid_from=record.valid_from,
            event_time=record.event_time,
            effective_from=record.effective_from,
        )
        self.next_number = max(self.next_number, record.number + 1 + len(record.cuts))

    def bridges(self) -> list[LinkRecord]:
        """Return the links over the facts that are lost: no older fact takes the place of one that stayed."""
        self._above, self._below = {}, {}
        for link in self.links.values():
            self._above.setdefault(link.older, []).append(link)
            self._below.setdefault(link.newer, []).append(link)
        missing = {
            n for link in self.links.values() for n in (link.newer, link.older) if not self._is_there(n)
        }
        return [
            LinkRecord(
                link.newer, link.older, link.kind is LinkKind.CORRECTS, link.effective_at, link.known_from
            )
            for link in relinks(missing, self)
        ]

    def _is_there(self, number: int) -> bool:
        known = 0 <= number < len(self._ingested) and self._ingested[number] != NO_FACT
        return known and number not in self.removed

    def above(self, number: int) -> Iterable[Link]:
        return self._above.get(number, ())

    def below(self, number: int) -> Iterable[Link]:
        return self._below.get(number, ())

    def eff(self, number: int) -> int:
        return self._begins[number] if self._is_there(number) else BEGINNING

    def ingest(self, number: int) -> int:
        return self._ingested[number] if self._is_there(number) else BEGINNING
