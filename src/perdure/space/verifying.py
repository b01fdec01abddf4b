"""Verifying what the records of each space say, above what a log can check of their bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pyroaring import BitMap

from perdure.errors import Busy, Corrupt, InvalidRequest, Moved, Unavailable
from perdure.log.protocol import ANY_ADVICE, EMPTY, Entry, Finding, Head, Log, Progress
from perdure.log.records import (
    NO_FACT,
    AnnotationRecord,
    EndRecord,
    FactRecord,
    GoneRecord,
    HideRecord,
    LinkRecord,
    QuoteRecord,
    ReceiptRecord,
    Record,
    RemovalRecord,
    RestoreRecord,
    SpaceRecord,
    UseRecord,
    VectorRecord,
    decode,
)
from perdure.model.finding import Verified
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.apply import apply_all
from perdure.space.comparing import differences
from perdure.space.names import hashed_name
from perdure.space.preparing import Prepared, prepare
from perdure.space.state import SpaceState, new_state
from perdure.space.verifying_governed import GovernedReplay

ATTEMPTS = 3  # a space that was purged or erased under every attempt gives up with Busy
STEP = 1_000  # records between two words of progress


def verify_log(log: Log, *, quick: bool = False, progress: Progress | None = None) -> Verified:
    """Check a whole log and what its records say; changes nothing.

    Args:
        quick: leave out what needs every record's bytes.
        progress: told what was done of all, once for the bytes and, unless `quick`, once for what they say.

    Raises:
        Busy: others purge or erase all the while.
        Unavailable: the log cannot be looked at, or a newer build wrote in it.
    """
    found = list(log.verify(quick=quick, progress=progress))
    heads, damaged = _heads(log, found)
    if not quick:
        # A damaged space was told of already, and a damaged cache would be dropped by reading it.
        found += replay_findings(log, skip=damaged, snapshots=not found, progress=progress)
    return Verified(not found, tuple(found), len(heads), sum(head.seq for head in heads))


def _heads(log: Log, found: list[Finding]) -> tuple[list[Head], set[int]]:
    damaged = {finding.space for finding in found if finding.space is not None}
    heads = []
    try:
        for number in log.spaces():
            try:
                heads.append(log.head(number))
            except Corrupt:
                damaged.add(number)
    except Corrupt as error:
        if not found:
            found.append(Finding(error.message))
    return heads, damaged


def replay_findings(
    log: Log,
    *,
    skip: Collection[int] = (),
    snapshots: bool = True,
    progress: Progress | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with what the records say, space by space.

    Every record is decoded and held against the ones before it, then all are applied; where a snapshot is
    kept, the state is compared with it.

    Args:
        skip: spaces to leave out.
        snapshots: look at the kept snapshots too; the log drops a damaged one then.
        progress: told the records that were looked at, of all.
    """
    try:
        numbers = [number for number in log.spaces() if number not in skip]
        total = sum(log.head(number).seq for number in numbers)
    except Corrupt:
        return  # what cannot be asked for its spaces has said so
    done = 0

    def advance(records: int) -> None:
        nonlocal done
        done += records
        if progress is not None:
            progress(min(done, total), total)

    for number in numbers:
        yield from _space_findings(log, number, advance, snapshots=snapshots)


def _space_findings(
    log: Log, number: int, advance: Callable[[int], None], *, snapshots: bool
) -> Iterator[Finding]:
    for _ in range(ATTEMPTS):
        replay = _Replay(log, number, advance)
        try:
            found = list(replay.findings(snapshots=snapshots))
            if found and replay.is_overtaken():
                continue  # half of what was read is older than the erasure, and half is younger
        except Moved:
            continue
        except (Corrupt, Unavailable, InvalidRequest) as error:
            # Unavailable: a record of a newer format. InvalidRequest: an analysis that this build does not have.
            found = [Finding(error.message, number, error.details.get("seq"))]
        yield from found
        return
    raise Busy(
        f"space {number} is purged or erased in again and again; verify the store when less is written"
    )


@dataclass(slots=True)
class _Replay:
    """One pass over the records of one space."""

    log: Log
    number: int
    advance: Callable[[int], None]
    begun: Head = EMPTY  # when the pass began
    state: SpaceState | None = None
    waiting: list[Prepared] = field(default_factory=list)  # not applied yet
    next_number: int = 0
    holes: set[int] = field(default_factory=set)
    covered: set[int] = field(default_factory=set)
    gone: bool = False
    ahead: list[tuple[int, int]] = field(default_factory=list)  # (fact, seq): named before it was met
    removed: BitMap = field(default_factory=BitMap)  # facts
    owners: array[int] = field(default_factory=lambda: array("q"))  # facts, and at the same places the seqs
    owned: array[int] = field(default_factory=lambda: array("q"))  # of records that are erased with them
    governed: GovernedReplay = field(default_factory=GovernedReplay)

    def is_overtaken(self) -> bool:
        """Return whether the space was erased in, or the store purged, since the pass began."""
        head = self.log.head(self.number)
        return (head.epoch, head.erasures) != (self.begun.epoch, self.begun.erasures)

    def findings(self, *, snapshots: bool) -> Iterator[Finding]:
        self.begun = head = self.log.head(self.number)
        kept = self._snapshot(head) if snapshots else None
        whole = True
        for entry in self.log.read(self.number, 0, head.seq):
            for finding in self._see(entry):
                whole = False  # what does not hold together is not applied
                yield finding
            if whole and (entry.seq % STEP == 0 or entry.seq == head.seq):
                self._apply()
            if whole and kept is not None and entry.seq == kept.head.seq:
                yield from self._compare(kept)
            if entry.seq % STEP == 0:
                self.advance(STEP)
        self.advance(head.seq % STEP)
        yield from self._see_ends(head)

    def _see(self, entry: Entry) -> Iterator[Finding]:
        if entry.data is None:
            self.holes.add(entry.seq)
            return
        record = decode(entry.data, space=self.number, seq=entry.seq)
        if isinstance(record, SpaceRecord) != (entry.seq == 1):
            yield self._finding("is not what stands at its place", entry.seq)
        elif isinstance(record, SpaceRecord):
            yield from self._see_name(record)
        else:
            yield from self._see_record(entry.seq, record)
        if self.state is not None and entry.seq > 1:
            self.waiting.append(prepare(entry.seq, record, self.state.profile, self.log.secret))

    def _see_name(self, record: SpaceRecord) -> Iterator[Finding]:
        self.state = new_state(record)
        name = hashed_name(self.log.secret, Namespace(record.principal, record.scope))
        if self.log.find_space(name) != self.number:
            yield self._finding("tells a name under which the space is not found", 1)

    def _see_record(self, seq: int, record: Record) -> Iterator[Finding]:
        if isinstance(record, FactRecord):
            if record.number < self.next_number:
                yield self._finding(f"repeats the fact number {record.number}", seq)
            if not _ascend((0, *record.cuts, len(record.text))):
                yield self._finding("is cut into units at places that its text does not have", seq)
            if any(not 0 <= source < record.number for source in record.made_from):
                yield self._finding("is made from a fact that did not come before it", seq)
            self.next_number = max(self.next_number, record.number + 1 + len(record.cuts))
        elif isinstance(record, RemovalRecord):
            self.next_number = max(self.next_number, record.units)
            self.covered.update(record.seqs)
            self.removed.update(number for number in record.numbers if number >= 0)
            left = set(record.seqs) - self.holes
            if left:
                yield self._finding(f"was to be erased by record {seq}, but is still there", min(left))
        elif isinstance(record, GoneRecord):
            self.gone = True
        elif isinstance(record, LinkRecord) and record.newer == record.older:
            yield self._finding("links a fact to itself", seq)
        for what, at in self.governed.see(seq, record):
            yield self._finding(what, at)
        for number in _owners(record):
            self.owners.append(number)
            self.owned.append(seq)
        self.ahead += [(number, seq) for number in _named(record) if not 0 <= number < self.next_number]

    def _see_ends(self, head: Head) -> Iterator[Finding]:
        """Check what only the whole space tells: whether what was zeroed or named is accounted for."""
        uncovered = set() if self.gone else self.holes - self.covered
        if uncovered or any(number >= self.next_number for number, _ in self.ahead):
            # An erasure may have come after the head: its record lies beyond.
            for entry in self.log.read(self.number, head.seq, self.log.head(self.number).seq):
                record = None if entry.data is None else decode(entry.data, space=self.number, seq=entry.seq)
                if isinstance(record, RemovalRecord):
                    uncovered.difference_update(record.seqs)
                    self.next_number = max(self.next_number, record.units)
                elif isinstance(record, GoneRecord):
                    uncovered = set()
        if uncovered:
            yield self._finding(
                f"and {len(uncovered) - 1} more were zeroed without a removal that says so", min(uncovered)
            )
        for number, seq in self.ahead:
            if not 0 <= number < self.next_number:
                yield self._finding(f"names fact {number}, which there never was", seq)
        for number, seq in zip(self.owners, self.owned, strict=True):
            if number in self.removed:
                yield self._finding(f"tells of fact {number}, which was forgotten", seq)
        for what, seq in self.governed.ends():
            yield self._finding(what, seq)

    def _apply(self) -> None:
        if self.state is not None:
            apply_all(self.state, self.waiting, self.log.secret)
        self.waiting = []

    def _snapshot(self, head: Head) -> SpaceState | None:
        cached = self.log.get_cache(self.number, snapshot.NAME)
        if cached is None or cached.head.seq > head.seq:
            return None
        if (cached.head.epoch, cached.head.erasures) != (head.epoch, head.erasures):
            return None
        return snapshot.find_state(cached)

    def _compare(self, kept: SpaceState) -> Iterator[Finding]:
        self._apply()
        if self.state is None:
            return
        found = differences(kept, self.state)
        if found:
            yield Finding(
                f"the kept state of space {self.number} is not what its records say ({', '.join(found)}): nothing is "
                "lost; close the store everywhere and delete its cache file, and the state is made anew",
                self.number,
            )

    def _finding(self, what: str, seq: int) -> Finding:
        return Finding(f"record {seq} of space {self.number} {what}: {ANY_ADVICE}", self.number, seq)


def _ascend(places: Sequence[int]) -> bool:
    return len(places) == 2 or all(a < b for a, b in pairwise(places))


def _owners(record: Record) -> Iterable[int]:
    """Return the facts with which the record is erased when one of them is forgotten."""
    if isinstance(record, EndRecord | AnnotationRecord | VectorRecord | QuoteRecord):
        return (record.number,)
    if isinstance(record, ReceiptRecord):
        return [item.number for item in record.items if item.number != NO_FACT]
    return ()


def _named(record: Record) -> Iterable[int]:
    """Return the facts that a record names."""
    if isinstance(record, LinkRecord):
        return (record.newer, record.older)
    if isinstance(record, EndRecord | AnnotationRecord | VectorRecord | QuoteRecord):
        return (record.number,)
    if isinstance(record, HideRecord | RestoreRecord | UseRecord | RemovalRecord):
        return record.numbers
    if isinstance(record, ReceiptRecord):
        named = [number for item in record.items for number in (item.number, *item.supersedes)]
        return [number for number in named if number != NO_FACT]
    return ()
