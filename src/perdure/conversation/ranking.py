"""Finding turns: recalls of chunks, collapsed to turns, each role ranked by itself, and the roles interleaved."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from perdure.contract import limits
from perdure.conversation.checks import usable_subqueries
from perdure.memory.facade import Memory
from perdure.model.conversation import ROLES, ConversationRecallOptions, QueryPlan
from perdure.model.conversation_forms import TURN_PREFIX
from perdure.model.hit import Hit

log = logging.getLogger("perdure.conversation")
RRF_K = 60  # Cormack, Clarke and Buettcher, SIGIR 2009; not tuned on our data
TimeRanges = tuple[tuple[datetime | None, datetime | None], ...]


class QueryPlanner(Protocol):
    """Finds other ways to ask a question. It is called on the thread that recalls, before anything is read."""

    def plan(self, query: str) -> QueryPlan:
        """Return subqueries, and the times that are meant. What it raises costs the recall nothing but them."""
        ...


class Turn(NamedTuple):
    """A turn by what its chunks say of it."""

    session: str
    version: str
    position: int


class Found(NamedTuple):
    """A turn that was found, with its fused score."""

    turn: Turn
    score: float


class Weighted(NamedTuple):
    """A query with its share of the ranking."""

    text: str
    weight: float


class Asked(NamedTuple):
    """The queries that a recall asks, and the times that a planner sees in them."""

    queries: tuple[Weighted, ...]
    time_ranges: TimeRanges = ()


def asked_queries(query: str, options: ConversationRecallOptions, planner: QueryPlanner | None) -> Asked:
    """Return the query itself with what the others leave of the weight, then the others with equal parts of theirs."""
    share, ranges = options.subquery_weight, TimeRanges()
    if share <= 0.0:
        return Asked((Weighted(query, 1.0),))
    told = options.subqueries
    if not told and planner is not None:
        told, ranges = _planned(planner, query)
    others = [other for other in told if other != query]
    if not others:
        return Asked((Weighted(query, 1.0),), ranges)
    queries = [Weighted(query, 1.0 - share)] if share < 1.0 else []
    return Asked((*queries, *(Weighted(other, share / len(others)) for other in others)), ranges)


def _planned(planner: QueryPlanner, query: str) -> tuple[tuple[str, ...], TimeRanges]:
    try:
        found = planner.plan(query)
        return usable_subqueries(found.subqueries, is_told=False), tuple(found.time_ranges)
    except Exception as error:  # noqa: BLE001 - a planner of anybody's: the query itself is still asked
        log.warning("the planner of queries failed: %s", type(error).__name__)
        return (), ()


def rank(memory: Memory, queries: Sequence[Weighted], options: ConversationRecallOptions) -> list[Found]:
    """Return the turns that were found, best first: at most k of each role.

    A turn has the rank of its best chunk among the turns of its role. Of several queries the weighted 1 / (60 + rank)
    are added up, and the sums ranked anew. The fused score is 1 / (60 + rank in its role); equal ones come in the order
    in which the roles are named.
    """
    rankings = [(one.weight, _by_role(memory, one.text, options)) for one in queries]
    fused: list[tuple[int, Found]] = []
    for place, role in enumerate(options.roles):
        turns = _combined([(weight, turns[role]) for weight, turns in rankings])[: options.k]
        fused += [(place, Found(turn, 1.0 / (RRF_K + at))) for at, turn in enumerate(turns, 1)]
    fused.sort(key=lambda one: (-one[1].score, one[0]))
    return [found for _, found in fused]


def _combined(rankings: Sequence[tuple[float, Sequence[Turn]]]) -> list[Turn]:
    if len(rankings) == 1:
        return list(rankings[0][1])
    scores: dict[Turn, float] = {}
    for weight, turns in rankings:
        for at, turn in enumerate(turns, 1):
            scores[turn] = scores.get(turn, 0.0) + weight / (RRF_K + at)
    # A dict keeps the order in which turns were met, so equal sums come in the order of the first query.
    return sorted(scores, key=lambda turn: -scores[turn])


def _by_role(memory: Memory, query: str, options: ConversationRecallOptions) -> dict[str, list[Turn]]:
    """Return the turns of each role, best first, at most k of each.

    Both roles are recalled together and parted afterwards, also where one is asked for: what a user and an assistant say
    is about one another, and only what a recall may return counts as standing beside a match. A role that the other
    crowds out is recalled alone as well.
    """
    most = min(len(ROLES) * options.candidate_limit, limits.K_MAX)
    hits = _recalled(memory, query, k=most)
    found: dict[str, list[Turn]] = {}
    for role in options.roles:
        turns = _turns_of(hits, role, options)
        if len(turns) < options.k and len(hits) == most:
            alone = _recalled(memory, query, k=options.candidate_limit, filter={"role": role})
            turns = list(dict.fromkeys([*turns, *_turns_of(alone, role, options)]))
        found[role] = turns[: options.k]
    return found


def _turns_of(hits: Iterable[Hit], role: str, options: ConversationRecallOptions) -> list[Turn]:
    """Return the turns of a role in the order of their first chunks, of as many chunks as are looked at."""
    # The space has a name, so others may have told facts to it; ids with the prefix are the package's own.
    told = (hit.fact.metadata for hit in hits if hit.id.startswith(TURN_PREFIX))
    own = [chunk for chunk in told if chunk["role"] == role][: options.candidate_limit]
    return list(dict.fromkeys(Turn(one["session"], one["version"], one["position"]) for one in own))


def _recalled(memory: Memory, query: str, *, k: int, **asked: Any) -> list[Hit]:
    return memory.recall(query, k=k, candidate_limit=k, context=True, history="current", **asked)
