"""The documents of a space on a server: the calls of `perdure.documents`."""

# ruff: noqa: A002, PLR0913 - the names of the public interface

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.client.asynchronous.space import AsyncClientSpace
from perdure.client.sending import request_of
from perdure.contract import reading, replies
from perdure.model.document import Deleted, Document, DocumentHit, Put
from perdure.model.replies import Page


class AsyncClientDocuments(AsyncClientSpace):
    """The texts of one space. Arguments, answers and errors are those of `Store.documents(...)`.

    Writes are sent under idempotency keys, as those of memories are.
    """

    async def put(
        self,
        id: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        embedding: Sequence[float] | Sequence[Sequence[float]] | None = None,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Put:
        """Store a text under an id, in place of what was there. As `Documents.put`."""
        request = request_of(
            self._mask,
            id=id,
            text=text,
            metadata=metadata,
            embedding=embedding,
            if_version=if_version,
            idempotency_key=idempotency_key,
        )
        return reading.read_put(await self._call("putDocument", request, replies.PutReply))

    async def delete(
        self,
        id: str,
        *,
        if_version: int | None = None,
        purge: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Erase the document or fact of that id; say whether there was one. As `Documents.delete`."""
        request = request_of(id=id, if_version=if_version, purge=purge, idempotency_key=idempotency_key)
        return reading.read_deleted(await self._call("deleteDocument", request, replies.DeletedReply))

    async def has(self, id: str) -> bool:
        """Whether a document or fact of that id can be read."""
        return (await self._call("hasDocument", request_of(id=id), replies.HasReply)).exists

    async def get(self, id: str) -> Document | None:
        """Return the document (or fact) of that id with its whole text, or None."""
        told = (await self._call("getDocument", request_of(id=id), replies.DocumentReply)).document
        return None if told is None else reading.read_document(told)

    async def search(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        mode: str | None = None,
        embedding: Sequence[float] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[DocumentHit]:
        """Return the k documents that match best, best first. As `Documents.search`; a server gives at most 100."""
        self._check_mode({"mode": mode, "embedding": embedding})
        request = request_of(
            self._mask,
            query=query,
            k=k,
            filter=filter,
            mode=mode,
            embedding=embedding,
            fusion=fusion,
            weights=weights,
        )
        reply = await self._call("searchDocuments", request, replies.DocumentsFound)
        return [reading.read_document_hit(one) for one in reply.results]

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Return a page of all documents and facts with their whole texts. As `Documents.list`."""
        request = request_of(filter=filter, limit=limit, cursor=cursor)
        return reading.read_document_page(await self._call("listDocuments", request, replies.DocumentPage))

    async def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON. As `Documents.call`."""
        return await self._call_plain(op, request, "documents")
