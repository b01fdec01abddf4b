"""The status of facts at an instant: one by one, and over whole columns.

A fact has exactly one status at every instant. In this order: SUPERSEDED from `superseded_from` on;
EXPIRED if retracted; NOT_YET_VALID before `valid_from`; EXPIRED from `valid_to` on; else CURRENT.
A superseder counts whether or not it is itself superseded or expired, so expiry never revives an older fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.temporal.columns import FOREVER, RETRACTED
from perdure.temporal.links import Link, LinkView, effective_time

History = Literal["current", "all", "historical"]
HISTORIES: Final[tuple[History, ...]] = ("current", "all", "historical")

Times = NDArray[np.int64]
Mask = NDArray[np.uint8]

STATUS_BY_CODE: Final = (Status.CURRENT, Status.SUPERSEDED, Status.EXPIRED, Status.NOT_YET_VALID)
_CURRENT, _SUPERSEDED, _EXPIRED, _NOT_YET_VALID = range(len(STATUS_BY_CODE))


def status_at(valid_from: int, valid_to: int, superseded_from: int, at: int) -> Status:
    """Return the status of one fact at the instant `at` (ms; BEGINNING < at < FOREVER).

    `valid_from` is inclusive and `valid_to` exclusive; absent times are the sentinels of `columns`.
    """
    if superseded_from <= at:
        return Status.SUPERSEDED
    if valid_to == RETRACTED:
        return Status.EXPIRED
    if at < valid_from:
        return Status.NOT_YET_VALID
    return Status.EXPIRED if at >= valid_to else Status.CURRENT


def within_validity(valid_from: int, valid_to: int, at: int) -> bool:
    """Return whether valid_from <= at < valid_to, whatever supersedes the fact."""
    return valid_from <= at < valid_to


def superseded_from(links: Iterable[Link], view: LinkView) -> int:
    """Return the earliest effective time of `links`, all above one fact; FOREVER when there is none.

    Give only links that the reader knows.
    """
    return min((effective_time(link, view) for link in links), default=FOREVER)


def current_mask(valid_from: Times, valid_to: Times, superseded_from: Times, at: int) -> Mask:
    """Return 1 for each fact whose status at `at` is CURRENT, else 0.

    Args:
        valid_from, valid_to, superseded_from: int64, one shape (n,), a fact at one place in each.
        at: as in `status_at`.
    """
    return ((valid_from <= at) & (at < valid_to) & (at < superseded_from)).view(np.uint8)


def is_during(valid_from: int, valid_to: int, superseded_from: int, during: tuple[int, int]) -> bool:
    """Whether a fact of these times is current at some instant of the half-open interval."""
    return max(valid_from, during[0]) < min(valid_to, superseded_from, during[1])


def during_mask(valid_from: Times, valid_to: Times, superseded_from: Times, during: tuple[int, int]) -> Mask:
    """Return 1 for each fact that is current at some instant of the half-open interval, else 0."""
    ends = np.minimum(np.minimum(valid_to, superseded_from), during[1])
    return (np.maximum(valid_from, during[0]) < ends).view(np.uint8)


def status_codes(valid_from: Times, valid_to: Times, superseded_from: Times, at: int) -> Mask:
    """Return where in STATUS_BY_CODE each status at `at` stands; arguments as in `current_mask`."""
    codes = np.full(valid_from.shape, _CURRENT, dtype=np.uint8)
    # Each line overrules those before it: the reverse of the order of precedence.
    codes[at >= valid_to] = _EXPIRED
    codes[at < valid_from] = _NOT_YET_VALID
    codes[valid_to == RETRACTED] = _EXPIRED
    codes[superseded_from <= at] = _SUPERSEDED
    return codes


def history_mask(
    history: History, valid_from: Times, valid_to: Times, superseded_from: Times, at: int
) -> Mask:
    """Return 1 for each fact that a reader of `history` sees at `at`, else 0.

    `current`: status CURRENT. `historical`: every other status, NOT_YET_VALID included. `all`: every fact.
    Other arguments as in `current_mask`.

    Raises:
        InvalidRequest: `history` is none of HISTORIES.
    """
    if history not in HISTORIES:
        raise InvalidRequest(
            f"history must be one of {', '.join(HISTORIES)}, got {history!r}", field="history"
        )
    if history == "all":
        return np.ones(valid_from.shape, dtype=np.uint8)
    current = current_mask(valid_from, valid_to, superseded_from, at)
    return current if history == "current" else current ^ np.uint8(1)
