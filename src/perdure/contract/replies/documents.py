"""The replies about documents."""

from __future__ import annotations

from typing import Annotated, Any

from perdure.contract.replies.fields import Outcome, Pending, Purged, Reply, says
from perdure.contract.replies.receipts import CertificateObject


class PutReply(Reply, frozen=True):
    """The outcome of a put."""

    id: str
    outcome: Annotated[Outcome, says("existing where the same text and metadata were there already.")]
    version: Annotated[int, says("From 1, one more with each new text or metadata.")]
    pending: Pending
    reason: Annotated[str | None, says("A note, such as that it was stored without a vector.")]


class HasReply(Reply, frozen=True):
    """Whether there is one."""

    exists: bool


class DocumentObject(Reply, frozen=True):
    """A stored document."""

    id: str
    text: Annotated[str, says("The whole text.")]
    metadata: dict[str, Any]
    version: Annotated[int, says("For ifVersion.")]


class DocumentReply(Reply, frozen=True):
    """A document, or null where there is none."""

    document: DocumentObject | None


class DeletedReply(Reply, frozen=True):
    """The receipt of a delete."""

    deleted: Annotated[bool, says("False where there was none.")]
    purged: Purged
    pending: Pending
    certificate: Annotated[CertificateObject | None, says("null where nothing was erased by this call.")]


class DocumentHitObject(Reply, frozen=True):
    """One result of a search: the text of the best unit, and its index from 0."""

    id: str
    text: Annotated[str, says("Of the best unit.")]
    unit: Annotated[int, says("Its index, from 0.")]
    metadata: dict[str, Any]
    score: Annotated[float, says("Higher is better.")]


class DocumentsFound(Reply, frozen=True):
    """Documents, best first; ties by arrival."""

    results: tuple[DocumentHitObject, ...]


class DocumentPage(Reply, frozen=True):
    """A part of a listing of documents."""

    items: tuple[DocumentObject, ...]
    total: Annotated[int, says("How many match, on all pages.")]
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]
