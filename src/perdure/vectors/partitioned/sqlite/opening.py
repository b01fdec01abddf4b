"""Opening the files of an index: making them, unlocking them, telling a copy or an older file from the original."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from perdure.base.disk import create_private, overwrite, size_bytes, sync_directory
from perdure.base.ids import random_secret
from perdure.base.sqlite.ciphers import PLAIN, RAW, Cipher, Key
from perdure.base.sqlite.driver import open_file, rows_of, run, using
from perdure.errors import WrongKey
from perdure.vectors.partitioned.errors import StorageCorrupted, StorageFailed
from perdure.vectors.partitioned.snapshot import NONCE_BYTES, Snapshot
from perdure.vectors.partitioned.sqlite.mark import (
    NO_INDEX_OR_NO_KEY,
    NO_INDEX_OR_OTHER_KEY,
    NOWHERE,
    PLAIN_INDEX,
    Mark,
    Point,
    Seal,
    Told,
    unpacked,
)
from perdure.vectors.partitioned.sqlite.rows import SETTINGS, Meta, is_made, make_tables, write_meta
from perdure.vectors.partitioned.types import VectorDescriptor

POLL_S_MIN = 0.0002  # less than another writer takes from one change to the next
POLL_S_MAX = 0.001
POLLS_QUICK = 100
TRIES_MAX = 5  # creations of others that may be met, each of which failed halfway


class IndexFiles(NamedTuple):
    """The names of the files of an index."""

    path: Path

    @property
    def mark(self) -> Path:
        return self.path.with_name(self.path.name + ".mark")

    @property
    def journal(self) -> Path:
        return self.path.with_name(self.path.name + "-journal")

    def place(self) -> tuple[tuple[int, int], ...]:
        """Return what tells the files from others under the same names."""
        return tuple((found.st_dev, found.st_ino) for found in (self.path.stat(), self.mark.stat()))


class Opened(NamedTuple):
    """An unlocked connection, the open mark, and what it said, None where there was none."""

    db: apsw.Connection
    mark: Mark
    told: Told | None
    seal: Seal


def open_or_create(
    files: IndexFiles, descriptor: VectorDescriptor, key: Key | None, timeout_s: float
) -> Opened:
    """Return the files of an index, made whole where there are none.

    Raises:
        WrongKey: the key is another one, one too many, or missing. Nothing was written.
        StorageCorrupted: what lies there is no whole index.
        StorageFailed: it is a directory.
        DriverError: as the driver and the system raise it.
    """
    if files.path.is_dir():
        raise StorageFailed("path is a directory: name a file in it, which is made where there is none")
    files.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(TRIES_MAX):
        if size_bytes(files.path) == 0 and not _made(files, descriptor, key, timeout_s):
            continue
        opened = _opened(files, key, timeout_s)
        if opened is not None:
            return opened
    raise StorageCorrupted("its creation does not come to an end")


def patient(timeout_s: float) -> Callable[[int], bool]:
    """Return a busy handler that looks often: SQLite's own sleeps so long that busy writers never let it in."""
    started = 0.0

    def wait(tries: int) -> bool:
        nonlocal started
        if tries == 0:
            started = time.monotonic()
        if time.monotonic() - started >= timeout_s:
            return False
        time.sleep(POLL_S_MIN if tries < POLLS_QUICK else POLL_S_MAX)
        return True

    return wait


def end_journal(files: IndexFiles) -> None:
    """Overwrite what the journal holds. The caller keeps every other connection out, and has nothing uncommitted."""
    if overwrite(files.journal):
        os.truncate(files.journal, 0)


def is_other(told: Told | None, point: Point) -> bool:
    """Whether the database is not the one that the mark is of: a copy of it, an older one, or one that went on
    another way."""
    if told is None:
        return True
    if not told.made:  # its creation ended before the mark was written again
        return point.revision > 0
    marked = told.point
    if marked.nonce != point.nonce or marked.revision > point.revision:
        return True
    return marked.revision == point.revision and marked.head != point.head


def _made(files: IndexFiles, descriptor: VectorDescriptor, key: Key | None, timeout_s: float) -> bool:
    """Make an index where there is an empty file or none; False where another process was first.

    An empty file without a mark is what a crash leaves between the two, so it is taken for one of ours.
    """
    _check_empty(files)
    create_private(files.path)
    cipher = PLAIN if key is None else key.new_cipher()
    try:
        with using(open_file(files.path, cipher, timeout_s)) as db:
            db.set_busy_handler(patient(timeout_s))
            run(db, "PRAGMA page_size=4096", "PRAGMA encoding='UTF-8'", *SETTINGS[:3], "BEGIN EXCLUSIVE")
            if size_bytes(files.path):
                return True
            _check_empty(files)
            return _filled(files, db, descriptor, cipher)
    except apsw.NotADBError:  # made meanwhile, under another cipher
        return True


def _filled(files: IndexFiles, db: apsw.Connection, descriptor: VectorDescriptor, cipher: Cipher) -> bool:
    seal = Seal.of(cipher)
    mark = Mark(files.mark)
    try:
        # First of all, and durable: without it what a passphrase wrote could not be opened again.
        mark.write(Told(False, seal, NOWHERE), durable=True)
        sync_directory(files.path.parent)
        empty = Snapshot(descriptor, random_secret(NONCE_BYTES), 0, {})
        make_tables(db)
        write_meta(db, meta_of(empty))
        run(db, "COMMIT")
        mark.write(Told(True, seal, Point(empty.nonce, 0, empty.head)), durable=True)
    finally:
        mark.close()
    return True


def _check_empty(files: IndexFiles) -> None:
    told = _find_told(files)
    if told is not None and told.made:
        raise StorageCorrupted("its database is missing or empty, and its mark says that there was one")


def _find_told(files: IndexFiles) -> Told | None:
    try:
        data = files.mark.read_bytes()
    except FileNotFoundError:
        return None
    return unpacked(data) if data else None


def _opened(files: IndexFiles, key: Key | None, timeout_s: float) -> Opened | None:
    """Return the opened files; None where a creation turns out to have ended before there was anything."""
    told = _find_told(files)
    cipher = _unmarked_cipher(files, key, timeout_s) if told is None else told.seal.cipher(key)
    db = open_file(files.path, cipher, timeout_s)
    db.set_busy_handler(patient(timeout_s))
    try:
        run(db, *SETTINGS)
        made = is_made(db)
    except apsw.NotADBError as error:
        db.close(True)
        if told is None and key is not None:
            raise WrongKey(NO_INDEX_OR_OTHER_KEY) from error
        raise
    except BaseException:  # raised again: what was not opened keeps no file open
        db.close(True)
        raise
    if not made:
        db.close(True)
        return None
    return Opened(db, Mark(files.mark), told, Seal.of(cipher) if told is None else told.seal)


def _unmarked_cipher(files: IndexFiles, key: Key | None, timeout_s: float) -> Cipher:
    """Return the cipher of a database without its mark: a copy of it alone."""
    # Asked of SQLite: to open and close the file past it would drop the locks that this process has on it.
    with using(open_file(files.path, PLAIN, timeout_s)) as db, suppress(apsw.NotADBError):
        rows_of(db, "PRAGMA schema_version")
        if key is not None:
            raise WrongKey(PLAIN_INDEX)
        return PLAIN
    if key is None:
        raise WrongKey(NO_INDEX_OR_NO_KEY)
    if key.is_passphrase:
        raise StorageCorrupted("its mark is missing, without which a passphrase opens nothing")
    return key.cipher(RAW, b"")


def meta_of(snapshot: Snapshot) -> Meta:
    """Return the row of meta for a snapshot."""
    descriptor = snapshot.descriptor
    return Meta(
        descriptor.identity(),
        descriptor.max_records,
        descriptor.max_bytes,
        snapshot.nonce,
        snapshot.revision,
        len(snapshot.kept),
        snapshot.record_count,
        snapshot.byte_count,
        snapshot.head,
    )
