"""Running work on a store's present generation: reads, writes, cleaning; retried when a purge replaces it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any, TypeVar

import apsw

from perdure.base.disk import log
from perdure.base.haste import refuse_to_wait
from perdure.base.sqlite.ciphers import Cipher
from perdure.base.sqlite.driver import DriverError, run
from perdure.errors import Busy, Corrupt, StorageFull, Unavailable, WrongKey
from perdure.log.commits import Commits
from perdure.log.protocol import ADVICE
from perdure.log.sqlite.connections import Durability, Link, Pool
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles, check_mark
from perdure.log.sqlite.reading import check_whole
from perdure.log.sqlite.schema import check_version
from perdure.log.sqlite.scrubbing import Change, change_alone, clean, mark_dirty
from perdure.log.sqlite.seals import Keyring, replace_cipher
from perdure.log.sqlite.state import STATE, damaged_lock, present
from perdure.log.sqlite.turns import WriterTurn
from perdure.log.sqlite.writing import Writing

Result = TypeVar("Result")
WRITES = "BEGIN IMMEDIATE"


class Access:
    """What an open log does with its files. Thread-safe; of no use in a forked process."""

    def __init__(
        self,
        files: StoreFiles,
        turn: WriterTurn,
        *,
        secret: bytes,
        cipher: Cipher,
        durability: Durability,
        timeout_s: float,
    ) -> None:
        self.files = files
        self.turn = turn
        self.secret = secret
        self.keyring = Keyring(cipher)
        self.admits_damage = (
            False  # set for a verification of what cannot be opened otherwise; no writes then
        )
        self._durability = durability
        self.timeout_s = timeout_s
        self._place = _place(files)
        self._guard = Lock()
        self._told_of_failure = False
        self._process = os.getpid()
        self._purging = False
        self._witness: tuple[int, HighWater] | None = None  # of the generation that was checked last
        self._pool = Pool(files, self.keyring, timeout_s=timeout_s, durability=durability, admit=self._admit)
        self.check_open = self._pool.check_open
        self.commits = Commits()

    def dirty(self) -> bool:
        """Return whether an erasure still has something to clean."""
        return bool(self._statement(STATE, ())[0][0][1])

    def rows(self, sql: str, bindings: Sequence[Any]) -> tuple[list[Any], int]:
        """Run one statement whose first row starts with (gen, dirty); return its rows and the generation."""
        rows, generation = self._statement(sql, bindings)
        if rows[0][1]:
            self.clean(0)
        return rows, generation

    def view(self, work: Callable[[apsw.Connection, int], Result]) -> Result:
        """Run `work(connection, generation)` in one read transaction, store.lock shared all the while."""
        result, dirty = self._look(work)
        if dirty:
            self.clean(0)
        return result

    def look(self, work: Callable[[apsw.Connection, int], Result]) -> Result:
        """Run `work` as `view` does, and change nothing: what is to be cleaned is left."""
        return self._look(work)[0]

    def _look(self, work: Callable[[apsw.Connection, int], Result]) -> tuple[Result, bool]:
        while True:
            link = self._pool.take()
            try:
                with self._transaction(link, "BEGIN") as dirty:
                    result = work(link.db, link.generation)
            except _Replaced:
                continue
            self._pool.give(link)
            return result, dirty

    def write(self, work: Callable[[Writing], Result]) -> Result:
        """Run `work` in one write transaction, durable at return. The caller has the writer's turn."""
        while True:
            link = self._pool.take()
            try:
                with self._transaction(link, WRITES):
                    self.check_place()
                    writing = Writing(link.db, link.generation, self.secret)
                    result = work(writing)
            except _Replaced:
                continue
            # Without a sync at each commit, losing power may lawfully lose what the mark would insist on.
            if self._durability == "full":
                self._acknowledge(writing.last_row)
            self._pool.give(link)
            return result

    def mark_dirty(self) -> None:
        """Make durable that an erasure is under way. The caller has the writer's turn."""
        self.check_open()
        self.check_place()
        mark_dirty(self.files, self.timeout_s)

    def clean(self, wait_s: float) -> bool:
        """Clean what erasures left; return False when others did not let us within the wait, or the disk.

        Whoever calls this has done what was asked of it, so only damage is an error.
        """
        refuse_to_wait()
        if self._purging or os.getpid() != self._process:
            # The purge itself reads: it must neither sweep the generation that it builds nor end the mark under
            # which whoever comes after its crash sweeps it. Nor must a child that was forked meanwhile.
            return False
        try:
            with self.turn.tried(wait_s) as taken:
                return taken and clean(self.files, self.keyring, wait_s, self._pool.retire)
        except (Busy, WrongKey):  # somebody changed the key: the next operation says so
            return False
        except (StorageFull, Unavailable) as error:
            if not self._told_of_failure:
                self._told_of_failure = True
                log.warning("what was erased is still to be cleaned from the files: %s", error.message)
            return False

    def begin_purge(self) -> None:
        """Sweep, and make durable that there is something to clean. The caller has the writer's turn."""
        self.check_open()
        self.check_place()
        change_alone(
            self.files, self.timeout_s, lambda state: state._replace(dirty=True), retire=self._pool.retire
        )
        self._purging = True

    def switch(self, change: Change, cipher: Cipher | None) -> None:
        """Change the row of store.lock, and the store's cipher where one is given, while no operation is under
        way. The caller has the writer's turn."""
        self.check_open()
        if cipher is None:
            change_alone(self.files, self.timeout_s, change)
            return
        # Threads of this process may see the switch before it returns; where it fails, both stay known.
        self.keyring.admit(cipher)
        change_alone(
            self.files, self.timeout_s, change, then=lambda db: replace_cipher(db, cipher, self.secret)
        )
        self.keyring.settle(cipher)

    def end_purge(self) -> bool:
        """Clean; return whether nothing is left, as `clean` does."""
        if os.getpid() != self._process:
            return False
        self._purging = False
        return self.clean(self.timeout_s)

    def sweep(self) -> None:
        """Clean at once if another generation lies about and nobody is at work on it."""
        if self.files.strays(self._pool.present_generation()):
            self.clean(0)

    def close(self) -> None:
        """Close every file. Idempotent."""
        with self._guard:
            self._pool.close()
            self.turn.close()
            if self._witness is not None:
                self._witness[1].close()
                self._witness = None

    def check_place(self) -> None:
        """Raise unless the files that are open are those under the store's path: others find no write elsewhere."""
        if _place(self.files) != self._place:
            raise Unavailable(
                "the store's directory was moved or replaced while the store was open: close it, and open it where "
                "it is now. Nothing was written"
            )

    def _acknowledge(self, row: int) -> None:
        """Note the last row that was committed; nothing where the log was closed meanwhile."""
        # Guarded: once it is closed, the mark's descriptor may be that of somebody else's file.
        with self._guard:
            if self._witness is not None:
                _witness(self._witness[1], row)

    def _statement(self, sql: str, bindings: Sequence[Any]) -> tuple[list[Any], int]:
        while True:
            link = self._pool.take()
            try:
                rows = list(link.execute(sql, bindings))
            except DriverError as error:
                self._pool.drop_stale(link, error)
                continue
            if not rows:
                self._pool.drop(link)
                raise damaged_lock()
            if rows[0][0] != link.generation:
                self._pool.drop(link)
                continue
            self._pool.give(link)
            return rows, link.generation

    @contextmanager
    def _transaction(self, link: Link, begin: str) -> Iterator[bool]:
        """Begin, yield whether the store is dirty, commit; roll back at any failure.

        Raises _Replaced when the link's generation is no longer the store's.
        """
        try:
            run(link.db, begin)
            generation, dirty = present(link.db)
            if generation != link.generation:
                raise _Replaced
            yield bool(dirty)
            with self.commits.timed() if begin is WRITES else nullcontext():
                run(link.db, "COMMIT")
        except DriverError as error:
            self._pool.drop_stale(link, error)
            raise _Replaced from error
        except _Replaced:
            self._pool.drop(link)
            raise
        except BaseException:  # whatever interrupts the work, an interrupt too: no transaction stays open
            self._pool.roll_back(link)
            raise

    def _admit(self, link: Link) -> bool:
        """Check a generation when this log meets it for the first time; False when it was replaced meanwhile."""
        generation = link.generation
        if not link.state.is_of(self.secret):
            raise Corrupt("store.lock was replaced by that of another store: restore the whole directory")
        if self.admits_damage:
            return True
        with self._guard:
            if self._witness is not None and self._witness[0] == generation:
                return True
            try:
                run(link.db, "BEGIN")
                # From here on store.lock is held, so that no purge takes away what is looked at.
                if present(link.db)[0] != generation:
                    return False
                witness = self._checked_witness(link)
            except DriverError as error:
                raise translated(error, generation=generation) from error
            if self._witness is not None:
                self._witness[1].close()
            self._witness = (generation, witness)
        return True

    def _checked_witness(self, link: Link) -> HighWater:
        """Return the mark of the link's generation, which is whole; ends the link's transaction."""
        generation = link.generation
        check_mark(self.files.high_water(generation))
        witness = HighWater(self.files.high_water(generation))
        try:
            acknowledged = witness.read()  # before the rows, so that it is not newer than they are
            check_version(link.db, "log", self.files.generation(generation).name)
            check_whole(link.db, generation, acknowledged, lambda what: _lost(what, generation))
            run(link.db, "COMMIT")
        except BaseException:  # raised again: a generation that was not admitted keeps no file open
            witness.close()
            raise
        return witness


def _place(files: StoreFiles) -> tuple[int, int] | None:
    """Return what tells store.lock from another file under the same path, None where there is none."""
    try:
        found = files.lock.stat()
        return found.st_dev, found.st_ino
    except OSError:
        return None


def _witness(mark: HighWater, row: int) -> None:
    try:
        mark.write(row)
    except OSError as error:  # the commit is durable: a mark that lags behind is no error
        log.warning("the mark of the last record could not be written: %s", error.strerror)


class _Replaced(Exception):
    """A purge replaced the generation that a link has open."""


def _lost(what: str, generation: int) -> Corrupt:
    return Corrupt(
        f"generation {generation} lost records: {what}: {ADVICE}",
        generation=generation,
    )
