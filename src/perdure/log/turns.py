"""The writer's turn among the threads of one process: first come, first served."""

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
