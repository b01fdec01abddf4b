"""The operations of documents as requests and replies of the contract: the same for every surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from perdure.contract import requests as a
from perdure.contract import wire
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject

if TYPE_CHECKING:
    from perdure.documents.documents import Documents


def answer(documents: Documents, request: a.Request) -> JsonObject:
    """Return the reply to a request as an object of JSON; raises as the method of the documents does."""
    return _HANDLERS[type(request)](documents, told(request))


def _get(documents: Documents, id: str) -> JsonObject:
    document = documents.get(id)
    return {"document": None if document is None else wire.document_object(document)}


def _search(documents: Documents, **asked: Any) -> JsonObject:
    return {"results": [wire.document_hit_object(hit) for hit in documents.search(**asked)]}


_HANDLERS: Mapping[type[a.Request], Callable[[Documents, dict[str, Any]], JsonObject]] = {
    a.PutDocument: lambda documents, asked: wire.put_object(documents.put(**asked)),
    a.HasDocument: lambda documents, asked: {"exists": documents.has(**asked)},
    a.GetDocument: lambda documents, asked: _get(documents, **asked),
    a.DeleteDocument: lambda documents, asked: wire.deleted_object(documents.delete(**asked)),
    a.SearchDocuments: lambda documents, asked: _search(documents, **asked),
    a.ListDocuments: lambda documents, asked: wire.page_object(documents.list(**asked), wire.document_object),
}
