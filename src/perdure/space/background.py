"""The one thread that keeps snapshots of a store whose log is shared; whoever opens such a store asks for it."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from perdure.errors import PerdureError

log = logging.getLogger("perdure.space")


class Folding(Protocol):
    """What has a snapshot to keep."""

    def fold(self) -> bool:
        """Keep it, unless that would not pay; return whether it was kept."""
        ...

    def save_snapshot(self) -> bool:
        """Keep it, unless that would not pay, though others may have kept one that is about as new."""
        ...


def keep_snapshot(space: Folding) -> None:
    """Keep a snapshot after a write. What is in the way is logged: what was written is to be told as such."""
    try:
        space.save_snapshot()
    except PerdureError as error:
        log.warning("a snapshot could not be kept (%s): spaces open more slowly", error.code)


class Folder:
    """Folds spaces one after the other, each once however often it was asked for. Thread-safe.

    The thread is started when it is first needed, and ends with `close`; it does not keep the process alive.
    """

    def __init__(self) -> None:
        self._asked: dict[Folding, None] = {}  # in the order of asking
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = self._works = False
        self.folds = self.failures = 0

    def ask(self, space: Folding) -> None:
        """Have a space folded soon; returns at once. Nothing once it was closed."""
        with self._changed:
            if self._closed:
                return
            self._asked[space] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="perdure fold", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to fold; return whether that was so in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._asked and not self._works, timeout_s)

    def close(self) -> None:
        """End the thread once it has done what it is at; what else was asked for is left. Idempotent."""
        with self._changed:
            self._closed = True
            self._asked.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._works = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._asked or self._closed)
                if self._closed:
                    return
                space = next(iter(self._asked))
                del self._asked[space]
                self._works = True
            self._fold(space)
            del space  # an idle thread keeps no state in memory

    def _fold(self, space: Folding) -> None:
        try:
            self.folds += space.fold()
        except Exception as error:  # noqa: BLE001 - there is no caller; the next growth tries again
            self.failures += 1
            # Without its text, which may be of a driver.
            log.warning("a snapshot could not be kept (%s): spaces open more slowly", type(error).__name__)
