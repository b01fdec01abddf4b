"""Cleaning what an erasure leaves outside its row, the write-ahead log and the caches, and purged generations."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import apsw

from perdure.base.disk import erase, overwrite, sync_directory
from perdure.base.sqlite.ciphers import Cipher
from perdure.base.sqlite.driver import DriverError, rows_of, run, using
from perdure.log.sqlite.connections import open_generation, open_lock
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.seals import Keyring
from perdure.log.sqlite.state import State, read_state, write_state

Change = Callable[[State], State]
Retire = Callable[[int], None]

SLICE_S = 0.5  # how long waiting for store.lock may keep others from reading, before it lets them go on
PAUSE_S = 0.02


def mark_dirty(files: StoreFiles, timeout_s: float) -> None:
    """Make durable that an erasure is under way, before it starts. The caller has the writer's turn."""
    try:
        with using(open_lock(files, timeout_s)) as db:
            run(db, "BEGIN IMMEDIATE")
            state = read_state(db)
            if not state.dirty:
                write_state(db, state._replace(dirty=True))
            run(db, "COMMIT")
    except DriverError as error:
        raise translated(error) from error


def change_alone(
    files: StoreFiles,
    timeout_s: float,
    change: Change,
    *,
    retire: Retire | None = None,
    then: Callable[[apsw.Connection], None] = lambda _: None,
) -> None:
    """Change the row of store.lock while no operation of any process is under way.

    Args:
        retire: given to first sweep what lies about of other generations.
        then: what else is done to store.lock in the same transaction, after the change.

    Raises:
        Busy: others kept store.lock.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = deadline - time.monotonic()
        try:
            with using(open_lock(files, max(0.0, min(SLICE_S, left)))) as db:
                run(db, "BEGIN EXCLUSIVE")
                state = read_state(db)
                if retire is not None:
                    _sweep(files, state.generation, retire)
                write_state(db, change(state))
                then(db)
                run(db, "COMMIT")
            return
        except apsw.BusyError as error:
            if left <= SLICE_S:
                raise translated(error) from error
            time.sleep(PAUSE_S)
        except DriverError as error:
            raise translated(error) from error


def clean(files: StoreFiles, keyring: Keyring, wait_s: float, retire: Retire) -> bool:
    """Overwrite the write-ahead log, the caches and other generations; return False when readers do not let
    us within the wait.

    The caller has the writer's turn: between the mark and the erasure's commit nobody may clean, nor while a
    purge builds the next generation.

    Args:
        retire: closes this process's idle connections to all generations but the one it is given.
    """
    try:
        return _clean(files, keyring, wait_s, retire)
    except apsw.BusyError:
        return False
    except DriverError as error:
        raise translated(error) from error


def _clean(files: StoreFiles, keyring: Keyring, wait_s: float, retire: Retire) -> bool:
    with using(open_lock(files, wait_s)) as lock:
        run(lock, "PRAGMA main.synchronous=NORMAL", "BEGIN EXCLUSIVE")
        state = read_state(lock)
        cipher = keyring.present(lock, state)
        # With store.lock exclusive no operation of any process is under way, so no reader needs the
        # write-ahead log or another generation, and nobody has a cache open.
        _sweep(files, state.generation, retire)
        if state.dirty:
            if not _clear_write_ahead(files, state.generation, cipher):
                return False
            _erase_caches(files)
            # Losing this commit only means cleaning again, so it syncs no more than keeps the file whole.
            write_state(lock, state._replace(dirty=False))
        run(lock, "COMMIT")
        return True


def _sweep(files: StoreFiles, generation: int, retire: Retire) -> None:
    """Overwrite and unlink what there is of other generations: purged ones, and halves of purges that failed."""
    strays = files.strays(generation)
    if not strays:
        return
    retire(generation)
    for path in strays:
        erase(path)
    sync_directory(files.directory)


def _clear_write_ahead(files: StoreFiles, generation: int, cipher: Cipher) -> bool:
    with using(open_generation(files, generation, cipher, timeout_s=0)) as db:
        busy, logged, moved = rows_of(db, "PRAGMA main.wal_checkpoint(RESTART)")[0]
        if busy or logged != moved:
            return False
        # Fully copied into the database, the log is read by nobody; zeros are an empty log after a crash.
        # SQLite takes no lock on this file, so opening it here harms none.
        overwrite(files.write_ahead(generation))
        busy, _, _ = rows_of(db, "PRAGMA main.wal_checkpoint(TRUNCATE)")[0]
        return not busy


def drop_caches(files: StoreFiles) -> None:
    """Erase all cache files, unless somebody is reading just now or they cannot be written.

    What stays is found damaged again by whoever reads it next.
    """
    with suppress(*DriverError), using(open_lock(files, timeout_s=0)) as lock:
        run(lock, "BEGIN EXCLUSIVE")
        _erase_caches(files)
        run(lock, "COMMIT")


def _erase_caches(files: StoreFiles) -> None:
    paths = files.caches()
    for path in paths:
        erase(path)
    if paths:
        sync_directory(files.directory)
