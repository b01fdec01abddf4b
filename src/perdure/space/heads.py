"""What two heads of a space tell about each other."""

from __future__ import annotations

from perdure.errors import Busy, Corrupt
from perdure.log.protocol import ANY_ADVICE, Head, Log


def content_of(head: Head) -> tuple[int, int]:
    """Return what changes when anything that was there is gone."""
    return head.epoch, head.erasures


def may_follow(known: Head, head: Head) -> bool:
    """Whether what is at `head` can be the continuation of what was there at `known`, looked at later.

    A head without records is that of a number that no space has any more; its epoch says nothing. A log never goes
    back, and where it stands as far as before it holds the same: else its database was put back to an earlier moment.
    """
    if not (known.seq and head.seq) or known.epoch != head.epoch:
        return False
    return known == head or known.seq < head.seq


def unsettled(log: Log, name: bytes, number: int | None, head: Head, epoch: int) -> Busy | Corrupt:
    """Return the error of a reading that failed, though it began anew each time: damage where nothing had moved.

    Args:
        name: the hashed name under which the space was looked for.
        number, head: what was found under it afterwards, and where that stood.
        epoch: the log's, asked before all of them in the last attempt.
    """
    # Heads only move on, and a name that was lost leads to another number: so what is found as it was stood so all along.
    if number is not None and (log.head(number), log.find_space(name), log.epoch()) == (head, number, epoch):
        return Corrupt(f"the records of space {number} do not add up to its head: {ANY_ADVICE}", space=number)
    return Busy("the store is being purged again and again; retry")
