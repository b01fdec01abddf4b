"""The audit's own log: runs of events in one space of it, and how far they follow the main log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from perdure.audit.rows import (
    RUN_MAX,
    START,
    Body,
    Mark,
    Plan,
    Position,
    Row,
    decode,
    encode,
    extend,
    make_body,
    row_bytes,
    rows_of,
)
from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Conflict, Moved, NotFound
from perdure.log.protocol import EMPTY, Batch, Head, Log, Read, Rewritten

T = TypeVar("T")
ATTEMPTS = 64  # others who wrote so often in a row leave a call with Busy
WHOLE_EVERY = 64  # records after which all marks are told again, so that an opening reads no more of them
READ_AT_ONCE = 64


class Run(NamedTuple):
    """Events that go into the book together: those of one space, or of none."""

    space: bytes
    rows: Sequence[Row]


@dataclass(frozen=True)
class State:
    """Where the book stands. `number` is that of its space in its log, None while there is nothing."""

    number: int | None
    head: Head
    next: int  # the sequence of the next event
    chain: bytes
    epoch: int | None  # of the main log that the marks are of; None while there are none
    marks: dict[int, Mark]
    plan: Plan | None
    since_whole: int = 0


NOTHING = State(None, EMPTY, 1, START, None, {}, None)


def book_name(secret: bytes) -> bytes:
    """Return the hash under which the audit's own log knows its one space; of the main log's secret."""
    return keyed_hash(secret, b"space", b"perdure audit")


class Book:
    """Reads and appends runs of events. Thread-safe."""

    def __init__(self, log: Log, secret: bytes) -> None:
        """Use a log that holds nothing else.

        Args:
            secret: the main log's, which seals the records.
        """
        self.log, self._secret = log, secret
        self._name = book_name(secret)
        self._state = NOTHING
        self._lock = threading.Lock()

    def state(self) -> State:
        """Return where the book stands, as last written by any process."""
        for _ in range(ATTEMPTS):
            number = self.log.find_space(self._name)
            if number is None:
                return NOTHING
            head = self.log.head(number)
            with self._lock:
                if self._state.number == number and self._state.head == head:
                    return self._state
            try:
                state = self._load(number, head)
            except Moved:
                continue
            with self._lock:
                self._state = state
            return state
        raise Busy("the audit is being trimmed again and again; retry")

    def _load(self, number: int, head: Head) -> State:
        bodies: list[Body] = []
        before = head.seq + 1
        while before > 1 and not (bodies and _is_whole(bodies[-1])):
            seqs = range(before - 1, max(0, before - 1 - READ_AT_ONCE), -1)
            for data in self.log.get(number, seqs, head):
                bodies.append(decode(self._secret, data))
                if _is_whole(bodies[-1]):
                    break
            before = seqs[-1]
        last = bodies[0]
        told = [body.position for body in reversed(bodies) if body.position is not None]
        marks = {mark.number: mark for position in told for mark in position.marks}
        latest = told[-1]
        chained = last.first + last.count
        return State(number, head, chained, last.chain, latest.epoch, marks, latest.plan, len(bodies))

    def append(self, state: State, runs: Sequence[Run], position: Position) -> State:
        """Append runs and how far they follow, in one transaction; durable when it returns.

        Args:
            state: what was read before; `position` names all marks that differ from it.

        Raises:
            Conflict: kind "head": the book is not in this state any more; nothing was written.
            StorageFull, Busy, Unavailable, Corrupt: nothing was written.
        """
        if state.number is None:
            first = make_body(1, b"", (), START, Position(position.epoch, (), True, None))
            number = self.log.create_space(self._name, encode(self._secret, first))
            head = self.log.head(number)
            if head.seq != 1:
                raise Conflict("another process wrote to the audit first, or trimmed it", kind="head")
            state = self._load(number, head)
        position = self._position(state, position)
        bodies = _bodies(state, runs, position)
        assert state.number is not None
        records = [encode(self._secret, body) for body in bodies]
        try:
            head = self.log.append(state.number, state.head, Batch(records))
        except NotFound as gone:
            raise Conflict("another process trimmed the audit meanwhile", kind="head") from gone
        last = bodies[-1]
        marks = {} if position.is_whole else dict(state.marks)
        marks.update((mark.number, mark) for mark in position.marks)
        since = 1 if position.is_whole else state.since_whole + len(bodies)
        following = State(
            state.number,
            head,
            last.first + last.count,
            last.chain,
            position.epoch,
            marks,
            position.plan,
            since,
        )
        with self._lock:
            self._state = following
        return following

    def _position(self, state: State, position: Position) -> Position:
        if position.is_whole or (position.epoch == state.epoch and state.since_whole < WHOLE_EVERY):
            return position
        marks = dict(state.marks) if position.epoch == state.epoch else {}
        marks.update((mark.number, mark) for mark in position.marks)
        return Position(position.epoch, tuple(marks.values()), True, position.plan)

    def bodies(self, state: State, from_sequence: int = 0) -> Iterator[Body]:
        """Yield the records that hold events from this sequence on, in order, their seals checked.

        Raises Moved where the book was trimmed meanwhile.
        """
        if state.number is None:
            return
        number, head = state.number, state.head
        low, high = 1, head.seq  # record 1 holds no events
        while low < high:  # the first record whose last event is not before the one asked for
            middle = (low + high) // 2
            body = decode(self._secret, self.log.get(number, [middle], head)[0])
            if body.first + body.count <= from_sequence:
                low = middle + 1
            else:
                high = middle
        for entry in self.log.read(number, low - 1, head.seq):
            yield decode(self._secret, entry.data)

    def trim(self, before: int) -> int:
        """Let go of the first events, up to the first that is not before this moment (ms); return how many went.

        Record 1 tells from then on where the chain goes on, so that the rest still verifies.
        """
        dropped = 0

        def rewrite(number: int, read: Read) -> Iterator[Rewritten]:
            nonlocal dropped
            bodies = [decode(self._secret, entry.data) for entry in read()]
            kept, dropped = _trimmed(bodies, before)
            for body in kept:
                yield Rewritten(encode(self._secret, body))

        if self.log.find_space(self._name) is not None:
            self.log.purge(rewrite)
        return dropped


def retried(work: Callable[[], T]) -> T:
    """Return work(), which reads a state and appends to it, tried again where another process was faster."""
    for _ in range(ATTEMPTS):
        try:
            return work()
        except Conflict as conflict:
            if conflict.kind != "head":
                raise
        except (Moved, NotFound):
            continue
    raise Busy(f"other processes wrote to the audit {ATTEMPTS} times in a row; retry")


def _is_whole(body: Body) -> bool:
    return body.position is not None and body.position.is_whole


def _bodies(state: State, runs: Sequence[Run], position: Position) -> list[Body]:
    bodies: list[Body] = []
    sequence, chain = state.next, state.chain
    for space, rows in runs:
        for start in range(0, len(rows), RUN_MAX):
            bodies.append(make_body(sequence, space, rows[start : start + RUN_MAX], chain))
            sequence, chain = sequence + bodies[-1].count, bodies[-1].chain
    if not bodies:
        bodies.append(make_body(sequence, b"", (), chain))
    bodies[-1] = _placed(bodies[-1], position)
    return bodies


def _placed(body: Body, position: Position) -> Body:
    return msgspec.structs.replace(body, position=position)


def _trimmed(bodies: Sequence[Body], before: int) -> tuple[list[Body], int]:
    """Return the records without the first events that are older, and how many these were."""
    dropped, chain, at = 0, bodies[0].chain, 1
    rest: list[Body] = []
    for at, body in enumerate(bodies[1:], 1):
        rows = rows_of(body)
        old = next((place for place, row in enumerate(rows) if row.at >= before), len(rows))
        dropped += old
        chain = extend(chain, body.space, body.first, [row_bytes(row) for row in rows[:old]])
        if old < len(rows):
            rest = [
                make_body(body.first + old, body.space, rows[old:], chain, body.position),
                *bodies[at + 1 :],
            ]
            break
    marks: dict[int, Mark] = {}
    last = bodies[0].position
    for body in bodies[: len(bodies) - len(rest) + 1] if rest else bodies:
        last = body.position or last
        if body.position is not None:
            marks = {} if body.position.is_whole else marks
            marks.update((mark.number, mark) for mark in body.position.marks)
    assert last is not None
    first = rest[0].first if rest else bodies[-1].first + bodies[-1].count
    position = Position(last.epoch, tuple(marks.values()), True, last.plan)
    return [make_body(first, b"", (), chain, position), *rest], dropped
