"""Store: one tenant's spaces. The place that wires the parts together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from perdure.base.clock import Clock, SystemClock, checked_now
from perdure.documents.documents import Documents
from perdure.errors import InvalidRequest, PerdureError, Unavailable
from perdure.lexical.profile import get_profile
from perdure.log.commits import Commits
from perdure.log.protocol import Log, Progress, Purged
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory as SpaceMemory
from perdure.memory.keeping import KeptConfig, refuse_other
from perdure.model.certificate import Certificate
from perdure.model.finding import Finding, Verified
from perdure.model.namespace import Namespace, checked_namespace
from perdure.model.replies import Erased, PurgeReceipt
from perdure.model.stores import Exported, Health, Imported, StoreCounters, StoreStats
from perdure.opening import Backend, Durability, KeyForm, Opening, check_timeout, open_log
from perdure.planning.certificates import certify_purge, conclude, contradictions
from perdure.planning.checks import checked_count, checked_flag
from perdure.planning.embedding import Embedding
from perdure.planning.erasing import erase_spaces, has_remains, named_spaces, survey_spaces
from perdure.planning.questions import find_filter
from perdure.search.query import Budget
from perdure.space.purging import purge_store, rewritten
from perdure.space.registry import Registry
from perdure.space.settings import Settings
from perdure.space.space import Space
from perdure.space.verifying import verify_log
from perdure.transfer.exporting import Asked, export, export_to
from perdure.transfer.importing import Options, import_lines
from perdure.transfer.sources import Source

MEMORY_BYTES_DEFAULT = 1 << 30
MEMORY_BYTES_MAX = 1 << 50  # more than any machine has
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
        memory_bytes: int = MEMORY_BYTES_DEFAULT,
        config: MemoryConfig | None = None,
    ) -> None:
        self.log, self.clock = log, clock
        self._config, self._kept = config, KeptConfig(log)
        self._registry = Registry(log, clock, memory_bytes)
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
        memory_bytes: int = MEMORY_BYTES_DEFAULT,
    ) -> Store:
        """Open (or create) a store.

        Args:
            path: a directory, made when absent; `":memory:"` is ephemeral.
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
            memory_bytes: how much derived state the spaces of this process may hold together.

        Raises:
            InvalidRequest: an argument is wrong, or `config` is another than the one that the store keeps.
            Busy, Corrupt, WrongKey, StorageFull, Unavailable.
        """
        if (path is None) == (log is None):
            raise InvalidRequest("open takes a path or a log, one of them", field="path")
        for name, value in (("secret", secret), ("key", key)):
            if log is not None and value is not None:
                raise InvalidRequest(f"a log has a {name} of its own; leave {name} out", field=name)
        if clock is not None and not callable(getattr(clock, "now", None)):
            raise InvalidRequest(f"clock must have a method now, got {type(clock).__name__}", field="clock")
        checked_count(memory_bytes, "memory_bytes", 0, MEMORY_BYTES_MAX)
        chosen = None if config is None else _checked_config(config)
        if checked_flag(save_config, "save_config"):
            _writable_config(chosen)
        opened = open_log(path, Opening(backend, secret, key, durability, timeout_s)) if log is None else log
        store = cls(opened, clock=clock or SystemClock(), memory_bytes=memory_bytes, config=chosen)
        try:
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
        )

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
        return StoreCounters(*self._registry.loaded(), commits.count, commits.seconds)

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
        return export_to(self.log, path, asked, force=force, progress=progress)

    def export_lines(
        self,
        *,
        spaces: Collection[Namespace] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
        blocks: bool = False,
    ) -> Iterator[bytes]:
        """Return the lines of such a file, of the moment of the call, each read when it is asked for."""
        self._check_open()
        return export(self.log, Asked(checked_now(self.clock), spaces, blocks, find_filter(filter)))

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
        return import_lines(self.log, self._registry.space, source, options, progress)

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
            message += (
                "; what was forgotten last is still to be cleaned from its files: the next calls try again"
            )
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
            InvalidRequest: the key is wrong, or this backend does not encrypt.
            Busy, StorageFull, Corrupt, Unavailable: nothing was changed.
        """
        self._check_open()
        rekey = getattr(self.log, "rekey", None)
        if rekey is None:
            raise InvalidRequest(f"a log of kind {self.log.name} does not encrypt", field="key")
        now = checked_now(self.clock)
        return self._receipt(rekey(rewritten, key, progress), now)

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
            scope: the exact scope; None means every scope of the principal.
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
        removed, erased = erase_spaces(self.log, name.principal, wanted, now)
        self._registry.forget(erased)
        self._recent.clear()  # whose handles would keep in memory what is erased
        if not erased and not has_remains(self.log):
            return Erased((), 0, dry_run=False, purged=False, pending=not self.log.scrub())
        pending, purged, certificate = conclude(
            self.log, "erase", removed, now, purge=True, progress=progress
        )
        return Erased(erased, removed.facts, False, purged is not None, pending, certificate)

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
