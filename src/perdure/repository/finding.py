"""Finding nodes: filters over the heads, ranking by words, pages.

A node that is active is ranked by its fact in the space's index. Any other node is not in the index; its content is
scored by the same formula with the same statistics, as though it were looked at from outside.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from perdure.lexical.bm25 import LENGTH_MAX, TF_MAX, contribution, idf, norm
from perdure.log.records import NO_FACT
from perdure.model.node import Node, NodeHit, NodeStatus
from perdure.model.replies import Page
from perdure.repository.asking import NodeQuery
from perdure.repository.coverage import coverage, tokens
from perdure.repository.stored import StoredNodes
from perdure.search.cursors import CursorCodec
from perdure.space.nodes import NodeHead
from perdure.space.state import SpaceState


class Place(NamedTuple):
    """Where a node stands in a list: ascending by what sorts it, then by id."""

    order: tuple[float, int]
    id: str

    def written(self) -> str:
        return msgspec.json.encode((self.order[0].hex(), self.order[1], self.id)).decode()

    @classmethod
    def read(cls, text: str) -> Place:
        first, second, id_ = msgspec.json.decode(text, type=tuple[str, int, str])
        return cls((float.fromhex(first), second), id_)


class Placed(NamedTuple):
    """A node and where it stands."""

    place: Place
    head: NodeHead


def find_nodes(
    state: SpaceState,
    nodes: StoredNodes,
    query: NodeQuery,
    limit: int,
    cursor: str | None,
    codec: CursorCodec,
) -> Page[NodeHit]:
    """Return a page of the nodes that match: best score first, then those updated last, then by id."""
    if query.text is None:
        heads = _matching(state, query)
        placed = [Placed(Place((-0.0, -head.updated_at), head.id), head) for head in heads]
        return paged(placed, limit, cursor, codec, lambda found: _hits(nodes, found, {}, None))
    ranked = _ranked(state, nodes, query, query.text)
    last = None if cursor is None else Place.read(str(codec.decode_keyed(cursor)[1]))
    # All that may be on the page: from the score of the cursor's node on, to the last of those that share a score.
    first = 0 if last is None else bisect_left(ranked, last.order[0], key=lambda one: -one.score)
    taken = _taken(ranked, first, limit, last)
    part = sorted(taken)[:limit]
    scores = {one.head.number: -one.place.order[0] for one in part}
    behind = len(ranked) - first - (0 if last is None else _before(ranked, first, last))
    has_more = behind > len(part)
    after = codec.encode(part[-1].head.number, part[-1].place.written()) if has_more else None
    return Page(_hits(nodes, [one.head for one in part], scores, query.text), len(ranked), has_more, after)


def _matching(state: SpaceState, query: NodeQuery) -> Iterator[NodeHead]:
    """Yield the nodes that pass the filters, in no order."""
    return (head for head in state.nodes.narrowed(query.filters()) if query.matches(head))


class Ranked(NamedTuple):
    """A node that holds a word of the text."""

    score: float
    head: NodeHead

    @property
    def place(self) -> Place:
        return Place((-self.score, -self.head.updated_at), self.head.id)


class _Rows:
    """Ranked nodes that are made as they are looked at: a page needs few of very many."""

    def __init__(self, state: SpaceState, seen: _Seen, rows: Sequence[int], scores: Sequence[float]) -> None:
        self._heads, self._seen, self._rows, self._scores = state.nodes.heads, seen, rows, scores

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> Ranked:
        return Ranked(self._scores[place], self._heads[self._seen.node_of[self._rows[place]]])

    def __iter__(self) -> Iterator[Ranked]:
        return (self[place] for place in range(len(self)))


def _taken(ranked: _Many, first: int, limit: int, last: Place | None) -> list[Placed]:
    taken: list[Placed] = []
    for one in map(ranked.__getitem__, range(first, len(ranked))):
        if len(taken) >= limit and -one.score > taken[-1].place.order[0]:
            break
        if last is None or one.place > last:
            taken.append(Placed(one.place, one.head))
    return taken


def _before(ranked: _Many, first: int, last: Place) -> int:
    """Return how many of those that share the cursor's score stand before its node, or are it."""
    end = bisect_right(ranked, last.order[0], lo=first, key=lambda one: -one.score)
    return sum(1 for one in map(ranked.__getitem__, range(first, end)) if one.place <= last)


def _hits(
    nodes: StoredNodes, found: Sequence[NodeHead], scores: Mapping[int, float], text: str | None
) -> tuple[NodeHit, ...]:
    asked = None if text is None else tokens(text)
    return tuple(
        NodeHit(node, score, coverage(asked, node.content) if asked else 0.0, score)
        for head, node in zip(found, nodes.heads(found), strict=True)
        for score in (scores.get(head.number, 0.0),)
    )


def paged(
    placed: list[Placed],
    limit: int,
    cursor: str | None,
    codec: CursorCodec,
    made: Callable[[Sequence[NodeHead]], tuple[msgspec.Struct, ...]],
) -> Page:  # type: ignore[type-arg]  # what `made` makes
    """Return the page after the cursor's node, also when that node is gone or stands elsewhere by now."""
    placed.sort()
    start = 0
    if cursor is not None:
        _, key = codec.decode_keyed(cursor)
        last = Place.read(str(key))
        start = sum(1 for one in placed if one.place <= last)
    part = placed[start : start + limit]
    has_more = start + limit < len(placed)
    after = codec.encode(part[-1].head.number, part[-1].place.written()) if has_more else None
    return Page(made([one.head for one in part]), len(placed), has_more, after)


def _ranked(state: SpaceState, nodes: StoredNodes, query: NodeQuery, text: str) -> _Many:
    """Return the nodes that pass the filters and hold a word of the text, best score first."""
    terms = state.profile.query_terms(text)
    if not terms:
        return []
    found: _Many = []
    if NodeStatus.ACTIVE in query.statuses:
        seen = _seen(state)
        rows, scores, _ = state.index.search(terms, state.index.rows, mask=seen.mask)
        all_seen = _Rows(state, seen, rows, scores)
        found = [one for one in all_seen if query.matches(one.head)] if query.narrows else all_seen
    if any(status is not NodeStatus.ACTIVE for status in query.statuses):
        others = [head for head in _matching(state, query) if not _is_seen(head)]
        outside = (
            Ranked(_score_outside(state, terms, node), head)
            for head, node in zip(others, nodes.heads(others), strict=True)
        )
        found = sorted([*found, *(one for one in outside if one.score > 0.0)], key=lambda one: -one.score)
    return found


_Many = _Rows | list[Ranked]


class _Seen(NamedTuple):
    """The facts that active nodes are seen as: which rows they are, and whose."""

    mask: bytearray
    node_of: dict[int, int]


def _seen(state: SpaceState) -> _Seen:
    kept: _Seen | None = state.kept.get("seen nodes")
    if kept is None:
        node_of = {head.fact: head.number for head in state.nodes.heads.values() if _is_seen(head)}
        mask = bytearray(state.index.rows)
        for row in node_of:
            mask[row] = 1
        kept = _Seen(mask, node_of)
        state.keep("seen nodes", kept)
    return kept


def _is_seen(head: NodeHead) -> bool:
    return head.status == NodeStatus.ACTIVE and head.fact != NO_FACT


def _score_outside(state: SpaceState, terms: Sequence[str], node: Node) -> float:
    index = state.index
    held = state.profile.document_terms(node.content)
    counts = Counter(held)
    length = min(len(held), LENGTH_MAX)
    average = index.total_length / index.document_count if index.document_count else float(length or 1)
    k1, b = index.parameters
    half = norm(length, average_length=average, k1=k1, b=b)
    weighed = sorted((index.document_frequency(term), term) for term in set(terms) if counts[term])
    return sum(
        (
            contribution(idf(index.document_count, df), min(counts[term], TF_MAX), half)
            for df, term in weighed
        ),
        0.0,
    )
