"""Which nodes look a certain way: what queries of a repository filter by, so that few nodes need be looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Trait = tuple[str, ...]
"""A way to look: `status`, `kind` or `subject` with its value, or `label` with key and value."""


class Looks(Protocol):
    """What the index reads of a head."""

    number: int
    status: str
    kind: str
    subject: str | None
    labels: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class NodeIndex:
    """The numbers of living nodes by each of their traits; no trait that no node has is kept."""

    _nodes: dict[Trait, set[int]] = field(default_factory=dict)

    def add(self, head: Looks) -> None:
        """Take a node in as it looks now."""
        for trait in _traits(head):
            self._nodes.setdefault(trait, set()).add(head.number)

    def drop(self, head: Looks) -> None:
        """Leave a node out, which must look as it did when it was added; one that is not there is passed over."""
        for trait in _traits(head):
            nodes = self._nodes.get(trait)
            if nodes is not None:
                nodes.discard(head.number)
                if not nodes:
                    del self._nodes[trait]

    def fewest(self, filters: Iterable[Sequence[Trait]], of: int) -> Collection[int] | None:
        """Return the nodes that pass one of the filters, that which passes the fewest; None where these are most nodes.

        Args:
            filters: each passes a node that has one of its traits.
            of: how many nodes there are.
        """
        passed = [[self._nodes.get(trait, set()) for trait in traits] for traits in filters]
        least = min(passed, key=_size, default=None)
        return None if least is None or 2 * _size(least) > of else set().union(*least)


def _size(sets: Iterable[Collection[int]]) -> int:
    return sum(map(len, sets))


def _traits(head: Looks) -> Iterator[Trait]:
    yield "status", head.status
    yield "kind", head.kind
    if head.subject is not None:
        yield "subject", head.subject
    for key, value in head.labels:
        yield "label", key, value
