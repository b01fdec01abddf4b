"""Looks where the spaces of reads stand in a database: in one round trip for all that came, without a thread that waits.

A read of a space in memory waits for nothing but that look. On a thread each read would ask by itself, and be handed there
and back; so the event loop asks for as many as there are, while it does something else, and does them when it knows.
Whatever comes meanwhile goes with the next round trip: nothing serves a read that was looked at before it came.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import suppress
from typing import Any, Protocol
from weakref import ReferenceType, ref

from perdure.base.haste import Seen
from perdure.errors import PerdureError
from perdure.log.looks import HeadLook, Look, NameLook
from perdure.log.protocol import Log

ANSWER_S = (
    1.0  # a look that takes longer is given up: whoever waits for it finds out on a thread what the matter is
)
AGAIN_S = 1.0  # between attempts to connect
_READABLE, _WRITABLE = 1, 2  # as the driver's generators are told, and tell

Ahead = tuple[tuple["ReferenceType[Log]", type[Look], Any], ...]
"""Looks, which keep no store that was closed."""


class Looking(Protocol):
    """A connection that asks, as `perdure.databases.Lookout.looking` gives it."""

    def fileno(self) -> int:
        """Return its socket."""
        ...

    def ask(self, looks: list[Look]) -> Generator[Any, Any, Seen]:
        """Look; yields what is waited for, and is sent what came. Raises PerdureError where it is of no use any more."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def ahead_of(keys: Iterable[Hashable]) -> Ahead:
    """Return those of the keys of `seen_once` that are looks, none where no space is among them."""
    looks = [key for key in keys if isinstance(key, HeadLook | NameLook)]
    if not any(isinstance(look, HeadLook) for look in looks):
        return ()
    return tuple((ref(look.log), type(look), look[1]) for look in looks)


class Looker:
    """Asks one database. All but `close` on the event loop's thread."""

    def __init__(self, connect: Callable[[], Looking]) -> None:
        """`connect` may take long, and raise PerdureError; it is called on a thread."""
        self._connect = connect
        self._fresh: Looking | None = None  # that was reached, and is not watched yet
        self._looking: Looking | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # that the connection is watched on
        self._socket = -1  # that is watched; a connection that was lost tells none any more
        self._connecting = self._closed = False
        self._connect_from = 0.0
        self._asked: dict[Look, None] = {}  # for the next round trip
        self._waiting: list[asyncio.Future[Seen | None]] = []
        self._round: _Round | None = None  # that is under way
        self._lock = threading.Lock()

    async def look(self, ahead: Ahead) -> Seen | None:
        """Return what is found by these looks and by those of others that go with them, begun after this was called.

        None where it cannot be told: nothing is connected yet, the database is away or slow, a store was closed.
        """
        looks = _alive(ahead)
        if not looks or not self._is_ready():
            return None
        self._asked.update(dict.fromkeys(looks))
        found: asyncio.Future[Seen | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(found)
        if self._round is None and len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._begin)  # after all others that have come
        return await found

    def close(self) -> None:
        """End the connection; nobody is waiting any more. Idempotent."""
        with self._lock:
            self._closed = True
            ended = self._fresh, self._looking
            self._fresh = self._looking = None
        for looking in ended:
            if looking is not None:
                looking.close()

    def _is_ready(self) -> bool:
        loop = asyncio.get_running_loop()
        if self._loop is not loop and self._loop is not None:
            self._leave()
        if self._looking is None and not self._watch(loop):
            self._have_reached(loop)
        return self._looking is not None

    def _have_reached(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._connecting and loop.time() >= self._connect_from:
            self._connecting, self._connect_from = True, loop.time() + AGAIN_S
            threading.Thread(target=self._reach, name="perdure-looker", daemon=True).start()

    def _reach(self) -> None:
        """Connect, and leave the connection to the next look: the loop may have ended meanwhile, and another have begun."""
        looking: Looking | None = None
        try:
            with suppress(PerdureError):  # tried again later; those who read say what the matter is
                looking = self._connect()
        finally:
            with self._lock:
                self._connecting = False
                if not self._closed:
                    self._fresh, looking = looking, None
            if looking is not None:
                looking.close()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Have the loop watch a connection that was reached; whether there was one."""
        with self._lock:
            looking, self._fresh = self._fresh, None
            if looking is None:
                return False
            self._looking, self._loop = looking, loop
        try:
            self._socket = looking.fileno()
            loop.add_reader(self._socket, self._go_on, _READABLE)
        except NotImplementedError:  # of a loop that watches no sockets: reads go to threads
            self._connect_from = float("inf")
            self.close()
        return True

    def _begin(self) -> None:
        looking = self._looking
        if looking is None:
            self._answer(None)
            return
        loop = asyncio.get_running_loop()
        looks, waiting = list(self._asked), self._waiting
        self._asked, self._waiting = {}, []
        timer = loop.call_later(ANSWER_S, self._leave)
        self._round = _Round(looking.ask(looks), waiting, timer)
        self._go_on(None)

    def _go_on(self, ready: int | None) -> None:
        """Let the round trip go on that is under way, by what came, or begin it."""
        going, looking, loop = self._round, self._looking, self._loop
        if going is None or looking is None or loop is None:
            self._leave()  # what comes unasked is the end of the connection
            return
        try:
            wanted = going.generator.send(ready)
        except StopIteration as ended:
            self._end(ended.value)
            return
        except PerdureError:
            self._leave()
            return
        if wanted & _WRITABLE:
            loop.add_writer(self._socket, self._go_on, _WRITABLE)
        elif going.writes:
            loop.remove_writer(self._socket)
        going.writes = bool(wanted & _WRITABLE)

    def _end(self, found: Seen) -> None:
        going, self._round = self._round, None
        assert going is not None
        going.timer.cancel()
        _tell(going.waiting, found or None)
        if self._waiting:
            self._begin()

    def _leave(self) -> None:
        """Give up the connection; whoever waits goes to a thread, and the next to come has another made."""
        with self._lock:
            looking, self._looking = self._looking, None
        loop, self._loop = self._loop, None
        if looking is not None:
            if loop is not None and not loop.is_closed():
                loop.remove_reader(self._socket)
                loop.remove_writer(self._socket)
            looking.close()
        self._answer(None)

    def _answer(self, found: Seen | None) -> None:
        going, self._round = self._round, None
        waiting, self._waiting, self._asked = self._waiting, [], {}
        if going is not None:
            going.timer.cancel()
            _tell(going.waiting, found)
        _tell(waiting, found)


class _Round:
    """A round trip, and who waits for it."""

    __slots__ = ("generator", "timer", "waiting", "writes")

    def __init__(
        self,
        generator: Generator[Any, Any, Seen],
        waiting: list[asyncio.Future[Seen | None]],
        timer: asyncio.TimerHandle,
    ) -> None:
        self.generator, self.waiting, self.timer = generator, waiting, timer
        self.writes = False


def _alive(ahead: Ahead) -> list[Look]:
    """Return the looks; none where a store is gone."""
    looks: list[Look] = []
    for log, kind, of in ahead:
        alive = log()
        if alive is None:
            return []
        looks.append(kind(alive, of))
    return looks


def _tell(waiting: Iterable[asyncio.Future[Seen | None]], found: Seen | None) -> None:
    for one in waiting:
        if not one.done() and not one.get_loop().is_closed():  # whoever asked may have gone
            one.set_result(found)
