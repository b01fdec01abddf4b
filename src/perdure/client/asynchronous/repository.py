"""The governed knowledge of a space on a server: the calls of `perdure.repository`."""

# ruff: noqa: A002, PLR0913 - the names of the public interface

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perdure.base.instants import Instant
from perdure.client.asynchronous.space import AsyncClientSpace
from perdure.client.sending import request_of
from perdure.client.telling import change_set_request, event_request, snapshot_request, token_request
from perdure.contract import reading, replies
from perdure.contract import reading_governed as governed
from perdure.model import node_limits as limits
from perdure.model.node import AccessEvent, Node, NodeHit, NodeKind, NodeStatus, Usage
from perdure.model.node_change import ChangeResult, ChangeSet, ChangeToken, NodeChanges
from perdure.model.node_snapshot import Snapshot, SnapshotRequest
from perdure.model.replies import Forgotten, Page

LabelFilter = Mapping[str, str | Iterable[str] | None]


class AsyncClientRepository(AsyncClientSpace):
    """The nodes of one space. Arguments, answers and errors are those of `Store.repository(...)`.

    Change sets and access events have keys of their own, under which the client may send them again.
    """

    async def apply(self, change_set: ChangeSet) -> ChangeResult:
        """Carry out a change set, whole or not at all. As `Repository.apply`."""
        request = change_set_request(change_set)
        return governed.read_result(await self._call("applyChanges", request, replies.ChangesApplied))

    async def record_admission(self, event: AccessEvent) -> None:
        """Note that the active head of a node went into a prompt. As `Repository.record_admission`."""
        await self._call("recordAdmission", event_request(event), replies.AccessRecorded)

    async def record_use(self, event: AccessEvent) -> None:
        """Note that a revision of a node was used by an answer. As `Repository.record_use`."""
        await self._call("recordNodeUse", event_request(event), replies.AccessRecorded)

    async def forget(
        self, ids: Iterable[str], *, dry_run: bool | None = False, purge: bool | None = False
    ) -> Forgotten:
        """Erase nodes with all that belongs to them. As `Repository.forget`."""
        request = request_of(ids=ids, dry_run=dry_run, purge=purge)
        return reading.read_forgotten(await self._call("forgetNodes", request, replies.Forgotten))

    async def get(self, id: str, revision: int | None = None) -> Node | None:
        """Return a node as it is, or as a past revision of it was; None where there is none."""
        node = (await self._call("node", request_of(id=id, revision=revision), replies.NodeReply)).node
        return None if node is None else governed.read_node(node)

    async def query(
        self,
        text: str | None = None,
        *,
        kinds: Iterable[NodeKind | str] | None = None,
        statuses: Iterable[NodeStatus | str] = (NodeStatus.ACTIVE,),
        labels: LabelFilter | None = None,
        subject: str | None = None,
        updated_after: Instant | None = None,
        updated_before: Instant | None = None,
        created_after: Instant | None = None,
        created_before: Instant | None = None,
        evidence_uri: str | None = None,
        limit: int = limits.QUERY_LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[NodeHit]:
        """Return nodes that pass every filter, best first. As `Repository.query`."""
        request = request_of(
            text=text,
            kinds=kinds,
            statuses=statuses,
            labels=labels,
            subject=subject,
            updated_after=updated_after,
            updated_before=updated_before,
            created_after=created_after,
            created_before=created_before,
            evidence_uri=evidence_uri,
            limit=limit,
            cursor=cursor,
        )
        return governed.read_nodes_found(await self._call("queryNodes", request, replies.NodesFound))

    async def revisions(
        self, id: str, *, limit: int = limits.QUERY_LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Node]:
        """Return all revisions of a node, the first one first. As `Repository.revisions`."""
        request = request_of(id=id, limit=limit, cursor=cursor)
        return governed.read_node_page(await self._call("revisions", request, replies.NodePage))

    async def review_queue(
        self, *, limit: int = limits.QUERY_LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Node]:
        """Return what waits for a decision, oldest first. As `Repository.review_queue`."""
        request = request_of(limit=limit, cursor=cursor)
        return governed.read_node_page(await self._call("reviewQueue", request, replies.NodePage))

    async def snapshot(self, request: SnapshotRequest | None = None) -> Snapshot:
        """Return all nodes of some statuses at one moment, with a digest. As `Repository.snapshot`."""
        told = snapshot_request(request)
        return governed.read_snapshot(await self._call("snapshot", told, replies.SnapshotReply))

    async def change_token(self) -> ChangeToken:
        """Return where the content stands. As `Repository.change_token`."""
        return governed.read_token((await self._call("changeToken", {}, replies.TokenReply)).token)

    async def changes(
        self, since: ChangeToken | None = None, *, limit: int = limits.CHANGES_LIMIT_DEFAULT
    ) -> NodeChanges:
        """Return what changed after a token, in order. As `Repository.changes`."""
        request = request_of(since=token_request(since), limit=limit)
        return governed.read_node_changes(await self._call("nodeChanges", request, replies.NodeChangesReply))

    async def usage(self, id: str) -> Usage:
        """Return how often a node was admitted and used. As `Repository.usage`."""
        return governed.read_usage(await self._call("usageSummary", request_of(id=id), replies.UsageReply))

    async def access_events(
        self,
        id: str,
        *,
        kind: str | None = None,
        limit: int = limits.QUERY_LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[AccessEvent]:
        """Return the access events of a node in order. As `Repository.access_events`."""
        request = request_of(id=id, kind=kind, limit=limit, cursor=cursor)
        reply = await self._call("accessEvents", request, replies.AccessEventPage)
        return governed.read_access_events(reply)

    async def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON. As `Repository.call`."""
        return await self._call_plain(op, request, "repository")
