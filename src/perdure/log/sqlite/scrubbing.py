"""Cleaning what an erasure leaves outside its row: the write-ahead log and the caches."""

from __future__ import annotations

from contextlib import suppress

import apsw

from perdure.log.disk import erase, overwrite, sync_directory
from perdure.log.sqlite.connections import open_generation, open_lock, rows_of, run, using
from perdure.log.sqlite.failures import DriverError, translated
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.state import read_state, write_state


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


def clean(files: StoreFiles, wait_s: float) -> bool:
    """Overwrite the write-ahead log and the caches; return False when readers do not let us within the wait.

    The caller has the writer's turn: between the mark and the erasure's commit nobody may clean.
    """
    try:
        return _clean(files, wait_s)
    except apsw.BusyError:
        return False
    except DriverError as error:
        raise translated(error) from error


def _clean(files: StoreFiles, wait_s: float) -> bool:
    with using(open_lock(files, wait_s)) as lock:
        run(lock, "PRAGMA main.synchronous=NORMAL", "BEGIN EXCLUSIVE")
        state = read_state(lock)
        if state.dirty:
            # With store.lock exclusive no operation of any process is under way, so no reader needs the
            # write-ahead log and nobody has a cache open.
            if not _clear_write_ahead(files, state.generation):
                return False
            _erase_caches(files)
            # Losing this commit only means cleaning again, so it syncs no more than keeps the file whole.
            write_state(lock, state._replace(dirty=False))
        run(lock, "COMMIT")
        return True


def _clear_write_ahead(files: StoreFiles, generation: int) -> bool:
    with using(open_generation(files, generation, timeout_s=0)) as db:
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
