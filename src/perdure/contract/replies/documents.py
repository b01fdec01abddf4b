"""The replies about documents."""

from __future__ import annotations

from typing import Any

from perdure.contract.replies.fields import Outcome, Reply
from perdure.contract.replies.receipts import CertificateObject


class PutReply(Reply, frozen=True):
    """The outcome of a put."""

    id: str
    outcome: Outcome
    version: int
    pending: bool
    reason: str | None


class HasReply(Reply, frozen=True):
    """Whether there is one."""

    exists: bool


class DocumentObject(Reply, frozen=True):
    """A stored document."""

    id: str
    text: str
    metadata: dict[str, Any]
    version: int


class DocumentReply(Reply, frozen=True):
    """A document, or null where there is none."""

    document: DocumentObject | None


class DeletedReply(Reply, frozen=True):
    """The receipt of a delete."""

    deleted: bool
    purged: bool
    pending: bool
    certificate: CertificateObject | None


class DocumentHitObject(Reply, frozen=True):
    """One result of a search: the text of the best unit, and its index from 0."""

    id: str
    text: str
    unit: int
    metadata: dict[str, Any]
    score: float


class DocumentsFound(Reply, frozen=True):
    """Documents, best first; ties by arrival."""

    results: tuple[DocumentHitObject, ...]


class DocumentPage(Reply, frozen=True):
    """A part of a listing of documents."""

    items: tuple[DocumentObject, ...]
    total: int
    has_more: bool
    cursor: str | None
