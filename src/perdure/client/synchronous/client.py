# Made of perdure/client/asynchronous/client.py by scripts/unasync.py: change that file, and run it.
"""A client of a Perdure server: it gives the memories, the documents and the store that the server has."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from perdure.client.in_process import AppTransport
from perdure.client.settings import (
    URL_OF_APP,
    Settings,
    checked_headers,
    checked_retries,
    checked_seconds,
    checked_space,
    checked_url,
)
from perdure.client.synchronous.conversation import ClientConversation
from perdure.client.synchronous.documents import ClientDocuments
from perdure.client.synchronous.exchange import Exchange
from perdure.client.synchronous.memory import ClientMemory
from perdure.client.synchronous.repository import ClientRepository
from perdure.client.synchronous.store import ClientStore
from perdure.client.trust import trusted
from perdure.client.vectors import VectorMask
from perdure.errors import InvalidRequest


class Client:
    """One server, as one key sees it. Close it, or use it in `with`."""

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
        transport: httpx.BaseTransport | None = None,
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
        chosen = transport if app is None else AppTransport(app)
        self._exchange = Exchange(self._settings, chosen)
        self._store = ClientStore(self._exchange)

    def memory(self, principal: str | None = None, scope: str | None = None) -> ClientMemory:
        """Return the memory of a space; None leaves a name to the key. Nothing is asked yet."""
        return ClientMemory(self._exchange, checked_space(principal, scope))

    def documents(self, principal: str | None = None, scope: str | None = None) -> ClientDocuments:
        """Return the documents of a space; None leaves a name to the key. Nothing is asked yet."""
        return ClientDocuments(self._exchange, checked_space(principal, scope))

    def repository(self, principal: str | None = None, scope: str | None = None) -> ClientRepository:
        """Return the governed knowledge of a space; None leaves a name to the key. Nothing is asked yet."""
        return ClientRepository(self._exchange, checked_space(principal, scope))

    def conversation(self, principal: str | None = None, scope: str | None = None) -> ClientConversation:
        """Return the conversations beside a space; None leaves a name to the key. Nothing is asked yet."""
        return ClientConversation(self._exchange, checked_space(principal, scope))

    @property
    def store(self) -> ClientStore:
        """What is asked of the whole store."""
        return self._store

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._settings.url}>"
