"""What a read asks of a log before anything else: where a space stands, and which number a name has.

Of a log that many processes share each such look is a round trip to another machine. Who serves many reads at once asks
for all of them together, on a connection that no thread waits for, and tells what was found by `seen_once`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perdure.base.haste import seen_once
from perdure.log.protocol import Head, Log


class HeadLook(NamedTuple):
    """Where a space stands."""

    log: Log
    space: int


class NameLook(NamedTuple):
    """Which number a space of this name has."""

    log: Log
    name: bytes


Look = HeadLook | NameLook


def can_look_ahead(log: Log) -> bool:
    """Whether a log's looks can be asked for together with others'."""
    return getattr(log, "looks_ahead", False) is True


def head_of(log: Log) -> Callable[[int], Head]:
    """Return `log.head`, which takes what was looked at ahead where a log can be asked so."""
    if not can_look_ahead(log):
        return log.head
    return lambda space: seen_once(HeadLook(log, space), lambda: log.head(space))


def number_of(log: Log) -> Callable[[bytes], int | None]:
    """Return `log.find_space`, likewise."""
    if not can_look_ahead(log):
        return log.find_space
    return lambda name: seen_once(NameLook(log, name), lambda: log.find_space(name))
