"""What the records of one space say of nodes, conversations and the facts that are theirs, held against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from perdure.base.text import counted
from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    AccessRecord,
    ByRecord,
    ChangeSetRecord,
    ConversationRecord,
    FactRecord,
    NodeRecord,
    Record,
    RemovalRecord,
    TurnRecord,
)
from perdure.space.node_rules import NodeRules

Told = tuple[str, int]
"""What is wrong with a record, and its seq."""


@dataclass(slots=True)
class GovernedReplay:
    """One pass over the records of a space. `see` takes them in order, `ends` tells what only the whole space tells."""

    facts: dict[int, int] = field(default_factory=dict)  # governed ones that live, by number: their seqs
    owners: dict[int, int] = field(default_factory=dict)  # seqs of the owners of facts, by fact
    revisions: dict[int, int] = field(default_factory=dict)  # the last one of each node that lives
    ids: dict[str, int] = field(default_factory=dict)  # of those nodes
    turns: dict[int, dict[int, int]] = field(default_factory=dict)  # seqs by conversation and position
    told: dict[int, int] = field(default_factory=dict)  # how many turns a conversation has
    next_node: int = 0
    next_conversation: int = 0
    gone: BitMap = field(default_factory=BitMap)  # nodes that were forgotten
    named: list[tuple[int, int]] = field(default_factory=list)  # (node, seq): what relations lead to
    # (node, revision, seq): what is answered for and accessed. A revision may be told again behind it.
    answered: list[tuple[int, int, int]] = field(default_factory=list)
    rules: NodeRules = field(default_factory=NodeRules)
    by: int = 1  # the last record whose writer is told, or record 1

    def see(self, seq: int, record: Record) -> Iterator[Told]:
        """Yield what does not fit the records before it."""
        look = _LOOKS.get(type(record))
        if look is not None:
            yield from look(self, seq, record)
        for what in self.rules.see(seq, record):
            yield what, seq

    def ends(self) -> Iterator[Told]:
        """Yield what is named and was never there, and facts and owners that lack each other."""
        for node, seq in self.named:
            if not 0 <= node < self.next_node:
                yield f"names node {node}, which there never was", seq
        for node, revision, seq in self.answered:
            known = self.revisions.get(node)
            if known is None:
                yield f"tells of node {node}, which is not there", seq
            elif not 1 <= revision <= known:
                yield f"tells of revision {revision} of node {node}, which has {known}", seq
        for fact, seq in self.facts.items():
            if fact not in self.owners:
                yield f"is fact {fact}, which is governed, but no node or turn is seen as it", seq
        for fact, seq in self.owners.items():
            if fact not in self.facts:
                yield f"is seen as fact {fact}, which is not there as one that is governed", seq
        yield from self.rules.ends()

    def _fact(self, seq: int, record: FactRecord) -> Iterator[Told]:
        if record.governed:
            self.facts[record.number] = seq
        return iter(())

    def _node(self, seq: int, record: NodeRecord) -> Iterator[Told]:
        known = self.revisions.get(record.number)
        if known is None:
            yield from self._begin(seq, record)
        elif record.revision != known + 1 or self.ids.get(record.id) != record.number:
            yield "is not the next revision of its node", seq
        self.revisions[record.number] = record.revision
        self.next_node = max(self.next_node, record.number + 1)
        self.named += [(node, seq) for _, node in record.relations if node != NO_NODE]
        if record.fact != NO_FACT:
            yield from self._own(record.fact, seq)

    def _begin(self, seq: int, record: NodeRecord) -> Iterator[Told]:
        if record.number in self.gone:
            yield f"tells of node {record.number}, which was forgotten", seq
        elif record.revision != 1 or (record.number < self.next_node and not record.retold):
            yield "tells of a node that is not there before it", seq
        if record.id in self.ids:
            yield f"has the id of node {self.ids[record.id]}", seq
        self.ids[record.id] = record.number

    def _own(self, fact: int, seq: int) -> Iterator[Told]:
        if fact in self.owners:
            yield f"is seen as fact {fact}, as another record is", seq
        self.owners[fact] = seq

    def _change_set(self, seq: int, record: ChangeSetRecord) -> Iterator[Told]:
        if record.key:
            self.answered += [(node, revision, seq) for node, revision in record.nodes]
        else:  # it answers to nobody, and stays as it is when nodes are forgotten
            self.named += [(node, seq) for node, _ in record.nodes]
        return iter(())

    def _access(self, seq: int, record: AccessRecord) -> Iterator[Told]:
        self.answered.append((record.node, record.revision, seq))
        return iter(())

    def _conversation(self, seq: int, record: ConversationRecord) -> Iterator[Told]:
        if record.number < self.next_conversation:
            yield f"repeats the conversation {record.number}", seq
        self.next_conversation = max(self.next_conversation, record.number + 1)
        self.turns[record.number], self.told[record.number] = {}, record.turns

    def _turn(self, seq: int, record: TurnRecord) -> Iterator[Told]:
        turns = self.turns.get(record.conversation)
        if turns is None or not 0 <= record.position < self.told[record.conversation]:
            yield "is a turn of no conversation before it", seq
            return
        if record.position in turns:
            yield f"repeats turn {record.position} of its conversation", seq
        turns[record.position] = seq
        for fact in range(record.first, record.first + record.chunks):
            yield from self._own(fact, seq)

    def _removal(self, seq: int, record: RemovalRecord) -> Iterator[Told]:
        self.named += [(node, seq) for node, _ in record.blanked]
        for node in record.nodes:
            if node in self.revisions:
                yield f"forgot node {node}, of which records are left", seq
                del self.revisions[node]
            self.next_node = max(self.next_node, node + 1)
            self.gone.add(node)
        for conversation, position in record.turns:
            if self.turns.get(conversation, {}).pop(position, None) is not None:
                yield f"forgot turn {position} of conversation {conversation}, which is left", seq
            self.next_conversation = max(self.next_conversation, conversation + 1)
        # A fact that is left although it was forgotten is told of where its bytes are looked for.
        return

    def _by(self, seq: int, record: ByRecord) -> Iterator[Told]:
        if not 1 <= record.count < seq - self.by:
            yield (
                f"says who wrote the {counted(record.count, 'record')} before it, of which there are fewer",
                seq,
            )
        self.by = seq


_LOOKS: dict[type, Callable[[GovernedReplay, int, Any], Iterator[Told]]] = {
    FactRecord: GovernedReplay._fact,
    NodeRecord: GovernedReplay._node,
    ChangeSetRecord: GovernedReplay._change_set,
    AccessRecord: GovernedReplay._access,
    ConversationRecord: GovernedReplay._conversation,
    TurnRecord: GovernedReplay._turn,
    RemovalRecord: GovernedReplay._removal,
    ByRecord: GovernedReplay._by,
}
