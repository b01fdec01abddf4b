"""Store: one tenant's spaces. The place that wires the parts together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from perdure.audit.audited_log import DIRECTORY, follow_first
from perdure.base.clock import Clock, SystemClock, checked_now
from perdure.base.ids import checked_id
from perdure.base.instants import Instant
from perdure.conversation.conversation import ConversationMemory
from perdure.conversation.ranking import QueryPlanner
from perdure.documents.documents import Documents
from perdure.errors import InvalidRequest, PerdureError, Unavailable
from perdure.lexical.profile import get_profile
from perdure.log.commits import Commits
from perdure.log.protocol import Log, Progress, Purged
from perdure.memory.auditing import StoreEvents
from perdure.memory.citing import QuotedBeside, all_turns
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory as SpaceMemory
from perdure.memory.keeping import KeptConfig, refuse_other
from perdure.model.certificate import Certificate
from perdure.model.conversation_forms import conversation_of, find_beside
from perdure.model.event import AuditEvent, EventsHead
from perdure.model.finding import Finding, Verified
from perdure.model.namespace import SESSIONS_SUFFIX, Namespace, checked_namespace
from perdure.model.replies import Erased, Page, PurgeReceipt
from perdure.model.stores import DeletedTenant, Exported, Health, Imported, StoreCounters, StoreStats
from perdure.opening import (
    AUDITS,
    Auditing,
    AuditLevel,
    Backend,
    Durability,
    KeyForm,
    KeystoreForm,
    Opening,
    audited,
    check_timeout,
    open_log,
)
from perdure.planning.certificates import Removed, certify_purge, conclude, contradictions, reach_of
from perdure.planning.checks import checked_choice, checked_count, checked_flag
from perdure.planning.embedding import Embedding
from perdure.planning.erasing import erase_spaces, has_remains, matching, named_spaces, survey_spaces
from perdure.planning.questions import find_filter
from perdure.repository.repository import Repository
from perdure.search.query import Budget
from perdure.sessions.keeping import Kept, sessions_of
from perdure.sessions.session import SessionMemory
from perdure.space.budget import BYTES_MAX, MemoryBudget
from perdure.space.purging import purge_store, rewriting
from perdure.space.registry import Registry
from perdure.space.settings import Settings
from perdure.space.space import Space
from perdure.space.verifying import verify_log
from perdure.transfer.exporting import Asked, export, export_to
from perdure.transfer.importing import Options, import_lines
from perdure.transfer.sources import Source

MEMORY_BYTES_DEFAULT = 1 << 30
MEMORIES_KEPT = 256  # handles, of about a kilobyte each
HEALTH_TIMEOUT_S = 0.25  # longer than a writer of a healthy store keeps its turn


class Memory(SpaceMemory):
    """The facts of one space. `Memory.open` opens a store for one; `Store.memory` gives one of many."""

    @classmethod
    def open(  # noqa: PLR0913 - the names of the public interface
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
    ) -> Memory:
        """Open (or create) a store and return the memory of one of its spaces; closing it closes the store.

        Arguments as in `Store.open` and `Store.memory`.
        """
        namespace = checked_namespace(principal, scope)
        store = Store.open(
            path,
            config=config,
            save_config=save_config,
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
        try:
            return store.memory_of(namespace, None, store.close)
        except BaseException:  # raised again: nobody else holds the store that was opened for this memory
            store.close()
            raise

    def _is_of(self, space: Space, config: MemoryConfig) -> bool:
        """Return whether this is a handle of that very space with that very configuration."""
        return self._space is space and self.config is config


class Store:
    """One tenant: its log, and a memory per space. Thread-safe; use it as a context manager or close it."""

    def __init__(
        self,
        log: Log,
        *,
        clock: Clock,
        memory_bytes: int | MemoryBudget = MEMORY_BYTES_DEFAULT,
        config: MemoryConfig | None = None,
        fold: bool = True,
    ) -> None:
        self.log, self.clock = log, clock
        self._config, self._registry = config, Registry(log, clock, memory_bytes, fold=fold)
        self._kept = KeptConfig(log, self._registry.find_number)
        self._events = StoreEvents(log, self._namespaces, self._space_of)
        # Whoever asks for a memory once more, as a server does with each request, gets the one that was made.
        self._made: WeakValueDictionary[Namespace, Memory] = WeakValueDictionary()
        self._recent: deque[Memory] = deque(maxlen=MEMORIES_KEPT)  # they live on without a handle
        self._closed = False
        self._closing = threading.Lock()

    @classmethod
    def open(  # noqa: PLR0913 - the names of the public interface
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
    ) -> Store:
        """Open (or create) a store.

        Args:
            path: a directory, made when absent; `":memory:"` is ephemeral; `postgresql://…` is a database that any number
                of processes and machines share.
            log: an object of the Log protocol instead of a path; it has a secret of its own.
            config: the settings of every memory that is asked for without; those that the store keeps when
                absent, else the defaults.
            save_config: keep `config` with the store, in place of the one that it keeps, as `save_config` does.
            clock: tells ingest times and the present; the system's when absent.
            backend: what a new store is kept in: "sqlite" (the default), or "journal", one readable file for one
                process at a time. A store that exists knows its own.
            secret: the store's 32 secret bytes, kept by the caller; when absent the store keeps its own.
            key: what the store is encrypted with: 32 bytes, or a passphrase as text, or the Path of a file of
                its owner's that holds either, or a function that returns one of the first two (called once;
                what it raises passes through). A new store is encrypted with it; None is for a plain one.
            durability: `full` survives power loss; `normal` may lose the last commits then, and is faster.
            timeout_s: how long a write waits for another process's turn before it raises Busy.
            memory_bytes: how much derived state the spaces of this store may hold together; or a `MemoryBudget` (of
                `perdure.space.budget`), which it shares with every store of the process that is opened with it: the spaces
                that nobody has used for longest make room, whichever store they are of. In a database, which others serve
                as well, and with such a budget, a space that alone takes more raises Busy; else a store in files serves
                it all the same.
            tenant: whose store it is among those of a database; "default" when absent.
            keystore: with a database, the directory outside of it and of its backups that keeps the tenants' secrets and
                keys, shared by all its servers; an object that does (`Keystore`); or "off", with a `secret`: records are
                then stored as they are, and what is erased stays `pending`, since logs and backups may still hold it.
            replica: with a database, the address of a standby of it: spaces are loaded from there as far as it has come.
            fold: with a database, keep snapshots of the spaces in the background, so that all its servers open them fast:
                on one thread, which `close` ends. Without, whoever writes keeps them, as with a store in files.
            audit: "on" keeps an event of every change, "full" of every recall too, "off" none.
            audit_queries: keep the words that were asked for with a recall's event, not only their digest.
            audit_log: where a `log` that was given has its events; they last as long as the process when absent.

        Raises:
            InvalidRequest: an argument is wrong, or `config` is another than the one that the store keeps.
            Busy, Corrupt, WrongKey, StorageFull, Unavailable.
        """
        of_path = {"secret": secret, "key": key, "tenant": tenant, "keystore": keystore, "replica": replica}
        _check_place(path, log, audit_log, of_path)
        _check_usual(clock, memory_bytes, fold=fold, save_config=save_config)
        chosen = None if config is None else _checked_config(config)
        if save_config:
            _writable_config(chosen)
        auditing = _checked_auditing(audit, audit_log, audit_queries=audit_queries)
        present = clock or SystemClock()
        opening = Opening(backend, secret, key, durability, timeout_s, tenant, keystore, replica)
        opened = open_log(path, opening) if log is None else log
        try:
            followed = audited(opened, path, opening, present, auditing)
            store = cls(followed, clock=present, memory_bytes=memory_bytes, config=chosen, fold=fold)
            if save_config:
                store.save_config(chosen)
            elif chosen is not None:
                store._chosen(None)
        except BaseException:  # raised again: nobody else has the log that was opened here
            if log is None:
                opened.close()
            raise
        return store

    @property
    def config(self) -> MemoryConfig:
        """The configuration of a memory that is asked for without one, now."""
        return self._chosen(None)[0]

    def save_config(self, config: MemoryConfig | None) -> None:
        """Keep a configuration with the store, in place of the one that it keeps; None keeps none any longer.

        From then on every handle, of any process, that asks for a memory gets it with this configuration, and to ask
        with another one is an error; memories that are open already go on with theirs. `profile`, `k1` and `b` are
        those of memories that come into being, while one that is there keeps its own. Durable when it returns, all
        or nothing; what is replaced is erased. It is encrypted with the store, and stays through purges, changes of
        the key and backups; exports do not have it.

        Raises:
            InvalidRequest: it has a policy, embedder, extractor or observer that JSON cannot hold.
            Busy, StorageFull, Unavailable, Corrupt: nothing was changed.
        """
        self._check_open()
        chosen = None if config is None else _writable_config(_checked_config(config))
        self._kept.put(chosen, checked_now(self.clock))
        self._config = None  # what this handle was opened with is what the store keeps, or is replaced by it

    def memory(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> Memory:
        """Return the memory of a space; the space comes into being with its first write.

        Args:
            config: its settings; when absent those that the store keeps or was opened with, else the defaults.

        Raises InvalidRequest where it is another than the one that the store keeps, and names the field.
        """
        return self.memory_of(checked_namespace(principal, scope), config, None)

    def documents(
        self, principal: str | None = None, scope: str | None = None, *, config: MemoryConfig | None = None
    ) -> Documents:
        """Return the documents of a space: the same space, seen as texts under ids."""
        namespace = checked_namespace(principal, scope)
        self._check_open()
        chosen, _ = self._chosen(config)
        space = self._registry.space(namespace, _settings(chosen))
        budget = Budget(chosen.limits.work, chosen.limits.frontier, chosen.limits.bytes)
        return Documents(
            space,
            budget,
            replace_facts=chosen.on_id_conflict == "replace",
            receipt_days=chosen.receipt_days,
            embedding=Embedding(chosen.embedder_object, chosen.embedding_dimension),
            governed=chosen.governed,
        )

    def repository(
        self,
        principal: str | None = None,
        scope: str | None = None,
        *,
        config: MemoryConfig | None = None,
    ) -> Repository:
        """Return the governed knowledge of a space: the same space, seen as nodes with evidence and a lifecycle.

        Args:
            config: as in `memory`; its `decision_kinds` say which evidence lets a node become active, and end being so.
        """
        namespace = checked_namespace(principal, scope)
        self._check_open()
        chosen, _ = self._chosen(config)
        settings = _settings(chosen)

        def find_space(other: Namespace) -> Space:
            self._check_open()
            return self._registry.space(other, settings)

        embedding = Embedding(chosen.embedder_object, chosen.embedding_dimension)
        kinds = chosen.decision_kinds
        return Repository(find_space(namespace), kinds, find_space=find_space, embedding=embedding)

    def conversation(
        self,
        principal: str | None = None,
        scope: str | None = None,
        *,
        config: MemoryConfig | None = None,
        planner: QueryPlanner | None = None,
    ) -> ConversationMemory:
        """Return the conversations beside a space, which are kept in a space of their own. Experimental.

        Args:
            config: as in `memory`.
            planner: finds other ways to ask a question; see `ConversationMemory`.
        """
        namespace = checked_namespace(principal, scope)
        own = conversation_of(namespace)
        memory = self.memory_of(own, config, None)
        settings = _settings(memory.config)
        spaces = (self._registry.space(own, settings), self._registry.space(namespace, settings))
        return ConversationMemory(memory, *spaces, planner=planner)

    def session(
        self,
        session_id: str,
        principal: str | None = None,
        scope: str | None = None,
        *,
        ttl: timedelta | None = None,
        max_turns: int | None = None,
    ) -> SessionMemory:
        """Return a session whose turns are kept beside a space, in a space of their own; begun or gone on with.

        Args:
            session_id, ttl, max_turns: as in `SessionMemory`. What counts is decided by whoever reads.
        """
        own = sessions_of(checked_namespace(principal, scope))
        self._check_open()
        space = self._registry.space(own, _settings(self._chosen(None)[0]))
        beside = self._space_of(checked_namespace(principal, scope))
        turns = Kept(space, beside, checked_id(session_id, field="session_id"))
        return SessionMemory(session_id, ttl=ttl, max_turns=max_turns, turns=turns)

    def spaces(self) -> list[Namespace]:
        """Return the names of all spaces that hold records, sorted."""
        return sorted(self._namespaces(), key=lambda name: (name.principal, name.scope))

    def stats(self, *, spaces: Collection[Namespace] | None = None) -> StoreStats:
        """Return the store's sizes. Loads every space once.

        Args:
            spaces: count these alone; their shares of the files are not known, so those sizes are None then.
        """
        facts = records = without = 0
        names = [name for name in self._namespaces() if spaces is None or name in spaces]
        for name in names:
            space = self._registry.space(name, _settings(MemoryConfig()))
            count, seq, missing = space.read(
                lambda state, _: (state.fact_count, state.head.seq, state.without_vector)
            )
            facts, records, without = facts + count, records + seq, without + missing
        log = self.log
        size = log.size_bytes() if spaces is None else None
        reclaimable = log.reclaimable_bytes() if spaces is None else None
        return StoreStats(log.name, len(names), facts, records, size, reclaimable, without)

    def counters(self) -> StoreCounters:
        """Return what this process did with the store, and holds of it; cheap, and reads nothing. Of a closed one too.

        A log of one's own without `commits` (of `perdure.log.commits`) tells no commits.
        """
        commits = getattr(self.log, "commits", None) or Commits()
        folds = self._registry.folds()
        memory_bytes = self._registry.memory_bytes()
        return StoreCounters(*self._registry.loaded(), commits.count, commits.seconds, *folds, memory_bytes)

    def export(
        self,
        path: str | Path,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
        blocks: bool = False,
        force: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write all that spaces hold at one moment into a file of readable lines, without loss; writers go on.

        With a filter, as though the facts and documents that it does not match had been forgotten. The file is
        plain text, also that of an encrypted store. Arguments and errors as in
        `perdure.transfer.exporting.Asked` and `export_to`.
        """
        self._check_open()
        asked = Asked(checked_now(self.clock), spaces, blocks, find_filter(filter))
        done = export_to(self.log, path, asked, force=force, progress=progress)
        self._events.done("exported", {"spaces": done.spaces, "facts": done.facts})
        return done

    def export_lines(
        self,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
        blocks: bool = False,
    ) -> Iterator[bytes]:
        """Return the lines of such a file, of the moment of the call, each read when it is asked for."""
        self._check_open()
        lines = export(self.log, Asked(checked_now(self.clock), spaces, blocks, find_filter(filter)))
        self._events.done("exported", {})
        return lines

    def import_(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        strict: bool = True,
        spaces: Collection[Namespace] | None = None,
        into: Namespace | None = None,
        progress: Progress | None = None,
    ) -> Imported:
        """Store what an export holds: facts with their ids and ingest times, and all that was said of them.

        Strict, the whole file is checked first. Importing again stores what is missing, so nothing where all is
        there. Arguments and errors as in `perdure.transfer.importing.import_lines`.
        """
        self._check_open()
        options = Options(dry_run, strict, spaces, into)
        done = import_lines(self.log, self._registry.space, source, options, progress)
        if not done.dry_run:
            counts = {"created": done.created, "existing": done.existing, "skipped": done.skipped}
            self._events.done("imported", counts)
        return done

    def health(self, *, timeout_s: float = HEALTH_TIMEOUT_S) -> Health:
        """Look whether the store can be read and whether a write would get its turn and find room. Writes nothing.

        Args:
            timeout_s: how long to wait for the writer's turn at most; 0 does not wait.

        Raises InvalidRequest for a wrong time-out; what is wrong with the store is the answer.
        """
        check_timeout(timeout_s)
        pending = False
        try:
            self._check_open()
            pending = self.log.scrub_pending()
            if not pending:  # else the read would try to clean
                self.log.spaces()
            with self.log.writer(timeout_s):
                pass
            self.log.check_writable()
        except PerdureError as error:
            return Health(error.code, writable=False, erasure_pending=pending, message=error.message)
        message = "the store can be read and written"
        if pending:
            message += f"; what was forgotten last is still to be cleaned: {reach_of(self.log).waits}"
        return Health("ok", writable=True, erasure_pending=pending, message=message)

    def rekey(self, key: KeyForm | None, *, progress: Progress | None = None) -> PurgeReceipt:
        """Write the whole store anew under another key, and overwrite what was written under the old one.

        Purges on the way: nothing is left of what was forgotten. All or nothing; writers wait meanwhile, reads
        go on, and there must be room for a second copy. Whoever else has the store open gets WrongKey from his
        next operation on, until he opens it again.

        Args:
            key: in any form that `open` takes; None leaves the store plain.
            progress: told the records that were read so far, of all.

        Raises:
            InvalidRequest: the key is wrong, or this backend has none: a store in PostgreSQL is sealed under data keys of its
                keystore, and `purge` changes them all.
            Busy, StorageFull, Corrupt, Unavailable: nothing was changed.
        """
        self._check_open()
        rekey = getattr(self.log, "rekey", None)
        if rekey is None:
            raise InvalidRequest(
                f"a log of kind {self.log.name} does not encrypt with a key of yours; where a keystore holds its data keys, "
                "purge writes everything anew under fresh ones and destroys those of before",
                field="key",
            )
        now = checked_now(self.clock)
        return self._receipt(rekey(rewriting(self.log.secret), key, progress), now)

    def purge(self, *, progress: Progress | None = None) -> PurgeReceipt:
        """Rewrite the store so that nothing of what was forgotten is left in it, not even its places.

        Afterwards it equals a store that never held it. Runs also when nothing was forgotten. Rewrites the whole
        store, takes room for a second copy meanwhile, and makes writers wait; reads go on.

        Args:
            progress: called with how much is done, of how much in all.

        Raises Busy where readers or a backup kept the store, StorageFull, Corrupt, Unavailable: nothing is changed.
        """
        self._check_open()
        now = checked_now(self.clock)
        return self._receipt(purge_store(self.log, progress), now)

    def erase(
        self,
        principal: str,
        scope: str | None = None,
        *,
        dry_run: bool | None = False,
        progress: Progress | None = None,
    ) -> Erased:
        """Erase every memory of a principal, or that of one scope: facts, documents, blocks, names, all of it.

        Ends with a purge, so that the store equals one in which the principal never was. Each memory goes in
        one transaction; where a crash comes between two, the same call erases the rest, and where it comes before
        the purge, the same call purges. Of a name that has no memory nothing goes: then, and with no purge to make
        up for, nothing is rewritten and there is no certificate.

        Args:
            principal: the exact name; an empty text is the principal that has none.
            scope: the exact scope, with the conversations and sessions beside it; None means every scope of the principal.
                Of conversations or sessions that are erased alone, what nodes and facts beside them quote is erased too.
            dry_run: erase nothing; tell what would go.
            progress: of the purge, as in `purge`.

        Raises:
            InvalidRequest: a name is malformed.
            Busy, StorageFull, Unavailable: the purge could not be done. The memories are erased; the certificate is
                in the error's details, and `purge` makes up for it.
        """
        if principal is None:
            raise InvalidRequest("principal is missing: name whose memories to erase", field="principal")
        name = checked_namespace(principal, scope)
        wanted = None if scope is None else name.scope
        dry_run = checked_flag(dry_run, "dry_run")
        self._check_open()
        if dry_run:
            removed, spaces = survey_spaces(self.log, name.principal, wanted)
            return Erased(spaces, removed.facts, dry_run=True, purged=False, pending=False)
        now = checked_now(self.clock)
        for space in matching(self.log, name.principal, wanted):
            follow_first(self.log, space.number)
        # First: a crash leaves what finds them.
        names, quotes = list[Namespace](), Removed(self.log.secret)

        def find(gone: Mapping[Namespace, frozenset[str]] | None) -> list[tuple[Space, frozenset[str]]]:
            if gone is None:
                names[:] = [space.namespace for space in matching(self.log, name.principal, wanted)]
            return self._quoted_beside(names, gone)

        quoted = QuotedBeside(quotes, find)
        removed, erased, gone = erase_spaces(self.log, name.principal, wanted, now, quoted)
        quoted.erase_quotes(gone)  # a fact may be told with any source, at any time
        removed.absorb(quotes)
        self._registry.forget(erased)
        self._recent.clear()  # whose handles would keep in memory what is erased
        if not erased and not has_remains(self.log):
            return Erased((), 0, dry_run=False, purged=False, pending=not self.log.scrub())
        pending, purged, certificate = conclude(
            self.log, "erase", removed, now, purge=True, progress=progress
        )
        return Erased(erased, removed.facts, False, purged is not None, pending, certificate)

    def delete_tenant(self) -> DeletedTenant:
        """Delete the tenant whose store this is, out of its database: all rows, its keys, its audit; then close the store.

        Cannot be undone, and leaves no certificate: there is nothing left to check one against. Whoever else has the
        tenant open gets Unavailable from then on; who opens it again makes a new one.

        Raises:
            InvalidRequest: the store is in files: close it, and remove its directory.
            WrongKey, Busy: nothing was deleted.
            Unavailable: nothing was, or the database broke off as it was to confirm: the message says what is known, and the
                same call goes on.
        """
        self._check_open()
        drop = getattr(self.log, "drop", None)
        if drop is None:
            raise InvalidRequest(
                f"a store of kind {self.log.name} is no tenant of a database: close it, and remove its directory",
                field="path",
            )
        tenant: str = self.log.tenant  # type: ignore[attr-defined]  # of whatever has drop
        dropped = drop(DIRECTORY)
        with self._closing:  # without keeping anything, for which there is no place any more
            self._closed = True
            self._recent.clear()
            try:
                self._registry.abandon()
            finally:
                self.log.close()
        return DeletedTenant(tenant, dropped.spaces, dropped.records, dropped.pending)

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Verified:
        """Check all that the store keeps: every byte of its files, and what its records say together.

        Changes nothing; others may go on.

        Args:
            quick: leave out what needs every record's text.
            progress: called with how much is done, of how much in all.

        Raises Busy and Unavailable where the store cannot be looked at; damage is the answer.
        """
        self._check_open()
        return verify_log(self.log, quick=checked_flag(quick, "quick"), progress=progress)

    def check_certificate(
        self, certificate: Certificate, *, progress: Progress | None = None
    ) -> tuple[Finding, ...]:
        """Return what in the store, as it is now, contradicts the certificate of an erasure; nothing if all is well.

        Reads every record. What was told again after the erasure is named as such. Finishes an erasure whose last
        step still waits, if nothing is in its way any more.
        """
        self._check_open()
        return tuple(contradictions(self.log, certificate, progress))

    def events(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the field's name on every surface
        id: str | None = None,  # noqa: A002 - likewise
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[AuditEvent]:
        """Return a page of the events of all spaces and of the store itself, oldest first.

        Arguments and errors as in `Memory.events`. An `id` is looked for in every space that there is; in one that was
        erased, whose name is not kept, it is not found.
        """
        self._check_open()
        return self._events.page((type, id), (since, until), (limit, cursor))

    def events_head(self) -> EventsHead:
        """Return where the chain of events stands, sealed: keep it elsewhere, and hold the chain against it later."""
        self._check_open()
        return self._events.head()

    def verify_events(self, head: EventsHead | None = None) -> tuple[Finding, ...]:
        """Return what of the chain of events does not add up: one that was changed, dropped or put elsewhere.

        Changes nothing, so what was written since events were last read or followed is not looked at.

        Args:
            head: what `events_head` gave before; whoever has the store's secret can make a chain that adds up, but
                none that this head is of.
        """
        self._check_open()
        return self._events.findings(head)

    def export_events(self) -> Iterator[bytes]:
        """Return all events as lines that `perdure.audit.verify` holds against a head, without any store."""
        self._check_open()
        return self._events.lines()

    def trim_events(self, before: Instant) -> int:
        """Let go of the first events, up to the first that is not before this moment; return how many went.

        What is left still verifies. The trimming leaves an event itself.
        """
        self._check_open()
        return self._events.trim(before)

    def note_event(self, type: str, details: Mapping[str, int | str | bool] | None = None) -> None:  # noqa: A002
        """Add an event of the store's that no record tells of, such as a key that was made; nothing where there is
        no audit. Raises what keeps it from being written.

        Args:
            details: counts, digests and names out of this library; never text, never an id.
        """
        self._check_open()
        self._events.note(type, details or {})

    def backup(self, directory: str | Path, *, progress: Progress | None = None) -> None:
        """Copy the store, as it is at one moment, into a directory that does not exist yet, or is empty.

        The copy opens as a store of its own, under the same secret and key. Others go on; a purge waits.

        Raises:
            InvalidRequest: the directory holds something, or lies within the store.
            Busy, StorageFull, Unavailable, Corrupt: there is no copy.
        """
        if not isinstance(directory, str | Path) or directory == "":
            raise InvalidRequest("directory must be a path that is not empty", field="directory")
        self._check_open()
        target, now = Path(directory), checked_now(self.clock)
        if _may_take(target):
            # Before there is a copy: a certificate may name one that failed, never be silent about one that did not.
            self.log.note_backup(now)
        self.log.backup(target, progress)

    def close(self) -> None:
        """Keep what makes the next opening fast, and release everything. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._recent.clear()
            try:
                self._registry.close()
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
        self._check_open()
        chosen, is_kept = self._chosen(config)
        space = self._registry.space(namespace, _settings(chosen))
        made = self._made.get(namespace)
        if made is not None and on_close is None and made._is_of(space, chosen):
            return made
        if not is_kept:  # one for all spaces asks nothing of those that were there before
            space.check_settings(_settings(chosen), _settings(_USUAL))

        def find_space(other: Namespace) -> Space:
            self._check_open()
            return self._registry.space(other, _settings(chosen))

        memory = Memory(space, chosen, on_close=on_close, find_space=find_space)
        if on_close is None:
            self._made[namespace] = memory
            self._recent.append(memory)
        return memory

    def _chosen(self, config: MemoryConfig | None) -> tuple[MemoryConfig, bool]:
        """Return the configuration to use where this one is asked for, and whether the store keeps it."""
        told = self._config if config is None else _checked_config(config)
        kept = self._kept.find()
        if kept is None:
            return told or _USUAL, False
        if told is not None:
            refuse_other(told, kept)
        return told or kept, True

    def _receipt(self, purged: Purged, now: int) -> PurgeReceipt:
        certificate = certify_purge(self.log, purged, now)
        return PurgeReceipt(purged.records, purged.dropped, purged.pending, certificate)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed; open it again")

    def _space_of(self, namespace: Namespace) -> Space:
        return self._registry.space(namespace, _settings(_USUAL))

    def _quoted_beside(
        self, names: Collection[Namespace], gone: Mapping[Namespace, frozenset[str]] | None = None
    ) -> list[tuple[Space, frozenset[str]]]:
        """Return the turns of spaces of conversations and sessions, each with the space beside it, if none of these.

        Args:
            gone: the turns of conversations that these held and hold no more; None for what they hold now.
        """

        def turns_of(name: Namespace, beside: Space) -> frozenset[str]:
            if gone is None or name.scope.endswith(SESSIONS_SUFFIX):
                return all_turns(self._space_of(name), beside)
            return gone.get(name, frozenset())

        return [
            (beside := self._space_of(own), turns_of(name, beside))
            for name in (names if gone is None else gone)
            if (own := find_beside(name)) is not None and own not in names
        ]

    def _namespaces(self) -> list[Namespace]:
        return [space.namespace for space in named_spaces(self.log)]


def _may_take(directory: Path) -> bool:
    """Whether a copy might be made there, as far as a look tells; a directory that is in use is refused."""
    try:
        return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    except (OSError, ValueError):  # the log says what is wrong with the path
        return False


def _settings(config: MemoryConfig) -> Settings:
    get_profile(config.profile)
    return Settings(config.profile, config.k1, config.b)


_USUAL = MemoryConfig()


def _check_usual(
    clock: Clock | None, memory_bytes: int | MemoryBudget, *, fold: bool, save_config: bool
) -> None:
    if clock is not None and not callable(getattr(clock, "now", None)):
        raise InvalidRequest(f"clock must have a method now, got {type(clock).__name__}", field="clock")
    if not isinstance(memory_bytes, MemoryBudget):
        checked_count(memory_bytes, "memory_bytes", 0, BYTES_MAX)
    checked_flag(fold, "fold")
    checked_flag(save_config, "save_config")


def _checked_auditing(level: AuditLevel, log: Log | None, *, audit_queries: bool) -> Auditing:
    checked_choice(level, "audit", AUDITS)
    return Auditing(level, _checked_queries(audit_queries, level), log)


def _check_place(path: object, log: Log | None, audit_log: Log | None, of_path: Mapping[str, object]) -> None:
    """Raise InvalidRequest unless a store is named by a path or a log, with what goes with it and no more."""
    if (path is None) == (log is None):
        raise InvalidRequest("open takes a path or a log, one of them", field="path")
    if audit_log is not None and log is None:
        raise InvalidRequest("audit_log goes with log: a path has its audit beside it", field="audit_log")
    for name, value in of_path.items():
        if log is not None and value is not None:
            raise InvalidRequest(f"a log has a {name} of its own; leave {name} out", field=name)


def _checked_queries(value: bool, audit: AuditLevel) -> bool:
    if checked_flag(value, "audit_queries") and audit != "full":
        raise InvalidRequest(
            'audit_queries goes with audit="full": nothing is kept of recalls otherwise',
            field="audit_queries",
        )
    return value


def _writable_config(config: MemoryConfig | None) -> MemoryConfig:
    """Return what can be kept; raises InvalidRequest where there is nothing, or JSON cannot hold it."""
    if config is None:
        raise InvalidRequest("save_config needs the configuration to keep: give config", field="config")
    config.to_json()
    return config


def _checked_config(config: MemoryConfig) -> MemoryConfig:
    if not isinstance(config, MemoryConfig):
        raise InvalidRequest(f"config must be a MemoryConfig, got {type(config).__name__}", field="config")
    return config
