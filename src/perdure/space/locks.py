"""A lock that many readers share or one writer holds; a waiting writer goes first."""

from __future__ import annotations

import threading

from perdure.base.haste import refuse_to_wait


class SharedLock:
    """Not reentrant in either mode. Writers hold it for microseconds, so they go before new readers.

    A reader that meets no writer pays for two plain locks, nothing more.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0

    def acquire_shared(self) -> None:
        with self._mutex:
            while self._writing or self._writers_waiting:
                refuse_to_wait()
                self._changed.wait()
            self._readers += 1

    def release_shared(self) -> None:
        with self._mutex:
            self._readers -= 1
            if self._writers_waiting and not self._readers:
                self._changed.notify_all()

    def acquire_exclusive(self) -> None:
        with self._mutex:
            self._writers_waiting += 1
            try:
                while self._writing or self._readers:
                    self._changed.wait()
                self._writing = True
            finally:
                self._writers_waiting -= 1

    def release_exclusive(self) -> None:
        with self._mutex:
            self._writing = False
            self._changed.notify_all()

    def __enter__(self) -> None:
        """Hold it exclusively."""
        self.acquire_exclusive()

    def __exit__(self, *_: object) -> None:
        self.release_exclusive()
