"""Reads that are done at once, on the event loop's own thread: those that are short, and that nothing holds up.

A read of a space that is in memory takes a fraction of a millisecond, and to hand it to a thread and back takes longer
than that, since both threads want the interpreter. So a read whose like was short lately is tried here first. It is in a
hurry (see `perdure.base.haste`): where it would wait for anything, or look at many rows, it gives up and is done on a
thread as any other. What still takes too long here keeps its like off the loop for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from math import inf
from time import perf_counter, thread_time
from typing import TypeVar

from perdure.base.haste import Seen, WouldWait, hurried, noting
from perdure.server.lines import Line
from perdure.server.looker import Ahead, Looker, ahead_of

T = TypeVar("T")
Kind = tuple[str, ...]
"""What reads have in common that take about as long: the operation, the tenant, and the space."""

QUICK = frozenset({"recall", "explain", "get", "history", "hasDocument", "searchDocuments"})
BODY_BYTES_MAX = 16 << 10  # of a request that is quickly decoded
READ_S = 0.002  # a kind whose reads take longer is done on threads
TURN_S = 0.005  # of reads in one turn of the loop: as long as Python lets a thread run before it gives way to others
GAVE_UP_S = (
    READ_S * 1.25
)  # counted for a read that gave up: the next two or three of its kind go to a thread at once
FADING = 0.9  # what is left of earlier reads' times with each further one
SHORTEST_S = 0.0001  # no read takes less
KINDS_MAX = 4_096


class _Times:
    """How long reads of one kind take, in seconds; those of long ago count for less and less."""

    __slots__ = ("ahead", "longest", "mean")

    def __init__(self) -> None:
        self.longest = READ_S  # of the processor
        self.mean = 0.0  # of the clock on the loop; one alone may be that of whatever else the machine did
        self.ahead: Ahead = ()  # what the last one on a thread looked at, which can be asked for together with others'

    @property
    def are_short(self) -> bool:
        return self.longest < READ_S and self.mean < READ_S

    def note(self, processor_s: float, clock_s: float) -> None:
        self.longest = max(processor_s, self.longest * FADING)
        self.mean = self.mean * FADING + clock_s * (1 - FADING)


class Quick:
    """Does reads at once where it can, else in their line."""

    def __init__(self, line: Line, looker: Looker | None = None) -> None:
        """Take the line of reads that are not done at once, and what looks where their spaces stand in a database."""
        self._line, self._looker = line, looker
        self._times: dict[Kind, _Times] = {}
        self._spent = self._last = 0.0  # seconds in this turn of the loop, and of the last read
        self._in_turn = False
        self._seen: Seen = {}  # of the stores, by the reads of this turn
        self._seen_from = -inf  # the moment from which on it was looked at
        self._waiting: deque[asyncio.Future[None]] = deque()  # for a later turn, who came first first

    async def run(
        self, kind: Kind, work: Callable[[], T], *, timeout_s: float, came_at: float | None = None
    ) -> T:
        """Do the work, which only reads, and return what it returns; raises as `Line.run`.

        The first of a kind goes to a thread: it may have to open and load what it reads.

        Args:
            kind: what it has in common with others.
            work: the read.
            timeout_s: how long it may wait for a thread.
            came_at: when the request had come, by the loop's clock. What was looked at after that for another serves
                this one too: no write had been acknowledged before it came that the look did not see. None: just now.
        """
        times = self._times_of(kind)
        if times.are_short:
            self._line.check_room()
            seen: Seen | None = None
            if times.ahead and self._looker is not None:
                seen = await self._looker.look(times.ahead)
            if self._spent >= TURN_S or self._waiting:
                await self._wait()
            try:
                return self._at_once(times, work, came_at, seen)
            except WouldWait:
                times.longest = GAVE_UP_S
        return await self._line.run(lambda: _on_thread(times, work), timeout_s=timeout_s)

    def _at_once(self, times: _Times, work: Callable[[], T], came_at: float | None, seen: Seen | None) -> T:
        self._begin_turn()
        if seen is None:
            if came_at is None or came_at >= self._seen_from:
                self._seen, self._seen_from = {}, asyncio.get_running_loop().time()
            seen = self._seen
        began, processor = perf_counter(), thread_time()
        try:
            return hurried(work, seen)
        finally:
            seconds = perf_counter() - began
            self._spent += seconds
            self._last = seconds
            times.note(thread_time() - processor, seconds)

    def _times_of(self, kind: Kind) -> _Times:
        times = self._times.get(kind)
        if times is None:
            if len(self._times) >= KINDS_MAX:
                self._times.clear()
            times = self._times[kind] = _Times()
        return times

    async def _wait(self) -> None:
        self._begin_turn()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin_turn(self) -> None:
        if not self._in_turn:
            self._in_turn = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._in_turn, self._spent = False, 0.0
        self._seen, self._seen_from = {}, -inf  # it keeps nothing of a store that is closed
        if self._waiting:
            self._begin_turn()
            # As many as fit, if they take as long as the last; each may go on at once, in the turn that begins now.
            for _ in range(min(len(self._waiting), 1 + int(TURN_S / max(self._last, SHORTEST_S)))):
                turn = self._waiting.popleft()
                if not turn.done():  # whoever asked may have gone
                    turn.set_result(None)


def _on_thread(times: _Times, work: Callable[[], T]) -> T:
    # Of the processor alone: how long it waited for the other threads says nothing of the read.
    began, looks = thread_time(), set[Hashable]()
    try:
        return noting(work, looks)
    finally:
        times.note(thread_time() - began, 0.0)
        times.ahead = ahead_of(looks)
