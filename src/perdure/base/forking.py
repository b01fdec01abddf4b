"""Which process something was made in: connections and locks are of one process, and a child that it forks has copies of them all."""

from __future__ import annotations

import os

from perdure.errors import Unavailable


class OwnProcess:
    """The process that made it."""

    def __init__(self) -> None:
        self._number = os.getpid()

    @property
    def is_parent(self) -> bool:
        """Whether the present process is a child that was forked since."""
        return os.getpid() != self._number

    def check(self) -> None:
        """Raise Unavailable, of the kind "forked", in a child."""
        if self.is_parent:
            raise Unavailable(
                f"the store was opened by process {self._number} and does not survive a fork: open it again in "
                f"process {os.getpid()}, or start processes by spawn",
                kind="forked",
            )
