"""The slot of a subject: its facts in the order in which they begin, and an arrival's neighbours there.

A slot is the numbers of one subject's facts, sorted by (eff, number): of facts that take effect at the same
instant the later arrival is the later one. `eff(number)` is `columns.begins_at`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

Begin = tuple[int, int]  # (eff in ms, number): the place of a fact in its slot


def insert_position(order: Sequence[int], eff: Callable[[int], int], arrival: Begin) -> int:
    """Return where to insert the arrival to keep `order` sorted, or where it stands already."""
    return bisect_left(order, arrival, key=lambda number: (eff(number), number))


def neighbours(
    order: Sequence[int], eff: Callable[[int], int], arrival: Begin
) -> tuple[int | None, int | None]:
    """Return (predecessor, successor): the facts next to the arrival by (eff, number), None for none.

    The arrival itself may stand in `order` already and is then no neighbour of its own. latest-by-subject
    writes arrival > predecessor and successor > arrival. A new fact has the greatest number, so that with
    equal eff it succeeds all others; a restored fact keeps its number and goes back between the same ones.
    """
    before = insert_position(order, eff, arrival) - 1
    after = bisect_right(order, arrival, key=lambda number: (eff(number), number))
    return (order[before] if before >= 0 else None, order[after] if after < len(order) else None)
