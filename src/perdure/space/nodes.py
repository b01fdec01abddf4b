"""The nodes of a space as its records tell of them: heads, where their revisions stand, and how they changed.

A revision may be told again without a quote that was erased. A table that knew it puts the new record in the place of
the old one; a table that is built from what the erasure left meets the new one alone. Both come to the same, because all
revisions from the first that is told again on are told again, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from perdure.base.ids import keyed_hash
from perdure.errors import Corrupt
from perdure.log.records import (
    NO_FACT,
    AccessRecord,
    ChangeSetRecord,
    NodeRecord,
    SpaceRecord,
    encode,
)
from perdure.space.node_index import NodeIndex, Trait

DIGEST_BYTES = 32
_WRAP = 1 << (8 * DIGEST_BYTES)


class NodeHead(msgspec.Struct, array_like=True):
    """What is known of a living node without reading its records. Revision r is record `seqs[r - 1]`."""

    number: int
    id: str
    seqs: list[int] = []
    facts: list[int] = []  # what each revision is seen as, NO_FACT where it projects none of its own
    kind: str = ""
    status: str = ""
    confidence: float = 0.0
    importance: float = 0.0
    labels: tuple[tuple[str, str], ...] = ()
    uris: tuple[str, ...] = ()  # of the evidence, in its order
    quoted: tuple[str, ...] = ()  # uris of the evidence that the last revision quotes
    relations: tuple[tuple[str, int], ...] = ()
    subject: str | None = None
    created_at: int = 0
    updated_at: int = 0
    recorded_at: int = 0
    digests: list[bytes] = []  # of each revision, see `revision_digest`
    access: list[int] = []  # seqs of the access records, in order
    admissions: int = 0
    uses: int = 0

    @property
    def revision(self) -> int:
        return len(self.seqs)

    @property
    def fact(self) -> int:
        """The number of the newest fact that a revision projects, NO_FACT where none does."""
        return next((number for number in reversed(self.facts) if number != NO_FACT), NO_FACT)


class Step(NamedTuple):
    """One step of the sequence: the changed nodes with their revisions, or how many were forgotten.

    Of an erasure of quotes, the nodes that stay, each with its last revision.
    """

    nodes: tuple[tuple[int, int], ...]
    forgotten: int = 0
    is_erasure: bool = False


class ChangeReceipt(NamedTuple):
    """A change set that took effect and the seq of its record."""

    record: ChangeSetRecord
    seq: int


class NodesDump(msgspec.Struct, array_like=True):
    """All of it for a snapshot."""

    heads: list[NodeHead]
    next_number: int
    receipts: list[tuple[int, ChangeSetRecord]]
    access: dict[bytes, int]
    sequence: int
    digest: bytes
    history: bytes
    steps: dict[int, tuple[tuple[tuple[int, int], ...], int, bool]]


@dataclass(slots=True)
class NodeTable:
    """See the module's text. Only `apply` changes it."""

    heads: dict[int, NodeHead] = field(default_factory=dict)  # living ones, in no order
    numbers: dict[str, int] = field(default_factory=dict)  # by id
    fact_owner: dict[int, int] = field(default_factory=dict)  # node by the fact that it is seen as
    next_number: int = 0
    receipts: dict[bytes, ChangeReceipt] = field(default_factory=dict)
    access: dict[bytes, int] = field(default_factory=dict)  # seq of an access record by `access_key`
    sequence: int = 0  # the last step since the last purge
    digest: int = 0  # of all revisions that live, modulo 2**256
    history: bytes = b""  # of the content at the last purge; empty where there was none
    steps: dict[int, Step] = field(default_factory=dict)  # by their place in the sequence
    index: NodeIndex = field(default_factory=NodeIndex)  # of the heads
    # Of nodes whose first revision is told again further on; none is left at the end of a transaction.
    early: dict[int, list[tuple[int, AccessRecord]]] = field(default_factory=dict, compare=False)

    def find(self, id_: str) -> NodeHead | None:
        """Return the head of the living node of this id."""
        number = self.numbers.get(id_)
        return None if number is None else self.heads[number]

    def narrowed(self, filters: Iterable[Sequence[Trait]]) -> Iterable[NodeHead]:
        """Return heads among which are all that pass the filters, in no order; see `NodeIndex.fewest`."""
        few = self.index.fewest(filters, len(self.heads))
        return self.heads.values() if few is None else map(self.heads.__getitem__, few)

    def put(self, seq: int, record: NodeRecord, secret: bytes) -> None:
        """Add a revision, or put one that is told again in the place of what it was."""
        head = self.heads.get(record.number)
        if head is None:
            head = self._begin(seq, record, secret)
        elif record.id != head.id or not (record.revision == head.revision + 1 or _is_again(head, record)):
            raise Corrupt(f"record {seq} is not the next revision of its node: run a verify", seq=seq)
        digest = revision_digest(record, secret)
        self._count(digest, 1)
        if record.revision <= head.revision:
            place = record.revision - 1
            self._count(head.digests[place], -1)
            head.seqs[place], head.digests[place] = seq, digest
        else:
            head.seqs.append(seq)
            head.facts.append(record.fact)
            head.digests.append(digest)
            if record.fact != NO_FACT:
                self.fact_owner[record.fact] = record.number
        if record.revision == head.revision:
            self.index.drop(head)
            _show(head, record)
            self.index.add(head)

    def _begin(self, seq: int, record: NodeRecord, secret: bytes) -> NodeHead:
        if record.revision != 1 or (record.number < self.next_number and not record.retold):
            raise Corrupt(f"record {seq} tells of a node that is not there before it: run a verify", seq=seq)
        # Lists of its own: the defaults are shared.
        head = NodeHead(record.number, record.id, seqs=[], facts=[], digests=[], access=[])
        self.heads[record.number], self.numbers[record.id] = head, record.number
        self.next_number = max(self.next_number, record.number + 1)
        for noted, access in self.early.pop(record.number, ()):
            self.note(noted, access, secret)
        return head

    def _count(self, digest: bytes, sign: int) -> None:
        self.digest = (self.digest + sign * int.from_bytes(digest, "little")) % _WRAP

    def take(self, seq: int, record: ChangeSetRecord) -> None:
        """Keep the answer to a change set, and count it where it is a step; an import's step has no key."""
        if record.key:
            self.receipts[record.key] = ChangeReceipt(record, seq)
        if record.step:
            self._step(record.step, Step(record.nodes))

    def _step(self, place: int, step: Step) -> None:
        self.sequence = max(self.sequence, place)
        self.steps[place] = step

    def note(self, seq: int, record: AccessRecord, secret: bytes) -> None:
        """Count an access to a node."""
        head = self.heads.get(record.node)
        if head is None:
            self.early.setdefault(record.node, []).append((seq, record))
            return
        head.access.append(seq)
        self.access[access_key(record.kind, record.id, secret)] = seq
        if record.kind == "use":
            head.uses += 1
        else:
            head.admissions += 1

    def remove(self, nodes: Sequence[int], place: int, blanked: Sequence[tuple[int, int]] = ()) -> None:
        """Take out nodes that were forgotten: one step of the sequence. Without nodes it is one of quotes.

        A table that is built from what an erasure left has never met them, and comes to the same.

        Args:
            place: of the step; 0 where no node is touched.
            blanked: the nodes that lost quotes, with their last revisions.
        """
        if not place:
            return
        gone = [head for number in nodes if (head := self.heads.pop(number, None)) is not None]
        for head in gone:
            del self.numbers[head.id]
            self.index.drop(head)
            for digest in head.digests:
                self._count(digest, -1)
            for fact in head.facts:
                self.fact_owner.pop(fact, None)
        seqs = {seq for head in gone for seq in head.access}
        if seqs:
            self.access = {key: seq for key, seq in self.access.items() if seq not in seqs}
        self.next_number = max([self.next_number, *(number + 1 for number in nodes)])
        self._step(place, Step(tuple(blanked), len(nodes), is_erasure=True))

    def mark(self, settings: SpaceRecord, digest: bytes, secret: bytes) -> None:
        """Begin a new history from what was there when the record was written, whatever is left of it."""
        self.history = history_of(settings, int.from_bytes(digest, "little"), secret)
        self.sequence, self.steps = 0, {}

    def history_id(self, settings: SpaceRecord, secret: bytes) -> bytes:
        """Return the keyed digest of the content at the last purge, or of the empty space."""
        return self.history or history_of(settings, 0, secret)

    def dump(self) -> NodesDump:
        return NodesDump(
            list(self.heads.values()),
            self.next_number,
            [(kept.seq, kept.record) for kept in self.receipts.values()],
            self.access,
            self.sequence,
            self.digest.to_bytes(DIGEST_BYTES, "little"),
            self.history,
            {place: (step.nodes, step.forgotten, step.is_erasure) for place, step in self.steps.items()},
        )

    @classmethod
    def load(cls, dump: NodesDump) -> NodeTable:
        table = cls(
            heads={head.number: head for head in dump.heads},
            numbers={head.id: head.number for head in dump.heads},
            next_number=dump.next_number,
            receipts={record.key: ChangeReceipt(record, seq) for seq, record in dump.receipts},
            access=dump.access,
            sequence=dump.sequence,
            digest=int.from_bytes(dump.digest, "little"),
            history=dump.history,
            steps={place: Step(*step) for place, step in dump.steps.items()},
        )
        for head in dump.heads:
            table.index.add(head)
            table.fact_owner.update((fact, head.number) for fact in head.facts if fact != NO_FACT)
        return table

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""
        return 1_300 * len(self.heads) + 300 * len(self.receipts) + 100 * (len(self.access) + len(self.steps))


def _is_again(head: NodeHead, record: NodeRecord) -> bool:
    return bool(record.retold) and 1 <= record.revision <= head.revision


def _show(head: NodeHead, record: NodeRecord) -> None:
    """Make the head look as its last revision does."""
    head.kind, head.status = record.kind, record.status
    head.confidence, head.importance = record.confidence, record.importance
    head.labels, head.relations, head.subject = record.labels, record.relations, record.subject
    head.uris = tuple(one.uri for one in record.evidence)
    head.quoted = tuple(one.uri for one in record.evidence if one.quote is not None)
    head.created_at, head.updated_at = record.created_at, record.updated_at
    head.recorded_at = record.recorded_at


def revision_digest(record: NodeRecord, secret: bytes) -> bytes:
    """Return the keyed digest of a revision, DIGEST_BYTES long; where it stands makes no difference."""
    told = msgspec.structs.replace(record, retold=0) if record.retold else record
    return keyed_hash(secret, b"node", encode(told), DIGEST_BYTES)


class RevisionSum:
    """Adds up a digest of revisions, in any order, as a table that is told them has it."""

    def __init__(self, secret: bytes) -> None:
        self._secret, self._sum = secret, 0

    def add(self, record: NodeRecord) -> None:
        self._sum += int.from_bytes(revision_digest(record, self._secret), "little")

    @property
    def digest(self) -> bytes:
        """DIGEST_BYTES long."""
        return (self._sum % _WRAP).to_bytes(DIGEST_BYTES, "little")


def history_of(settings: SpaceRecord, digest: int, secret: bytes) -> bytes:
    """Return what names a history of nodes that begins with content of this digest."""
    name = msgspec.msgpack.encode(
        (settings.principal, settings.scope, digest.to_bytes(DIGEST_BYTES, "little"))
    )
    return keyed_hash(secret, b"node history", name, DIGEST_BYTES)


def access_key(kind: str, id_: str, secret: bytes) -> bytes:
    """Return the keyed digest under which an access record is found."""
    return keyed_hash(secret, b"node access", kind.encode() + b"\0" + id_.encode())
