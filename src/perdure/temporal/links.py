"""Links between facts: effective times, components, cycles, re-linking after removal, corrections.

A link says that its newer fact supersedes its older one. A space holds at most one link of each kind
between the same two facts, newer and older; a link record of the same facts and kind replaces it.
Links form no cycle. Facts are named by number, their arrival order in the space.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from perdure.errors import QueryLimit
from perdure.temporal.columns import BEGINNING


class LinkKind(StrEnum):
    """SUPERSEDES: the world changed. CORRECTS: the older fact was a mistake."""

    SUPERSEDES = "supersedes"
    CORRECTS = "corrects"


@dataclass(frozen=True, slots=True)
class Link:
    """`newer` supersedes `older` from `effective_at` on (ms; None means from where `newer` takes effect).

    `known_from` is the ingest time (ms) from which the link is known.
    """

    newer: int
    older: int
    kind: LinkKind
    effective_at: int | None
    known_from: int


class LinkView(Protocol):
    """The links and times of a space as one plan or read sees them."""

    def above(self, number: int) -> Iterable[Link]:
        """Return the links whose older fact is `number`."""
        ...

    def below(self, number: int) -> Iterable[Link]:
        """Return the links whose newer fact is `number`."""
        ...

    def eff(self, number: int) -> int:
        """Return the instant (ms) from which the fact takes effect: `columns.begins_at`."""
        ...

    def ingest(self, number: int) -> int:
        """Return the ingest time (ms) of the fact."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether it is known that no link runs `against_order`; False where nobody counts."""
        ...


def effective_time(link: Link, view: LinkView) -> int:
    """Return the instant (ms) from which the link's older fact is superseded by it."""
    return view.eff(link.newer) if link.effective_at is None else link.effective_at


def component(number: int, view: LinkView, *, frontier_limit: int) -> set[int]:
    """Return the facts joined to `number` by links in either direction, itself included.

    Raises:
        QueryLimit: (resource "frontier") the component has more than `frontier_limit` links.
    """
    seen = {number}
    waiting = [number]
    links = 0
    while waiting:
        at = waiting.pop()
        neighbours = [link.newer for link in view.above(at)]
        # Each link lies above exactly one fact, so counting there counts it once.
        links += len(neighbours)
        if links > frontier_limit:
            raise QueryLimit("frontier", frontier_limit)
        neighbours += [link.older for link in view.below(at)]
        for neighbour in neighbours:
            if neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return seen


def closes_cycle(newer: int, older: int, view: LinkView) -> bool:
    """Return whether a link newer > older would close a cycle; a link from a fact to itself does.

    Where all links are known to follow the order of (eff, number), one more that does closes none. Else it
    searches up from `newer` and down from `older` by turns and stops when either side is exhausted, so a
    fact without links costs nothing however long the chain on the other side.
    """
    if newer == older:
        return True
    if view.is_ordered and not against_order(newer, older, view):
        return False
    up, down = {newer}, {older}
    rising, sinking = [newer], [older]
    while rising and sinking:
        for link in view.above(rising.pop()):
            if link.newer in down:
                return True
            if link.newer not in up:
                up.add(link.newer)
                rising.append(link.newer)
        for link in view.below(sinking.pop()):
            if link.older in up:
                return True
            if link.older not in down:
                down.add(link.older)
                sinking.append(link.older)
    return False


def against_order(newer: int, older: int, view: LinkView) -> bool:
    """Return whether `newer` lies before `older` by (eff, number).

    While a space holds no such link, a link that is not against the order cannot close a cycle, so a writer
    that counts these links may spare itself `closes_cycle`.
    """
    return (view.eff(newer), newer) < (view.eff(older), older)


def relinks(removed: AbstractSet[int], view: LinkView) -> list[Link]:
    """Return the links to write so that removing `removed`, and every link touching them, revives nothing.

    Each surviving s that is reached upward from a surviving p through removed facts only comes to supersede
    p: with kind CORRECTS, from where p was corrected on, if all links of one such path are CORRECTS (from the
    earliest where several are); with kind SUPERSEDES, from eff(s) on, if another such path is not. A link
    already stored for the same facts and kind is not written again, unless a correction now starts earlier.

    The result does not depend on order: removing a set leaves the same links as removing its members one by
    one in any order, if each step writes its own. Sorted by (older, newer, kind).
    """
    survivors_below = {link.older for number in removed for link in view.below(number)} - removed
    return [link for older in sorted(survivors_below) for link in _relinks_over(older, removed, view)]


def _relinks_over(older: int, removed: AbstractSet[int], view: LinkView) -> list[Link]:
    stored = {(link.newer, link.kind): effective_time(link, view) for link in view.above(older)}
    written: list[Link] = []
    for (newer, kind), corrected_at in _reached_through(older, removed, view).items():
        if newer == older:  # only in a damaged store, where links run in a circle
            continue
        effective_at = corrected_at if kind is LinkKind.CORRECTS else None
        already = stored.get((newer, kind))
        if already is not None and (effective_at is None or already <= effective_at):
            continue
        known_from = max(view.ingest(newer), view.ingest(older))
        written.append(Link(newer, older, kind, effective_at, known_from))
    return sorted(written, key=lambda link: (link.newer, link.kind))


def _reached_through(
    older: int, removed: AbstractSet[int], view: LinkView
) -> dict[tuple[int, LinkKind], int]:
    """Map (survivor, kind of a path to it) to the effective time of the path's lowest link, the earliest."""
    reached: dict[tuple[int, LinkKind], int] = {}
    into = [link for link in view.above(older) if link.newer in removed]
    # Earliest first: the first path to arrive is then the one that counts.
    for lowest in sorted(into, key=lambda link: effective_time(link, view)):
        waiting = [(lowest.newer, lowest.kind)]
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached[place] = effective_time(lowest, view)
            number, kind = place
            if number in removed:
                waiting += [(link.newer, _joined(link.kind, kind)) for link in view.above(number)]
    return {place: time for place, time in reached.items() if place[0] not in removed}


def _joined(upper: LinkKind, lower: LinkKind) -> LinkKind:
    both = upper is LinkKind.CORRECTS and lower is LinkKind.CORRECTS
    return LinkKind.CORRECTS if both else LinkKind.SUPERSEDES


def copied_links(old: int, new: int, view: LinkView, *, dated: bool) -> list[Link]:
    """Return the links to write when `new` corrects `old`: it takes its place among older and newer facts.

    Every link of `old` is copied with its kind and effective time (new > p for old > p, s > new for s > old),
    but for those over mistakes that `old` corrected itself: they stay corrected by it, removing it bridges them,
    and copying them would make a fact that is corrected often carry a link for each pair of its versions. And new > old is added with kind CORRECTS: from eff(old) on if `old` is `dated` (it has a valid_from, so
    does not hold before), else from BEGINNING on, so that the mistake shows at no instant. `view` must know
    the ingest time of `new`, and none of its links yet. Sorted by (older, newer, kind).
    """
    known_from = view.ingest(new)
    correction = Link(new, old, LinkKind.CORRECTS, view.eff(old) if dated else BEGINNING, known_from)
    downward = [
        replace(link, newer=new, effective_at=effective_time(link, view), known_from=known_from)
        for link in view.below(old)
        if link.kind is not LinkKind.CORRECTS
    ]
    upward = [
        replace(link, older=new, known_from=max(link.known_from, known_from)) for link in view.above(old)
    ]
    return sorted([correction, *downward, *upward], key=lambda link: (link.older, link.newer, link.kind))
