"""When a request is sent again, and after how long. Pure, but for the pauses themselves."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from perdure.base.clock import SystemClock
from perdure.base.ids import random_secret

RETRIES_MAX = 10
FIRST_MS = 100.0
LONGEST_MS = 5_000.0
RETRY_AFTER_MS_MAX = 60_000.0  # a server that wants a longer pause is told to the caller instead


@dataclass(frozen=True)
class Retries:
    """How often a request may be sent again: one that can be repeated, after a broken connection or a 503 that names
    a time. Never after a time-out, which has cost the caller enough, and never anything else."""

    count: int = 3

    def pause_ms(self, attempt: int, asked_ms: float | None, fraction: float) -> float | None:
        """Return how long to wait before the next attempt, or None where there is to be none.

        Args:
            attempt: how many there were before the one that failed, from 0.
            asked_ms: what the server's Retry-After asks for; None where there was no answer.
            fraction: at least 0 and less than 1, evenly distributed: many clients that failed together shall not come
                back together ("full jitter").
        """
        if attempt >= self.count or (asked_ms is not None and asked_ms > RETRY_AFTER_MS_MAX):
            return None
        return (asked_ms or 0.0) + fraction * min(FIRST_MS * 2.0**attempt, LONGEST_MS)


def fraction() -> float:
    """Return a random number, at least 0 and less than 1."""
    return int.from_bytes(random_secret(4), "big") / 2**32


def retry_after_ms(told: str | None) -> float | None:
    """Return the pause that a Retry-After header asks for, in seconds or until a date; None where it says nothing."""
    if told is None:
        return None
    told = told.strip()
    if told.isascii() and told.isdigit():
        return float(told[:15]) * 1_000
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() * 1_000 - SystemClock().now())
    except (ValueError, OverflowError):
        return None


def pause(milliseconds: float) -> None:
    time.sleep(milliseconds / 1_000)


async def pause_async(milliseconds: float) -> None:
    await asyncio.sleep(milliseconds / 1_000)
