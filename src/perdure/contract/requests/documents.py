"""The requests of operations on documents."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from perdure.contract.requests.fields import (
    Cursor,
    Filter,
    Fusion,
    Id,
    IdempotencyKey,
    JsonObject,
    K,
    Mode,
    PageSize,
    Query,
    Request,
    Vector,
    WeightsInput,
    limited,
)

Version = Annotated[
    int, limited("Only at this version; 0: only where the id is free.", minimum=0, maximum=2**53 - 1)
]


class PutDocument(Request, frozen=True, kw_only=True):
    """Store a text under an id, in place of what was there."""

    id: Id
    text: Annotated[str, limited("At most 1,048,576 bytes; kept byte for byte.", minLength=1)]
    metadata: JsonObject | None = None
    embedding: (
        Annotated[list[float | list[float]], Meta(description="A vector, or one for each unit.")] | None
    ) = None
    if_version: Version | None = None
    idempotency_key: IdempotencyKey | None = None


class DocumentBody(Request, frozen=True, kw_only=True):
    """What is stored under the id of a path."""

    text: Annotated[str, limited("At most 1,048,576 bytes; kept byte for byte.", minLength=1)]
    metadata: JsonObject | None = None
    embedding: (
        Annotated[list[float | list[float]], Meta(description="A vector, or one for each unit.")] | None
    ) = None
    idempotency_key: IdempotencyKey | None = None


class HasDocument(Request, frozen=True, kw_only=True):
    """Whether there is a document of an id."""

    id: Id


class GetDocument(Request, frozen=True, kw_only=True):
    """One document with its whole text."""

    id: Id


class DeleteDocument(Request, frozen=True, kw_only=True):
    """Erase a document."""

    id: Id
    if_version: Version | None = None
    purge: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class SearchDocuments(Request, frozen=True, kw_only=True):
    """Find the documents that match best, each by its best unit."""

    query: Query
    k: K | None = None
    filter: Filter | None = None
    mode: Mode | None = None
    embedding: Vector | None = None
    fusion: Fusion | None = None
    weights: WeightsInput | None = None


class ListDocuments(Request, frozen=True, kw_only=True):
    """A page of all documents, by id."""

    filter: Filter | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None
