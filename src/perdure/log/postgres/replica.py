"""A standby that whole spaces are loaded from, so that the primary is left to those who write."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar
from uuid import UUID

import psycopg

from perdure.errors import Busy, Moved, PerdureError, Unavailable
from perdure.log.postgres.connections import Database, Session, acquire, read_address, release

T = TypeVar("T")
RETRY_S = 30.0  # after which one that could not be asked is asked again
DISTRUST_S = 600.0  # the same of one that went another way than the primary, until it is made anew from that
log = logging.getLogger("perdure.log")


class Replica:
    """Answers where it can, and is passed over where it cannot: reads then go to the primary. Thread-safe.

    It says nothing of what is true. Whoever asks it holds what it says against the primary's head.
    """

    def __init__(self, address: str, tenant: UUID, timeout_s: float) -> None:
        """Take an address; connected to when it is first asked. Raises InvalidRequest where it is none."""
        read_address(address, "replica")
        self._address, self._tenant, self._timeout_s = address, tenant, timeout_s
        self._database: Database | None = None
        self._lock = threading.Lock()
        self._passed_until = 0.0
        self._told: set[str] = set()
        self._closed = False

    def view(self, work: Callable[[Session], T | None]) -> T | None:
        """Return what `work` reads there; None where it reads none, or the replica cannot be asked now."""
        if self._closed or monotonic() < self._passed_until:
            return None
        try:
            with self._opened().session(self._tenant, tried=True) as session:
                return work(session)
        except Moved:  # a key is gone with what was erased since
            self.tell("is behind the primary")
        except (PerdureError, psycopg.Error):
            self._passed_until = monotonic() + RETRY_S
            self.tell("cannot be asked")
        return None

    def tell(self, what: str) -> None:
        """Say in the log, once, that it is passed over."""
        if what not in self._told:
            self._told.add(what)
            log.warning("the replica %s: spaces are loaded from the primary meanwhile", what)

    def distrust(self) -> Busy:
        """Ask it no more for long: it is none of this database, or was before a fail-over, and is still to follow.

        Returns the error of the call that found out.
        """
        self._passed_until = monotonic() + DISTRUST_S
        self.tell("holds other records than the primary")
        return Busy(
            "the replica holds other records than the primary, and is not asked for now: repeat the call"
        )

    def close(self) -> None:
        """Give its connections back. Idempotent."""
        with self._lock:
            self._closed = True
            database, self._database = self._database, None
        if database is not None:
            release(database)

    def _opened(self) -> Database:
        with self._lock:
            if self._database is None:
                if monotonic() < self._passed_until:  # who had the lock before found it away
                    raise Unavailable("the replica cannot be asked now")
                try:
                    self._database = acquire(self._address, self._timeout_s)
                except PerdureError:
                    self._passed_until = monotonic() + RETRY_S
                    raise
            return self._database
