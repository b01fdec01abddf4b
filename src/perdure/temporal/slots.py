"""The slot of a subject: its facts in the order in which they begin, and an arrival's neighbours there.

A slot is the numbers of one subject's facts, sorted by (eff, number): of facts that take effect at the same
instant the later arrival is the later one. `eff(number)` is `columns.begins_at`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from perdure.temporal.links import LinkView, closes_cycle

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


def overtaken(order: Sequence[int], arrival: Begin, view: LinkView) -> list[int]:
    """Return the facts over which latest-by-subject links the arrival, the predecessor first; often it alone.

    Where facts of the slot that begin before the arrival stand above the predecessor, the uppermost of them
    follow, ascending: they, not the predecessor, stand when the arrival begins. That happens when a fact that
    had been overtaken is corrected: the correction goes below that fact's superseders, though by number it
    comes after those that begin at the same instant. A neighbour that already stands above the arrival (told
    or restored links do that) is passed over for the next one. `order` and `arrival` are as in `neighbours`;
    `view` must hold the arrival with the links told for it or restored with it.
    """
    number = arrival[1]
    before = (order[i] for i in range(insert_position(order, view.eff, arrival) - 1, -1, -1))
    predecessor = next((older for older in before if not closes_cycle(number, older, view)), None)

    def earlier_above(number: int) -> set[int]:
        above = {link.newer for link in view.above(number)}
        return {newer for newer in above if _begin(newer, view) < arrival and _holds(order, newer, view)}

    return _with_furthest(predecessor, earlier_above)


def overtaking(order: Sequence[int], arrival: Begin, view: LinkView) -> list[int]:
    """Return the facts that latest-by-subject links over the arrival, the successor first; often it alone.

    The mirror of `overtaken`: a neighbour already below the arrival is passed over, and the lowermost facts
    below the successor that begin after the arrival follow, so that the arrival stays superseded when the
    successor is forgotten.
    """
    number = arrival[1]
    first_after = bisect_right(order, arrival, key=lambda member: _begin(member, view))
    after = (order[i] for i in range(first_after, len(order)))
    successor = next((newer for newer in after if not closes_cycle(newer, number, view)), None)

    def later_below(number: int) -> set[int]:
        below = {link.older for link in view.below(number)}
        return {older for older in below if _begin(older, view) > arrival and _holds(order, older, view)}

    return _with_furthest(successor, later_below)


def _with_furthest(start: int | None, onward: Callable[[int], set[int]]) -> list[int]:
    """Return `start`, then ascending the facts reached from it that lead no further."""
    if start is None:
        return []
    seen = {start}
    waiting = [start]
    furthest: list[int] = []
    while waiting:
        number = waiting.pop()
        further = onward(number)
        waiting += further - seen
        seen |= further
        if not further and number != start:
            furthest.append(number)
    return [start, *sorted(furthest)]


def _begin(number: int, view: LinkView) -> Begin:
    return (view.eff(number), number)


def _holds(order: Sequence[int], number: int, view: LinkView) -> bool:
    position = insert_position(order, view.eff, _begin(number, view))
    return position < len(order) and order[position] == number
