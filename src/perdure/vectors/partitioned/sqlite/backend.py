"""Snapshots kept in a file: read when they changed, written in one transaction, cleaned before a change returns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import NamedTuple

import apsw

from perdure.base.disk import size_bytes
from perdure.base.ids import random_secret
from perdure.base.sqlite.driver import DriverError, note, rows_of, run
from perdure.base.sqlite.keys import KeyForm, checked_key
from perdure.errors import Unavailable
from perdure.vectors.coding import Coding
from perdure.vectors.partitioned.backend import Plan
from perdure.vectors.partitioned.errors import StorageFailed
from perdure.vectors.partitioned.snapshot import NONCE_BYTES, Snapshot, check_budgets
from perdure.vectors.partitioned.sqlite.failures import driver_errors, translated
from perdure.vectors.partitioned.sqlite.loading import Loaded, check_descriptor, load
from perdure.vectors.partitioned.sqlite.mark import Point, Told, unpacked
from perdure.vectors.partitioned.sqlite.opening import (
    IndexFiles,
    Opened,
    end_journal,
    is_other,
    meta_of,
    open_or_create,
)
from perdure.vectors.partitioned.sqlite.rows import Part, add_content, check_file, free_content, write_meta
from perdure.vectors.partitioned.types import VectorDescriptor

WRITES = "BEGIN IMMEDIATE"


class _Seen(NamedTuple):
    """What is known, and the mark as it was before that was read."""

    mark: bytes
    loaded: Loaded


class SqliteBackend:
    """An open index. Thread-safe; of no use in a forked process."""

    def __init__(self, files: IndexFiles, opened: Opened, coding: Coding) -> None:
        """Use `open`."""
        self._files, self._coding = files, coding
        self._db, self._mark, self._seal = opened.db, opened.mark, opened.seal
        self._guard = RLock()  # of the connection; a search that finds the mark unchanged goes without
        self._pid = os.getpid()
        self._closed = False
        self._place = files.place()
        self._seen: _Seen | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        descriptor: VectorDescriptor,
        coding: Coding,
        *,
        key: KeyForm | None,
        timeout_s: float,
    ) -> SqliteBackend:
        """Open or make an index; everything stored is read and verified."""
        files = IndexFiles(path)
        with driver_errors():
            opened = open_or_create(files, descriptor, checked_key(key), timeout_s)
            try:
                backend = cls(files, opened, coding)
                backend._take_up(opened.told, descriptor)
            except BaseException:  # raised again: what was not opened keeps no file open
                opened.db.close(True)
                opened.mark.close()
                raise
        return backend

    def known(self) -> Snapshot:
        self._check_open()
        return self._present().loaded.snapshot

    def current(self) -> Snapshot:
        self._check_open()
        seen = self._present()
        if self._read_mark() == seen.mark:
            return seen.loaded.snapshot
        return self.observed()

    def observed(self) -> Snapshot:
        with self._guard, driver_errors():
            self._check_open()
            mark = self._read_mark()
            try:
                with self._transaction("BEGIN"):
                    loaded = load(self._db, self._coding, self._present().loaded)
            except DriverError as error:
                note(error, self._db)
                raise
            self._seen = _Seen(mark, loaded)
            return loaded.snapshot

    def publish(self, plan: Plan) -> Snapshot:
        with self._guard, driver_errors():
            self._check_open()
            self._check_place()
            with self._alone():
                mark = self._read_mark()
                with self._transaction(WRITES):
                    loaded = load(self._db, self._coding, self._present().loaded)
                    self._seen = _Seen(mark, loaded)
                    following = plan(loaded.snapshot)
                    if following is loaded.snapshot:
                        return following
                    stored = self._stored(loaded, following)
                self._acknowledge(stored)
            return following

    def close(self) -> None:
        with self._guard:
            if self._closed:
                return
            self._closed = True
            if os.getpid() == self._pid:  # a child must not run SQLite's close on its parent's files
                self._db.close(True)
                self._mark.close()

    def _take_up(self, told: Told | None, descriptor: VectorDescriptor) -> None:
        """Read everything, and start a new history where the database is not the one that the mark is of."""
        with self._alone():
            with self._transaction(WRITES):
                check_file(self._db, size_bytes(self._files.path))
                loaded = load(self._db, self._coding, None)
                snapshot = loaded.snapshot
                check_descriptor(snapshot.descriptor, descriptor)
                check_budgets(descriptor, snapshot.record_count, snapshot.byte_count)
                # As it is now: another process may have changed the index since it was looked at.
                present = self._mark_told() or told
                point = Point(snapshot.nonce, snapshot.revision, snapshot.head)
                nonce = random_secret(NONCE_BYTES) if is_other(present, point) else snapshot.nonce
                taken = Snapshot(descriptor, nonce, snapshot.revision, snapshot.kept)
                if (nonce, descriptor) != (snapshot.nonce, snapshot.descriptor):
                    write_meta(self._db, meta_of(taken))
            self._acknowledge(Loaded(taken, loaded.numbers), durable=told is None)

    def _stored(self, loaded: Loaded, following: Snapshot) -> Loaded:
        """Write what changed; return the following snapshot with its numbers."""
        before, after = loaded.snapshot.kept, following.kept
        numbers = dict(loaded.numbers)
        changed = [name for name in {**before, **after} if before.get(name) is not after.get(name)]
        for name in changed:
            if name in before:
                free_content(self._db, numbers.pop(name))
        for name in changed:
            if name in after:
                kept = after[name]
                partition = kept.partition
                content = partition.encoded()
                part = Part(
                    kept.revision,
                    len(content),
                    partition.record_count,
                    partition.byte_count,
                    partition.digest,
                )
                numbers[name] = add_content(self._db, part, content)
        write_meta(self._db, meta_of(following))
        return Loaded(following, numbers)

    def _acknowledge(self, loaded: Loaded, *, durable: bool = False) -> None:
        """Clean the journal, then let others and this process see what was committed."""
        end_journal(self._files)
        snapshot = loaded.snapshot
        point = Point(snapshot.nonce, snapshot.revision, snapshot.head)
        mark = self._mark.write(Told(True, self._seal, point), durable=durable)
        self._seen = _Seen(mark, loaded)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Give back, at the end, the lock that a write transaction keeps past its commit."""
        try:
            yield
        finally:
            [(mode,)] = rows_of(self._db, "PRAGMA locking_mode")
            if mode == "exclusive":
                run(self._db, "PRAGMA locking_mode=NORMAL")
                rows_of(self._db, "SELECT count(*) FROM meta")  # the next read lets go of the lock

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            run(self._db, begin)
            if begin is WRITES:
                # Others are kept out until the journal is cleaned. Not before this point: a connection that waits
                # for the lock in this mode would keep others from their commit.
                run(self._db, "PRAGMA locking_mode=EXCLUSIVE")
            yield
            run(self._db, "COMMIT")
        except BaseException as error:  # raised again: no transaction stays open
            if isinstance(error, apsw.Error):
                note(error, self._db)
            if self._db.in_transaction:
                run(self._db, "ROLLBACK")
            raise

    def _read_mark(self) -> bytes:
        try:
            return self._mark.read()
        except OSError as error:
            raise translated(error) from error

    def _mark_told(self) -> Told | None:
        data = self._read_mark()
        return unpacked(data) if data else None

    def _present(self) -> _Seen:
        assert self._seen is not None
        return self._seen

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the vector index was closed; open it again")
        if os.getpid() != self._pid:
            raise Unavailable(
                f"the vector index was opened by process {self._pid} and does not survive a fork: open it again in "
                f"process {os.getpid()}",
                kind="forked",
            )

    def _check_place(self) -> None:
        try:
            if self._files.place() == self._place:
                return
        except OSError as error:
            raise StorageFailed("a file of the vector index is gone: close it, and open it again") from error
        raise StorageFailed(
            "a file of the vector index was moved or replaced while it was open: close it, and open it where it is "
            "now. Nothing was written"
        )
