"""Clocks: the only place that reads the machine's time."""

from __future__ import annotations

import time
from typing import Protocol

from perdure.base.instants import EARLIEST, LATEST, Instant, to_millis
from perdure.errors import InvalidRequest


class Clock(Protocol):
    """Tells the present moment. Any object with this method is a clock."""

    def now(self) -> int:
        """Return milliseconds since 1970-01-01T00:00:00Z."""
        ...


class SystemClock:
    """The machine's clock, to the millisecond."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when told, so that a run can be repeated exactly."""

    def __init__(self, start: Instant = 0) -> None:
        self._now = to_millis(start, field="start")

    def now(self) -> int:
        return self._now

    def set(self, instant: Instant) -> None:
        """Move to an instant; moving backwards is allowed (clocks of other machines do)."""
        self._now = to_millis(instant, field="instant")

    def advance(self, milliseconds: int) -> int:
        """Move forward (or back, when negative) and return the new time."""
        self._now = to_millis(self._now + milliseconds, field="milliseconds")
        return self._now


def checked_now(clock: Clock) -> int:
    """Return what the clock says. A clock is the caller's own object, and its word is written down.

    Raises:
        InvalidRequest: (field "clock") it says no whole milliseconds, or none of the years 1 to 9999.
    """
    present = clock.now()
    if type(present) is not int or not EARLIEST <= present <= LATEST:
        shown = present if type(present) is int else type(present).__name__
        raise InvalidRequest(
            f"the clock's now() must be integer milliseconds in the years 1 to 9999, got {shown}",
            field="clock",
        )
    return present
