"""A document counts once, by its best unit: from ranked rows to ranked facts and documents."""

from __future__ import annotations

from collections.abc import Callable

from perdure.space.state import SpaceState

Unit = tuple[int, int, float]  # number, row of its best unit, score


def best_by_unit(
    state: SpaceState, k: int, search: Callable[[int], tuple[list[int], list[float]]]
) -> list[Unit]:
    """Return the k best facts and documents, best first, each by its best unit (of equal ones the first).

    `search(wanted)` returns that many rows and their scores, best first; fewer where there are no more.
    """
    rows, scores = search(k)
    if not state.unit_owner:
        return list(zip(rows, rows, scores, strict=True))
    wanted = k
    while True:
        best: dict[int, Unit] = {}
        for row, score in zip(rows, scores, strict=True):
            number = state.unit_owner.get(row, row)
            best.setdefault(number, (number, row, score))
        if len(best) >= k or len(rows) < wanted:
            return list(best.values())[:k]
        wanted *= 2
        rows, scores = search(wanted)
