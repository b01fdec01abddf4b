"""Nodes as the log holds them: records from nodes, and nodes from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.base.instants import to_datetime, to_millis
from perdure.errors import Corrupt
from perdure.log.records import NO_FACT, NO_NODE, AccessRecord, EvidenceFields, NodeRecord
from perdure.model.node import (
    AccessEvent,
    Evidence,
    Node,
    NodeKind,
    NodeStatus,
    Relation,
    RelationKind,
    RevisionKind,
)
from perdure.model.node_forms import fact_id
from perdure.repository.changes import Edges
from perdure.search.governed import evidence_of
from perdure.space.facts import FactReader
from perdure.space.nodes import NodeHead
from perdure.space.state import SpaceState

_BATCH = 1_000  # records that are read from the log at a time


class StoredNodes:
    """The nodes of one consistent view of a space."""

    def __init__(self, state: SpaceState, reader: FactReader) -> None:
        self.state, self.reader = state, reader
        self.table = state.nodes

    def find(self, id_: str) -> Node | None:
        """Return the head of the living node of this id."""
        head = self.table.find(id_)
        return None if head is None else self.heads([head])[0]

    def find_edges(self, id_: str) -> Edges | None:
        """Return status and relations of the node; reads no record."""
        head = self.table.find(id_)
        return None if head is None else Edges(NodeStatus(head.status), self._relations(head.relations))

    def heads(self, heads: Sequence[NodeHead]) -> list[Node]:
        """Return the nodes as they are, in the order asked."""
        return self.revisions([(head, head.revision) for head in heads])

    def revisions(self, wanted: Sequence[tuple[NodeHead, int]]) -> list[Node]:
        """Return revisions of living nodes, in the order asked. Raises Moved where an erasure overtook the view."""
        found: list[Node] = []
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            seqs = [head.seqs[revision - 1] for head, revision in part]
            for (head, revision), seq, record in zip(
                part, seqs, self.reader.records(self.state, seqs), strict=True
            ):
                if not isinstance(record, NodeRecord) or record.revision != revision:
                    raise Corrupt(f"record {seq} is not the node that it should be: run a verify", seq=seq)
                found.append(self._node(record, find_fact(head, revision, record.status)))
        return found

    def event(self, seq: int) -> AccessEvent:
        """Return the access event of a record that lives."""
        (record,) = self.reader.records(self.state, [seq])
        if not isinstance(record, AccessRecord):
            raise Corrupt(f"record {seq} is no access record: run a verify", seq=seq)
        return AccessEvent(
            record.id,
            self.table.heads[record.node].id,
            record.revision,
            to_datetime(record.occurred_at),
            record.context,
            record.actor,
            "use" if record.kind == "use" else "admission",
        )

    def _relations(self, told: Sequence[tuple[str, int]]) -> tuple[Relation, ...]:
        heads = self.table.heads
        return tuple(
            Relation(RelationKind(kind), None if (head := heads.get(target)) is None else head.id)
            for kind, target in told
        )

    def _node(self, record: NodeRecord, fact: str | None) -> Node:
        return Node(
            record.id,
            record.revision,
            NodeKind(record.kind),
            NodeStatus(record.status),
            record.content,
            record.confidence,
            record.importance,
            tuple(evidence_of(one) for one in record.evidence),
            self._relations(record.relations),
            dict(record.labels),
            record.subject,
            None if record.valid_from is None else to_datetime(record.valid_from),
            None if record.valid_to is None else to_datetime(record.valid_to),
            to_datetime(record.created_at),
            to_datetime(record.updated_at),
            RevisionKind(record.change),
            record.actor,
            record.reason,
            fact,
        )


def find_fact(head: NodeHead, revision: int, status: str) -> str | None:
    """Return the id of the fact that stands for a revision: the last one projected, where the node is active."""
    if status != NodeStatus.ACTIVE:
        return None
    for projected in range(revision, 0, -1):
        if head.facts[projected - 1] != NO_FACT:
            return fact_id(head.id, projected)
    return None


def record_of(node: Node, numbers: Mapping[str, int], fact: int, recorded_at: int) -> NodeRecord:
    """Return the record of a revision.

    Args:
        numbers: of the node and of all nodes that its relations name.
        fact: the number of the fact that this revision projects, or NO_FACT.
    """
    return NodeRecord(
        number=numbers[node.id],
        id=node.id,
        revision=node.revision,
        change=node.revision_kind.value,
        kind=node.kind.value,
        status=node.status.value,
        content=node.content,
        confidence=node.confidence,
        importance=node.importance,
        evidence=tuple(_fields_of(one) for one in node.evidence),
        relations=tuple(
            (str(one.kind), NO_NODE if one.target is None else numbers[one.target]) for one in node.relations
        ),
        labels=tuple(sorted(node.labels.items())),
        created_at=to_millis(node.created_at, field="created_at"),
        updated_at=to_millis(node.updated_at, field="updated_at"),
        recorded_at=recorded_at,
        subject=node.subject,
        valid_from=None if node.valid_from is None else to_millis(node.valid_from, field="valid_from"),
        valid_to=None if node.valid_to is None else to_millis(node.valid_to, field="valid_to"),
        fact=fact,
        actor=node.actor,
        reason=node.reason,
    )


def _fields_of(told: Evidence) -> EvidenceFields:
    return EvidenceFields(
        told.uri,
        told.digest,
        str(told.kind),
        to_millis(told.occurred_at, field="occurred_at"),
        told.quote,
        told.start,
        told.end,
    )
