"""The memory of a space on a server: the calls of `perdure.Memory`."""

# ruff: noqa: A002, PLR0913 - the names of the public interface

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import msgspec
from msgspec import UNSET

from perdure.base.instants import Instant, to_millis
from perdure.client.asynchronous.space import AsyncClientSpace
from perdure.client.sending import (
    cleared,
    fact_of,
    members,
    named_by_keyword,
    recall_options,
    request_of,
    scope_of,
)
from perdure.contract import reading, replies
from perdure.contract.capabilities import Capabilities
from perdure.contract.reading_governed import read_events
from perdure.model.event import AuditEvent
from perdure.model.fact import Fact, Source
from perdure.model.hit import Explanation, Hit
from perdure.model.inputs import NewFact, RecallOptions
from perdure.model.replies import (
    Changes,
    Consolidated,
    Embedded,
    Forgotten,
    Merged,
    Page,
    Reindexed,
    Remembered,
)
from perdure.model.trace import Diff, Trace


class AsyncClientMemory(AsyncClientSpace):
    """The facts of one space. Arguments, answers and errors are those of `perdure.Memory`.

    Every write takes an `idempotency_key`, under which a repetition gives the first answer and writes nothing. Without
    one the client makes its own for each call, so that it may send the call again. What could not be answered raises
    Unavailable, whose details name the key.
    """

    # Telling

    async def remember(
        self,
        text: str,
        *,
        id: str | None = None,
        subject: str | None = None,
        entities: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        event_time: Instant | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        supersedes: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        importance: float | None = None,
        pinned: bool | None = False,
        source: Source | Mapping[str, Any] | None = None,
        reassert: bool | None = False,
        embedding: Sequence[float] | None = None,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Store a fact; it is durable, and seen by every read, when this returns. As `Memory.remember`."""
        request = request_of(
            self._mask,
            text=text,
            id=id,
            subject=subject,
            entities=entities,
            metadata=metadata,
            event_time=event_time,
            valid_from=valid_from,
            valid_to=valid_to,
            supersedes=supersedes,
            tags=tags,
            kind=kind,
            importance=importance,
            pinned=pinned,
            source=source,
            reassert=reassert,
            embedding=embedding,
            idempotency_key=idempotency_key,
        )
        return reading.read_remembered(await self._call("remember", request, replies.Remembered))

    async def remember_many(
        self, facts: Iterable[NewFact | Mapping[str, Any] | str], *, idempotency_key: str | None = None
    ) -> list[Remembered]:
        """Store facts in one transaction, all or none; one reply each, in order. As `Memory.remember_many`.

        A server takes fewer in one call than a memory: its capabilities say how many.
        """
        told = [fact_of(fact, place, self._mask) for place, fact in enumerate(members(facts, "facts"))]
        request = {**request_of(idempotency_key=idempotency_key), "facts": told}
        reply = await self._call("remember", request, replies.RememberedMany)
        return [reading.read_remembered(one) for one in reply.remembered]

    async def correct(
        self,
        new_text: str,
        *,
        id: str | None = None,
        text: str | None = None,
        containing: str | None = None,
        new_id: str | None = None,
        subject: Any = UNSET,
        entities: Any = UNSET,
        metadata: Any = UNSET,
        event_time: Any = UNSET,
        valid_from: Any = UNSET,
        valid_to: Any = UNSET,
        tags: Any = UNSET,
        kind: Any = UNSET,
        importance: Any = UNSET,
        pinned: Any = UNSET,
        source: Any = UNSET,
        embedding: Sequence[float] | None = None,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Say that a fact was told wrong: store the right one in its place. As `Memory.correct`."""
        changes = cleared(
            {
                "subject": subject,
                "entities": entities,
                "metadata": metadata,
                "event_time": event_time,
                "valid_from": valid_from,
                "valid_to": valid_to,
                "tags": tags,
                "kind": kind,
                "importance": importance,
                "pinned": pinned,
                "source": source,
            }
        )
        request = request_of(
            self._mask,
            new_text=new_text,
            id=id,
            text=text,
            containing=containing,
            new_id=new_id,
            embedding=embedding,
            idempotency_key=idempotency_key,
            **changes,
        )
        return reading.read_remembered(await self._call("correct", request, replies.Remembered))

    async def end(
        self,
        id: str,
        *,
        at: Instant | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Close a fact's validity at `at` (default now) without a successor; return the fact. As `Memory.end`."""
        request = request_of(id=id, at=at, reason=reason, idempotency_key=idempotency_key)
        return reading.read_fact((await self._call("end", request, replies.OneFact)).fact)

    async def retract(
        self,
        id: str,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Say that a fact was never true; return it. As `Memory.retract`."""
        request = request_of(id=id, reason=reason, idempotency_key=idempotency_key)
        return reading.read_fact((await self._call("retract", request, replies.OneFact)).fact)

    async def annotate(
        self,
        id: str,
        *,
        tags: Any = UNSET,
        kind: Any = UNSET,
        importance: Any = UNSET,
        pinned: Any = UNSET,
        metadata: Any = UNSET,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Change what is noted of a fact (not what it says); return it. As `Memory.annotate`."""
        told = {"tags": tags, "kind": kind, "importance": importance, "pinned": pinned, "metadata": metadata}
        request = request_of(id=id, idempotency_key=idempotency_key, **cleared(told))
        return reading.read_fact((await self._call("annotate", request, replies.OneFact)).fact)

    async def merge(
        self,
        keep: str,
        ids: Iterable[str],
        *,
        dry_run: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Merged:
        """Say that current facts are all told by another current one, which supersedes them. As `Memory.merge`."""
        request = request_of(keep=keep, ids=ids, dry_run=dry_run, idempotency_key=idempotency_key)
        return reading.read_merged(await self._call("merge", request, replies.Merged))

    async def record_use(
        self, ids: Iterable[str], context_id: str | None = None, *, idempotency_key: str | None = None
    ) -> int:
        """Count that facts were used; return of how many it was counted. As `Memory.record_use`."""
        request = request_of(ids=ids, context_id=context_id, idempotency_key=idempotency_key)
        return (await self._call("recordUse", request, replies.Used)).counted

    # Asking

    async def recall(
        self, query: str, *, explain: bool | None = False, **options: Unpack[RecallOptions]
    ) -> list[Hit]:
        """Return the k best matching facts, best first. As `Memory.recall`; a server gives at most 100."""
        self._check_mode(options)
        request = request_of(self._mask, query=query, explain=explain, **recall_options(options))
        return [
            reading.read_hit(one) for one in (await self._call("recall", request, replies.Recalled)).results
        ]

    async def explain(self, query: str, id: str, **options: Unpack[RecallOptions]) -> Explanation:
        """Return why the fact comes back from this recall, or why it does not. As `Memory.explain`."""
        self._check_mode(options)
        request = request_of(self._mask, query=query, id=id, **recall_options(options))
        return reading.read_explanation((await self._call("explain", request, replies.Explained)).explanation)

    async def trace(self, query: str, **options: Unpack[RecallOptions]) -> Trace:
        """Return a recall with what it left out, and why. As `Memory.trace`; moments stand as milliseconds."""
        self._check_mode(options)
        request = request_of(self._mask, query=query, **recall_options(options))
        trace = reading.read_trace((await self._call("trace", request, replies.Traced)).trace)
        if self._mask is None or "embedding" not in trace.options:
            return trace
        asked = {**trace.options, "embedding": self._mask.flipped(trace.options["embedding"])}
        return msgspec.structs.replace(trace, options=asked)

    async def diff(
        self,
        known_at: tuple[Instant, Instant],
        *,
        as_of: Instant | None = None,
        subject: str | None = None,
        entity: str | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        pinned: bool | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Diff:
        """Return what came to be known after the first moment and until the second. As `Memory.diff`."""
        request = request_of(
            known_at=known_at,
            as_of=as_of,
            subject=subject,
            entity=entity,
            tags=tags,
            kind=kind,
            pinned=pinned,
            filter=filter,
        )
        return reading.read_diff((await self._call("diff", request, replies.Differed)).diff)

    async def get(
        self,
        id: str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> Fact | None:
        """Return the fact of that id with its status at `as_of` (default now), or None. As `Memory.get`."""
        request = request_of(id=id, as_of=as_of, known_at=known_at)
        fact = (await self._call("get", request, replies.Got)).fact
        return None if fact is None else reading.read_fact(fact)

    async def history(
        self,
        id: str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> list[Fact]:
        """Return every fact connected with this one by supersession. As `Memory.history`."""
        request = request_of(id=id, as_of=as_of, known_at=known_at)
        reply = await self._call("history", request, replies.HistoryReply)
        return [reading.read_fact(one) for one in reply.history]

    async def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        subject: str | None = None,
        entity: str | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        pinned: bool | None = None,
        status: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        valid_during: tuple[Instant, Instant] | None = None,
        order: str = "ingest",
        hidden: bool | None = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Fact]:
        """Return a page of all visible facts that match. As `Memory.list`."""
        request = request_of(
            filter=filter,
            subject=subject,
            entity=entity,
            tags=tags,
            kind=kind,
            pinned=pinned,
            status=status,
            as_of=as_of,
            known_at=known_at,
            valid_during=valid_during,
            order=order,
            hidden=hidden,
            limit=limit,
            cursor=cursor,
        )
        return reading.read_page(await self._call("list", request, replies.FactPage))

    async def changes(self, since: str | None = None, *, limit: int | None = None) -> Changes:
        """Return what happened to the space's facts after the cursor `since`. As `Memory.changes`."""
        request = request_of(since=since, limit=limit)
        return reading.read_changes(await self._call("changes", request, replies.ChangesReply))

    async def events(
        self,
        *,
        type: str | None = None,
        id: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[AuditEvent]:
        """Return a page of what happened to the space, as its audit tells it, oldest first. As `Memory.events`."""
        begin = None if since is None else to_millis(since, field="since")
        request = request_of(type=type, id=id, since=begin, until=until, limit=limit, cursor=cursor)
        return read_events(await self._call("events", request, replies.EventPage))

    # Forgetting

    async def forget(
        self,
        *,
        ids: Iterable[str] | None = None,
        subject: str | None = None,
        entity: str | None = None,
        ingested_before: Instant | None = None,
        event_before: Instant | None = None,
        matching: Mapping[str, Any] | None = None,
        tag: str | None = None,
        text: str | None = None,
        containing: str | None = None,
        kind: str | None = None,
        filter: Mapping[str, Any] | None = None,
        session: str | None = None,
        all: bool | None = False,
        include_chain: bool | None = False,
        include_derived: bool | None = False,
        dry_run: bool | None = False,
        purge: bool | None = False,
        soft: bool | None = False,
        block: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """Remove the facts of exactly one scope from every read and erase them from every file. As `Memory.forget`.

        Where the first answer got lost and the call was sent again, the second names no ids and has no certificate.
        """
        scope = scope_of(
            {
                "ids": ids,
                "subject": subject,
                "entity": entity,
                "ingested_before": ingested_before,
                "event_before": event_before,
                "matching": matching,
                "tag": tag,
                "text": text,
                "containing": containing,
                "kind": kind,
                "filter": filter,
                "session": session,
                "all": all,
            }
        )
        request = request_of(
            include_chain=include_chain,
            include_derived=include_derived,
            dry_run=dry_run,
            purge=purge,
            soft=soft,
            block=block,
            idempotency_key=idempotency_key,
        )
        with named_by_keyword(scope):
            reply = await self._call("forget", {**request, "scope": scope}, replies.Forgotten)
        return reading.read_forgotten(reply)

    async def restore(self, ids: Iterable[str], *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Bring softly forgotten facts back; return the ids that came back, sorted. As `Memory.restore`."""
        request = request_of(ids=ids, idempotency_key=idempotency_key)
        return (await self._call("restore", request, replies.Restored)).restored

    async def unblock(
        self,
        *,
        ids: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """Allow ids and texts that were forgotten with block=True. As `Memory.unblock`."""
        request = request_of(ids=ids, texts=texts, idempotency_key=idempotency_key)
        return (await self._call("unblock", request, replies.Unblocked)).unblocked

    # Maintenance

    async def apply_forgetting(
        self,
        *,
        include_chain: bool | None = False,
        include_derived: bool | None = False,
        dry_run: bool | None = True,
        purge: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """Remove the facts that the server's forgetting policy names. As `Memory.apply_forgetting`."""
        request = request_of(
            include_chain=include_chain,
            include_derived=include_derived,
            dry_run=dry_run,
            purge=purge,
            idempotency_key=idempotency_key,
        )
        return reading.read_forgotten(await self._call("applyForgetting", request, replies.Forgotten))

    async def consolidate(
        self,
        *,
        dry_run: bool | None = True,
        allow_destructive: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Consolidated:
        """Add the facts that the server's consolidation policy plans. As `Memory.consolidate`."""
        request = request_of(
            dry_run=dry_run, allow_destructive=allow_destructive, idempotency_key=idempotency_key
        )
        return reading.read_consolidated(await self._call("consolidate", request, replies.Consolidated))

    # The rest

    async def reindex(
        self,
        *,
        profile: str | None = None,
        k1: float | None = None,
        b: float | None = None,
        embeddings: bool | None = False,
    ) -> Reindexed:
        """Analyse all texts of this space anew, under other settings. As `Memory.reindex`, without its progress."""
        request = request_of(profile=profile, k1=k1, b=b, embeddings=embeddings)
        return reading.read_reindexed(await self._call("reindex", request, replies.ReindexedReply))

    async def embed_missing(self, *, limit: int | None = None, dry_run: bool | None = False) -> Embedded:
        """Embed what has no vector yet. As `Memory.embed_missing`, without its progress."""
        request = request_of(limit=limit, dry_run=dry_run or None)
        return reading.read_embedded(await self._call("embedMissing", request, replies.EmbeddedReply))

    async def capabilities(self, contract_version: int = 1) -> Capabilities:
        """Return what this memory offers. As `Memory.capabilities`."""
        request = request_of(contract_version=contract_version)
        reply = await self._exchange.call("capabilities", request, replies.CapabilitiesReply, self._space)
        return reading.read_capabilities(reply)

    async def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON. As `Memory.call`."""
        return await self._call_plain(op, request, "memory")
