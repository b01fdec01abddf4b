"""What the lifecycle lets nodes be, told by records: of a space that is verified, or of a file that is imported.

Whether evidence was of a kind that decides is not told: which kinds do is a matter of each caller's settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    EndRecord,
    FactRecord,
    LinkRecord,
    NodeRecord,
    Record,
    RemovalRecord,
)
from perdure.model.node import NodeStatus, RelationKind, RevisionKind

Told = tuple[str, int]
"""What is wrong with a record, and its place."""

NEXT: dict[NodeStatus, frozenset[NodeStatus]] = {
    NodeStatus.CANDIDATE: frozenset({NodeStatus.ACTIVE, NodeStatus.TOMBSTONED}),
    NodeStatus.ACTIVE: frozenset({NodeStatus.SUPERSEDED, NodeStatus.CONFLICTED, NodeStatus.TOMBSTONED}),
    NodeStatus.CONFLICTED: frozenset({NodeStatus.ACTIVE, NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED}),
    NodeStatus.SUPERSEDED: frozenset({NodeStatus.TOMBSTONED}),
    NodeStatus.TOMBSTONED: frozenset(),
}
FROZEN = frozenset({NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED})
NEEDED = {
    NodeStatus.SUPERSEDED: RelationKind.SUPERSEDED_BY,
    NodeStatus.CONFLICTED: RelationKind.CONFLICTS_WITH,
}
_STARTS = (NodeStatus.CANDIDATE, NodeStatus.ACTIVE)
_RETRACTED = (NodeStatus.CONFLICTED, NodeStatus.TOMBSTONED)


class NodeState(NamedTuple):
    """A node as one revision has it."""

    status: str
    kind: str
    created_at: int
    updated_at: int
    relations: tuple[tuple[str, int], ...]
    fact: int  # that this revision is seen as, or NO_FACT
    says: bytes  # a digest of all that its fact shows


class _Head(NamedTuple):
    """A node as its last revision has it."""

    place: int
    state: NodeState
    shown: bytes  # what the last fact of this spell of being active shows
    facts: tuple[int, ...]


class _Fault(NamedTuple):
    """What is wrong with a node, and the other node where it is wrong between the two."""

    what: str
    other: int = NO_NODE


@dataclass(slots=True)
class NodeRules:
    """One pass over records, in order. Numbers of nodes and facts are those of the records.

    Args:
        facts: hold nodes against the ends and links of their facts too.
    """

    facts: bool = True
    _heads: dict[int, _Head] = field(default_factory=dict)
    _open: dict[int, _Fault] = field(
        default_factory=dict
    )  # the first fault of each node that has one as of now
    _owners: dict[int, int] = field(default_factory=dict)  # nodes by fact, NO_NODE where none was told yet
    _awaited: dict[int, frozenset[int]] = field(
        default_factory=dict
    )  # nodes that name one not told yet, by that one
    _ended: set[int] = field(default_factory=set)  # governed facts
    _retracted: set[int] = field(default_factory=set)

    def copy(self) -> NodeRules:
        return NodeRules(
            self.facts,
            self._heads.copy(),
            self._open.copy(),
            self._owners.copy(),
            self._awaited.copy(),
            self._ended.copy(),
            self._retracted.copy(),
        )

    def see(self, place: int, record: Record) -> Iterator[str]:
        """Yield what is wrong with a record by itself and after those before it; a node's is noted where nothing is."""
        if isinstance(record, NodeRecord):
            head = self._heads.get(record.number)
            wrong = [
                *_faults(record),
                *(_first_faults(record) if head is None else _later_faults(record, head.state)),
            ]
            if not wrong:
                self.note(place, record.number, state_of(record))
            yield from wrong
        elif isinstance(record, FactRecord) and record.governed:
            self._owners.setdefault(record.number, NO_NODE)
        elif isinstance(record, LinkRecord):
            self._end(record.older, is_retracted=False)
        elif isinstance(record, EndRecord):
            self._end(record.number, is_retracted=record.at is None)
        elif isinstance(record, RemovalRecord):
            self._remove(record.nodes)

    def note(self, place: int, number: int, state: NodeState) -> None:
        """Note the next revision of a node."""
        before = self._heads.get(number)
        facts = () if before is None else before.facts
        shown = b"" if before is None or state.status != NodeStatus.ACTIVE else before.shown
        if state.fact != NO_FACT:
            facts, shown = (*facts, state.fact), state.says
            self._owners[state.fact] = number
        self._heads[number] = _Head(place, state, shown, facts)
        joined = {target for _, target in state.relations}
        for target in joined - self._heads.keys() - {NO_NODE}:
            self._awaited[target] = self._awaited.get(target, frozenset()) | {number}
        if before is None:
            joined |= self._awaited.pop(number, frozenset())
        else:
            joined |= {target for _, target in before.state.relations}
        self._settle({number} | joined)

    def _end(self, fact: int, *, is_retracted: bool) -> None:
        if fact not in self._owners:
            return
        self._ended.add(fact)
        if is_retracted:
            self._retracted.add(fact)
        self._settle((self._owners[fact],))

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            head = self._heads.pop(number, None)
            self._open.pop(number, None)
            if head is not None:
                self._settle({target for _, target in head.state.relations})

    def _settle(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            head = self._heads.get(number)
            fault = None if head is None else next(self._wrong(number, head), None)
            if fault is None:
                self._open.pop(number, None)
            else:
                self._open[number] = fault

    @property
    def is_settled(self) -> bool:
        """Whether nothing is wrong so far, circles apart. It is not amid the records of a change set."""
        return not self._open

    def torn(self) -> dict[int, str]:
        """Return nodes with what is wrong with them so far, both ends where it is wrong between two."""
        found = {fault.other: fault.what for fault in self._open.values() if fault.other != NO_NODE}
        return found | {number: fault.what for number, fault in self._open.items()}

    def ends(self) -> Iterator[Told]:
        """Yield what is wrong with nodes and between them once all is told, each with the place of a last revision."""
        for number, fault in self._open.items():
            yield fault.what, self._heads[number].place
        yield from self._cycles()

    def _wrong(self, number: int, head: _Head) -> Iterator[_Fault]:
        state, status = head.state, NodeStatus(head.state.status)
        if status is NodeStatus.ACTIVE and head.shown != state.says:
            yield _Fault("is active, but seen as no fact that says what it does")
        if self.facts:
            yield from self._facts_left(head)
        needed = NEEDED.get(status)
        if needed is not None and not any(kind == needed for kind, _ in state.relations):
            yield _Fault(f"is {status} and has no relation of the kind {needed}")
        for kind, target in state.relations:
            other = self._heads.get(target)
            if other is None:
                continue
            inverse = RelationKind(kind).inverse
            if (inverse, number) not in other.state.relations:
                yield _Fault(
                    f"has a relation of the kind {kind} that has no {inverse} at its other end", target
                )
            if kind == RelationKind.SUPERSEDES and other.state.status not in FROZEN:
                yield _Fault(f"supersedes a node that is {other.state.status}", target)

    def _facts_left(self, head: _Head) -> Iterator[_Fault]:
        """Yield what of a node is seen and should not be."""
        for fact in head.facts[:-1]:
            if fact not in self._ended:
                yield _Fault(f"is seen as a new fact, but fact {fact} before it is not over")
        status = NodeStatus(head.state.status)
        over = self._retracted if status in _RETRACTED else self._ended
        if status is not NodeStatus.ACTIVE and head.facts and head.facts[-1] not in over:
            yield _Fault(f"is {status}, but fact {head.facts[-1]}, which it was seen as, is not over")

    def _cycles(self) -> Iterator[Told]:
        """Yield a node of every knot of nodes that supersede each other in a circle."""
        waiting = dict.fromkeys(self._heads, 0)
        for head in self._heads.values():
            for target in self._superseded(head):
                waiting[target] += 1
        free = [number for number, count in waiting.items() if not count]
        while free:
            for target in self._superseded(self._heads[free.pop()]):
                waiting[target] -= 1
                if not waiting[target]:
                    free.append(target)
        left = [number for number, count in waiting.items() if count]
        if left:
            yield "is superseded in a circle, or behind one", self._heads[min(left)].place

    def _superseded(self, head: _Head) -> Iterable[int]:
        return (
            to for kind, to in head.state.relations if kind == RelationKind.SUPERSEDES and to in self._heads
        )


def _faults(record: NodeRecord) -> Iterator[str]:
    if not record.evidence:
        yield "is a node without evidence"
    if len({(one.uri, one.digest) for one in record.evidence}) != len(record.evidence):
        yield "has one evidence twice"
    named = [relation for relation in record.relations if relation[1] != NO_NODE]
    if any(target == record.number for _, target in named):
        yield "has a relation to itself"
    if len(set(named)) != len(named):
        yield "has one relation twice"
    if record.fact != NO_FACT and record.status != NodeStatus.ACTIVE:
        yield f"is {record.status}, and so is seen as no fact"


def _first_faults(record: NodeRecord) -> Iterator[str]:
    if record.revision != 1:
        return  # that the earlier ones are missing is told elsewhere
    if record.status not in _STARTS:
        yield f"begins as {record.status}; a node begins as candidate or active"
    if record.change != RevisionKind.CREATED or record.updated_at != record.created_at:
        yield "is a first revision, but not told as the making of a node"


def _later_faults(record: NodeRecord, before: NodeState) -> Iterator[str]:
    source, target = NodeStatus(before.status), NodeStatus(record.status)
    if not _is_step(RevisionKind(record.change), source, target):
        yield f"makes a node that is {source} one that is {target} as {record.change}, which no change does"
    if (record.kind, record.created_at) != (before.kind, before.created_at):
        yield "has another kind or time of making than the revision before it"
    if record.updated_at < before.updated_at:
        yield "is changed before the revision before it"


def _is_step(change: RevisionKind, source: NodeStatus, target: NodeStatus) -> bool:
    if change is RevisionKind.ACTIVATED:
        return (source, target) == (NodeStatus.CANDIDATE, NodeStatus.ACTIVE)
    if change is RevisionKind.RESOLVED:
        return (source, target) == (NodeStatus.CONFLICTED, NodeStatus.ACTIVE)
    if change is RevisionKind.STATUS_CHANGED:
        return target in NEXT[source] and target is not NodeStatus.ACTIVE
    return change is not RevisionKind.CREATED and source is target and source not in FROZEN


def state_of(record: NodeRecord) -> NodeState:
    """Return what the rules ask of a revision."""
    seen = (
        record.content,
        record.labels,
        record.subject,
        record.valid_from,
        record.valid_to,
        record.importance,
        record.evidence,
    )
    return NodeState(
        record.status,
        record.kind,
        record.created_at,
        record.updated_at,
        record.relations,
        record.fact,
        # Equal where the fact of a node need not change.
        blake2b(msgspec.msgpack.encode(seen), digest_size=16).digest(),
    )
