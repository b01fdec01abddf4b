"""Writes that wait for their turn in a space."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from perdure.lexical.profile import Profile
from perdure.space.draft import Draft

T = TypeVar("T")


class Request(Generic[T]):
    """One queued write. `plan` runs under the writer turn and returns the reply; pure in its draft.

    `analysed_by` are the profiles by which its facts may have been analysed before, `actor` is who asked.
    """

    def __init__(
        self, plan: Callable[[Draft], T], analysed_by: Collection[Profile], actor: str | None = None
    ) -> None:
        self.plan, self.analysed_by, self.actor = plan, analysed_by, actor
        self.done = self.is_stored = False
        self.reply: T | None = None
        self.error: BaseException | None = None


def fail_all(group: Sequence[Request[object]], error: BaseException) -> None:
    """Give this error to those that have none yet, and were not stored before it."""
    for request in group:
        if request.error is None and not request.is_stored:
            request.error = error


class Lead:
    """Who of the threads that write to a space leads: one at a time, for the requests of others too.

    Whoever finds his request done leaves at once. Would he wait for the next leader, he could not write along with those
    that the one after it leads, and groups would be half as large.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False

    @contextmanager
    def of(self, request: Request[object]) -> Iterator[None]:
        """Lead within the block; where another leader has done the request meanwhile, the block has nothing to do."""
        with self._changed:
            while self._is_taken and not request.done:
                self._changed.wait()
            leads = not request.done
            self._is_taken |= leads
        try:
            yield
        finally:
            if leads:
                with self._changed:
                    self._is_taken = False
                    self._changed.notify_all()
