"""The writer's turn among the threads of one process, and room for so many of them: first come, first served."""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident


class _Ticket:
    __slots__ = ("granted", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.granted = Lock()
        self.granted.acquire()


class ThreadTurn:
    """A fair lock that knows its owner. Not reentrant."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._owner: int | None = None
        self._waiting: deque[_Ticket] = deque()

    @property
    def mine(self) -> bool:
        """Whether the calling thread has the turn."""
        return self._owner == get_ident()

    def take(self, timeout_s: float) -> bool:
        """Wait for the turn at most this long; return whether it was taken. 0 or less does not wait."""
        me = get_ident()
        with self._guard:
            if self._owner == me:
                raise RuntimeError("this thread already has the writer's turn; it is not reentrant")
            if self._owner is None:
                self._owner = me
                return True
            if timeout_s <= 0:
                return False
            ticket = _Ticket(me)
            self._waiting.append(ticket)
        if ticket.granted.acquire(timeout=timeout_s):
            return True
        with self._guard:
            if self._owner == me:  # granted between the time-out and now
                return True
            self._waiting.remove(ticket)
            return False

    def give(self) -> None:
        """Hand the turn to the thread that has waited longest."""
        with self._guard:
            if not self._waiting:
                self._owner = None
                return
            ticket = self._waiting.popleft()
            self._owner = ticket.thread
            ticket.granted.release()


class ThreadRoom:
    """Room for so many threads at once. Who waits is let in by who leaves, so nobody who leaves and comes again passes him."""

    def __init__(self, size: int) -> None:
        self._guard = Lock()
        self._free = size
        self._waiting: deque[Lock] = deque()

    def take(self, timeout_s: float) -> bool:
        """Wait for room at most this long; return whether it was found."""
        with self._guard:
            if self._free:
                self._free -= 1
                return True
            granted = Lock()
            granted.acquire()
            self._waiting.append(granted)
        try:
            if granted.acquire(timeout=timeout_s):
                return True
        except BaseException:  # raised again: nobody else gives back what is granted to this thread
            if not self._gives_up(granted):
                self.give()
            raise
        return not self._gives_up(granted)

    def give(self) -> None:
        """Let in the thread that has waited longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _gives_up(self, granted: Lock) -> bool:
        """Stop waiting; whether nothing was granted between the time-out and now."""
        with self._guard:
            if granted not in self._waiting:
                return False
            self._waiting.remove(granted)
            return True
