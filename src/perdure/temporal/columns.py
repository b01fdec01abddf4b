"""The sentinels of time columns, and the instant from which a fact takes effect.

Times are int64 milliseconds since 1970 UTC. Every asked instant lies strictly between BEGINNING and
FOREVER, so the sentinels need no special case in a comparison.
"""

from __future__ import annotations

from typing import Final

BEGINNING: Final = -(2**63)  # valid_from that was not told; effective time of a correction of an undated fact
FOREVER: Final = 2**63 - 1  # valid_to that was not told; superseded_from of a fact that nothing supersedes
RETRACTED: Final = BEGINNING  # valid_to of a fact that was never true: the earliest of all ends


def begins_at(
    ingest_time: int,
    *,
    valid_from: int | None = None,
    event_time: int | None = None,
    effective_from: int | None = None,
) -> int:
    """Return the instant from which a fact takes effect, in ms: what orders facts and links.

    It is `effective_from` (kept by corrections alone), else `valid_from`, else `event_time`, else
    `ingest_time`. Of these only `valid_from` opens an interval of validity.
    """
    for told in (effective_from, valid_from, event_time):
        if told is not None:
            return told
    return ingest_time
