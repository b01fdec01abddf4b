"""Store: one tenant's spaces. The only place that chooses a backend and wires the parts together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from perdure.base.clock import Clock, SystemClock
from perdure.documents.documents import Documents
from perdure.errors import InvalidRequest, Unavailable
from perdure.lexical.profile import get_profile
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Log
from perdure.log.records import SpaceRecord, decode
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory as SpaceMemory
from perdure.model.namespace import Namespace, checked_namespace
from perdure.search.query import Budget
from perdure.space.registry import Registry
from perdure.space.space import Settings

EPHEMERAL = ":memory:"
MEMORY_BYTES_DEFAULT = 1 << 30
Durability = Literal["full", "normal"]


class Memory(SpaceMemory):
    """The facts of one space. `Memory.open` opens a store for one; `Store.memory` gives one of many."""

    @classmethod
    def open(  # noqa: PLR0913 - the names of the public interface
        cls,
        path: str | Path,
        *,
        config: MemoryConfig | None = None,
        principal: str | None = None,
        scope: str | None = None,
        clock: Clock | None = None,
        secret: bytes | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
    ) -> Memory:
        """Open (or create) a store and return the memory of one of its spaces; closing it closes the store.

        Arguments as in `Store.open` and `Store.memory`.
        """
        store = Store.open(path, clock=clock, secret=secret, durability=durability, timeout_s=timeout_s)
        try:
            return store.memory_of(checked_namespace(principal, scope), config, store.close)
        except BaseException:
            store.close()
            raise


class StoreStats(msgspec.Struct, frozen=True):
    """Sizes of a store. `facts` counts live facts and documents of all spaces."""

    backend: str
    spaces: int
    facts: int
    records: int
    size_bytes: int


class Store:
    """One tenant: its log, and a memory per space. Thread-safe; use it as a context manager or close it."""

    def __init__(self, log: Log, *, clock: Clock, memory_bytes: int = MEMORY_BYTES_DEFAULT) -> None:
        self.log, self.clock = log, clock
        self._registry = Registry(log, clock, memory_bytes)
        self._closed = False
        self._closing = threading.Lock()

    @classmethod
    def open(  # noqa: PLR0913 - the names of the public interface
        cls,
        path: str | Path | None = None,
        *,
        log: Log | None = None,
        clock: Clock | None = None,
        secret: bytes | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
        memory_bytes: int = MEMORY_BYTES_DEFAULT,
    ) -> Store:
        """Open (or create) a store.

        Args:
            path: a directory, made when absent; `":memory:"` is ephemeral.
            log: an object of the Log protocol instead of a path.
            clock: tells ingest times and the present; the system's when absent.
            secret: the store's 32 secret bytes, kept by the caller; when absent the store keeps its own.
            durability: `full` survives power loss; `normal` may lose the last commits then, and is faster.
            timeout_s: how long a write waits for another process's turn before it raises Busy.
            memory_bytes: how much derived state the spaces of this process may hold together.

        Raises:
            InvalidRequest, Busy, Corrupt, WrongKey, StorageFull, Unavailable.
        """
        if (path is None) == (log is None):
            raise InvalidRequest("open takes a path or a log, one of them", field="path")
        if log is None:
            assert path is not None
            log = _open_log(path, secret, durability, timeout_s)
        return cls(log, clock=clock or SystemClock(), memory_bytes=memory_bytes)

    def memory(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> Memory:
        """Return the memory of a space; the space comes into being with its first write."""
        return self.memory_of(checked_namespace(principal, scope), config, None)

    def documents(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> Documents:
        """Return the documents of a space: the same space, seen as texts under ids."""
        namespace, chosen = checked_namespace(principal, scope), config or MemoryConfig()
        space = self._registry.space(namespace, _settings(chosen))
        budget = Budget(chosen.limits.work, chosen.limits.frontier, chosen.limits.bytes)
        return Documents(
            space,
            budget,
            replace_facts=chosen.on_id_conflict == "replace",
            receipt_days=chosen.receipt_days,
        )

    def spaces(self) -> list[Namespace]:
        """Return the names of all spaces that hold records, sorted."""
        return sorted(self._namespaces(), key=lambda name: (name.principal, name.scope))

    def stats(self) -> StoreStats:
        """Return the store's sizes. Loads every space once."""
        facts = records = 0
        names = self._namespaces()
        for name in names:
            space = self._registry.space(name, _settings(MemoryConfig()))
            count, seq = space.read(lambda state, _: (state.fact_count, state.head.seq))
            facts, records = facts + count, records + seq
        return StoreStats(self.log.name, len(names), facts, records, self.log.size_bytes())

    def close(self) -> None:
        """Keep what makes the next opening fast, and release everything. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            try:
                self._registry.save_all()
            finally:
                self.log.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def memory_of(
        self, namespace: Namespace, config: MemoryConfig | None, on_close: Callable[[], None] | None
    ) -> Memory:
        """Return the memory of a checked namespace, with what its close() does."""
        if self._closed:
            raise Unavailable("the store is closed; open it again")
        chosen = config or MemoryConfig()
        return Memory(self._registry.space(namespace, _settings(chosen)), chosen, on_close=on_close)

    def _namespaces(self) -> list[Namespace]:
        names = []
        for number in self.log.spaces():
            for entry in self.log.read(number, 0, 1):
                record = None if entry.data is None else decode(entry.data, space=number, seq=1)
                if isinstance(record, SpaceRecord):
                    names.append(Namespace(record.principal, record.scope))
        return names


def _settings(config: MemoryConfig) -> Settings:
    get_profile(config.profile)
    return Settings(config.profile, config.k1, config.b)


def _open_log(path: str | Path, secret: bytes | None, durability: Durability, timeout_s: float) -> Log:
    if path == EPHEMERAL:
        return MemoryLog(secret)
    from perdure.log.sqlite.log import SqliteLog  # noqa: PLC0415 - an ephemeral store needs no driver

    return SqliteLog.open(Path(path), secret=secret, durability=durability, timeout_s=timeout_s)
