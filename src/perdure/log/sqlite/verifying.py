"""Checking all that a store's files hold: store.lock, heads, keys, pages, caches, marks, modes; nothing is changed.

Everything is read in chunks, each in a short transaction of its own, so that others write and erase meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import apsw

from perdure.base.sqlite.driver import rows_of, run, using
from perdure.errors import Busy, Corrupt, PerdureError, Unavailable
from perdure.log.places import mode_findings
from perdure.log.protocol import ADVICE, KEY_BYTES, Finding, Progress
from perdure.log.sqlite import caches
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.connections import see_lock
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.reading import CHUNK_ROWS, HEADS, parsed_head
from perdure.log.sqlite.schema import check_version
from perdure.log.sqlite.seals import SEALED_VERSION, find_seal
from perdure.log.sqlite.state import STATE, present, read_state
from perdure.log.sqlite.verifying_rows import Overtaken, RowCheck, advised

ATTEMPTS = 3  # what purges or erasures overtook so often in a row gives up with Busy
PAGE_FINDINGS_MAX = 20
# About a millisecond of SQLite's work between two looks whether somebody waits.
STEPS = 10_000
_KEYS = "SELECT k.h, k.rid, r.space, r.seq FROM log.key k LEFT JOIN log.rec r ON r.rid = k.rid {}ORDER BY k.h LIMIT "
_LIVE_FIRST = "SELECT 1 FROM log.rec WHERE space = ? AND seq = 1 AND ck != zeroblob(16)"

Result = TypeVar("Result")


def findings(access: Access, *, quick: bool, progress: Progress | None) -> Iterator[Finding]:
    """Yield what is wrong in the files of a store, in the order in which it was looked at.

    Args:
        quick: leave out the bytes of records and caches, and SQLite's check of its pages.
        progress: told the rows that were looked at, of all.

    Raises:
        Busy: purges or erasures overtook every attempt.
        Unavailable: the files cannot be used, or have a newer format.
    """
    for _ in range(ATTEMPTS):
        try:
            found = list(_Look(access, quick, progress).findings())
        except Overtaken:
            continue
        yield from dict.fromkeys(found)  # one damage may stop several steps
        return
    raise _overtaken()


def _overtaken() -> Busy:
    return Busy("the store is purged or erased in again and again; verify it when less is written")


@dataclass(slots=True)
class _Look:
    """One look at one generation."""

    access: Access
    quick: bool
    progress: Progress | None
    generation: int = 0
    spaces: set[int] = field(default_factory=set)
    pages: list[Any] = field(default_factory=list)  # what SQLite's own check has said

    def findings(self) -> Iterator[Finding]:
        for step in (self._lock, self._heads, self._rows, self._keys, self._caches, self._pages, self._files):
            try:
                yield from step()
            except Corrupt as error:
                yield Finding(error.message, error.space, error.seq)

    def view(self, work: Callable[[apsw.Connection], Result]) -> Result:
        """Run `work` in one short read transaction on the generation that this look began with."""

        def guarded(db: apsw.Connection, generation: int) -> Result:
            if self.generation not in (0, generation):
                raise Overtaken
            self.generation = generation
            return work(db)

        return self.access.look(guarded)

    def _lock(self) -> Iterator[Finding]:
        def work(db: apsw.Connection) -> list[Any]:
            read_state(db)
            check_version(db, "main", self.access.files.lock.name, newest=SEALED_VERSION)
            find_seal(db)
            check_version(db, "log", self.access.files.generation(self.generation).name)
            return rows_of(db, "PRAGMA main.integrity_check(3)")

        for row in self.view(work):
            if row[0] != "ok":
                yield Finding(f"store.lock is damaged ({row[0]}): {ADVICE}")

    def _heads(self) -> Iterator[Finding]:
        last = 0
        for space, *columns in self.view(lambda db: rows_of(db, HEADS)):
            try:
                parsed_head(space, self.generation, columns)
            except Corrupt as error:
                yield Finding(error.message, space)
            if space > last + 1:
                which = f"space {last + 1}" if space == last + 2 else f"spaces {last + 1} to {space - 1}"
                yield self._finding(f"the head of {which} is missing", last + 1)
            last = space
            self.spaces.add(space)

    def _rows(self) -> Iterator[Finding]:
        rows = RowCheck(self.access, self.view, self.quick, self.progress, self.generation)
        yield from rows.findings()

    def _keys(self) -> Iterator[Finding]:
        named: set[int] = set()
        where, bindings = "", ()  # type: tuple[str, tuple[Any, ...]]
        while True:
            sql = _KEYS.format(where) + str(CHUNK_ROWS)
            rows = self.view(lambda db, sql=sql, bound=bindings: rows_of(db, sql, bound))  # type: ignore[misc]
            for key, rid, space, seq in rows:
                if type(key) is not bytes or len(key) != KEY_BYTES:
                    yield self._finding("a key has not 16 bytes")
                elif space is None:
                    yield self._finding(f"a key leads to row {rid}, which there is not,")
                elif seq == 1:
                    named.add(space)
            if len(rows) < CHUNK_ROWS:
                break
            where, bindings = "WHERE k.h > ? ", (rows[-1][0],)
        for space in sorted(self.spaces - named):
            if self.view(lambda db, space=space: rows_of(db, _LIVE_FIRST, (space,))):  # type: ignore[misc]
                yield self._finding(f"no key leads to the name of space {space}", space, 1)

    def _caches(self) -> Iterator[Finding]:
        if not self.quick:
            yield from caches.findings(self.access)

    def _pages(self) -> Iterator[Finding]:
        """Let SQLite check its pages, giving way to whoever waits for store.lock."""
        if self.quick:
            return
        for _ in range(ATTEMPTS):
            try:
                self.view(self._check_pages)
            except Unavailable as error:
                if not isinstance(error.__cause__, apsw.InterruptError):
                    raise
                continue
            except Corrupt:
                if not self.pages:  # else SQLite has said what is wrong before it gave up
                    raise
            for row in self.pages:
                if row[0] != "ok":
                    yield self._finding(f"SQLite finds a page damaged ({row[0]})")
            return
        raise _overtaken()

    def _check_pages(self, db: apsw.Connection) -> None:
        with _watching(self.access.files) as is_awaited:
            db.set_progress_handler(is_awaited, STEPS)
            try:
                self.pages = []
                for row in db.execute(f"PRAGMA log.integrity_check({PAGE_FINDINGS_MAX})"):
                    self.pages.append(row)  # one by one: it may fail half-way
            finally:
                db.set_progress_handler(None)

    def _files(self) -> Iterator[Finding]:
        files = self.access.files
        own = (f"gen-{self.generation}.", f"cache-{self.generation}.")
        yield from mode_findings(files.directory, _own_files(files))
        with self.access.turn.tried(0) as mine:  # a purge that is under way has files of its own
            left = [*files.generations(), *files.caches()] if mine and self._is_settled() else []
            for path in left:
                if not path.name.startswith(own):
                    yield Finding(
                        f"{path.name} lies beside generation {self.generation}: an interrupted purge left it, run "
                        "a purge to have it erased"
                    )

    def _is_settled(self) -> bool:
        """Whether the generation that was looked at is still the store, with nothing of it left to be cleaned.

        Where it is not known which generation is the store, none is left over; and what a purge that was cut
        short left, the next operation takes away without being told.
        """
        if not self.generation:
            return False
        try:
            generation, dirty = self.access.look(lambda db, _: present(db))
        except PerdureError:  # what is wrong there is a finding already
            return False
        return generation == self.generation and not dirty

    def _finding(self, what: str, space: int | None = None, seq: int | None = None) -> Finding:
        return advised(what, self.generation, space, seq)


@contextmanager
def _watching(files: StoreFiles) -> Iterator[Callable[[], bool]]:
    """Yield what tells whether somebody waits for store.lock to be free of readers."""
    with using(see_lock(files, 0)) as lock:

        def is_awaited() -> bool:
            try:
                run(lock, STATE)
            except apsw.BusyError:
                return True
            return False

        yield is_awaited


def _own_files(files: StoreFiles) -> list[Path]:
    single = [path for path in (files.lock, files.writer, files.next_writer) if path.is_file()]
    return [*single, *files.generations(), *files.caches()]
