"""SqliteLog: the Log protocol over a directory of SQLite files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import get_ident

import apsw

from perdure.base.disk import check_writable, make_directory, warn_of_network
from perdure.base.sqlite.ciphers import PLAIN, Cipher
from perdure.base.sqlite.driver import rows_of
from perdure.base.sqlite.keys import KeyForm, checked_key
from perdure.base.text import counted
from perdure.errors import Conflict, Corrupt, InvalidRequest, Moved, NotFound, Unavailable
from perdure.log.digests import (
    ERASED_CHECK,
    check_batch,
    check_key,
    check_unchanged,
    check_unerased,
    digest_bytes,
    digest_sum,
    stored_key,
)
from perdure.log.places import checked_path
from perdure.log.protocol import ADVICE, EMPTY, Batch, Cached, Entry, Finding, Head, Progress, Purged, Rewrite
from perdure.log.sqlite import caches
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.backup import alone, back_up, noted, put_note
from perdure.log.sqlite.connections import Durability
from perdure.log.sqlite.creation import open_or_create
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.measuring import reclaimable_bytes
from perdure.log.sqlite.purging import purge
from perdure.log.sqlite.reading import (
    CHECKS,
    HEAD,
    POINTS_MAX,
    SPACE_OF_NAME,
    Row,
    find_record,
    missing_row,
    named_space,
    parsed_head,
    points,
    read_head,
    read_rows,
    verified_points,
    verified_rows,
)
from perdure.log.sqlite.state import read_state
from perdure.log.sqlite.turns import WriterTurn, process_lock
from perdure.log.sqlite.verifying import findings
from perdure.log.sqlite.writing import Writing

SCRUB_WAIT_S = 0.2  # how long one scrub may keep readers out while it waits for those that are reading
TAIL_MAX = 10_000  # rows appended while a whole space is read that are still added to its digest


class SqliteLog:
    """A log in one directory, shared by any number of threads and processes of one machine.

    Acknowledged appends survive the death of the process and, with durability "full", the loss of power.
    """

    name = "sqlite"

    def __init__(self, access: Access) -> None:
        """Use `open`."""
        self._access = access
        self.commits = access.commits
        self._purger: int | None = None  # the thread that keeps backups out

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        secret: bytes | None = None,
        key: KeyForm | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
        admits_damage: bool = False,
    ) -> SqliteLog:
        """Open the store in a directory, creating both where there is nothing.

        Args:
            path: the directory; on a local disk (the logger `perdure.log` warns of a network one).
            secret: 32 bytes kept outside the store; None lets the store make and keep its own.
            key: what the store is encrypted with: 32 bytes, or a passphrase as text, or the path of a file of
                its owner's that holds either, or a function that returns one of them (called once, its
                exceptions pass). None for a plain store.
            durability: "full" syncs at each append; "normal" may lose the last ones when power fails.
            timeout_s: how long an operation waits for others before it raises Busy.
            admits_damage: open a store that has lost records as well, to verify it and for nothing else.

        Raises:
            WrongKey: another secret, another key, a key too many or too few, or no store; nothing was written.
            Corrupt: records that were acknowledged are missing.
            InvalidRequest: an argument is wrong, or store.lock may be read by others.
            Unavailable: the files have a newer format, cannot be used, or SQLite came without its ciphers.
        """
        if not hasattr(apsw, "mc_version"):
            raise Unavailable(
                "the module apsw is not that of apsw-sqlite3mc: uninstall apsw, then reinstall apsw-sqlite3mc"
            )
        if durability not in ("full", "normal"):
            raise InvalidRequest(
                f"durability must be 'full' or 'normal', got {durability!r}", field="durability"
            )
        files, checked = StoreFiles(checked_path(path)), checked_key(key)
        try:
            make_directory(files.directory)
            warn_of_network(files.directory)
            turn = WriterTurn(process_lock(files), timeout_s)
        except OSError as error:
            raise translated(error) from error
        try:
            kept, cipher = open_or_create(files, secret, checked, turn, timeout_s)
            access = Access(
                files, turn, secret=kept, cipher=cipher, durability=durability, timeout_s=timeout_s
            )
            log, access.admits_damage = cls(access), admits_damage
            if not admits_damage:
                log.spaces()  # the first connection checks that nothing is missing
                access.sweep()
        except BaseException:  # raised again: a log that did not open holds no files
            turn.close()
            raise
        return log

    @property
    def secret(self) -> bytes:
        return self._access.secret

    def epoch(self) -> int:
        return self._access.view(lambda _, generation: generation) - 1

    def spaces(self) -> list[int]:
        sql = "SELECT space FROM log.head ORDER BY space"
        return [row[0] for row in self._access.view(lambda db, _: rows_of(db, sql))]

    def find_space(self, name: bytes) -> int | None:
        rows, generation = self._access.rows(SPACE_OF_NAME, (stored_key(0, name),))
        return named_space(generation, rows[0][2:])

    def create_space(self, name: bytes, first: bytes) -> int:
        self._access.check_open()
        check_key(name, field="name")
        records, _ = check_batch(Batch(records=[first]), 0)
        with self._access.turn.shared_with_caller():
            return self._access.write(lambda writing: writing.create_space(name, records[0]))

    def head(self, space: int) -> Head:
        rows, generation = self._access.rows(HEAD, (space,))
        return parsed_head(space, generation, rows[0][2:])

    def writer(
        self, timeout_s: float | None = None, *, space: int | None = None
    ) -> AbstractContextManager[None]:
        self._access.check_open()
        return self._access.turn.held(timeout_s)

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        self._access.check_open()
        records, erase = check_batch(batch, expected.seq)

        def work(writing: Writing) -> Head:
            _check_expected(space, expected, writing.head(space))
            for other, known in batch.unerased:
                check_unerased(other, known, writing.head(other))
            for name, known in batch.unchanged:
                check_unchanged(known, writing.head_of(name))
            after_row = writing.last_row
            head = writing.append(space, expected, records, erase)
            writing.point(space, after_row, batch.keys)
            return head

        with self._access.turn.shared_with_caller():
            if erase:
                _check_expected(space, expected, self.head(space))
                self._access.mark_dirty()
            return self._access.write(work)

    def read(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        self._access.check_open()
        return self._entries(space, max(after, 0), upto)

    def get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        if len(seqs) <= POINTS_MAX:
            return self._get(space, seqs, head)
        found = []
        for start in range(0, len(seqs), POINTS_MAX):
            found += self._get(space, seqs[start : start + POINTS_MAX], head)
        return found

    def find(self, space: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
        def work(db: apsw.Connection, generation: int) -> dict[bytes, int]:
            found = {}
            for key in hashes:
                place = find_record(db, generation, stored_key(space, key), within=space)
                if place is not None:
                    found[key] = place.seq
            return found

        return self._access.view(work)

    def scrub(self) -> bool:
        return not self._access.dirty() or self._access.clean(SCRUB_WAIT_S)

    def scrub_pending(self) -> bool:
        return self._access.dirty()

    def purge(self, rewrite: Rewrite, progress: Progress | None = None) -> Purged:
        with self.purging():
            return purge(self._access, rewrite, self.read, progress)

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
        self._access.check_open()
        return findings(self._access, quick=quick, progress=progress)

    def rekey(self, rewrite: Rewrite, key: KeyForm | None, progress: Progress | None = None) -> Purged:
        """Purge the store, as `purge` does, into files under another key.

        Whoever else has the store open must open it again: its next operation raises WrongKey.

        Args:
            key: in any form that `open` takes; None leaves the store plain.

        Raises:
            InvalidRequest: the key is wrong.
        """
        checked = checked_key(key)
        cipher = PLAIN if checked is None else checked.new_cipher()
        with self.purging():
            return purge(self._access, rewrite, self.read, progress, cipher)

    @contextmanager
    def purging(self) -> Iterator[None]:
        """Hold all that a purge or a change of the key by this thread needs: the writer's turn, and no backup.

        Raises Busy where a backup or other writers keep it.
        """
        self._access.check_open()
        if self._purger == get_ident():
            yield
            return
        # Backups are kept out first: waiting for one must not keep writers from their turn.
        with alone(self._access.files, self._access.timeout_s), self._access.turn.shared_with_caller():
            self._purger = get_ident()
            try:
                yield
            finally:
                self._purger = None

    def derived_key(self, purpose: bytes) -> bytes | None:
        """Return 32 bytes that only who has the store's present key can derive; None of a plain store.

        Args:
            purpose: at most 16 bytes; each purpose has bytes of its own.
        """

        def look(db: apsw.Connection, _: int) -> Cipher:
            return self._access.keyring.present(db, read_state(db))

        cipher = self._access.view(look)
        return cipher.keyed(purpose)(self.secret) if cipher.encrypts else None

    def backup(self, directory: Path, progress: Progress | None = None) -> None:
        back_up(self._access, checked_path(directory, "directory"), _read_whole, progress)

    def note_backup(self, at: int) -> None:
        """Note the moment (milliseconds) at which a backup is begun; before it is, so that none goes unnoted."""
        self._access.check_open()
        put_note(self._access, at)

    def backups(self) -> list[int]:
        """Return the moments that were noted, in the order of their noting.

        Raises:
            Corrupt: store.lock is damaged.
        """
        return self._access.look(lambda db, _: noted(db))

    def put_cache(self, space: int, name: str, cached: Cached) -> None:
        caches.put(self._access, space, name, cached)

    def get_cache(self, space: int, name: str) -> Cached | None:
        return caches.get(self._access, space, name)

    def check_writable(self) -> None:
        self._access.check_open()
        self._access.check_place()
        files = self._access.files
        try:
            check_writable(files.directory, [files.lock, files.writer, *files.generations()])
        except OSError as error:
            raise translated(error) from error

    def size_bytes(self) -> int:
        self._access.check_open()
        try:
            return self._access.files.size_bytes()
        except OSError as error:
            raise translated(error) from error

    def reclaimable_bytes(self) -> int:
        self._access.check_open()
        try:
            return reclaimable_bytes(self._access)
        except OSError as error:
            raise translated(error) from error

    def close(self) -> None:
        self._access.close()

    def _get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        wanted = seqs or (0,)  # no space has a record 0: the counts alone are read
        rows, generation = self._access.rows(points(len(wanted)), (space, *wanted))
        _, _, epoch, last, erasures = rows[0]
        # A damaged count answers Moved here; the caller then reads the head, and that is checked.
        if last is None:
            epoch, last, erasures = 1 - generation, 0, 0
        if erasures != head.erasures or epoch != head.epoch - (generation - 1) or last < head.seq:
            raise Moved(
                f"space {space} had records erased, was purged or put back since the head was read; read it again"
            )
        found = verified_points(space, rows[1:], generation)
        try:
            return list(map(found.__getitem__, seqs))
        except KeyError as error:
            seq = error.args[0]
        if 1 <= seq <= last:
            raise missing_row(space, seq, generation)
        raise InvalidRequest(f"seqs names record {seq}, but space {space} holds 1 to {last}", field="seqs")

    def _entries(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        whole = _Whole(self._access.secret) if after == 0 else None
        first = EMPTY
        position = after
        while True:
            head, generation, rows, tail = self._chunk(space, position, upto)
            if position == after:
                first = head
            elif head.epoch != first.epoch:
                raise Moved(f"space {space} was purged while it was read; read it again from its start")
            yield from (entries := verified_rows(space, rows, position, generation))
            position += len(entries)
            if whole is not None:
                whole.add(rows)
            if position >= min(upto, head.seq):
                break
            if not rows:
                raise missing_row(space, position + 1, generation)
        # An erasure during the read took rows out of the digest that were added to the sum.
        if whole is not None and tail is not None and head.erasures == first.erasures:
            whole.add(tail)
            whole.check(space, head, generation)

    def _chunk(
        self, space: int, after: int, upto: int
    ) -> tuple[Head, int, list[Row], list[tuple[int, bytes]] | None]:
        """Read one run of rows; with the last one also (seq, ck) of the rows past `upto`, None if many."""

        def work(
            db: apsw.Connection, generation: int
        ) -> tuple[Head, int, list[Row], list[tuple[int, bytes]] | None]:
            head = read_head(db, space, generation)
            rows = read_rows(db, space, after, upto)
            reached = max(after + len(rows), upto)
            # Rows past the head are damage too, so the tail is read to the last row there is.
            tail = rows_of(db, CHECKS, (space, reached, TAIL_MAX + 1))
            return head, generation, rows, tail if len(tail) <= TAIL_MAX else None

        return self._access.view(work)


class _Whole:
    """Adds up all rows of a space to compare them with its head."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._total = self._count = self._erased = 0

    def add(self, rows: Sequence[tuple[int, bytes]] | Sequence[Row]) -> None:
        live = [(row[0], row[-1]) for row in rows if row[-1] != ERASED_CHECK]
        self._total += digest_sum(self._secret, live)
        self._count += len(rows)
        self._erased += len(rows) - len(live)

    def check(self, space: int, head: Head, generation: int) -> None:
        told = (head.seq, head.erasures, head.digest)
        if (self._count, self._erased, digest_bytes(self._total)) != told:
            raise Corrupt(
                f"the {counted(self._count, 'record')} of space {space} ({self._erased} erased) in generation {generation} "
                f"do not add up to its head ({head.seq}, {head.erasures} erased): {ADVICE}",
                generation=generation,
                space=space,
            )


def _read_whole(access: Access) -> None:
    """Read every record that there is; raises Corrupt where they do not add up."""
    log = SqliteLog(access)
    for space in log.spaces():
        for _ in log.read(space, 0, log.head(space).seq):
            pass


def _check_expected(space: int, expected: Head, actual: Head) -> None:
    if actual == EMPTY:
        raise NotFound(f"there is no space {space}; create_space makes one", field="space")
    if actual != expected:
        raise Conflict(
            f"space {space} is at record {actual.seq}, not {expected.seq}, or was erased in or purged; "
            "catch up and try again",
            kind="head",
        )
