"""What is asked of a whole store on a server: the calls of `perdure.Store` that go through the wire."""

# ruff: noqa: A002 - the names of the public interface

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any

from perdure.base.instants import Instant, to_millis
from perdure.client.asynchronous.exchange import EVERYWHERE, AsyncExchange
from perdure.client.files import Lines, Partial, Source, apart_async, parts_of
from perdure.client.sending import name_of, names_of, request_of
from perdure.client.settings import checked_space
from perdure.contract import reading, replies
from perdure.contract.reading_governed import read_events
from perdure.model.event import AuditEvent
from perdure.model.finding import Verified
from perdure.model.namespace import Namespace
from perdure.model.replies import Erased, Page, PurgeReceipt
from perdure.model.stores import Exported, Imported, StoreStats


class AsyncClientStore:
    """One tenant's store, as far as the key goes: most of this takes a key of the role admin.

    Arguments, answers and errors are those of `perdure.Store`, without progress. These writes have no idempotency key
    and are sent once; each can be asked for again, and then does what is left to do.
    """

    def __init__(self, exchange: AsyncExchange) -> None:
        self._exchange = exchange

    async def spaces(self) -> list[Namespace]:
        """Return the names of the spaces that the key may see, sorted."""
        told = await self._exchange.call("spaces", {}, replies.SpacesReply)
        return [reading.read_space(one) for one in told.spaces]

    async def stats(self) -> StoreStats:
        """Return the store's sizes; of the spaces that the key may see, where it does not see all."""
        return reading.read_stats(await self._exchange.call("stats", {}, replies.StatsReply))

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
        """Return a page of the events of all spaces and of the store itself, oldest first. As `Store.events`.

        Takes a key that may see the whole store.
        """
        begin = None if since is None else to_millis(since, field="since")
        request = request_of(type=type, id=id, since=begin, until=until, limit=limit, cursor=cursor)
        return read_events(await self._exchange.call("storeEvents", request, replies.EventPage))

    async def verify(self, *, quick: bool = False) -> Verified:
        """Check all that the store keeps. As `Store.verify`."""
        request = request_of(quick=quick)
        return reading.read_verified(await self._exchange.call("verify", request, replies.VerifiedReply))

    async def purge(self) -> PurgeReceipt:
        """Rewrite the store so that nothing of what was forgotten is left in it. As `Store.purge`."""
        return reading.read_purged(await self._exchange.call("purge", {}, replies.PurgedReply))

    async def erase(
        self,
        principal: str,
        scope: str | None = None,
        *,
        dry_run: bool | None = False,
    ) -> Erased:
        """Erase every memory of a principal, or that of one scope. As `Store.erase`."""
        request = request_of(principal=principal, scope=scope, dry_run=dry_run)
        return reading.read_erased(await self._exchange.call("erase", request, replies.ErasedReply))

    async def export(
        self,
        path: str | Path,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,
        blocks: bool = False,
        force: bool = False,
    ) -> Exported:
        """Write all that spaces hold at one moment into a file on this machine, whole or not at all.

        The file is plain text. Arguments and errors as in `Store.export`.
        """
        request = request_of(spaces=names_of(spaces), filter=filter, blocks=blocks)
        with Partial(path, force=force) as file:
            lines = Lines()
            async for chunk in await self._exchange.pull("export", request):
                lines.feed(chunk)
                await apart_async(file.write, chunk)
            counted = lines.counted()
            await apart_async(file.finish)
        return counted

    async def export_lines(
        self,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,
        blocks: bool = False,
    ) -> AsyncIterator[bytes]:
        """Return the lines of such a file, of the moment of the call, each with its line feed.

        Raises Unavailable, while they are read, where they break off.
        """
        request = request_of(spaces=names_of(spaces), filter=filter, blocks=blocks)
        return self._lines(await self._exchange.pull("export", request))

    async def _lines(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        lines = Lines()
        async for chunk in chunks:
            for line in lines.feed(chunk):
                yield line
        lines.counted()

    async def import_(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        strict: bool = True,
        into: Namespace | None = None,
    ) -> Imported:
        """Store what an export holds, sent from this machine. As `Store.import_`, but for `spaces`.

        A server stores spaces under their own names for a key that may see all of them; another key needs `into`.
        """
        space = EVERYWHERE if into is None else checked_space(**name_of(into, "into"))
        flags = request_of(dry_run=dry_run, strict=strict, here=into is not None)
        reply = await self._exchange.push("import", flags, space, self._parts(source), replies.ImportedReply)
        return reading.read_imported(reply)

    async def _parts(self, source: Source) -> AsyncIterator[bytes]:
        parts = await apart_async(parts_of, source)
        while (part := await apart_async(next, parts, None)) is not None:
            yield part
