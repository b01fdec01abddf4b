"""Turns: of one space, and of the whole store; among threads first, then among processes by locks on rows.

The row of a space is locked by whoever writes to it, that of the tenant shared by the same, so that whoever locks that
one whole keeps all writers out. A row is always locked after the tenant's, so nobody waits in a circle.

New writers could share the tenant's row for ever while somebody waits to lock it whole. So that one first holds it against
those who pass, which writers do shortly before they share it, in a transaction of its own that holds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from perdure.base.text import counted
from perdure.errors import Busy
from perdure.log.postgres.connections import STATEMENT_S, WHOLE_IDLE_S, Session
from perdure.log.postgres.noting import Fresh
from perdure.log.protocol import Head
from perdure.log.turns import ThreadTurn

WHOLE = -1  # the store's; 0 is that of spaces that are still to be made


def keep_out(session: Session, tenant: UUID, wait_s: float) -> None:
    """Within a transaction that was begun, lock a tenant's row whole; from then on it may be idle for WHOLE_IDLE_S.

    Nothing where there is no such row. Raises the driver's error where others keep it for longer than `wait_s` in all.
    """
    began = monotonic()
    with session.together():
        session.send("set_idle_wait", (str(WHOLE_IDLE_S * 1000),))
        _limit(session, wait_s)
        session.send("hold_tenant", (tenant,))  # nobody passes from here on
    with session.together():
        _limit(session, wait_s - (monotonic() - began))
        session.send("lock_tenant", (tenant,))
        session.send("set_statement_wait", (str(STATEMENT_S * 1000),))
    session.wait_at_most(0)


def pass_by(session: Session, tenant: UUID) -> None:
    """Wait for whoever waits to keep all writers out, in a transaction of its own; together with what follows, in such a block."""
    with session.together():
        session.begin()
        session.send("pass_tenant", (tenant,))
        session.run("ROLLBACK")


def _limit(session: Session, wait_s: float) -> None:
    """Have each statement that follows wait for at most as long."""
    session.wait_at_most(max(0.0, wait_s))
    # Of the statement as a whole: it waits for one writer after the other, and a limit of locks is of each wait.
    told = (str(max(1, int(wait_s * 1000))),)
    session.send("set_statement_wait", told)
    session.send("set_lock_wait", told)


class Locked(NamedTuple):
    """A row of a space that this thread has locked, in a transaction of this session."""

    space: int
    session: Session
    head: Head
    key: int
    fresh: Fresh  # what its transaction has claimed
    ending: ExitStack  # closing it ends the transaction, and gives the session back


class Held(threading.local):
    """What the calling thread has: the turn of a space, or of the store, and what it locked for it."""

    space: int | None = None
    locked: Locked | None = None
    whole: Session | None = None  # with the tenant's row locked
    found: bool = False  # whether anything was read since the turn began, or since its last commit
    wrote: bool = False  # whether it committed anything

    def begin(self, space: int) -> None:
        """Note that the turn of a space begins."""
        self.space, self.found, self.wrote = space, False, False

    def committed(self) -> None:
        """Note a commit, after which all that was found before is where commits have to be."""
        self.found, self.wrote = False, True


class Turns:
    """The turns of this process's threads; each space has one, and the store."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._turns: dict[int, ThreadTurn] = {}
        self._users: dict[int, int] = {}
        self._guard = threading.Lock()
        self.held = Held()

    def wait_s(self, timeout_s: float | None) -> float:
        """Return how long to wait for a turn."""
        return self._timeout_s if timeout_s is None else max(0.0, timeout_s)

    @contextmanager
    def take(self, space: int, timeout_s: float | None) -> Iterator[None]:
        """Hold a turn among the threads. Raises Busy past the time-out; RuntimeError where the thread has one."""
        if self.held.space is not None:
            raise RuntimeError("this thread already has a writer's turn; it is not reentrant")
        wait_s = self.wait_s(timeout_s)
        turn = self._turn(space)
        try:
            if not turn.take(wait_s):
                raise Busy(f"other writers kept the turn for {counted(wait_s, 'second')}; try again")
            self.held.begin(space)
            try:
                yield
            finally:
                self.held.space = None
                turn.give()
        finally:
            self._leave(space)

    def _turn(self, space: int) -> ThreadTurn:
        with self._guard:
            self._users[space] = self._users.get(space, 0) + 1
            return self._turns.setdefault(space, ThreadTurn())

    def _leave(self, space: int) -> None:
        with self._guard:
            self._users[space] -= 1
            if not self._users[space]:
                del self._users[space], self._turns[space]
