"""What recalls see of nodes: the active head of each is a fact, written in the same transaction.

A revision that changes what the fact says makes a new fact, which corrects the old one, or supersedes it where the
node was refined. A node that is superseded takes its fact along; one that is conflicted or tombstoned retracts it.
Only where a change set leaves a node counts: what lies between is not seen. Nothing of a candidate is in the index.
A fact's source names the evidence; its quote is the node's alone, so that it can be erased in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perdure.base.instants import to_millis
from perdure.log.records import NO_FACT, EndRecord, FactRecord, SourceFields
from perdure.model.node import Evidence, Node, NodeStatus, RelationKind, RevisionKind
from perdure.model.node_forms import fact_id
from perdure.planning.blocks import refuse_blocked
from perdure.planning.checks import json_bytes
from perdure.planning.embedding import NO_VECTORS, Vectors
from perdure.planning.vectors import add_vectors
from perdure.repository.changes import Staged
from perdure.space.draft import Draft
from perdure.space.preparing import units_of
from perdure.temporal.columns import RETRACTED
from perdure.temporal.links import Link, LinkKind, copied_links, effective_time

_SEEN = ("content", "labels", "subject", "valid_from", "valid_to", "importance", "evidence")


def texts_to_embed(staged: Staged) -> list[str]:
    """Return the texts of the facts that a change set will make, each once."""
    return sorted({staged.heads[id_].content for id_ in staged.heads if _needs_fact(staged, id_)})


def project(draft: Draft, staged: Staged, vectors: Mapping[str, Vectors]) -> dict[str, int]:
    """Plan the facts, links and ends of all changed nodes; return the numbers of new facts by node.

    Args:
        vectors: by text; a fact whose text is not among them gets none.
    """
    order = list(dict.fromkeys(node.id for node in staged.revisions))
    refined = {one.id for one in staged.revisions if one.revision_kind is RevisionKind.REFINED}
    made: dict[str, int] = {}
    for node_id in order:
        if _needs_fact(staged, node_id):
            made[node_id] = _add_fact(draft, staged, node_id, refined=node_id in refined)
            found = vectors.get(staged.heads[node_id].content, NO_VECTORS)
            add_vectors(draft, made[node_id], found.units, found.model)
    for node_id in order:
        _supersede(draft, staged, node_id, made)
        _retract(draft, staged, node_id)
    return made


def _needs_fact(staged: Staged, node_id: str) -> bool:
    head, before = staged.heads[node_id], staged.before[node_id]
    if head.status is not NodeStatus.ACTIVE:
        return False
    if before is None or before.status is not NodeStatus.ACTIVE:
        return True
    if before.fact is None:
        return False  # nothing decided that it may be seen: the store was tampered with, which a verify tells
    return any(getattr(head, name) != getattr(before, name) for name in _SEEN)


def _add_fact(draft: Draft, staged: Staged, node_id: str, *, refined: bool) -> int:
    head, before = staged.heads[node_id], staged.before[node_id]
    old = None if before is None or before.status is not NodeStatus.ACTIVE else _fact_of(draft, node_id)
    corrects = old is not None and not refined
    keeps_start = before is not None and head.valid_from == before.valid_from
    record = FactRecord(
        number=draft.next_number,
        id=fact_id(node_id, head.revision),
        text=head.content,
        ingest_time=draft.now,
        subject=head.subject,
        valid_from=None if head.valid_from is None else to_millis(head.valid_from, field="valid_from"),
        valid_to=None if head.valid_to is None else to_millis(head.valid_to, field="valid_to"),
        metadata=json_bytes(dict(sorted(head.labels.items())) or None),
        kind=head.kind.value,
        importance=head.importance,
        source=_source(head),
        # A correction stands where the mistake stood.
        effective_from=draft.eff(old) if old is not None and corrects and keeps_start else None,
        governed=True,
    )
    refuse_blocked(draft, record.id, record.text)
    profile = draft.state.profile
    draft.add_fact(record, tuple(profile.document_terms(unit) for unit in units_of(record)))
    if old is not None and corrects:
        _correct(draft, old, record.number)
    elif old is not None:
        draft.add_link(Link(record.number, old, LinkKind.SUPERSEDES, None, draft.now))
    return record.number


def _correct(draft: Draft, old: int, new: int) -> None:
    dated = draft.fact(old).valid_from is not None
    for copied in copied_links(old, new, draft, dated=dated):
        link = copied
        if link.newer == new and link.kind is not LinkKind.CORRECTS:
            # A correction that begins earlier takes over from where it begins itself.
            link = replace(link, effective_at=min(effective_time(link, draft), draft.eff(new)))
        draft.add_link(link)


def _supersede(draft: Draft, staged: Staged, node_id: str, made: dict[str, int]) -> None:
    """Link the fact of a node that has come to supersede others to theirs."""
    head, before = staged.heads[node_id], staged.before[node_id]
    known = () if before is None else before.relations
    for relation in head.relations:
        if relation.kind is not RelationKind.SUPERSEDES or relation in known or relation.target is None:
            continue
        older = _fact_of(draft, relation.target)
        newer = made.get(node_id, _fact_of(draft, node_id))
        if older is None or newer is None:
            continue
        # A fact without a start of its own says nothing of the time before it was put in the other's place.
        at = None if node_id in made or head.valid_from is not None else draft.now
        draft.add_link(Link(newer, older, LinkKind.SUPERSEDES, at, draft.now))


def _retract(draft: Draft, staged: Staged, node_id: str) -> None:
    if staged.heads[node_id].status not in (NodeStatus.CONFLICTED, NodeStatus.TOMBSTONED):
        return
    fact = _fact_of(draft, node_id)
    if fact is not None and draft.valid_to(fact) > RETRACTED:
        draft.add(EndRecord(fact, None, draft.now, staged.heads[node_id].reason))


def _fact_of(draft: Draft, node_id: str) -> int | None:
    """Return the number of the stored fact that the node was seen as last."""
    head = draft.state.nodes.find(node_id)
    return None if head is None or head.fact == NO_FACT else head.fact


def _source(node: Node) -> SourceFields | None:
    shown = _shown_evidence(node)
    if shown is None:
        return None
    return SourceFields(uri=shown.uri)


def _shown_evidence(node: Node) -> Evidence | None:
    """Return the first evidence that quotes something, else the first."""
    quoting = (one for one in node.evidence if one.quote is not None)
    return next(quoting, node.evidence[0] if node.evidence else None)
