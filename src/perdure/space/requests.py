"""Writes that wait for their turn in a space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from perdure.lexical.profile import Profile
from perdure.space.draft import Draft

T = TypeVar("T")


class Request(Generic[T]):
    """One queued write. `plan` runs under the writer turn and returns the reply; pure in its draft.

    `analysed_by` are the profiles by which its facts may have been analysed before.
    """

    def __init__(self, plan: Callable[[Draft], T], analysed_by: Collection[Profile]) -> None:
        self.plan, self.analysed_by = plan, analysed_by
        self.done = False
        self.reply: T | None = None
        self.error: BaseException | None = None


def fail_all(group: Sequence[Request[object]], error: BaseException) -> None:
    """Give those that have no error yet this one."""
    for request in group:
        if request.error is None:
            request.error = error
