"""Stores, memories and documents for asyncio: the synchronous ones, run in threads.

Every call has the name, the arguments and the answer of its synchronous twin and is awaited; an iterator of the
twin becomes an asynchronous one. Nothing here decides anything: what is true of the twin is true of these.

Cancelling the task that awaits a call, or its time-out, tears nothing: a call that had not begun is not made, one
that had begun goes on in its thread to its end, so that a write is stored whole, and only its answer is lost. To
learn it, ask again with the same idempotency key. Callbacks (a progress, an observer, a policy) are called in the
thread of the call, with the context variables of the task.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from perdure.base.clock import Clock
from perdure.conversation.conversation import ConversationMemory
from perdure.conversation.ranking import QueryPlanner
from perdure.documents.documents import Documents
from perdure.documents.index import DocumentIndex
from perdure.errors import Unavailable
from perdure.log.protocol import Log
from perdure.memory.config import MemoryConfig
from perdure.model.fact import Fact
from perdure.model.hit import Hit
from perdure.model.namespace import Namespace
from perdure.opening import AuditLevel, Backend, Durability, KeyForm, KeystoreForm
from perdure.planning.checks import checked_count
from perdure.repository.repository import Repository
from perdure.space.budget import MemoryBudget
from perdure.store import MEMORY_BYTES_DEFAULT, Memory, Store

P = ParamSpec("P")
T = TypeVar("T")
H_co = TypeVar("H_co", covariant=True)

THREADS_DEFAULT = 8  # reads share the processors and writes take turns: more would only wait
THREADS_MAX = 256
STEP_LINES = 64  # that an export gives per visit to a thread, which takes as long as some lines


class _Threads:
    """The threads of one store; at most so many calls run at once, the others wait in order."""

    def __init__(self, count: int) -> None:
        size = checked_count(count, "threads", 1, THREADS_MAX)
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="perdure")
        self._closing = threading.Lock()
        self._closed: Future[None] | None = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Have the call made in one of the threads. Raises Unavailable once they are closed."""
        context = contextvars.copy_context()
        with self._closing:
            if self._closed is not None:
                raise Unavailable("the store is closed; open it again")
            return self._pool.submit(context.run, call)

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns, made in one of the threads."""
        return await asyncio.wrap_future(self.submit(call))

    def end(self, last: Callable[[], None]) -> Future[None]:
        """Finish the calls that were made before, then make the last one, all that in a thread. Idempotent."""
        with self._closing:
            if self._closed is None:
                closer = ThreadPoolExecutor(1, thread_name_prefix="perdure-close")
                self._closed = closer.submit(self._finish, last)
                closer.shutdown(wait=False)
            return self._closed

    async def close(self, last: Callable[[], None]) -> None:
        """Wait for such an end. Who stops waiting does not stop it: others wait too."""
        await asyncio.shield(asyncio.wrap_future(self.end(last)))

    def _finish(self, last: Callable[[], None]) -> None:
        self._pool.shutdown(wait=True)
        last()


class _Twin(Generic[H_co]):
    """An object whose calls run in threads."""

    def __init__(self, held: H_co, threads: _Threads) -> None:
        self._held, self._threads = held, threads

    async def _run(self, call: Callable[Concatenate[H_co, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._threads.run(partial(call, self._held, *args, **kwargs))


def _threaded(
    call: Callable[Concatenate[H_co, P], T],
) -> Callable[Concatenate[_Twin[H_co], P], Coroutine[Any, Any, T]]:
    """Return the call's twin: its name, arguments and documentation, awaited."""

    @wraps(call)
    async def run(self: _Twin[H_co], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(call, *args, **kwargs)

    return run


class AsyncMemory(_Twin[Memory]):
    """The facts of one space, for asyncio. `await AsyncMemory.open(path)` opens a store for one memory,
    `await AsyncStore.memory(...)` gives one of many; the calls are those of `Memory`."""

    def __init__(self, held: Memory, threads: _Threads, *, owns_store: bool) -> None:
        super().__init__(held, threads)
        self._owns_store = owns_store

    @classmethod
    async def open(  # noqa: PLR0913 - the names of the public interface
        cls,
        path: str | Path,
        *,
        config: MemoryConfig | None = None,
        save_config: bool = False,
        principal: str | None = None,
        scope: str | None = None,
        clock: Clock | None = None,
        backend: Backend | None = None,
        secret: bytes | None = None,
        key: KeyForm | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
        tenant: str | None = None,
        keystore: KeystoreForm | None = None,
        audit: AuditLevel = "on",
        audit_queries: bool = False,
        threads: int = THREADS_DEFAULT,
    ) -> Self:
        """Open (or create) a store and return the memory of one of its spaces; closing it closes the store.

        Arguments as in `Memory.open`, and `threads`: how many calls may run at once, 1 to 256.
        """
        pool = _Threads(threads)
        call = partial(
            Memory.open,
            path,
            config=config,
            save_config=save_config,
            principal=principal,
            scope=scope,
            clock=clock,
            backend=backend,
            secret=secret,
            key=key,
            durability=durability,
            timeout_s=timeout_s,
            tenant=tenant,
            keystore=keystore,
            audit=audit,
            audit_queries=audit_queries,
        )
        return cls(await _opened(pool, call), pool, owns_store=True)

    @property
    def config(self) -> MemoryConfig:
        """The configuration that this memory was opened with."""
        return self._held.config

    remember = _threaded(Memory.remember)
    remember_many = _threaded(Memory.remember_many)
    correct = _threaded(Memory.correct)
    end = _threaded(Memory.end)
    retract = _threaded(Memory.retract)
    annotate = _threaded(Memory.annotate)
    merge = _threaded(Memory.merge)
    record_use = _threaded(Memory.record_use)
    recall = _threaded(Memory.recall)
    explain = _threaded(Memory.explain)
    trace = _threaded(Memory.trace)
    diff = _threaded(Memory.diff)
    get = _threaded(Memory.get)
    history = _threaded(Memory.history)
    list = _threaded(Memory.list)
    changes = _threaded(Memory.changes)
    events = _threaded(Memory.events)
    forget = _threaded(Memory.forget)
    restore = _threaded(Memory.restore)
    unblock = _threaded(Memory.unblock)
    apply_forgetting = _threaded(Memory.apply_forgetting)
    consolidate = _threaded(Memory.consolidate)
    reindex = _threaded(Memory.reindex)
    embed_missing = _threaded(Memory.embed_missing)
    capabilities = _threaded(Memory.capabilities)
    call = _threaded(Memory.call)

    def as_prompt(self, hits: Iterable[Hit | Fact], *, max_bytes: int | None = None) -> str:
        """Return hits as text for a prompt, as `Memory.as_prompt` does. Reads nothing, so it is not awaited."""
        return self._held.as_prompt(hits, max_bytes=max_bytes)

    async def close(self) -> None:
        """Close the store if this memory opened it, after the calls that were made before. Idempotent."""
        if self._owns_store:
            await self._threads.close(self._held.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncDocumentIndex(_Twin[DocumentIndex]):
    """What the indexes of a space hold, for asyncio; the calls are those of `DocumentIndex`."""

    @property
    def unit_count(self) -> Coroutine[Any, Any, int]:
        """The number of units, to be awaited."""
        return self._run(lambda index: index.unit_count)

    @property
    def total_length(self) -> Coroutine[Any, Any, int]:
        """The number of terms of all units together, to be awaited."""
        return self._run(lambda index: index.total_length)

    terms = _threaded(DocumentIndex.terms)
    document_frequency = _threaded(DocumentIndex.document_frequency)
    length = _threaded(DocumentIndex.length)
    terms_of = _threaded(DocumentIndex.terms_of)
    vectors = _threaded(DocumentIndex.vectors)
    vector = _threaded(DocumentIndex.vector)


class AsyncDocuments(_Twin[Documents]):
    """The texts of one space, for asyncio. `await AsyncStore.documents(...)` gives one; the calls are those of
    `Documents`."""

    @property
    def index(self) -> AsyncDocumentIndex:
        """What the indexes of the space hold, of words and of vectors; read-only."""
        return AsyncDocumentIndex(self._held.index, self._threads)

    put = _threaded(Documents.put)
    delete = _threaded(Documents.delete)
    has = _threaded(Documents.has)
    get = _threaded(Documents.get)
    search = _threaded(Documents.search)
    list = _threaded(Documents.list)
    call = _threaded(Documents.call)


class AsyncRepository(_Twin[Repository]):
    """The governed knowledge of one space, for asyncio. `await AsyncStore.repository(...)` gives one; the calls are
    those of `Repository`."""

    apply = _threaded(Repository.apply)
    record_admission = _threaded(Repository.record_admission)
    record_use = _threaded(Repository.record_use)
    forget = _threaded(Repository.forget)
    get = _threaded(Repository.get)
    query = _threaded(Repository.query)
    revisions = _threaded(Repository.revisions)
    review_queue = _threaded(Repository.review_queue)
    snapshot = _threaded(Repository.snapshot)
    change_token = _threaded(Repository.change_token)
    changes = _threaded(Repository.changes)
    usage = _threaded(Repository.usage)
    access_events = _threaded(Repository.access_events)
    call = _threaded(Repository.call)


class AsyncConversation(_Twin[ConversationMemory]):
    """The conversations beside one space, for asyncio. `await AsyncStore.conversation(...)` gives them; the calls are
    those of `ConversationMemory`. Experimental."""

    remember = _threaded(ConversationMemory.remember)
    recall = _threaded(ConversationMemory.recall)
    expand = _threaded(ConversationMemory.expand)
    get = _threaded(ConversationMemory.get)
    list = _threaded(ConversationMemory.list)
    forget = _threaded(ConversationMemory.forget)
    call = _threaded(ConversationMemory.call)


class AsyncStore(_Twin[Store]):
    """One tenant, for asyncio. Close it, or use it as in `async with await AsyncStore.open(path) as store`; the
    calls are those of `Store`."""

    @classmethod
    async def open(  # noqa: PLR0913 - the names of the public interface
        cls,
        path: str | Path | None = None,
        *,
        log: Log | None = None,
        config: MemoryConfig | None = None,
        save_config: bool = False,
        clock: Clock | None = None,
        backend: Backend | None = None,
        secret: bytes | None = None,
        key: KeyForm | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
        memory_bytes: int | MemoryBudget = MEMORY_BYTES_DEFAULT,
        tenant: str | None = None,
        keystore: KeystoreForm | None = None,
        replica: str | None = None,
        fold: bool = True,
        audit: AuditLevel = "on",
        audit_queries: bool = False,
        audit_log: Log | None = None,
        threads: int = THREADS_DEFAULT,
    ) -> Self:
        """Open (or create) a store. Arguments as in `Store.open`, and `threads`: how many calls may run at once, 1 to 256."""
        pool = _Threads(threads)
        call = partial(
            Store.open,
            path,
            log=log,
            config=config,
            save_config=save_config,
            clock=clock,
            backend=backend,
            secret=secret,
            key=key,
            durability=durability,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            tenant=tenant,
            keystore=keystore,
            replica=replica,
            fold=fold,
            audit=audit,
            audit_queries=audit_queries,
            audit_log=audit_log,
        )
        return cls(await _opened(pool, call), pool)

    @property
    def log(self) -> Log:
        """The log that the store was opened with; its own calls are synchronous."""
        return self._held.log

    @property
    def clock(self) -> Clock:
        """The clock that the store was opened with."""
        return self._held.clock

    @property
    def config(self) -> Coroutine[Any, Any, MemoryConfig]:
        """The configuration of a memory that is asked for without one, now; to be awaited."""
        return self._run(lambda store: store.config)

    async def memory(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> AsyncMemory:
        """Return the memory of a space; the space comes into being with its first write."""
        held = await self._run(Store.memory, principal, scope, config=config)
        return AsyncMemory(held, self._threads, owns_store=False)

    async def documents(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> AsyncDocuments:
        """Return the documents of a space: the same space, seen as texts under ids."""
        held = await self._run(Store.documents, principal, scope, config=config)
        return AsyncDocuments(held, self._threads)

    async def repository(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> AsyncRepository:
        """Return the governed knowledge of a space; arguments as in `Store.repository`."""
        held = await self._run(Store.repository, principal, scope, config=config)
        return AsyncRepository(held, self._threads)

    async def conversation(
        self,
        principal: str | None = None,
        scope: str | None = None,
        *,
        config: MemoryConfig | None = None,
        planner: QueryPlanner | None = None,
    ) -> AsyncConversation:
        """Return the conversations beside a space; arguments as in `Store.conversation`."""
        held = await self._run(Store.conversation, principal, scope, config=config, planner=planner)
        return AsyncConversation(held, self._threads)

    async def export_lines(
        self,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
        blocks: bool = False,
    ) -> AsyncIterator[bytes]:
        """Return the lines of an export of the moment of the call: `async for line in await store.export_lines()`.

        They are read a few at a time. Arguments and errors as in `Store.export_lines`.
        """
        lines = await self._run(Store.export_lines, spaces=spaces, filter=filter, blocks=blocks)
        return self._lines(lines)

    async def export_events(self) -> AsyncIterator[bytes]:
        """Return the lines of an export of all events, as `export_lines` does."""
        return self._lines(await self._run(Store.export_events))

    async def _lines(self, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
        steps = _Steps(lines)
        try:
            while step := await self._threads.run(steps.next):
                for line in step:
                    yield line
        finally:
            with suppress(Unavailable):  # a closed store has no export to end
                self._threads.submit(steps.close)

    save_config = _threaded(Store.save_config)
    spaces = _threaded(Store.spaces)
    stats = _threaded(Store.stats)
    counters = _threaded(Store.counters)
    export = _threaded(Store.export)
    import_ = _threaded(Store.import_)
    health = _threaded(Store.health)
    rekey = _threaded(Store.rekey)
    purge = _threaded(Store.purge)
    erase = _threaded(Store.erase)
    delete_tenant = _threaded(Store.delete_tenant)
    verify = _threaded(Store.verify)
    check_certificate = _threaded(Store.check_certificate)
    backup = _threaded(Store.backup)
    events = _threaded(Store.events)
    events_head = _threaded(Store.events_head)
    verify_events = _threaded(Store.verify_events)
    trim_events = _threaded(Store.trim_events)
    note_event = _threaded(Store.note_event)

    async def close(self) -> None:
        """Finish the calls that were made before, keep what makes the next opening fast, and release everything.

        Calls made later raise Unavailable. Idempotent.
        """
        await self._threads.close(self._held.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Steps:
    """The lines of an export, a few at a time. Its end may be asked for while a step is still being made."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._turn = lines, threading.Lock()

    def next(self) -> list[bytes]:
        """Return the next lines; none at the end."""
        with self._turn:
            return [*islice(self._lines, STEP_LINES)]

    def close(self) -> None:
        """Release what the export holds, if it is not at its end."""
        with self._turn:
            if isinstance(self._lines, Generator):
                self._lines.close()


class _Closes(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closes)


async def _opened(threads: _Threads, call: Callable[[], C]) -> C:
    """Return what a call opens; where nobody gets it, leave neither threads nor anything open behind."""
    opening = threads.submit(call)
    try:
        return await asyncio.wrap_future(opening)
    except BaseException:  # raised again: cancelled or failed, this was the only way to what was opened
        threads.end(partial(_close_result, opening))
        raise


def _close_result(opening: Future[C]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
