"""How many requests a key may make: a token bucket for each."""

from __future__ import annotations

import math
from collections import OrderedDict

from perdure.errors import Busy

BUCKETS_MAX = 10_000  # the key that asked longest ago is forgotten first, and starts with a full bucket


class Rates:
    """Buckets by key. Not thread-safe: one event loop asks."""

    def __init__(self, rate: float | None, burst: int) -> None:
        """Take the tokens a second that come back to each bucket (None: no limit), and how many it holds.

        A burst of 0 is a second's worth, at least 1.
        """
        self._rate = rate
        self._burst = float(burst or max(1, math.ceil(rate or 1)))
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and when

    def take(self, key: str, now: float) -> None:
        """Take a token from the key's bucket.

        Args:
            key: whose.
            now: seconds of a clock that never goes back.

        Raises:
            Busy: there is none; `details` has `retry_after`, the whole seconds until there is one.
        """
        if self._rate is None:
            return
        left, then = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1:
            self._buckets[key] = (left, now)
            wait = math.ceil((1 - left) / self._rate)
            raise Busy(
                f"this key may make {self._rate:g} {'request' if self._rate == 1 else 'requests'} a second; try again in {wait} s",
                retry_after=wait,
            )
        self._buckets[key] = (left - 1, now)
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
