"""The canonical form of nodes and the digest of their histories: equal nodes have equal bytes, and only they.

Compact JSON with sorted keys, shortest numbers and times in milliseconds since 1970, as everywhere; what is absent is
left out. The fact that a revision is seen as is no part of it: another store may see it as another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from perdure.base.instants import EPOCH, Instant, to_millis
from perdure.model.node import Evidence, Node

DIGEST_PREFIX = "sha256:"
FACT_PREFIX = "perdure:node/"
_HISTORY_PROFILE = b"perdure.node-history.v1"
_MILLISECOND = timedelta(milliseconds=1)
_INTEGERS = {0.0: 0, 1.0: 1}  # the only whole numbers that a share may be


class EvidenceForm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An evidence with its fields in the order of their names."""

    digest: str
    kind: str
    occurred_at: int
    uri: str
    end: int | None = None
    quote: str | None = None
    start: int | None = None


class RelationForm(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A relation likewise."""

    kind: str
    target: str | None = None


class NodeForm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A node likewise; the encoder sorts the names, which differ in order where some are left out."""

    confidence: float
    content: str
    created_at: int
    id: str
    importance: float
    kind: str
    revision: int
    revision_kind: str
    status: str
    updated_at: int
    actor: str | None = None
    evidence: tuple[EvidenceForm, ...] = ()
    history_digest: str | None = None
    labels: dict[str, str] = {}
    reason: str | None = None
    relations: tuple[RelationForm, ...] = ()
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None


_encode = msgspec.json.Encoder(order="sorted").encode


def fact_id(node_id: str, revision: int) -> str:
    """Return the id of the fact that a revision of a node is seen as."""
    return f"{FACT_PREFIX}{node_id}@{revision}"


def find_node_id(id_: str) -> str | None:
    """Return the id of the node that such a fact is a revision of; None for any other id."""
    name, _, revision = id_.removeprefix(FACT_PREFIX).rpartition("@")
    return (
        name if id_.startswith(FACT_PREFIX) and name and revision.isascii() and revision.isdigit() else None
    )


def canonical_node(node: Node, *, history_digest: str | None = None) -> bytes:
    """Return the canonical form of one revision of a node, with the digest of its history where it is given."""
    return _encode(
        NodeForm(
            confidence=shortest(node.confidence),
            content=node.content,
            created_at=_millis(node.created_at),
            id=node.id,
            importance=shortest(node.importance),
            kind=node.kind.value,
            revision=node.revision,
            revision_kind=node.revision_kind.value,
            status=node.status.value,
            updated_at=_millis(node.updated_at),
            actor=node.actor,
            evidence=tuple(evidence_form(one) for one in node.evidence),
            history_digest=history_digest,
            labels=node.labels,
            reason=node.reason,
            relations=tuple(RelationForm(str(one.kind), one.target) for one in node.relations),
            subject=node.subject,
            valid_from=None if node.valid_from is None else _millis(node.valid_from),
            valid_to=None if node.valid_to is None else _millis(node.valid_to),
        )
    )


def evidence_form(evidence: Evidence) -> EvidenceForm:
    """Return the canonical form of an evidence, to be encoded."""
    return EvidenceForm(
        evidence.digest,
        str(evidence.kind),
        _moment(evidence.occurred_at),
        evidence.uri,
        evidence.end,
        evidence.quote,
        evidence.start,
    )


def shortest(value: float) -> float:
    """Return a share of 0 to 1 as the number that JSON writes shortest."""
    return _INTEGERS.get(value, value)


def history_digest(earlier: Iterable[Node]) -> str:
    """Return the digest of the revisions before a node's head, first to last; of none for a new node."""
    found = hashlib.sha256(_HISTORY_PROFILE).digest()
    for node in earlier:
        found = hashlib.sha256(_HISTORY_PROFILE + b"\0" + found + canonical_node(node)).digest()
    return DIGEST_PREFIX + found.hex()


NO_HISTORY = history_digest(())


def _moment(value: Instant) -> int:
    return _millis(value) if type(value) is datetime and value.tzinfo is UTC else to_millis(value, field="at")


def _millis(value: datetime) -> int:
    # Of a node every time is an aware one in UTC, to the millisecond; asking what it is would double the work.
    return (value - EPOCH) // _MILLISECOND
