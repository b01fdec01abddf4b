"""Listing facts: exact filters, six orders, cursors that are bound to what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.memory.scopes import event_or_start
from perdure.model.fact import Fact
from perdure.model.replies import Page
from perdure.model.status import Status
from perdure.planning import checks
from perdure.search.cursors import CursorCodec
from perdure.search.eligibility import is_filtered, numbers_in
from perdure.search.hydration import View
from perdure.search.query import Scope
from perdure.search.standing import is_known, standing, status_of
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState
from perdure.temporal.columns import BEGINNING
from perdure.temporal.status import is_during

ORDERS = ("ingest", "-ingest", "event", "-event", "importance", "-importance", "last_used", "id")
STATUSES = tuple(status.value for status in Status if status is not Status.HIDDEN)


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed, in which order, which part of it."""

    scope: Scope
    status: str | None
    order: str
    hidden: bool
    limit: int
    cursor: str | None
    as_of: int | None
    known_at: int | None
    during: tuple[int, int] | None = None

    def check(self) -> Listing:
        """Return the listing with plain values if every value is allowed."""
        order = checks.checked_choice(self.order, "order", ORDERS)
        status = None if self.status is None else checks.checked_choice(self.status, "status", STATUSES)
        if self.hidden and self.status is not None:
            raise InvalidRequest(
                "hidden facts have no other status: leave status or hidden out", field="status"
            )
        limit = checks.checked_count(self.limit, "limit", 1, limits.LIST_MAX)
        if self.cursor is not None and not isinstance(self.cursor, str):
            raise InvalidRequest("cursor must be the text that a page gave", field="cursor")
        return replace(self, order=order, status=status, limit=limit)

    def bound(self) -> bytes:
        """Return what a cursor is bound to: everything but the page size and the cursor."""
        return msgspec.msgpack.encode(
            (
                self.scope.subject,
                self.scope.entity,
                self.scope.tags,
                self.scope.kind,
                None if self.scope.filter is None else self.scope.filter.key(),
                self.status,
                self.order,
                self.hidden,
                self.scope.pinned,
                self.as_of,
                self.known_at,
                *(() if self.during is None else self.during),
            )
        )


def list_facts(
    state: SpaceState,
    reader: FactReader,
    listing: Listing,
    *,
    now: int,
    secret: bytes,
    namespace: bytes,
) -> Page[Fact]:
    """Return one page. Documents are not facts and are not listed.

    A cursor holds the number and the sort key of the last item shown, so that facts that come or go between
    two pages, that item included, neither repeat nor shift the others.
    """
    as_of = now if listing.as_of is None else listing.as_of
    codec = CursorCodec(secret, namespace, state, listing.bound())
    numbers = _ordered(state, reader, listing, _selected(state, listing, as_of, secret))
    key = _sort_key(state, reader, listing.order.lstrip("-"))
    start = 0 if listing.cursor is None else _after(numbers, key, listing, codec)
    shown = numbers[start : start + listing.limit]
    items = View(state, reader, as_of, listing.known_at).facts(shown)
    more = start + len(shown) < len(numbers)
    cursor = codec.encode(shown[-1], key(shown[-1])) if more else None
    return Page(tuple(items), len(numbers), more, cursor)


def _selected(state: SpaceState, listing: Listing, as_of: int, secret: bytes) -> list[int]:
    known_at = listing.known_at
    if listing.hidden:
        scope = listing.scope
        found = [n for n in state.hidden if n not in state.plain and not is_filtered(state, n, scope, secret)]
        return [n for n in found if known_at is None or state.ingested[n] <= known_at]
    candidates = state.numbers() if listing.scope.is_open else numbers_in(state, listing.scope, secret)
    found = [n for n in candidates if n not in state.plain and is_known(state, n, known_at)]
    if listing.during is not None:
        during = listing.during
        found = [n for n in found if is_during(*standing(state, n, known_at), during)]
    if listing.status is not None:
        found = [n for n in found if status_of(state, n, as_of, known_at).value == listing.status]
    return found


def _ordered(state: SpaceState, reader: FactReader, listing: Listing, numbers: list[int]) -> list[int]:
    key = _sort_key(state, reader, listing.order.lstrip("-"))
    # Sorting is stable both ways: ties stay in order of arrival.
    return sorted(sorted(numbers), key=key, reverse=listing.order.startswith("-"))


def _sort_key(state: SpaceState, reader: FactReader, name: str) -> Callable[[int], Any]:
    if name == "ingest":
        return lambda number: state.ingested[number]
    if name == "event":
        return lambda number: event_or_start(state, number)
    if name == "importance":
        return lambda number: state.importance_of.get(number, -1.0)
    if name == "last_used":
        return lambda number: state.uses.get(number, (0, BEGINNING))[1]
    return lambda number: reader.get(state, number).id


def _after(numbers: list[int], key: Callable[[int], Any], listing: Listing, codec: CursorCodec) -> int:
    """Return where the page after the cursor's item begins, also when that item is gone meanwhile."""
    assert listing.cursor is not None
    last, last_key = codec.decode_keyed(listing.cursor)
    if listing.order.startswith("-"):
        return sum(1 for n in numbers if key(n) > last_key or (key(n) == last_key and n <= last))
    return sum(1 for n in numbers if (key(n), n) <= (last_key, last))
