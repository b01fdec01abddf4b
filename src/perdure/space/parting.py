"""Which nodes and turns stay where some of their facts or records do not, and what is needed so that nothing comes back.

A node or a turn stays whole or not at all. What a node that goes had superseded is ended, and a version that a link
to its successor is missing for gets one: what is served is what was admitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from perdure.log.records import (
    NO_FACT,
    AccessRecord,
    ChangeSetRecord,
    ConversationRecord,
    EndRecord,
    FactRecord,
    LinkRecord,
    NodeRecord,
    Record,
    RemovalRecord,
    TurnRecord,
)
from perdure.space.node_rules import NodeRules, NodeState, state_of
from perdure.temporal.columns import BEGINNING, begins_at

RETRACTED = ("conflicted", "tombstoned")
SUPERSEDED = "superseded"


class _Revision(NamedTuple):
    seq: int
    revision: int
    status: str
    fact: int
    recorded_at: int
    state: NodeState


def _torn(kept: dict[int, list[_Revision]]) -> dict[int, str]:
    rules = NodeRules(facts=False)  # what is wrong with facts is mended
    for node, revisions in kept.items():
        for one in revisions:
            rules.note(one.seq, node, one.state)
    return rules.torn()


class _Fact(NamedTuple):
    seq: int
    begins: int
    starts: int | None  # as told
    ingested: int


class _Turn(NamedTuple):
    seq: int
    facts: range


@dataclass(slots=True)
class Parted:
    """What does not stay: facts by number, and seqs; the records to add; what was found wanting, each with a seq."""

    facts: set[int] = field(default_factory=set)
    seqs: set[int] = field(default_factory=set)
    added: list[LinkRecord | EndRecord] = field(default_factory=list)
    found: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Parting:
    """Told all records of a space in order by `see`, it says what stays of them by `part`."""

    _facts: dict[int, _Fact] = field(default_factory=dict)  # governed ones, by number
    _nodes: dict[int, list[_Revision]] = field(default_factory=dict)
    _expected: dict[int, int] = field(default_factory=dict)  # the last revision that others tell of, by node
    _conversations: dict[int, int] = field(default_factory=dict)  # seqs
    _turns: dict[tuple[int, int], list[_Turn]] = field(default_factory=dict)
    _receipts: list[tuple[int, ChangeSetRecord]] = field(default_factory=list)
    _accesses: list[tuple[int, int]] = field(default_factory=list)  # (seq, node)
    _links: dict[int, list[LinkRecord]] = field(default_factory=dict)  # by older fact
    _ended: dict[int, bool] = field(default_factory=dict)  # whether retracted
    _forgotten: set[int] = field(default_factory=set)  # nodes

    def see(self, seq: int, record: Record) -> None:
        """Note a record."""
        if isinstance(record, FactRecord):
            self._see_fact(seq, record)
        elif isinstance(record, NodeRecord):
            told = _Revision(
                seq, record.revision, record.status, record.fact, record.recorded_at, state_of(record)
            )
            self._nodes.setdefault(record.number, []).append(told)
        elif isinstance(record, LinkRecord):
            self._links.setdefault(record.older, []).append(record)
        elif isinstance(record, EndRecord):
            self._ended[record.number] = self._ended.get(record.number, False) or record.at is None
        elif isinstance(record, ChangeSetRecord):
            self._receipts.append((seq, record))
        elif isinstance(record, AccessRecord):
            self._accesses.append((seq, record.node))
            self._expect(record.node, record.revision)
        elif isinstance(record, ConversationRecord):
            self._conversations[record.number] = seq
        elif isinstance(record, TurnRecord):
            facts = range(record.first, record.first + record.chunks)
            self._turns.setdefault((record.conversation, record.position), []).append(_Turn(seq, facts))
        elif isinstance(record, RemovalRecord):
            self._forgotten.update(record.nodes)

    def _see_fact(self, seq: int, record: FactRecord) -> None:
        if record.governed:
            begins = begins_at(
                record.ingest_time,
                valid_from=record.valid_from,
                event_time=record.event_time,
                effective_from=record.effective_from,
            )
            self._facts[record.number] = _Fact(seq, begins, record.valid_from, record.ingest_time)

    def _expect(self, node: int, revision: int) -> None:
        self._expected[node] = max(self._expected.get(node, 0), revision)

    def part(self, facts: Set[int], seqs: Set[int], *, seen_only: bool = False) -> Parted:
        """Return what goes along with facts and records that go.

        Args:
            facts: by number.
            seqs: records that are left out anyway.
            seen_only: nodes that never were seen as a fact go too.
        """
        parted = Parted()
        living = {
            number for number, fact in self._facts.items() if number not in facts and fact.seq not in seqs
        }
        for seq, record in self._receipts:
            if seq not in seqs:
                for node, revision in record.nodes:
                    self._expect(node, revision)
        kept = dict(self._kept_nodes(living, seqs, parted, seen_only=seen_only))
        self._part_torn(kept, parted)
        owned = {one.fact for revisions in kept.values() for one in revisions} - {NO_FACT}
        owned |= self._part_turns(living, seqs, parted)
        for number in sorted(living - owned):
            seq = self._facts[number].seq
            parted.facts.add(number)
            parted.seqs.add(seq)
            parted.found.append((f"fact {number} is left out: what it stands for is not whole", seq))
        self._part_others(kept.keys(), parted)
        for revisions in kept.values():
            parted.added += self._mended(revisions, owned)
        return parted

    def _kept_nodes(
        self, living: Set[int], seqs: Set[int], parted: Parted, *, seen_only: bool
    ) -> Iterator[tuple[int, list[_Revision]]]:
        for node, told in sorted(self._nodes.items()):
            # One that was told again stands behind later records, and behind what it was if that is left.
            last = {one.revision: one for one in told if one.seq not in seqs}
            revisions = [last[revision] for revision in sorted(last)]
            if not revisions:
                continue
            facts = {one.fact for one in revisions} - {NO_FACT}
            numbers = [one.revision for one in revisions]
            is_whole = numbers == list(range(1, len(numbers) + 1)) and facts <= living
            is_whole = is_whole and len(numbers) >= self._expected.get(node, 0)
            if is_whole and (facts or not seen_only) and node not in self._forgotten:
                yield node, revisions
                continue
            parted.seqs.update(one.seq for one in told)
            parted.found.append((f"node {node} is left out: not all of it is whole", revisions[0].seq))

    def _part_torn(self, kept: dict[int, list[_Revision]], parted: Parted) -> None:
        """Take out nodes, and pairs of them, whose last revisions are lost without anything that says so."""
        while torn := _torn(kept):
            for node, what in sorted(torn.items()):
                if node in kept:
                    del kept[node]
                    parted.seqs.update(one.seq for one in self._nodes[node])
                    first = self._nodes[node][0].seq
                    parted.found.append((f"node {node} is left out: it {what}", first))

    def _part_turns(self, living: Set[int], seqs: Set[int], parted: Parted) -> set[int]:
        owned: set[int] = set()
        having = set()
        for (conversation, position), told in sorted(self._turns.items()):
            for turn in told:
                if turn.seq in seqs:
                    continue
                is_there = self._conversations.get(conversation, 0) not in (seqs | {0})
                if is_there and set(turn.facts) <= living:
                    owned.update(turn.facts)
                    having.add(conversation)
                    continue
                parted.seqs.add(turn.seq)
                what = f"turn {position} of conversation {conversation} is left out: not all of it is whole"
                parted.found.append((what, turn.seq))
        parted.seqs.update(seq for number, seq in self._conversations.items() if number not in having)
        return owned

    def _part_others(self, kept: Set[int], parted: Parted) -> None:
        """Leave out what answers to, and what was noted of, nodes that go."""
        for seq, record in self._receipts:
            if any(node not in kept for node, _ in record.nodes):
                parted.seqs.add(seq)
        parted.seqs.update(seq for seq, node in self._accesses if node not in kept)

    def _mended(self, revisions: list[_Revision], owned: Set[int]) -> Iterator[LinkRecord | EndRecord]:
        """Yield what is missing between the facts of a node that stays, and at the end of the last."""
        seen = [one.fact for one in revisions if one.fact != NO_FACT]
        for older, newer in pairwise(seen):
            if not self._is_over(older, owned):
                yield LinkRecord(newer, older, True, None, self._facts[newer].ingested)
        head = revisions[-1]
        if not seen:
            return
        last = seen[-1]
        if head.status in RETRACTED and not self._ended.get(last, False):
            yield EndRecord(last, None, head.recorded_at, None)
        elif head.status == SUPERSEDED and not self._is_over(last, owned):
            yield self._end_of(last, head.recorded_at)

    def _is_over(self, fact: int, owned: Set[int]) -> bool:
        return fact in self._ended or any(link.newer in owned for link in self._links.get(fact, ()))

    def _end_of(self, fact: int, otherwise: int) -> EndRecord:
        """Return the end of a superseded fact whose superseder goes: when that took effect, as far as is known."""
        at = known = otherwise
        for link in self._links.get(fact, ()):
            newer = self._facts.get(link.newer)
            begins = link.effective_at if link.effective_at is not None else newer.begins if newer else at
            if begins <= at:
                at, known = begins, link.known_from
        starts = self._facts[fact].starts
        never = at == BEGINNING or (starts is not None and at <= starts)
        return EndRecord(fact, None if never else at, known, SUPERSEDED)
