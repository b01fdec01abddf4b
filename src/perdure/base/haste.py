"""Work that gives up rather than wait, for a thread that others wait for.

Whatever may hold a thread up (a lock that is held for long, a file to be opened, another process, a network, very many
rows) asks here first. It hinders a thread that is in a hurry only: that one does the same work again where there is time.

Several works of such a thread may answer requests that had all come in before the first of them began. What others may
change at any time is looked at once for them: it was so after each had come, which is all that anybody can ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class WouldWait(Exception):
    """A thread in a hurry would have been held up. Nothing was changed."""


Seen = dict[Hashable, Any]
"""What was looked at for requests that had come in before the first look."""


class _Pace(threading.local):
    hurried = False
    seen: Seen | None = None
    noted: set[Hashable] | None = None


_pace = _Pace()


def hurried(work: Callable[[], T], seen: Seen | None = None) -> T:
    """Return what the work returns. Not to be nested.

    Args:
        work: it must only read, since nothing of it counts where it would wait.
        seen: what was looked at for works before this one, and is for this one; it is added to.

    Raises WouldWait in place of waiting.
    """
    _pace.hurried, _pace.seen = True, seen
    try:
        return work()
    finally:
        _pace.hurried, _pace.seen = False, None


def noting(work: Callable[[], T], keys: set[Hashable]) -> T:
    """Return what the work returns; add the keys of all that it looked at by `seen_once`. Not to be nested."""
    _pace.noted = keys
    try:
        return work()
    finally:
        _pace.noted = None


def seen_once(key: Hashable, look: Callable[[], T]) -> T:
    """Return what `look` returns: on a thread in a hurry, what it returned for the requests that came together."""
    seen = _pace.seen
    if seen is None:
        if _pace.noted is not None:
            _pace.noted.add(key)
        return look()
    try:
        found: T = seen[key]
    except KeyError:
        found = seen[key] = look()
    return found


def is_hurried() -> bool:
    """Whether this thread is in a hurry."""
    return _pace.hurried


def refuse_to_wait() -> None:
    """Raise WouldWait on a thread that is in a hurry."""
    if _pace.hurried:
        raise WouldWait
