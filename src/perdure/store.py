"""Store: one tenant's spaces. The only place that chooses a backend and wires the parts together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from perdure.base.clock import Clock, SystemClock
from perdure.base.text import shown_number
from perdure.documents.documents import Documents
from perdure.errors import InvalidRequest, PerdureError, Unavailable
from perdure.lexical.profile import get_profile
from perdure.log.memory import MemoryLog
from perdure.log.protocol import SECRET_BYTES, Log
from perdure.log.records import SpaceRecord, decode
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory as SpaceMemory
from perdure.model.namespace import Namespace, checked_namespace
from perdure.planning.checks import checked_choice, checked_count
from perdure.search.query import Budget
from perdure.space.registry import Registry
from perdure.space.space import Settings

EPHEMERAL = ":memory:"
MEMORY_BYTES_DEFAULT = 1 << 30
MEMORY_BYTES_MAX = 1 << 50  # more than any machine has
TIMEOUT_MAX_S = 86_400
HEALTH_TIMEOUT_S = 0.25  # longer than a writer of a healthy store keeps its turn
DURABILITIES = ("full", "normal")
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
        namespace, chosen = checked_namespace(principal, scope), _checked_config(config)
        store = Store.open(path, clock=clock, secret=secret, durability=durability, timeout_s=timeout_s)
        try:
            return store.memory_of(namespace, chosen, store.close)
        except BaseException:  # raised again: nobody else holds the store that was opened for this memory
            store.close()
            raise


class StoreStats(msgspec.Struct, frozen=True):
    """Sizes of a store. `facts` counts live facts and documents of all spaces."""

    backend: str
    spaces: int
    facts: int
    records: int
    size_bytes: int


class Health(msgspec.Struct, frozen=True):
    """Whether a store can be read and written now, as one look at it found.

    `status` is `ok`, or the code of the error that stands in the way (`busy`, `unavailable`, `corrupt`, …);
    `message` says it in words, and what to do.
    """

    status: str
    writable: bool  # a write would get its turn now
    erasure_pending: bool  # text that was forgotten is still to be cleaned from a file
    message: str


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
            log: an object of the Log protocol instead of a path; it has a secret of its own.
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
        if log is not None and secret is not None:
            raise InvalidRequest("a log has a secret of its own; leave secret out", field="secret")
        if clock is not None and not callable(getattr(clock, "now", None)):
            raise InvalidRequest(f"clock must have a method now, got {type(clock).__name__}", field="clock")
        checked_count(memory_bytes, "memory_bytes", 0, MEMORY_BYTES_MAX)
        if log is None:
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
        namespace, chosen = checked_namespace(principal, scope), _checked_config(config)
        self._check_open()
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

    def health(self, *, timeout_s: float = HEALTH_TIMEOUT_S) -> Health:
        """Look whether the store can be read and whether a write would get its turn. Writes nothing.

        Args:
            timeout_s: how long to wait for the writer's turn at most; 0 does not wait.

        Raises InvalidRequest for a wrong time-out; what is wrong with the store is the answer.
        """
        _check_timeout(timeout_s)
        pending = False
        try:
            self._check_open()
            pending = self.log.scrub_pending()
            if not pending:  # else the read would try to clean
                self.log.spaces()
            with self.log.writer(timeout_s):
                pass
        except PerdureError as error:
            return Health(error.code, writable=False, erasure_pending=pending, message=error.message)
        message = "the store can be read and written"
        if pending:
            message += (
                "; what was forgotten last is still to be cleaned from its files: the next calls try again"
            )
        return Health("ok", writable=True, erasure_pending=pending, message=message)

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
        chosen = _checked_config(config)
        self._check_open()
        space = self._registry.space(namespace, _settings(chosen))
        space.check_settings(_settings(chosen), _settings(MemoryConfig()))
        return Memory(space, chosen, on_close=on_close)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed; open it again")

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


def _checked_config(config: MemoryConfig | None) -> MemoryConfig:
    if config is None:
        return MemoryConfig()
    if not isinstance(config, MemoryConfig):
        raise InvalidRequest(f"config must be a MemoryConfig, got {type(config).__name__}", field="config")
    return config


def _open_log(path: object, secret: bytes | None, durability: Durability, timeout_s: float) -> Log:
    if path == "":
        raise InvalidRequest(f"path is empty: give a directory, or {EPHEMERAL!r}", field="path")
    if not isinstance(path, str | Path):
        raise InvalidRequest(f"path must be text or a Path, got {type(path).__name__}", field="path")
    if secret is not None and (not isinstance(secret, bytes) or len(secret) != SECRET_BYTES):
        shown = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {shown}", field="secret")
    checked_choice(durability, "durability", DURABILITIES)
    _check_timeout(timeout_s)
    if str(path) == EPHEMERAL:
        return MemoryLog(secret, timeout_s=timeout_s)
    from perdure.log.sqlite.log import SqliteLog  # noqa: PLC0415 - an ephemeral store needs no driver

    return SqliteLog.open(Path(path), secret=secret, durability=durability, timeout_s=timeout_s)


def _check_timeout(timeout_s: float) -> None:
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 <= timeout_s <= TIMEOUT_MAX_S:
        shown = shown_number(timeout_s) if number else type(timeout_s).__name__
        raise InvalidRequest(
            f"timeout_s must be 0 to {TIMEOUT_MAX_S} seconds, got {shown}", field="timeout_s"
        )
