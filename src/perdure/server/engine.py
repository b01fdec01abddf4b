"""What a worker works with: who may come in, the stores, and the lines of threads before them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from msgspec.structs import astuple, replace

from perdure.base.clock import Clock
from perdure.contract.limits import HTTP
from perdure.contract.operations import Operation
from perdure.dispatch import Caller
from perdure.errors import InvalidRequest, PerdureError
from perdure.model.stores import StoreCounters
from perdure.opening import EPHEMERAL
from perdure.server.access import Allowed, makes_store
from perdure.server.keyring_authentication import Binding, open_authenticator
from perdure.server.keys import DEFAULT_TENANT
from perdure.server.lines import Line
from perdure.server.rates import Rates
from perdure.server.settings import Settings
from perdure.server.tenants import OpenStore, Tenants, is_root
from perdure.store import Store

T = TypeVar("T")

_NOTHING = StoreCounters(0, 0, 0, 0, 0, 0.0)
LONG = frozenset(
    {"verify", "purge", "erase", "stats", "export", "import", "reindex", "embedMissing", "consolidate"}
)


class Engine:
    """Everything behind the routes. Close it at the end; it opens what it needs when it is made or first asked."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, open_store: OpenStore | None = None
    ) -> None:
        """Open the keys (or make the token) and look at the place of the stores.

        `open_store` opens a place in the settings' stead.

        Raises as `open_authenticator` and `Tenants`.
        """
        self.settings, self._clock = settings, clock
        limits = settings.limits
        self._directory = directory = None if str(settings.store) == EPHEMERAL else Path(settings.store)
        self._open_store = open_store or self._open
        self._stores: WeakSet[Store] = WeakSet()
        self._ended = _NOTHING  # what stores that were closed had counted
        self._changing = threading.Lock()
        self.tenants = Tenants(
            str(settings.store), self._opened, on_closed=self._closed, closing_s=limits.stop_timeout_s
        )
        binding = Binding(settings.host, settings.port, no_auth=not settings.auth)
        self.authenticator = open_authenticator(directory, binding, clock)
        self.rates = Rates(
            None if limits.rate is None else limits.rate / settings.workers,
            -(-limits.burst // settings.workers),
        )
        self.reads = Line("read", threads=limits.read_threads, queue=limits.queue)
        self.writes = Line("write", threads=limits.write_threads, queue=limits.queue)
        self.long = Line("long", threads=limits.long_threads, queue=limits.queue)

    async def run(self, operation: Operation, work: Callable[[], T], *, long: bool = False) -> T:
        """Run work of an operation in its line; raises what it raises, Busy and Unavailable."""
        limits = self.settings.limits
        writes = operation.role != "read"
        if long or operation.name in LONG:
            return await self.long.run(work, timeout_s=limits.long_timeout_s, writes=writes)
        line = self.writes if writes else self.reads
        return await line.run(work, timeout_s=limits.request_timeout_s, writes=writes)

    @contextmanager
    def caller(self, allowed: Allowed, operation: Operation) -> Iterator[Caller]:
        """Give the caller that a request acts as, in its tenant's store. Opens the store; takes as long as that.

        Raises as `Tenants.reading` and `Tenants.writing`.
        """
        access = allowed.access
        inside = self.tenants.writing if makes_store(operation) else self.tenants.reading
        with inside(allowed.tenant) as store:
            yield Caller(
                store=store,
                namespace=allowed.namespace,
                config=self.settings.config,
                limits=HTTP,
                role=access.role,
                bounds=access.bounds,
            )

    def check(self) -> None:
        """Open the store, where there is one, and see that it suits the settings.

        Raises:
            InvalidRequest: it is of a kind that one process has to itself, and there are several workers; or
                it keeps another configuration.
            WrongKey, Corrupt, Busy, Unavailable: it cannot be opened.
        """
        if self._has_tenants():
            return
        with self.tenants.reading(DEFAULT_TENANT) as store:
            store.memory(config=self.settings.config)
            if self.settings.workers > 1 and store.log.name == "journal":
                raise InvalidRequest(
                    f"several workers need a store that processes share, and this one is of kind {store.log.name}",
                    field="workers",
                )

    def health(self) -> str:
        """Return "ok" where the server can read and write, else the code of what stands in the way."""
        if self._has_tenants():
            return "ok"
        try:
            with self.tenants.reading(DEFAULT_TENANT) as store:
                return store.health().status
        except PerdureError as error:
            return error.code

    def sizes(self) -> dict[str, int]:
        """Return how many stores are open, and how many bytes their logs take on disk."""
        total = 0
        with self._changing:
            stores = list(self._stores)
        for store in stores:
            with suppress(PerdureError):  # it was closed in the meantime
                total += store.log.size_bytes()
        return {"stores": self.tenants.open_count, "log_bytes": total}

    def counters(self) -> StoreCounters:
        """Return the counts of all stores that were opened, and what those that are open hold in memory."""
        with self._changing:
            return _sum(self._ended, *(store.counters() for store in self._stores))

    def close(self) -> None:
        """Finish what has begun, and close the stores. Idempotent."""
        lines = (self.reads, self.writes, self.long)
        for line in lines:
            line.close()
        self.tenants.close()
        self.authenticator.close()

    def _has_tenants(self) -> bool:
        return self._directory is not None and is_root(self._directory)

    def _opened(self, place: str) -> Store:
        store = self._open_store(place)
        with self._changing:
            self._stores.add(store)
        return store

    def _closed(self, store: Store) -> None:
        with self._changing:
            if store in self._stores:
                self._stores.remove(store)
                ended = replace(store.counters(), spaces_loaded=0, facts_loaded=0)
                self._ended = _sum(self._ended, ended)

    def _open(self, place: str) -> Store:
        if place == EPHEMERAL:
            return Store.open(place, clock=self._clock)
        told = self.settings.opening
        return Store.open(place, clock=self._clock, key=told.key, secret=told.secret, backend=told.backend)


def _sum(*counters: StoreCounters) -> StoreCounters:
    return StoreCounters(*map(sum, zip(*map(astuple, counters), strict=True)))
