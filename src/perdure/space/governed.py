"""Nodes and conversations of a space: applying their records, and what goes with a fact that is theirs.

A governed fact is what a node or a turn is seen as in recalls. Its owner alone changes it, and the two are
forgotten together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from perdure.log.records import (
    NO_FACT,
    AccessRecord,
    ChangeSetRecord,
    ConversationRecord,
    MarkRecord,
    NodeRecord,
    TurnRecord,
)
from perdure.space.preparing import Prepared
from perdure.space.state import SpaceState


@dataclass(slots=True)
class Whole:
    """Facts with the nodes and turns whose they are, and all other facts of those."""

    facts: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    turns: set[tuple[int, int]] = field(default_factory=set)


def whole_of(state: SpaceState, facts: Iterable[int], nodes: Iterable[int] = ()) -> Whole:
    """Return what must be forgotten together with these facts and living nodes."""
    whole = Whole(set(facts), set(nodes))
    for fact in [fact for fact in whole.facts if fact in state.governed]:
        if (node := state.nodes.fact_owner.get(fact)) is not None:
            whole.nodes.add(node)
        if (turn := state.conversations.fact_owner.get(fact)) is not None:
            whole.turns.add(turn)
    for node in whole.nodes:
        whole.facts.update(fact for fact in state.nodes.heads[node].facts if fact != NO_FACT)
    for conversation, position in whole.turns:
        turn_head = state.conversations.heads[conversation].turns[position]
        whole.facts.update(range(turn_head.first, turn_head.first + turn_head.chunks))
    return whole


def seqs_of(state: SpaceState, whole: Whole) -> set[int]:
    """Return the records of the nodes and turns, those of their facts apart.

    The record of a version goes with the last of its turns.
    """
    seqs: set[int] = set()
    for node in whole.nodes:
        head = state.nodes.heads[node]
        seqs.update(head.seqs, head.access)
    for conversation, position in whole.turns:
        version = state.conversations.heads[conversation]
        seqs.add(version.turns[position].seq)
        if all((conversation, other) in whole.turns for other in version.turns):
            seqs.add(version.seq)
    return seqs


def originals_of(state: SpaceState, whole: Whole) -> list[int]:
    """Return the records of all revisions of the nodes, and those of the turns: what holds their words."""
    revisions = [seq for node in whole.nodes for seq in state.nodes.heads[node].seqs]
    heads = state.conversations.heads
    turns = [heads[conversation].turns[position].seq for conversation, position in whole.turns]
    return sorted([*revisions, *turns])


def _apply_node(state: SpaceState, item: Prepared, secret: bytes) -> None:
    record = item.record
    assert isinstance(record, NodeRecord)
    state.nodes.put(item.seq, record, secret)
    if record.fact != NO_FACT:
        state.stale.add(record.fact)


def _apply_change_set(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, ChangeSetRecord)
    state.nodes.take(item.seq, item.record)


def _apply_access(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, AccessRecord)
    state.nodes.note(item.seq, item.record, secret)


def _apply_mark(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, MarkRecord)
    state.nodes.mark(state.settings, item.record.digest, secret)


def _apply_conversation(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, ConversationRecord)
    state.conversations.put(item.seq, item.record)


def _apply_turn(state: SpaceState, item: Prepared, secret: bytes) -> None:
    assert isinstance(item.record, TurnRecord)
    state.conversations.add(item.seq, item.record)


HANDLERS: dict[type, Callable[[SpaceState, Prepared, bytes], None]] = {
    NodeRecord: _apply_node,
    ChangeSetRecord: _apply_change_set,
    AccessRecord: _apply_access,
    MarkRecord: _apply_mark,
    ConversationRecord: _apply_conversation,
    TurnRecord: _apply_turn,
}
