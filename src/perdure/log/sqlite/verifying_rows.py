"""Checking the rows of a generation against themselves, their heads and the high-water mark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import apsw

from perdure.base.sqlite.driver import rows_of
from perdure.base.text import counted
from perdure.errors import Busy, Corrupt
from perdure.log.digests import ERASED_CHECK, digest_bytes, digest_sum
from perdure.log.protocol import ADVICE, Finding, Head, Progress
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.files import HighWater, check_mark
from perdure.log.sqlite.reading import (
    CHECKS,
    CHUNK_BYTES,
    CHUNK_ROWS,
    HEADS,
    parsed_head,
    read_head,
    verified,
)

ATTEMPTS = 3  # a space that was erased in so often in a row, while it was read, gives up with Busy
_ROWS = "SELECT rid, space, seq, ck, data FROM log.rec WHERE rid > ? ORDER BY rid LIMIT ?"
_PLACES = "SELECT rid, space, seq, ck FROM log.rec WHERE rid > ? ORDER BY rid LIMIT ?"
_NEXT = "SELECT rid, ck, length(data) FROM log.rec WHERE rid >= ? ORDER BY rid LIMIT 1"
_COUNTS = (
    "SELECT (SELECT coalesce(max(rid), 0) FROM log.rec), "
    "(SELECT count(*) FROM log.rec INDEXED BY rec_place), (SELECT count(*) FROM log.vec)"
)

Result = TypeVar("Result")
Rows = Sequence[Sequence[Any]]


class Overtaken(Exception):
    """Another generation is the store now: what was looked at is no more."""


class View(Protocol):
    """Runs work in a short read transaction on the generation that is looked at."""

    def __call__(self, work: Callable[[apsw.Connection], Result], /) -> Result: ...


def advised(what: str, generation: int, space: int | None = None, seq: int | None = None) -> Finding:
    """Return the finding that says where `what` is and what to do about it."""
    return Finding(f"{what} in generation {generation}: {ADVICE}", space, seq)


@dataclass(slots=True)
class _Sums:
    """What the rows of one space add up to."""

    seq: int = 0
    erased: int = 0
    total: int = 0
    told: bool = False  # something was found already that keeps the sums from fitting

    def add(self, checks: Sequence[tuple[int, bytes]], secret: bytes) -> None:
        live = [(seq, check) for seq, check in checks if check != ERASED_CHECK]
        self.erased += len(checks) - len(live)
        self.total += digest_sum(secret, live)

    def fits(self, head: Head) -> bool:
        return (self.seq, self.erased, digest_bytes(self.total)) == (head.seq, head.erasures, head.digest)


@dataclass(slots=True)
class RowCheck:
    """One pass over all rows in the order of their ids."""

    access: Access
    view: View
    quick: bool
    progress: Progress | None
    generation: int
    _sums: dict[int, _Sums] = field(default_factory=dict)
    _position: int = 0
    _counted: int = 0
    _chunk: list[Any] = field(default_factory=list)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong; raises Overtaken when the generation is replaced meanwhile."""
        mark = yield from self._mark()  # before the rows, so that it is not newer than they are
        last, indexed, vectors = self.view(lambda db: rows_of(db, _COUNTS))[0]
        before = {row[0]: row for row in self.view(lambda db: rows_of(db, HEADS))}
        self._sums = {space: _Sums() for space in before}
        if last < mark:
            yield self._finding(
                f"the mark says that {counted(mark, 'row')} were acknowledged, but there are {last}"
            )
        if vectors:
            yield self._finding(f"there are {counted(vectors, 'row')} of vectors, which nobody writes yet,")
        heads: Rows | None = None
        while heads is None:
            heads = yield from self._step(last)
        if self._counted != indexed and not any(sums.told for sums in self._sums.values()):
            yield self._finding(
                f"there are {counted(self._counted, 'row')}, but the index of places has {indexed}"
            )
        for space, *columns in heads:
            yield from self._check_sums(space, columns, before.get(space))
        for space in sorted(self._sums.keys() - {row[0] for row in heads}):
            yield self._finding(f"space {space} has records but no head", space)

    def _mark(self) -> Generator[Finding, None, int]:
        if not self.generation:  # it could not be looked at yet
            return 0
        path = self.access.files.high_water(self.generation)
        try:
            check_mark(path)
        except Corrupt as error:
            yield Finding(error.message)
            return 0
        mark = HighWater(path)
        try:
            return mark.read()
        finally:
            mark.close()

    def _step(self, last: int) -> Generator[Finding, None, Rows | None]:
        """Check one run of rows; return the heads of the same moment when it was the last one."""
        heads: Rows | None = None
        try:
            heads = self.view(self._read_chunk)
        except Corrupt:
            if not self._chunk:  # else those that came before the damage are checked first
                after, self._position = self._position, self._next_readable(self._position, last)
                for sums in self._sums.values():
                    sums.told = True
                yield self._finding(f"{_run('row', after + 1, self._position)} cannot be read")
                return self.view(lambda db: rows_of(db, HEADS)) if self._position >= last else None
        yield from self._check_rows(self._chunk)
        # Ids ascend, so that only a chunk that goes past what was last at the start needs counting.
        past = bool(self._chunk) and self._chunk[-1][0] > last
        self._counted += sum(row[0] <= last for row in self._chunk) if past else len(self._chunk)
        if self.progress is not None:
            self.progress(min(self._position, last), last)
        return heads

    def _read_chunk(self, db: apsw.Connection) -> Rows | None:
        """Read a run of rows as far as it can be read; return the heads with the last one."""
        self._chunk, size = [], 0
        for row in db.execute(_PLACES if self.quick else _ROWS, (self._position, CHUNK_ROWS)):
            self._chunk.append(row)
            size += len(row[4]) if not self.quick and type(row[4]) is bytes else 0
            if size > CHUNK_BYTES:
                return None
        return rows_of(db, HEADS) if len(self._chunk) < CHUNK_ROWS else None

    def _next_readable(self, after: int, last: int) -> int:
        """Return the row after which rows can be read again, at the latest the last one."""
        reach = 1
        while after + reach < last and not self._is_readable(after + reach + 1):
            reach *= 2
        low, high = after + reach // 2, min(after + reach, last)
        while low + 1 < high:
            middle = (low + high) // 2
            if self._is_readable(middle + 1):
                high = middle
            else:
                low = middle
        return max(high, after + 1)

    def _is_readable(self, rid: int) -> bool:
        try:
            self.view(lambda db: rows_of(db, _NEXT, (rid,)))
        except Corrupt:
            return False
        return True

    def _check_rows(self, rows: Rows) -> Iterator[Finding]:
        checks: dict[int, list[tuple[int, bytes]]] = {}
        position, sums_of = self._position, self._sums
        for rid, space, seq, check, *data in rows:
            sums = sums_of.get(space) if type(space) is int else None
            right = rid == position + 1 and type(check) is bytes
            # What is usual goes without a call: there may be millions of rows.
            if right and sums is not None and seq == sums.seq + 1 and type(seq) is int:
                sums.seq = seq
            else:
                yield from self._check_place(position, (rid, space, seq, check))
                sums = sums_of.get(space) if type(space) is int else None
            position = max(rid, position + 1)
            if sums is None or type(seq) is not int or type(check) is not bytes:
                continue
            checks.setdefault(space, []).append((seq, check))
            if data:
                yield from self._check_bytes(space, (seq, data[0], check), sums)
        self._position = position
        for space, found in checks.items():
            sums_of[space].add(found, self.access.secret)

    def _check_place(self, before: int, row: Sequence[Any]) -> Iterator[Finding]:
        """Say what is wrong with the place of a (rid, space, seq, ck) row that follows row `before`."""
        rid, space, seq, check = row
        if rid != before + 1:
            yield self._finding(f"of {_run('row', before + 1, rid - 1)} nothing is there")
        sums = self._sums.get(space) if type(space) is int else None
        if sums is None and type(space) is int and space > max(self._sums, default=0):
            sums = self._sums[space] = _Sums()  # of a space that was created since, or that has lost its head
        if sums is None or type(seq) is not int or type(check) is not bytes:
            yield self._finding(f"row {rid} is not of a space that there is, or damaged,")
            return
        if seq <= sums.seq:
            yield self._finding(f"record {seq} of space {space} follows record {sums.seq}", space, seq)
            sums.told = True
        elif seq > sums.seq + 1:
            yield self._missing(space, sums.seq + 1, seq - 1)
            sums.told = True
        sums.seq = max(sums.seq, seq)

    def _check_bytes(self, space: int, row: Sequence[Any], sums: _Sums) -> Iterator[Finding]:
        try:
            verified(space, row, self.generation)
        except Corrupt as error:
            sums.told = True
            yield self._finding(f"record {error.seq} of space {space} is damaged", space, error.seq)

    def _check_sums(
        self, space: int, columns: Sequence[Any], before: Sequence[Any] | None
    ) -> Iterator[Finding]:
        """Compare the rows of a space with its head; `before` is its head's row at the start of the pass."""
        sums = self._sums.get(space, _Sums())
        try:
            head = parsed_head(space, self.generation, columns)
            if before is not None and before[3] != columns[2] and not sums.told:
                head, sums = self._sums_again(space)  # an erasure changed rows that were added up
        except Corrupt:
            return  # told with the heads
        if sums.seq < head.seq:
            yield self._missing(space, sums.seq + 1, head.seq)
        elif sums.seq > head.seq:
            what = f"space {space} has records up to {sums.seq}, past its head at {head.seq},"
            yield self._finding(what, space, head.seq + 1)
        elif not sums.told and not sums.fits(head):
            yield self._finding(
                f"the {counted(sums.seq, 'record')} of space {space} ({sums.erased} erased) do not add up to its head "
                f"({head.erasures} erased)",
                space,
            )

    def _sums_again(self, space: int) -> tuple[Head, _Sums]:
        """Return a head, and what its rows add up to while nothing is erased."""
        for _ in range(ATTEMPTS):
            sums = _Sums()
            first = self.view(lambda db: read_head(db, space, self.generation))
            while True:
                rows, head = self.view(lambda db, after=sums.seq: self._checks(db, space, after))  # type: ignore[misc]
                sums.add(rows, self.access.secret)
                sums.seq += len(rows)
                if len(rows) < CHUNK_ROWS:
                    break
            if head.erasures == first.erasures:
                return head, sums
        raise Busy(f"space {space} is erased in again and again; verify the store when less is written")

    def _checks(self, db: apsw.Connection, space: int, after: int) -> tuple[list[Any], Head]:
        return rows_of(db, CHECKS, (space, after, CHUNK_ROWS)), read_head(db, space, self.generation)

    def _missing(self, space: int, first: int, last: int) -> Finding:
        return self._finding(
            f"of {_run('record', first, last)} of space {space} nothing is there", space, first
        )

    def _finding(self, what: str, space: int | None = None, seq: int | None = None) -> Finding:
        return advised(what, self.generation, space, seq)


def _run(what: str, first: int, last: int) -> str:
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"
