"""The node that a fact stands for, as an explanation names it, and what it quotes of the fact's source."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.base.instants import to_datetime
from perdure.errors import Corrupt
from perdure.log.records import EvidenceFields, FactRecord, NodeRecord, SourceFields
from perdure.model.node import Evidence, EvidenceKind, NodeReference, NodeStatus
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState


def find_node_reference(state: SpaceState, reader: FactReader, number: int) -> NodeReference | None:
    """Return the node of a fact, with the revision that projected it and what vouches for that; None for others.

    The status is the node's own now, whatever the fact's.
    """
    if number not in state.governed or (owner := state.nodes.fact_owner.get(number)) is None:
        return None
    head = state.nodes.heads[owner]
    (record,) = _revisions(state, reader, [_seq_of(state, number, owner)])
    evidence = tuple(evidence_of(one) for one in record.evidence)
    return NodeReference(head.id, record.revision, NodeStatus(head.status), evidence)


def quoted_sources(
    state: SpaceState, reader: FactReader, records: Sequence[FactRecord]
) -> dict[int, SourceFields]:
    """Return the sources with their quotes, by number, of those of these facts whose nodes quote the source.

    Such a fact holds the uri alone: the quote is the node's, and goes from there where its turn is forgotten.
    """
    if not state.governed:
        return {}
    owners = state.nodes.fact_owner
    told = [
        (record.number, record.source.uri, _seq_of(state, record.number, owners[record.number]))
        for record in records
        if record.governed and record.number in owners and record.source is not None
        if record.source.uri in state.nodes.heads[owners[record.number]].quoted
    ]
    found: dict[int, SourceFields] = {}
    revisions = _revisions(state, reader, [seq for _, _, seq in told]) if told else []
    for (number, uri, _), revision in zip(told, revisions, strict=True):
        for one in revision.evidence:
            if one.uri == uri and one.quote is not None:
                found[number] = SourceFields(uri=uri, quote=one.quote, start=one.start, end=one.end)
                break
    return found


def _seq_of(state: SpaceState, fact: int, owner: int) -> int:
    """Return the record of the revision of the node that projected the fact."""
    head = state.nodes.heads[owner]
    return head.seqs[head.facts.index(fact)]


def _revisions(state: SpaceState, reader: FactReader, seqs: Sequence[int]) -> list[NodeRecord]:
    found = []
    for seq, record in zip(seqs, reader.records(state, seqs), strict=True):
        if not isinstance(record, NodeRecord):
            raise Corrupt(f"record {seq} is no revision of a node: run a verify", seq=seq)
        found.append(record)
    return found


def evidence_of(told: EvidenceFields) -> Evidence:
    """Return a record's evidence as readers see it."""
    return Evidence(
        told.uri,
        told.digest,
        EvidenceKind(told.kind),
        to_datetime(told.occurred_at),
        told.quote,
        told.start,
        told.end,
    )
