"""Documents of a space: put, get, delete, search, list. A fact is a document of one unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perdure.audit.audited_log import follow_first
from perdure.base.canonical import checked_text
from perdure.base.ids import checked_id
from perdure.contract import limits
from perdure.contract.decoding import decode_request, operation_of
from perdure.documents.calling import answer
from perdure.documents.index import DocumentIndex
from perdure.documents.putting import checked_version, content_of, plan_delete, plan_put
from perdure.documents.reading import Reading
from perdure.model.document import Deleted, Document, DocumentHit, Put
from perdure.model.replies import Page
from perdure.planning import checks
from perdure.planning.certificates import Removed, conclude
from perdure.planning.embedding import Embedding
from perdure.planning.governed import refuse_ungoverned
from perdure.planning.questions import find_filter
from perdure.planning.receipts import Keyed
from perdure.search.modes import Modes, resolved_fusion
from perdure.search.query import OPEN, Budget, Question, Scope
from perdure.space.space import Space

K_DEFAULT = 10
NO_EMBEDDING = Embedding(None, None)


class Documents:
    """The texts of one space. Use `Store.documents(...)` to get one. Thread-safe and synchronous.

    A document is always current: it has no times, no subject and no links, and reads of it ignore time.
    Facts of the space are seen as documents of version 1, superseded ones included; hidden ones are not.

    `replace_facts`: a put may replace a fact of the same id (otherwise that is a conflict).
    """

    def __init__(
        self,
        space: Space,
        budget: Budget,
        *,
        replace_facts: bool,
        receipt_days: int = limits.RECEIPT_DAYS,
        embedding: Embedding = NO_EMBEDDING,
        governed: bool = False,
    ) -> None:
        self._space, self._replace_facts, self._receipt_days = space, replace_facts, receipt_days
        self._governed = governed
        self._embedding, self._modes = embedding, Modes(embedding.embedder, embedding.dimension)
        self._budget, self._reading = budget, Reading(space, budget)

    @property
    def index(self) -> DocumentIndex:
        """What the indexes of the space hold, of words and of vectors; read-only."""
        return DocumentIndex(self._space)

    def put(
        self,
        id: str,
        text: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        embedding: Sequence[float] | Sequence[Sequence[float]] | None = None,
        if_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Put:
        """Store a text under an id, in place of what was there; it is durable when this returns.

        What was there is erased as by a forget, and the version grows by 1. The same text and metadata
        again is `existing`: nothing is written and the version stays.

        Args:
            id: 1 to 256 bytes.
            text: at least a word, at most 1,048,576 bytes; stored byte for byte. A long one is found by its
                units: pieces of at most 4,096 words and 65,536 bytes, cut between words.
            metadata: a JSON object of the caller's; replaced whole.
            embedding: the vector of the text, or a list of one for each unit of a long one; by the configuration's
                embedder when absent. Where that fails the text is stored without, and `reason` says so.
            if_version: only if the id is at this version; 0: only if it is free. None: in any case. A hidden
                document still holds its id.
            idempotency_key: a retry under the same key gives the first answer, for as long as what it
                stored is there.

        Raises:
            InvalidRequest: a field is malformed or outside a limit.
            Conflict: kind "version" (details: current, expected), "id" (a fact has the id), "idempotency" (the key
                stands for another request) or "governed" (only what the repository admits is taken in).
            Blocked: the content was forgotten with block=True.
            NotFound: what the key stored was replaced or forgotten since.
            Busy, StorageFull, Unavailable: nothing was stored.
        """
        refuse_ungoverned(self._governed)
        wanted, key = checked_version(if_version), checks.checked_idempotency_key(idempotency_key)
        content = content_of((id, text, metadata, embedding), self._space.profile, self._embedding)
        request = b"" if key is None else _at_version(wanted) + content.identity()
        keyed = Keyed("put", key, request, self._receipt_days)
        reply = self._space.write(
            lambda draft: plan_put(
                draft, content, keyed, if_version=wanted, replace_facts=self._replace_facts
            ),
        )
        if reply.outcome != "replaced":
            return reply
        return msgspec.structs.replace(reply, pending=not self._space.log.scrub())

    def delete(
        self,
        id: str,
        *,
        if_version: int | None = None,
        purge: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Erase the document or fact of that id, as a forget of the id does; say whether there was one.

        A retry under the same idempotency key gives the first answer and erases nothing that was put since.

        Args:
            if_version: only if the id is at this version; 0: only if it is free. None: in any case.
            purge: rewrite the whole store afterwards, as `Store.purge` does.

        Raises:
            InvalidRequest: a field is malformed.
            Busy, StorageFull: the purge could not be done. The document is erased, and the same call purges.
            Conflict: kind "version": the id is not at `if_version` (an absent one is at 0), or "idempotency":
                the key stands for another request.
        """
        named, wanted = checked_id(id), checked_version(if_version)
        key = checks.checked_idempotency_key(idempotency_key)
        keyed = Keyed("delete", key, _at_version(wanted) + named.encode(), self._receipt_days)
        purge, log = checks.checked_flag(purge, "purge"), self._space.log
        follow_first(log, self._space.number)
        found, removed, at = self._space.write(
            lambda draft: plan_delete(draft, named, keyed, if_version=wanted)
        )
        done = conclude(log, "forget", removed or Removed(log.secret), at, purge=purge)
        certificate = None if removed is None else done.certificate
        return Deleted(found, done.purged is not None, done.pending, certificate)

    def has(self, id: str) -> bool:
        """Whether a document or fact of that id can be read."""
        return self._reading.has(checked_id(id))

    def get(self, id: str) -> Document | None:
        """Return the document (or fact) of that id with its whole text, or None."""
        return self._reading.get(checked_id(id))

    def search(
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
        """Return the k documents that match best, best first, each by its best unit; ties by arrival.

        Args:
            query: words to find; no syntax, every character is text.
            k: 1 to 1,000 documents, 10 when absent.
            filter: only documents that match; the grammar is that of `Memory.recall`.
            mode, embedding, fusion, weights: as in `Memory.recall`.

        Returns:
            For each the text and the index of its best unit (of equal ones the first). Scores are those that an
            undated recall gives, BM25's by words alone, at least 0.

        Raises:
            InvalidRequest: a malformed option, or a blank query. QueryLimit: the budget is too small.
        """
        told = {"mode": mode, "embedding": embedding, "fusion": fusion, "weights": weights}
        told = {name: value for name, value in told.items() if value is not None}
        kind, vector, model, query = self._modes.resolved(query, told)
        count = K_DEFAULT if k is None else checks.checked_count(k, "k", 1, limits.K_MAX)
        wanted = find_filter(filter)
        return self._reading.search(
            Question(
                text=query,
                k=count,
                as_of=0,
                known_at=None,
                history="all",
                scope=OPEN if wanted is None else Scope(filter=wanted),
                min_score=None,
                candidate_limit=max(limits.CANDIDATES_DEFAULT, count),
                budget=self._budget,
                mode=kind,
                vector=vector,
                model=model,
                fusion=resolved_fusion(told, kind),
            )
        )

    def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Return a page of all documents and facts with their whole texts, by id in code point order.

        Args:
            filter: only documents that match; the grammar is that of `Memory.recall`.
            limit: 1 to 1,000, 50 when absent.
            cursor: what the page before gave, with the same filter. Puts between pages do not disturb it.

        Raises:
            Conflict: kind "epoch": the cursor's document was deleted, or the store purged: start over.
        """
        size = (
            limits.LIST_DEFAULT if limit is None else checks.checked_count(limit, "limit", 1, limits.LIST_MAX)
        )
        after = None if cursor is None else checked_text(cursor, field="cursor")
        return self._reading.list(find_filter(filter), size, after)

    def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract on documents, as `Memory.call` does on facts."""
        return answer(self, decode_request(operation_of(op, "documents"), request))


def _at_version(wanted: int | None) -> bytes:
    """Return an expected version as a part of what tells one request from another."""
    return b"%d\0" % (-1 if wanted is None else wanted)
