"""The connections of a process to one database: each lent to one thread at a time, and made where none is idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus

from perdure.base.forking import OwnProcess
from perdure.base.text import counted
from perdure.errors import Busy, Unavailable
from perdure.log.postgres.failures import lasts, unmet
from perdure.log.postgres.wire import Wire, wire_of
from perdure.log.turns import ThreadRoom

IDLE_MAX_S = 300  # that nobody used a connection for, before it is given back to the database
PAUSE_S = 0.1  # between attempts to reach a database that is away
Connection = psycopg.Connection[tuple[Any, ...]]


class Places:
    """Room for so many threads to have a connection at once. One that has a place needs no other."""

    def __init__(self, size_max: int, wait_s: float) -> None:
        """Have who finds no room wait for as long."""
        self.size_max, self._wait_s = size_max, wait_s
        self._room = ThreadRoom(size_max)
        self._own = _Own()
        self._lock = threading.Lock()

    def enter(self) -> _Count:
        """Return the count of the calling thread, which is one more; raises Busy where there is no room in time."""
        count = self._own.count
        if not count.taken and not self._room.take(self._wait_s):
            raise Busy(
                f"{self.size_max} other threads of this process had a connection to the database for "
                f"{counted(self._wait_s, 'second')}; try again"
            )
        with self._lock:
            count.taken += 1
        return count

    def leave(self, count: _Count) -> None:
        """Take one from a thread's count. A session that nobody ended is ended by whichever thread finds that out."""
        with self._lock:
            count.taken -= 1
            is_last = not count.taken
        if is_last:
            self._room.give()


@dataclass
class _Count:
    taken: int = 0


class _Own(threading.local):
    """The calling thread's."""

    def __init__(self) -> None:
        self.count = _Count()


@dataclass
class Link:
    """A connection, and whose rows its session is set to."""

    connection: Connection
    tenant: UUID | None = None
    idle_from: float = 0.0
    wire: Wire = field(init=False)
    place: tuple[Places, _Count] | None = None  # of the thread that has it

    def __post_init__(self) -> None:
        self.wire = wire_of(self.connection)

    def close(self) -> None:
        """End the connection, as `Wire.close`."""
        self.wire.close()


@dataclass
class _Outage:
    began: float
    last: float  # when it was last looked


class Pool:
    """Connections, lent to at most so many threads at once. Thread-safe.

    Who is to have one briefly, for statements that wait for nobody, has a place of its own: else it might wait for
    threads that have locked rows, and they for something that it has. So has who is to tell soon how the database is, who
    else would wait for threads that it leaves without an answer.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        size_max: int,
        wait_s: float,
        *,
        brief_max: int = 1,
        soon_max: int = 1,
        place_s: float | None = None,
    ) -> None:
        """Lend to at most `size_max` threads at once, to as many as `brief_max` others briefly, to `soon_max` soon.

        Args:
            wait_s: how long to wait for a database that is away at first. Once it was away for that long, calls fail at
                once, until it is there again.
            place_s: how long to wait while so many other threads have a connection, as long as that when None.
        """
        self._connect, self._wait_s = connect, wait_s
        place_s = wait_s if place_s is None else place_s
        self._places, self._brief = Places(size_max, place_s), Places(brief_max, place_s)
        self._soon = Places(soon_max, wait_s)
        self._lock = threading.Lock()
        self._idle: list[
            Link
        ] = []  # the last one used, at the end, goes out first, so that those not needed grow old
        self._outage: _Outage | None = None
        self._closed = False
        self._process = OwnProcess()

    def take(self, *, brief: bool = False, soon: bool = False) -> Link:
        """Lend a connection; `give` it back. A thread that has one gets another at once.

        Raises:
            Busy: so many other threads had one past the time-out, or the database takes no more.
            Unavailable: the database cannot be reached, or leaves all without an answer who are to have one soon.
        """
        self._process.check()
        places = self._soon if soon else self._brief if brief else self._places
        try:
            count = places.enter()
        except Busy as error:
            if not soon:
                raise
            raise Unavailable(
                f"the database answered nobody who looked how it is for {counted(self._wait_s, 'second')}: it hangs, or the way "
                "to it is broken; check both"
            ) from error
        try:
            link = self._find_idle() or Link(self._reach())
        except BaseException:  # raised again: nobody else gives the place back
            places.leave(count)
            raise
        link.place = places, count
        return link

    def give(self, link: Link) -> None:
        """Take a connection back; one that is broken, or within a transaction, is closed. In a child of its process do nothing."""
        if self._process.is_parent:  # a thread that is not here may have the locks
            return
        connection, place = link.connection, link.place
        assert place is not None
        is_whole = connection.pgconn.transaction_status == TransactionStatus.IDLE
        link.idle_from = time.monotonic()
        old: list[Link] = []
        with self._lock:
            while self._idle and link.idle_from - self._idle[0].idle_from > IDLE_MAX_S:
                old.append(self._idle.pop(0))
            if link.wire.fell_silent:  # the others would too, one after the other; a new one tells sooner
                old += self._idle
                self._idle = []
            if is_whole and not self._closed:
                self._idle.append(link)
            else:
                old.append(link)
        for one in old:
            one.close()
        places, count = place
        places.leave(count)

    def close(self) -> None:
        """Close what is idle; what is lent is closed as it comes back. In a child of its process do nothing."""
        if self._process.is_parent:
            return
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def _find_idle(self) -> Link | None:
        while True:
            with self._lock:
                if self._closed:
                    raise Unavailable("the log was closed; open it again")
                if not self._idle:
                    return None
                link = self._idle.pop()
            # After a server was started anew all that were idle are dead.
            if not link.wire.has_ended():
                return link
            link.close()

    def _reach(self) -> Connection:
        while True:
            began = time.monotonic()
            try:
                connection = self._connect()
            except psycopg.Error as error:
                if lasts(error) or not self._is_to_wait(began):
                    raise unmet(error) from error
            else:
                self._outage = None
                return connection
            time.sleep(PAUSE_S)

    def _is_to_wait(self, began: float) -> bool:
        """Note that the database is away, as a look that began then found; whether it is so for a short time only."""
        now = time.monotonic()
        with self._lock:
            outage = self._outage
            # By its beginning: where nothing answers, a look takes as long as there is patience in all.
            if outage is None or began - outage.last > self._wait_s:
                outage = self._outage = _Outage(began, now)
            outage.last = now
            return now + PAUSE_S - outage.began < self._wait_s
