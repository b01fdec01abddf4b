"""A client of a Perdure server: it gives the memories, the documents and the store that the server has."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from perdure.client.asynchronous.conversation import AsyncClientConversation
from perdure.client.asynchronous.documents import AsyncClientDocuments
from perdure.client.asynchronous.exchange import AsyncExchange
from perdure.client.asynchronous.memory import AsyncClientMemory
from perdure.client.asynchronous.repository import AsyncClientRepository
from perdure.client.asynchronous.store import AsyncClientStore
from perdure.client.in_process import AsyncAppTransport
from perdure.client.settings import (
    URL_OF_APP,
    Settings,
    checked_headers,
    checked_retries,
    checked_seconds,
    checked_space,
    checked_url,
)
from perdure.client.trust import trusted
from perdure.client.vectors import VectorMask
from perdure.errors import InvalidRequest


class AsyncClient:
    """One server, as one key sees it. Close it, or use it in `async with`."""

    def __init__(  # noqa: PLR0913 - the names of the public interface
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        tenant: str | None = None,
        timeout_s: float = 30.0,
        long_timeout_s: float = 600.0,
        retries: int = 3,
        vector_mask: bytes | None = None,
        ca_file: str | Path | None = None,
        app: Any = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect when the first call is made.

        Args:
            url: the server's address without a path, such as `http://localhost:8420`.
            api_key: a key that `perdure keys create` showed. It is sent in a header, so use https off this machine.
            tenant: which of the server's stores; that of the key when absent.
            timeout_s: how long to wait for a connection and for each further byte of an answer, above 0.
            long_timeout_s: the same for what takes as long as the store is large: purge, erase, verify, stats, export,
                import, reindex, embed_missing, consolidate.
            retries: how often a call is sent again after a broken connection or a 503, 0 to 10, with growing and random
                pauses. Only what can be repeated: reads, dry runs, and writes that take an idempotency key, of which
                one is made where none is given. Nothing is sent again after a time-out.
            vector_mask: 32 bytes, under which the signs of some dimensions are flipped in every embedding that is
                sent; scores stay as they are. Obfuscation, not encryption. Embeddings that the server would make
                are refused then.
            ca_file: the path of certificates in PEM that are trusted for https, in place of all others: that of a
                server which made its own, or of who signed it. Without it those of the environment's SSL_CERT_FILE
                or SSL_CERT_DIR are, else the public ones.
            app: an ASGI application to call in this process instead of a server; `url` may be left out then.
            transport: how requests are sent, for proxies, say.

        Raises:
            InvalidRequest: an argument is wrong.
        """
        if app is not None and transport is not None:
            raise InvalidRequest("app is a transport of its own; give one of app and transport", field="app")
        address = checked_url(URL_OF_APP if url is None and app is not None else url)
        self._settings = Settings(
            url=address,
            headers=checked_headers(api_key, tenant),
            timeout_s=checked_seconds(timeout_s, "timeout_s"),
            long_timeout_s=checked_seconds(long_timeout_s, "long_timeout_s"),
            retries=checked_retries(retries),
            mask=None if vector_mask is None else VectorMask(vector_mask),
            trust=trusted(address, ca_file, connects=app is None and transport is None),
        )
        chosen = transport if app is None else AsyncAppTransport(app)
        self._exchange = AsyncExchange(self._settings, chosen)
        self._store = AsyncClientStore(self._exchange)

    def memory(self, principal: str | None = None, scope: str | None = None) -> AsyncClientMemory:
        """Return the memory of a space; None leaves a name to the key. Nothing is asked yet."""
        return AsyncClientMemory(self._exchange, checked_space(principal, scope))

    def documents(self, principal: str | None = None, scope: str | None = None) -> AsyncClientDocuments:
        """Return the documents of a space; None leaves a name to the key. Nothing is asked yet."""
        return AsyncClientDocuments(self._exchange, checked_space(principal, scope))

    def repository(self, principal: str | None = None, scope: str | None = None) -> AsyncClientRepository:
        """Return the governed knowledge of a space; None leaves a name to the key. Nothing is asked yet."""
        return AsyncClientRepository(self._exchange, checked_space(principal, scope))

    def conversation(self, principal: str | None = None, scope: str | None = None) -> AsyncClientConversation:
        """Return the conversations beside a space; None leaves a name to the key. Nothing is asked yet."""
        return AsyncClientConversation(self._exchange, checked_space(principal, scope))

    @property
    def store(self) -> AsyncClientStore:
        """What is asked of the whole store."""
        return self._store

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._exchange.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._settings.url}>"
