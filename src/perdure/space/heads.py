"""What two heads of a space tell about each other."""

from __future__ import annotations

from perdure.log.protocol import Head


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
