"""What an import has told and stored of the nodes and conversations of one space so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    AccessRecord,
    ChangeSetRecord,
    ConversationRecord,
    FactRecord,
    NodeRecord,
    Record,
    TurnRecord,
)
from perdure.space.draft import Draft
from perdure.space.node_rules import NodeRules
from perdure.space.nodes import access_key
from perdure.space.state import SpaceState
from perdure.transfer.reading import Refused

FIRST = 1 << 30  # above all numbers that a space has given out: what a dry run would add takes these


class Line(NamedTuple):
    """A record of the file and the line that tells it."""

    number: int
    record: Record


class ToldNode(NamedTuple):
    """A node of the file: its number here, its last revision in the file, and how many the state does not hold yet."""

    here: int
    id: str
    revision: int
    pending: int


class ToldConversation(NamedTuple):
    """A version of a session of the file: its number here, and the name of it."""

    here: int
    session: str
    version: str
    turns: int


@dataclass(slots=True)
class _Told:
    nodes: dict[int, ToldNode] = field(default_factory=dict)  # by number in the file
    node_ids: set[str] = field(default_factory=set)
    conversations: dict[int, ToldConversation] = field(default_factory=dict)
    names: set[tuple[str, str]] = field(default_factory=set)  # session and version
    turns: set[tuple[int, int]] = field(default_factory=set)  # number in the file and position
    keys: set[bytes] = field(default_factory=set)  # of change sets and access records
    new_nodes: int = 0
    new_conversations: int = 0

    def add(self, other: _Told, *, is_stored: bool) -> None:
        for number, told in other.nodes.items():
            self.nodes[number] = told._replace(pending=0) if is_stored else told
        self.node_ids |= other.node_ids
        self.conversations.update(other.conversations)
        self.names |= other.names
        self.turns |= other.turns
        self.keys |= other.keys
        self.new_nodes += other.new_nodes
        self.new_conversations += other.new_conversations


class GovernedBook:
    """What an import knows of nodes and conversations. Noted into by plans, as the Book of facts is.

    A plan takes lines that hang together: a node's fact stands before it, those of a turn behind it, and a node
    may name another one that a later line tells. So lines are looked through before any of them is merged.
    """

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes
        self._kept, self._fresh = _Told(), _Told()
        self.left_out: Mapping[int, Refused] = {}  # by line: what an earlier attempt at this plan refused
        self.facts: dict[int, FactRecord] = {}  # governed ones of these lines, by number in the file
        self.changed: dict[int, int] = {}  # revision by node, of what this plan adds
        self.placed: dict[int, range] = {}  # facts here of the turns that this plan adds, by line
        self._claims: set[int] = set()
        self._ahead: dict[int, int] = {}  # numbers here of the nodes that these lines begin
        self._stored: dict[int, Record] = {}
        self._rules = NodeRules()
        self._attempted = self._rules

    def begin(self, draft: Draft, lines: Sequence[Line], left_out: Mapping[int, Refused]) -> None:
        """Begin a plan for these lines: drop what was noted since the last `keep`."""
        self._fresh, self.left_out = _Told(), left_out
        self._attempted = self._rules.copy() if lines else self._rules
        self.changed, self.placed = {}, {}
        told = [line for line in lines if line.number not in left_out]
        self.facts = {
            record.number: record for _, record in lines if isinstance(record, FactRecord) and record.governed
        }
        self._claims = {number for _, record in told for number in owned_by(record)}
        self._look_ahead(draft.state, told)
        self._fetch(draft, told)

    def keep(self) -> None:
        """Keep what was noted: it is written, or counts as if it were."""
        self._kept.add(self._fresh, is_stored=self._writes)
        self._fresh = _Told()
        self._rules = self._attempted

    def take(self, line: int, record: Record) -> None:
        """Note that a line is not refused, so that nodes are held against what is taken."""
        for what in self._attempted.see(line, record):
            raise Refused(what)

    def torn(self) -> dict[int, str]:
        """Return the nodes, by number in the file, that must not stay as the lines that are taken leave them, and why."""
        return self._attempted.torn()

    def _look_ahead(self, state: SpaceState, told: Sequence[Line]) -> None:
        self._ahead = {}
        following = state.nodes.next_number if self._writes else FIRST + self._kept.new_nodes
        for _, record in told:
            if not isinstance(record, NodeRecord) or record.revision != 1:
                continue
            if record.number in self._ahead or record.number in self._kept.nodes:
                continue
            head = state.nodes.find(record.id)
            self._ahead[record.number] = following if head is None else head.number
            following += head is None

    def _fetch(self, draft: Draft, told: Sequence[Line]) -> None:
        """Read at once the records that these lines may repeat."""
        wanted = sorted({seq for _, record in told if (seq := self._find_seq(draft, record))})
        self._stored = dict(zip(wanted, draft.records(wanted), strict=True))

    def _find_seq(self, draft: Draft, record: Record) -> int | None:
        state = draft.state
        if isinstance(record, NodeRecord):
            head = state.nodes.find(record.id)
            return None if head is None or record.revision > head.revision else head.seqs[record.revision - 1]
        if isinstance(record, AccessRecord):
            return state.nodes.access.get(access_key(record.kind, record.id, draft.secret))
        if isinstance(record, TurnRecord):
            version = self._kept.conversations.get(record.conversation)
            there = None if version is None else state.conversations.heads.get(version.here)
            turn = None if there is None else there.turns.get(record.position)
            return None if turn is None else turn.seq
        return None

    def stored(self, draft: Draft, seq: int) -> Record:
        """Return a record of the space."""
        found = self._stored.get(seq)
        if found is None:
            (found,) = draft.records([seq])
        return found

    def refuse_unowned(self, fact: FactRecord) -> None:
        """Raise Refused unless one of these lines is a node or a turn that is seen as the fact."""
        if fact.number not in self._claims:
            raise Refused(
                "is governed, but no node or turn is told with it that is seen as it, or it was left out"
            )

    # Nodes

    def find_node(self, number: int) -> ToldNode | None:
        return self._fresh.nodes.get(number) or self._kept.nodes.get(number)

    def first_here(self, record: NodeRecord) -> ToldNode:
        """Return what stands for a node that the file begins with this revision. Raises Refused."""
        told = (*self._fresh.nodes, *self._kept.nodes)
        if record.revision != 1:
            raise Refused(
                f"tells revision {record.revision} of a node whose earlier one no line before told, or which was left "
                "out"
            )
        if told and record.number <= max(told):
            raise Refused(f"number {record.number} is not above that of the node before it")
        if record.id in self._fresh.node_ids or record.id in self._kept.node_ids:
            raise Refused("repeats the id of an earlier line")
        return ToldNode(self._ahead[record.number], record.id, 0, 0)

    def node(self, state: SpaceState, number: int, revision: int) -> int:
        """Return the number here of a node of the file that has such a revision.

        Raises:
            Refused: no line has told it, or it is here no more.
        """
        told = self.find_node(number)
        if told is None or revision > told.revision:
            raise Refused(
                f"names revision {revision} of node {number}, which no line before this one has told"
            )
        if not self._exists(state, told):
            raise Refused(f"names node {number}, which was forgotten meanwhile")
        return told.here

    def target(self, state: SpaceState, number: int) -> int:
        """Return the number here of a node that a relation names, NO_NODE where it was forgotten. Raises Refused."""
        if number == NO_NODE:
            return NO_NODE
        told = self.find_node(number)
        if told is not None:
            return told.here if self._exists(state, told) else NO_NODE
        if number not in self._ahead:
            raise Refused(f"names node {number}, which the file does not tell with it, or which was left out")
        return self._ahead[number]

    def _exists(self, state: SpaceState, told: ToldNode) -> bool:
        return told.here in state.nodes.heads or told.pending > 0

    def note_node(self, number: int, told: ToldNode, *, is_new: bool) -> None:
        """Note a revision of the file; `is_new` where this plan adds it."""
        self._fresh.nodes[number] = told
        if told.revision == 1:
            self._fresh.node_ids.add(told.id)
            self._fresh.new_nodes += is_new
        if is_new:
            self.changed[told.here] = told.revision

    def is_known(self, key: bytes) -> bool:
        """Whether a line has told a change set, or an access record, of this key; notes it."""
        known = key in self._fresh.keys or key in self._kept.keys
        self._fresh.keys.add(key)
        return known

    # Conversations

    def conversation(self, number: int) -> ToldConversation:
        """Return a conversation of the file. Raises Refused where no line has told it."""
        found = self._fresh.conversations.get(number) or self._kept.conversations.get(number)
        if found is None:
            raise Refused(
                f"names conversation {number}, which no line before this one has told, or which was left out"
            )
        return found

    def next_conversation(self, state: SpaceState) -> int:
        """Return the number of the next conversation that is added."""
        fresh = self._fresh.new_conversations
        if self._writes:
            return state.conversations.next_number + fresh
        return FIRST + self._kept.new_conversations + fresh

    def note_conversation(self, number: int, told: ToldConversation, *, is_new: bool) -> None:
        """Note a conversation of the file. Raises Refused where it repeats another."""
        known = (*self._fresh.conversations, *self._kept.conversations)
        if known and number <= max(known):
            raise Refused(f"number {number} is not above that of the conversation before it")
        name = told.session, told.version
        if name in self._fresh.names or name in self._kept.names:
            raise Refused("repeats the session and version of an earlier line")
        self._fresh.conversations[number] = told
        self._fresh.names.add(name)
        self._fresh.new_conversations += is_new

    def note_turn(self, number: int, position: int) -> None:
        """Note a turn of the file. Raises Refused where it repeats another."""
        place = number, position
        if place in self._fresh.turns or place in self._kept.turns:
            raise Refused("repeats the position of an earlier turn")
        self._fresh.turns.add(place)

    def chunks(self, record: TurnRecord) -> list[FactRecord]:
        """Return the facts that a turn is seen as. Raises Refused where they do not stand with it."""
        found = [self.facts.get(number) for number in owned_by(record)]
        if any(one is None for one in found):
            raise Refused("is seen as facts that do not stand behind it")
        return [one for one in found if one is not None]


def owned_by(record: Record) -> range:
    """Return the facts that a node's revision or a turn is seen as, by number."""
    if isinstance(record, NodeRecord) and record.fact != NO_FACT:
        return range(record.fact, record.fact + 1)
    if isinstance(record, TurnRecord):
        return range(record.first, record.first + record.chunks)
    return range(0)


def step_of(draft: Draft, book: GovernedBook) -> ChangeSetRecord | None:
    """Return the record that counts what an import changed as a step, which answers to no key; None for nothing."""
    if not book.changed:
        return None
    step, nodes = draft.state.nodes.sequence + 1, tuple(sorted(book.changed.items()))
    return ChangeSetRecord(b"", b"", nodes, draft.now, draft.now, step)


class Unsettled:
    """What lines have told that only hangs together with lines that are still to come."""

    def __init__(self) -> None:
        self._facts: set[int] = set()  # governed ones without an owner
        self._awaited: set[int] = set()  # facts of turns that are to follow
        self._nodes: set[int] = set()  # told
        self._targets: set[int] = set()  # named and not told
        self._conversations: set[int] = set()  # without a turn yet

    def see(self, record: Record) -> None:
        if isinstance(record, FactRecord):
            if record.governed and record.number not in self._awaited:
                self._facts.add(record.number)
            self._awaited.discard(record.number)
        elif isinstance(record, NodeRecord):
            self._facts.discard(record.fact)
            self._nodes.add(record.number)
            self._targets.discard(record.number)
            named = {number for _, number in record.relations if number != NO_NODE}
            self._targets |= named - self._nodes
        elif isinstance(record, ConversationRecord):
            self._conversations.add(record.number)
        elif isinstance(record, TurnRecord):
            self._conversations.discard(record.conversation)
            owned = set(owned_by(record))
            self._awaited |= owned - self._facts
            self._facts -= owned

    def settle(self) -> None:
        """Wait for nothing of the lines so far: they are stored, or were refused."""
        for waiting in (self._facts, self._awaited, self._targets, self._conversations):
            waiting.clear()

    def __bool__(self) -> bool:
        return bool(self._facts or self._awaited or self._targets or self._conversations)
