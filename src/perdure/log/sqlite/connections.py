"""Every connection to a store's files is opened here; a pool keeps them for reuse."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from threading import Lock
from typing import Literal

import apsw

from perdure.base.haste import WouldWait, is_hurried, refuse_to_wait
from perdure.base.sqlite.ciphers import PLAIN, Cipher
from perdure.base.sqlite.driver import DriverError, note, open_file, run, using
from perdure.errors import Corrupt, PerdureError, StorageFull, Unavailable
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.seals import Keyring
from perdure.log.sqlite.state import read_state

Durability = Literal["full", "normal"]

IDLE_MAX = 32  # connections kept for reuse; more threads than that open and close their own


def see_lock(files: StoreFiles, timeout_s: float) -> apsw.Connection:
    """Open store.lock, which is plain in every store, to read it."""
    return open_file(files.lock, PLAIN, timeout_s)


def open_lock(files: StoreFiles, timeout_s: float) -> apsw.Connection:
    """Open store.lock, for transactions that change it."""
    db = see_lock(files, timeout_s)
    # It may hold the store's secret, which must not stay in a gap of a page when the store is encrypted.
    run(db, "PRAGMA main.synchronous=EXTRA", "PRAGMA main.fullfsync=ON", "PRAGMA main.secure_delete=ON")
    return db


def open_generation(
    files: StoreFiles, generation: int, cipher: Cipher, timeout_s: float, durability: Durability = "full"
) -> apsw.Connection:
    """Open a generation by itself, without store.lock: the caller must hold that some other way."""
    db = open_file(files.generation(generation), cipher, timeout_s)
    _prepare_generation(db, "main", durability)
    return db


class Link:
    """A connection to store.lock (`main`) with one generation attached (`log`).

    One statement that reads both takes store.lock first, so it sees a generation that is still the present
    one, at the cost of a single read transaction.
    """

    __slots__ = ("db", "execute", "generation", "state")

    def __init__(self, files: StoreFiles, keyring: Keyring, timeout_s: float, durability: Durability) -> None:
        self.db = see_lock(files, timeout_s)
        try:
            run(self.db, "BEGIN")
            self.state = read_state(self.db)
            cipher = keyring.present(self.db, self.state)
            run(self.db, "COMMIT")
            self.generation = self.state.generation
            cipher.attach(self.db, str(files.generation(self.generation)), "log")
            _prepare_generation(self.db, "log", durability)
        except BaseException as error:  # raised again: a half-made link must not keep its files open
            if isinstance(error, apsw.Error):
                note(error, self.db)
            self.db.close()
            raise
        self.execute = self.db.cursor().execute  # one cursor for all statements that are read to their end


class Pool:
    """The links of one open log. Closing it closes every link, idle ones at once, others when given back."""

    def __init__(
        self,
        files: StoreFiles,
        keyring: Keyring,
        *,
        timeout_s: float,
        durability: Durability,
        admit: Callable[[Link], bool],
    ) -> None:
        """`admit` is called with each new link and may refuse the generation it found; False when that one was
        replaced meanwhile."""
        self._files = files
        self._keyring = keyring
        self._timeout_s = timeout_s
        self._durability = durability
        self._admit = admit
        self._pid = os.getpid()
        self._closed = False
        self._idle: list[Link] = []
        self._all: set[Link] = set()
        self._guard = Lock()

    def check_open(self) -> None:
        """Raise Unavailable when the log was closed, or opened by the process that this one was forked from."""
        if self._closed:
            raise Unavailable("the log was closed; open it again")
        if os.getpid() != self._pid:
            raise Unavailable(
                f"the log was opened by process {self._pid} and does not survive a fork: open it again in "
                f"process {os.getpid()}, or start processes by spawn",
                kind="forked",
            )

    def take(self) -> Link:
        """Return a link for the caller's use alone; it must come back by `give` or `drop`."""
        self.check_open()
        try:
            link = self._idle.pop()
        except IndexError:
            refuse_to_wait()
            return self._open_link()
        if is_hurried():
            link.db.set_busy_timeout(0)
        return link

    def give(self, link: Link) -> None:
        """Put a link without an open transaction back for reuse."""
        if is_hurried():
            link.db.set_busy_timeout(int(self._timeout_s * 1000))
        if self._closed or len(self._idle) >= IDLE_MAX:
            self.drop(link)
            return
        self._idle.append(link)
        if self._closed:  # closed between the test and the append
            self.close()

    def drop(self, link: Link) -> None:
        """Close a link, rolling back what it has open."""
        with self._guard:
            self._all.discard(link)
        link.db.close(True)

    def roll_back(self, link: Link) -> None:
        """Put a link back that may have a transaction open; close it where it cannot be rolled back."""
        try:
            if link.db.in_transaction:
                run(link.db, "ROLLBACK")
        except apsw.Error:
            self.drop(link)
        else:
            self.give(link)

    def drop_stale(self, link: Link, error: Exception) -> None:
        """Drop a link that failed. Returns when its generation was replaced (the caller tries again);
        raises the translated error when the failure is the present generation's own.

        Where the disk is full the link stays: a new one might not find the room for its shared memory, and
        then nothing could be read any more.
        """
        if is_hurried():  # whoever has the time finds out what it was
            self.roll_back(link)
            raise WouldWait from error
        generation = link.generation
        if isinstance(error, apsw.Error):
            note(error, link.db)
        if isinstance(full := translated(error, generation=generation), StorageFull):
            self.roll_back(link)
            raise full from error
        self.drop(link)
        if self.present_generation() == generation:
            raise translated(error, generation=generation) from error

    def present_generation(self) -> int:
        """Return the generation that store.lock names now."""
        try:
            with using(see_lock(self._files, self._timeout_s)) as db:
                return read_state(db).generation
        except DriverError as error:
            raise translated(error) from error

    def retire(self, generation: int) -> None:
        """Close the idle links to all generations but this one; the others find out when they are used."""
        kept = []
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if link.generation == generation:
                kept.append(link)
            else:
                self.drop(link)
        for link in kept:
            self.give(link)

    def close(self) -> None:
        """Close idle links now and the others as they come back. Idempotent."""
        self._closed = True
        if os.getpid() != self._pid:
            _inherited.append(self)  # a child must not run SQLite's close on its parent's files
            return
        while self._idle:
            self.drop(self._idle.pop())

    def _open_link(self) -> Link:
        while True:
            before = self.present_generation()
            try:
                link = Link(self._files, self._keyring, self._timeout_s, self._durability)
            except DriverError as error:
                # The generation may have been replaced while it was being attached.
                if self.present_generation() == before:
                    raise self._unusable(before, error) from error
                continue
            with self._guard:
                self._all.add(link)
            try:
                admitted = self._admit(link)
            except BaseException:  # raised again: a link that was not admitted leaves the pool
                self.drop(link)
                raise
            if admitted:
                return link
            self.drop(link)

    def _unusable(self, generation: int, error: Exception) -> PerdureError:
        path = self._files.generation(generation)
        if not path.exists():
            return Corrupt(
                f"{path.name} is missing, which store.lock says is the store: restore the whole directory from a "
                "backup",
                generation=generation,
            )
        return translated(error, generation=generation)


_inherited: list[Pool] = []


def _prepare_generation(db: apsw.Connection, schema: str, durability: Durability) -> None:
    run(
        db,
        f"PRAGMA {schema}.secure_delete=ON",
        f"PRAGMA {schema}.synchronous={durability.upper()}",
        f"PRAGMA {schema}.fullfsync=ON",
        f"PRAGMA {schema}.checkpoint_fullfsync=ON",
        f"PRAGMA {schema}.journal_size_limit=-1",  # a shrinking log frees blocks that still hold text
        f"PRAGMA {schema}.mmap_size=0",
    )
    keep = ctypes.c_int(1)
    db.file_control(schema, apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
