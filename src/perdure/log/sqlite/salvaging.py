"""Reading what is still whole of a damaged store, without the checks that fail closed; nothing is changed.

A row counts as whole when its own checksum proves it: the checksum covers the space, the number and the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from struct import error as StructError  # noqa: N812 - an exception's name
from typing import Any

import apsw

from perdure.base.sqlite.ciphers import Cipher, Key
from perdure.base.sqlite.driver import DriverError, rows_of, run, using
from perdure.errors import Busy, Corrupt
from perdure.log.digests import ERASED_CHECK, checksum, stored_key
from perdure.log.protocol import Entry, Progress
from perdure.log.sqlite import caches
from perdure.log.sqlite.carving import Carved, FilePages, carved, frames
from perdure.log.sqlite.connections import open_generation, open_lock, see_lock
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles, check_mark
from perdure.log.sqlite.reading import HEADS, parsed_head
from perdure.log.sqlite.recovering import WAIT_S, Secrets, find_sealing, find_secrets, find_state
from perdure.log.sqlite.schema import FORMAT_VERSION, check_version
from perdure.log.sqlite.seals import (
    SEALED_VERSION,
    find_seal,
    replace_cipher,
    unsealed,
)
from perdure.log.sqlite.state import State, read_state, write_state
from perdure.log.sqlite.turns import WriterTurn, process_lock

_NUMBERED = re.compile(r"gen-(\d{1,18})\.db")
_SPAN = "SELECT rid, space, seq, ck, data FROM main.rec WHERE rid > ? AND rid <= ? ORDER BY rid"
_ONE = "SELECT data FROM main.rec WHERE rid = ?"
_LAST = ("SELECT max(rid) FROM main.rec", "SELECT max(rid) FROM main.rec INDEXED BY rec_place")
_MAIN_HEADS = HEADS.replace("log.", "main.")
_SPAN_ROWS = 2_000
_RID_MAX = 1 << 62


@dataclass(slots=True)
class _Space:
    rows: dict[int, int] = field(default_factory=dict)  # seq -> rid of what SQLite still reads
    carved: dict[int, bytes] = field(default_factory=dict)  # seq -> bytes of what it does not
    erased: set[int] = field(default_factory=set)
    last: int = 0  # as the head says, or the rows


class Remains:
    """What is whole in one generation. Close it."""

    def __init__(self, files: StoreFiles, generation: int, cipher: Cipher) -> None:
        self.files, self.generation = files, generation
        self.unplaced = 0  # rows that are lost without a trace of whose they were
        self._last_rid = 0
        self._cipher = cipher
        self._spaces: dict[int, _Space] = {}
        self._db: apsw.Connection | None = None
        self._mark = _mark(files, generation)
        self._open()

    def _open(self) -> None:
        with suppress(*DriverError):
            self._db = open_generation(self.files, self.generation, self._cipher, WAIT_S)
            run(self._db, "PRAGMA query_only=ON")

    def close(self) -> None:
        if self._db is not None:
            self._db.close(True)
            self._db = None

    @property
    def records(self) -> int:
        """How many records are whole and not erased."""
        return sum(len(space.rows) + len(space.carved) for space in self._spaces.values())

    def spaces(self) -> list[int]:
        """Return the numbers of the spaces of which anything is left, ascending."""
        return sorted(self._spaces)

    def last(self, space: int) -> int:
        """Return the number of the last record that the space is known to have had."""
        return self._spaces[space].last

    def read(self, space: int) -> Iterator[Entry]:
        """Yield what is whole of a space in order; data is None where it was erased. What is lost is left out."""
        found = self._spaces[space]
        for seq in sorted({*found.rows, *found.carved, *found.erased}):
            if seq in found.erased:
                yield Entry(seq, None)
            elif seq in found.rows:
                assert self._db is not None
                yield Entry(seq, rows_of(self._db, _ONE, (found.rows[seq],))[0][0])
            else:
                yield Entry(seq, found.carved[seq])

    def is_named(self, space: int, name: bytes) -> bool:
        """Whether the key of this name leads to the space's record 1."""
        sql = "SELECT r.space, r.seq FROM main.key k JOIN main.rec r ON r.rid = k.rid WHERE k.h = ?"
        return self._tried(lambda db: rows_of(db, sql, (stored_key(0, name),))) == [(space, 1)]

    def kept_states(self, space: int) -> list[bytes]:
        """Return the snapshots of a space that are whole, whatever head they are of, the newest first."""
        path = self.files.cache(self.generation)
        if not path.is_file():
            return []
        with suppress(*DriverError):
            return caches.whole_blobs(path, self._cipher, space)
        return []

    def find(self, progress: Progress | None) -> None:
        """Look for all that is whole, through SQLite first, then page by page."""
        for space, *columns in self._tried(lambda db: rows_of(db, _MAIN_HEADS)) or ():
            with suppress(Corrupt):
                head = parsed_head(space, self.generation, columns)
                self._spaces.setdefault(space, _Space()).last = head.seq
        last = self._last_row()
        for start in range(0, last, _SPAN_ROWS):
            self._scan(start, min(start + _SPAN_ROWS, last))
            if progress is not None:
                progress(min(start + _SPAN_ROWS, last), last)
        if self._lacks_rows(last) and not self._cipher.encrypts:
            self._carve()
        for space in self._spaces.values():
            space.last = max([space.last, *space.rows, *space.carved, *space.erased])
        self.unplaced = self._expected(last) - sum(space.last for space in self._spaces.values())

    def _tried(self, work: Callable[[apsw.Connection], list[Any]]) -> list[Any] | None:
        if self._db is not None:
            with suppress(*DriverError):
                return work(self._db)
        return None

    def _last_row(self) -> int:
        found = [self._mark, sum(space.last for space in self._spaces.values())]
        for sql in _LAST:
            rows = self._tried(lambda db, sql=sql: rows_of(db, sql))  # type: ignore[misc]
            told = rows[0][0] if rows else 0
            if type(told) is int and told < _RID_MAX:
                found.append(told)
        # A damaged number of a row may say anything; there are no more rows than bytes.
        return min(max(found), self.files.size_bytes())

    def _expected(self, last: int) -> int:
        """Return how many rows there were; the mark is believed unless there was no room for as many."""
        return max(self._mark if self._mark <= last else 0, self._last_rid)

    def _lacks_rows(self, last: int) -> bool:
        known = sum(len(space.rows) + len(space.erased) for space in self._spaces.values())
        return known < max(last, sum(space.last for space in self._spaces.values()))

    def _scan(self, after: int, upto: int) -> None:
        """Take the rows with after < rid <= upto; where they cannot be read, halve until the bad ones are alone."""
        if self._db is None or after >= upto:
            return
        try:
            for rid, space, seq, check, data in self._db.execute(_SPAN, (after, upto)):
                after = rid
                self._take(Carved(rid, space, seq, data, check), carved=False)
        except DriverError:
            if upto - after > 1:
                middle = (after + upto) // 2
                self._scan(after, middle)
                self._scan(middle, upto)

    def _take(self, row: Carved, *, carved: bool) -> None:
        """Keep a row that its checksum proves; one that was erased stays erased, whatever else is found of it."""
        rid, place, seq, data, check = row
        if type(place) is not int or type(seq) is not int or type(data) is not bytes or place < 1 or seq < 1:
            return
        with suppress(StructError):  # a damaged number may be of any size
            if check == ERASED_CHECK and not data.strip(b"\0"):
                if not carved:  # bytes of which nothing is proven must not erase anything
                    self._spaces.setdefault(place, _Space()).erased.add(seq)
            elif checksum(place, seq, data) == check:
                self._last_rid = max(self._last_rid, rid)
                space = self._spaces.setdefault(place, _Space())
                if seq in space.rows or seq in space.erased:
                    return
                if carved:
                    space.carved[seq] = data
                else:
                    space.rows[seq] = rid

    def _carve(self) -> None:
        """Look at every page of the files for rows that SQLite does not find."""
        self.close()  # SQLite's locks on a file end when anybody of this process closes it
        ahead = self.files.write_ahead(self.generation)
        logged = list(frames(ahead.read_bytes())) if ahead.is_file() else []
        with suppress(OSError, ValueError), FilePages(self.files.generation(self.generation)) as pages:
            for number in range(1, len(pages) + 1):
                self._carve_page(number, pages[number], pages)
            pages.overlay(dict(logged))
            for number, page in logged:
                self._carve_page(number, page, pages, acknowledged=True)
        self._open()

    def _carve_page(self, number: int, page: bytes, pages: FilePages, *, acknowledged: bool = False) -> None:
        for row in carved(number, page, pages):
            # What the write-ahead log holds beyond its mark may be half of a transaction.
            if not acknowledged or row.rid <= self._mark:
                self._take(row, carved=True)


def _mark(files: StoreFiles, generation: int) -> int:
    path = files.high_water(generation)
    if not path.is_file():
        return 0
    mark = HighWater(path)
    try:
        return mark.read()
    finally:
        mark.close()


@contextmanager
def kept_from_others(files: StoreFiles) -> Iterator[None]:
    """Have the writer's turn meanwhile, where the store is whole enough to have one.

    Raises:
        Busy: somebody writes now.
    """
    if not (files.writer.is_file() and files.next_writer.is_file()):
        yield
        return
    with closing(WriterTurn(process_lock(files), 0)) as turn, turn.tried(WAIT_S) as taken:
        if not taken:
            raise Busy("somebody writes to the store: close it everywhere, then salvage it")
        yield


def open_remains(
    files: StoreFiles, secret: bytes | None, key: Key | None, progress: Progress | None
) -> tuple[Remains, Secrets, list[str]]:
    """Return what is whole of a store, whose secret it has, and what people should know of either.

    Raises:
        WrongKey: the store is whole enough to say that the key, or the secret, is not its own.
        Corrupt: no generation holds anything that is whole, or what a passphrase is derived with is lost.
    """
    notes: list[str] = []
    state = find_state(files, notes)
    numbers = _candidates(files, state)
    sealing = find_sealing(files, key, state, numbers)
    secrets = find_secrets(state, sealing, secret, notes)
    for number in numbers:
        _check_versions(files, number, sealing.cipher)
        remains = Remains(files, number, sealing.cipher)
        try:
            remains.find(progress)
        except BaseException:  # raised again: nothing stays open
            remains.close()
            raise
        if remains.records:
            with suppress(Corrupt):
                check_mark(files.high_water(number))
                return remains, secrets, notes
            name = files.high_water(number).name
            notes.append(f"{name} is missing or damaged: lost records at the end are not noticed")
            return remains, secrets, notes
        remains.close()
    raise Corrupt(
        "no generation of the store holds a whole record that can be read"
        + (" with this key" if sealing.cipher.encrypts else "")
        + ": restore a backup; if it is encrypted, give its key"
    )


def _check_versions(files: StoreFiles, number: int, cipher: Cipher) -> None:
    """Raise Unavailable where a newer build wrote the files: what it says was erased may be told in a way of its own."""
    lock, generation = (
        partial(see_lock, files, WAIT_S),
        partial(open_generation, files, number, cipher, WAIT_S),
    )
    for path, opened, newest in (
        (files.lock, lock, SEALED_VERSION),
        (files.generation(number), generation, FORMAT_VERSION),
    ):
        with suppress(*DriverError, Corrupt), using(opened()) as db:
            check_version(db, "main", path.name, oldest=0, newest=newest)


def _candidates(files: StoreFiles, state: State | None) -> list[int]:
    """Return the generations there are: the store's own first, then from the newest."""
    numbers = {int(found[1]) for path in files.generations() if (found := _NUMBERED.fullmatch(path.name))}
    ordered = sorted(numbers, reverse=True)
    if state is not None and state.generation in numbers:
        ordered.remove(state.generation)
        ordered.insert(0, state.generation)
    return ordered


def keep_secret(directory: Path, key: Key | None, secret: bytes) -> None:
    """Have a store that was made with a secret from outside keep it itself, as if it had made it."""
    try:
        with using(open_lock(StoreFiles(directory), WAIT_S)) as db:
            run(db, "BEGIN IMMEDIATE")
            state = read_state(db)
            cipher = unsealed(find_seal(db), key, state)
            write_state(db, state._replace(secret=secret))
            replace_cipher(db, cipher, secret)
            run(db, "COMMIT")
    except DriverError as error:
        raise translated(error) from error
