"""Creating a store's files, and finding out whose secret a store has."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from perdure.base.disk import check_private, create_private, erase, sync_directory
from perdure.base.ids import random_secret
from perdure.base.sqlite.ciphers import PLAIN, Cipher, Key
from perdure.base.sqlite.driver import DriverError, rows_of, run, using
from perdure.errors import Corrupt, InvalidRequest, PerdureError, WrongKey
from perdure.log.protocol import ADVICE, SECRET_BYTES
from perdure.log.sqlite.connections import open_generation, open_lock, see_lock
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles
from perdure.log.sqlite.schema import GENERATION, LOCK, PINNED, check_version
from perdure.log.sqlite.seals import SEALED_VERSION, find_seal, replace_cipher, unsealed
from perdure.log.sqlite.state import UNFINISHED, State, damaged_lock, new_state, read_state, write_state
from perdure.log.sqlite.turns import WriterTurn

Fill = Callable[[apsw.Connection], None]

LEAST_PAGE_BYTES = 512  # SQLite's smallest page: its files are whole pages


def open_or_create(
    files: StoreFiles, secret: bytes | None, key: Key | None, turn: WriterTurn, timeout_s: float
) -> tuple[bytes, Cipher]:
    """Make sure that the store exists whole and return its secret and its cipher.

    Raises:
        WrongKey: store.lock is something else, or the store has another secret or key, or none. Nothing was
            written.
        InvalidRequest: store.lock may be read by others.
        Corrupt: generations are there without a whole file that says which one is the store.
    """
    if secret is not None and len(secret) != SECRET_BYTES:
        raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(secret)}", field="secret")
    try:
        if not _is_created(files, timeout_s):
            with turn.held():
                if not _is_created(files, timeout_s):
                    _create(files, secret, key, timeout_s)
        return _unlocked(files, secret, key, timeout_s)
    except DriverError as error:
        raise translated(error) from error


def is_unfinished(directory: Path) -> bool:
    """Whether a creation ended early there, so that nothing was told yet; False where that cannot be seen."""
    try:
        return not _is_created(StoreFiles(directory), timeout_s=1)
    except (PerdureError, OSError, *DriverError):
        return False


def _is_created(files: StoreFiles, timeout_s: float) -> bool:
    # Looked at before store.lock: a creation makes generations only once store.lock has its row.
    remains = files.generations()
    if not os.path.lexists(files.lock):
        if remains:
            raise Corrupt(f"store.lock is missing beside a generation: {ADVICE}")
        return False
    try:
        state = _find_state(files, timeout_s)
    except Corrupt as error:
        if remains:
            raise
        raise WrongKey("store.lock is no file of a Perdure store: give the directory of a store") from error
    if state is None and remains:
        raise damaged_lock()
    return state is not None and state.generation != UNFINISHED


def _find_state(files: StoreFiles, timeout_s: float) -> State | None:
    """Return what store.lock says, None when its creation ended before it said anything."""
    if not files.lock.is_file():
        raise damaged_lock()
    check_private(files.lock)
    # SQLite reads what is missing of a last page as zeros, which may be what stood there.
    if files.lock.stat().st_size % LEAST_PAGE_BYTES:
        raise damaged_lock()
    try:
        with using(see_lock(files, timeout_s)) as db:
            if rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'state'"):
                check_version(db, "main", files.lock.name, newest=SEALED_VERSION)
                return read_state(db)
            if files.lock.stat().st_size > 0:
                check_version(db, "main", files.lock.name, oldest=0)
            return None
    except (apsw.Error, UnicodeDecodeError) as error:
        raise translated(error) from error


def _create(files: StoreFiles, secret: bytes | None, key: Key | None, timeout_s: float) -> None:
    # store.lock comes first and says "unfinished" until all else is durable: a crash at any step leaves
    # either nothing that counts, or the whole store.
    create_private(files.lock)
    with using(open_lock(files, timeout_s)) as db:
        if not rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'state'"):
            _create_lock(db, secret, PLAIN if key is None else key.new_cipher())
        _, cipher = _unlocked(files, secret, key, timeout_s)  # an earlier creation may have ended here
        for leftover in [*files.directory.glob("gen-*"), *files.caches()]:
            erase(leftover)
        create_generation(files, 1, cipher)
        mark = HighWater(files.high_water(1))
        mark.write(0)
        mark.sync()
        mark.close()
        sync_directory(files.directory)
        run(db, "BEGIN IMMEDIATE")
        write_state(db, read_state(db)._replace(generation=1))
        run(db, "COMMIT")


def _create_lock(db: apsw.Connection, secret: bytes | None, cipher: Cipher) -> None:
    kept = random_secret(SECRET_BYTES) if secret is None else secret
    run(db, *PINNED, "BEGIN IMMEDIATE", *LOCK)
    write_state(db, new_state(kept, keep=secret is None))
    replace_cipher(db, cipher, kept)
    run(db, "COMMIT")


def create_generation(files: StoreFiles, number: int, cipher: Cipher, fill: Fill = lambda _: None) -> None:
    """Write the tables of a generation into its file, which must not exist, and what `fill` puts into them.

    One transaction without a journal: only a whole file counts, and a failure leaves one that must go.
    """
    create_private(files.generation(number))
    with using(open_generation(files, number, cipher, timeout_s=0)) as db:
        run(db, *PINNED, "PRAGMA journal_mode=OFF", "BEGIN", *GENERATION)
        fill(db)
        run(db, "COMMIT")
        run(db, "PRAGMA journal_mode=WAL")


def _unlocked(
    files: StoreFiles, secret: bytes | None, key: Key | None, timeout_s: float
) -> tuple[bytes, Cipher]:
    with using(see_lock(files, timeout_s)) as db:
        run(db, "BEGIN")
        state, seal = read_state(db), find_seal(db)
        run(db, "COMMIT")
    cipher = unsealed(seal, key, state)
    kept = state.secret if seal is None else seal.secret(cipher)
    if kept is not None and not state.is_of(kept):
        raise damaged_lock()
    if secret is None:
        if kept is None:
            raise WrongKey("this store's secret is kept outside it: give it as secret=")
        return kept, cipher
    if not state.is_of(secret):
        raise WrongKey(
            "this store was created with another secret: give that one, or none if it keeps its own"
        )
    return bytes(secret), cipher
