"""What a worker works with: who may come in, the stores, and the lines of threads before them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakSet

from msgspec.structs import astuple, replace

from perdure.base.acting import acting
from perdure.base.clock import Clock
from perdure.base.text import counted
from perdure.contract.limits import HTTP
from perdure.contract.operations import Operation
from perdure.dispatch import Caller
from perdure.errors import InvalidRequest, PerdureError, Unavailable
from perdure.model.stores import StoreCounters
from perdure.server.access import Access, Allowed, makes_store
from perdure.server.keyring_authentication import Authenticator, Binding, open_authenticator
from perdure.server.keys import DEFAULT_TENANT, key_digest
from perdure.server.lines import Line
from perdure.server.looker import Looker
from perdure.server.places import places_of
from perdure.server.quick import QUICK, Quick
from perdure.server.rates import Rates
from perdure.server.settings import Settings, check_reachable
from perdure.server.tenants import OpenStore, Tenants
from perdure.space.budget import MemoryBudget
from perdure.store import Store

T = TypeVar("T")
_log = logging.getLogger("perdure.server")

_NOTHING = StoreCounters(0, 0, 0, 0, 0, 0.0)
LONG = frozenset(
    {"verify", "purge", "erase", "stats", "export", "import", "reindex", "embedMissing", "consolidate"}
)


@dataclass(frozen=True)
class Ready:
    """How a server is: "ok", "degraded", or the code of what keeps it from serving; and how many tenants fail."""

    status: str
    failing: int = 0


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
        self._places = places_of(settings)
        self._open_store = open_store or self._open
        self._memory = MemoryBudget(limits.memory_bytes)  # of all tenants
        self._stores: WeakSet[Store] = WeakSet()
        self._ended = _NOTHING  # what stores that were closed had counted
        self._changing = threading.Lock()
        self.tenants = Tenants(
            self._places,
            self._opened,
            on_closed=self._closed,
            open_max=limits.open_tenants,
            closing_s=limits.stop_timeout_s,
        )
        binding = Binding(settings.host, settings.port, no_auth=not settings.auth)
        self.authenticator = self._open_authenticator(binding)
        try:
            check_reachable(settings)  # where keys are missing, that is told first
        except InvalidRequest:
            self.authenticator.close()
            raise
        self._said = "ok"  # of its health, in the log
        self._log_bytes = 0  # as it last was
        self.rates = Rates(
            None if limits.rate is None else limits.rate / settings.workers,
            -(-limits.burst // settings.workers),
        )
        self.reads = Line("read", threads=limits.read_threads, queue=limits.queue)
        lookout = self._places.lookout
        self._looker = None if lookout is None else Looker(lookout.looking)
        self._quick = Quick(self.reads, self._looker)
        self.writes = Line("write", threads=limits.write_threads, queue=limits.queue)
        self.long = Line("long", threads=limits.long_threads, queue=limits.queue)

    def _open_authenticator(self, binding: Binding) -> Authenticator:
        directory = self._places.keys
        if directory is not None and not directory.exists():
            doubt = self._places.doubt()
            if doubt is not None:  # nothing is made where a disk is to be mounted, not even for the token
                self._places.close()
                raise Unavailable(doubt)
        try:
            return open_authenticator(self._places.keys, binding, self._clock)
        except InvalidRequest as error:
            doubt = self._places.doubt() if error.field == "host" else None
            self._places.close()
            if doubt is None:
                raise
            raise Unavailable(doubt) from error  # where keys are away, nobody is to make others

    async def run(
        self,
        operation: Operation,
        work: Callable[[], T],
        *,
        long: bool = False,
        at: Allowed | None = None,
        came_at: float | None = None,
    ) -> T:
        """Run work of an operation in its line; raises what it raises, Busy and Unavailable.

        A read of one place (`at`), which has little to decode, may be done at once instead; `came_at` as `Quick.run`.
        """
        limits = self.settings.limits
        # A recall that is noted writes, which may take long.
        if at is not None and operation.name in QUICK and self.settings.audit != "full":
            kind = (operation.name, at.tenant, at.namespace.principal, at.namespace.scope)
            timeout_s = limits.request_timeout_s
            return await self._quick.run(kind, work, timeout_s=timeout_s, came_at=came_at)
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
                actor=access.key_id,
            )

    async def note_denied(self, access: Access) -> None:
        """Note in the audit that a key was refused what it asked for. What keeps it from being noted is logged."""
        key_id = access.key_id
        if key_id is None:
            return

        def work() -> None:
            with self.tenants.reading(access.tenant or DEFAULT_TENANT) as store, acting(key_id):
                if store.log.spaces():  # of what is not there, nothing is kept
                    store.note_event("key_denied", {"key": key_digest(store.log.secret, key_id)})

        try:
            await self.writes.run(work, timeout_s=self.settings.limits.request_timeout_s, writes=True)
        except PerdureError as error:
            _log.warning("a refusal could not be noted: %s", error.code)

    def check(self) -> None:
        """Open the store, where there is one, and see that it suits the settings.

        Raises:
            InvalidRequest: it is of a kind that one process has to itself, and there are several workers; or
                it keeps another configuration.
            WrongKey, Corrupt, Busy, Unavailable: it cannot be opened.
        """
        if self.has_tenants():
            self._places.check()
            doubt = self._places.doubt()
            if doubt is not None:
                _log.warning("%s", doubt)
            return
        with self.tenants.reading(DEFAULT_TENANT) as store:
            store.memory(config=self.settings.config)
            if self.settings.workers > 1 and store.log.name == "journal":
                raise InvalidRequest(
                    f"several workers need a store that processes share, and this one is of kind {store.log.name}",
                    field="workers",
                )

    def health(self) -> Ready:
        """Return "ok" where the server can read and write, else the code of what stands in the way.

        Of a root of tenants, its own directories are looked at and the stores that are open. A tenant's store that is
        not well makes it "degraded": the others are served, so that nobody should take the server away.
        """
        ready, message = self._look()
        if ready.status != self._said:
            self._said = ready.status
            _log.log(
                logging.INFO if ready.status == "ok" else logging.WARNING,
                "health: %s; %s",
                ready.status,
                message,
            )
        return ready

    def _look(self) -> tuple[Ready, str]:
        try:
            self._places.check()
            self.authenticator.check()
            if self.has_tenants():
                failing = self.tenants.failing()
                return Ready("degraded" if failing else "ok", failing), counted(
                    failing, "store fails", "stores fail"
                )
            with self.tenants.reading(DEFAULT_TENANT) as store:
                health = store.health()
                return Ready(health.status), health.message
        except PerdureError as error:
            return Ready(error.code), error.message

    def sizes(self) -> dict[str, int]:
        """Return how many stores are open, how many tenants' are not well, and how many bytes their logs take on disk.

        Of a database that does not answer: all of them, and what they took when it last did.
        """
        lookout = self._places.lookout
        if lookout is not None and not lookout.answers():
            count = self.tenants.open_count
            return {"stores": count, "failing": count, "log_bytes": self._log_bytes}
        total = 0
        with self._changing:
            stores = list(self._stores)
        for store in stores:
            with suppress(PerdureError):  # it was closed in the meantime
                total += store.log.size_bytes()
        self._log_bytes = total
        failing = self.tenants.failing() if self.has_tenants() else 0
        return {"stores": self.tenants.open_count, "failing": failing, "log_bytes": total}

    def counters(self) -> StoreCounters:
        """Return the counts of all stores that were opened, and what those that are open hold in memory."""
        with self._changing:
            return _sum(self._ended, *(store.counters() for store in self._stores))

    def close(self) -> None:
        """Finish what has begun, and close the stores. Idempotent."""
        lines = (self.reads, self.writes, self.long)
        for line in lines:
            line.close()
        if self._looker is not None:
            self._looker.close()
        try:
            self.tenants.close()
        finally:
            self._places.close()
            self.authenticator.close()

    def has_tenants(self) -> bool:
        """Whether there may be several tenants; raises as `Places.has_tenants`."""
        return self._places.has_tenants()

    def _opened(self, place: str) -> Store:
        store = self._open_store(place)
        with self._changing:
            self._stores.add(store)
        return store

    def _closed(self, store: Store) -> None:
        with self._changing:
            if store in self._stores:
                self._stores.remove(store)
                ended = replace(store.counters(), spaces_loaded=0, facts_loaded=0, memory_bytes=0)
                self._ended = _sum(self._ended, ended)

    def _open(self, place: str) -> Store:
        path, options = self._places.options(place)
        audit, queries = self.settings.audit, self.settings.audit_queries
        return Store.open(
            path,
            clock=self._clock,
            # One store by itself, in files, is served whatever it takes.
            memory_bytes=self._memory if self.has_tenants() else self._memory.bytes_max,
            audit=audit,
            audit_queries=queries,
            **options,
        )


def _sum(*counters: StoreCounters) -> StoreCounters:
    return StoreCounters(*map(sum, zip(*map(astuple, counters), strict=True)))
