"""Telling observers what was durably written, after every lock is released."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from perdure.errors import InvalidRequest
from perdure.model.fact import Fact
from perdure.policies.observers import MemoryObserver

log = logging.getLogger("perdure.observers")


class Notifier:
    """Calls observers on the writer's own thread, in order. Their failures are logged: the write stands."""

    def __init__(self, observers: Sequence[MemoryObserver], get: Callable[[str], Fact | None]) -> None:
        self._observers, self._get = tuple(observers), get
        self._inside = threading.local()

    def remembered(self, ids: Sequence[str]) -> None:
        """Tell of facts created or replaced, one call each, in order."""
        if not self._observers:
            return
        for id_ in ids:
            fact = self._get(id_)
            if fact is not None:  # another writer may have forgotten it meanwhile
                self._call("remembered", fact)

    def forgotten(self, ids: Sequence[str]) -> None:
        """Tell of one forget that removed something."""
        if ids and self._observers:
            self._call("forgotten", tuple(ids))

    def refuse_inside(self) -> None:
        """Raise InvalidRequest when called from an observer: its write would come in the middle of another."""
        if getattr(self._inside, "calling", False):
            raise InvalidRequest(
                "an observer called a write of the memory that it observes; note what to do and write afterwards"
            )

    def _call(self, method: str, value: object) -> None:
        self._inside.calling = True
        try:
            for observer in self._observers:
                try:
                    getattr(observer, method)(value)
                except Exception as error:  # noqa: BLE001 - the write is durable, the others still hear of it
                    log.error(
                        "observer %s.%s failed: %s", type(observer).__name__, method, type(error).__name__
                    )
        finally:
            self._inside.calling = False
