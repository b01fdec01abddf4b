"""Cleaning what an erasure leaves outside its row: the write-ahead log and the caches."""

from __future__ import annotations

import apsw

from perdure.log.disk import erase, overwrite, sync_directory
from perdure.log.sqlite.connections import open_generation, open_lock, rows_of, run
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import StoreFiles


def mark_dirty(files: StoreFiles, timeout_s: float) -> None:
    """Make durable that an erasure is under way, before it starts. The caller has the writer's turn."""
    db = open_lock(files, timeout_s)
    try:
        run(db, "BEGIN IMMEDIATE", "UPDATE main.state SET dirty = 1 WHERE dirty = 0", "COMMIT")
    finally:
        db.close(True)


def clean(files: StoreFiles, wait_s: float) -> bool:
    """Overwrite the write-ahead log and the caches; return False when readers do not let us within the wait.

    The caller has the writer's turn: between the mark and the erasure's commit nobody may clean.
    """
    try:
        return _clean(files, wait_s)
    except apsw.BusyError:
        return False
    except apsw.Error as error:
        raise translated(error) from error


def _clean(files: StoreFiles, wait_s: float) -> bool:
    lock = open_lock(files, wait_s)
    try:
        run(lock, "PRAGMA main.synchronous=NORMAL", "BEGIN EXCLUSIVE")
        generation, dirty = rows_of(lock, "SELECT gen, dirty FROM main.state")[0]
        if dirty:
            # With store.lock exclusive no operation of any process is under way, so no reader needs the
            # write-ahead log and nobody has a cache open.
            if not _clear_write_ahead(files, generation):
                return False
            _erase_caches(files)
            # Losing this commit only means cleaning again, so it syncs no more than keeps the file whole.
            run(lock, "UPDATE main.state SET dirty = 0")
        run(lock, "COMMIT")
        return True
    finally:
        lock.close(True)


def _clear_write_ahead(files: StoreFiles, generation: int) -> bool:
    db = open_generation(files, generation, timeout_s=0)
    try:
        busy, logged, moved = rows_of(db, "PRAGMA main.wal_checkpoint(RESTART)")[0]
        if busy or logged != moved:
            return False
        # Fully copied into the database, the log is read by nobody; zeros are an empty log after a crash.
        # SQLite takes no lock on this file, so opening it here harms none.
        overwrite(files.write_ahead(generation))
        busy, _, _ = rows_of(db, "PRAGMA main.wal_checkpoint(TRUNCATE)")[0]
        return not busy
    finally:
        db.close(True)


def drop_caches(files: StoreFiles) -> None:
    """Erase all cache files, unless somebody is reading just now."""
    try:
        lock = open_lock(files, timeout_s=0)
        try:
            run(lock, "BEGIN EXCLUSIVE")
            _erase_caches(files)
            run(lock, "COMMIT")
        finally:
            lock.close(True)
    except apsw.BusyError:
        return
    except apsw.Error as error:
        raise translated(error) from error


def _erase_caches(files: StoreFiles) -> None:
    paths = files.caches()
    for path in paths:
        erase(path)
    if paths:
        sync_directory(files.directory)
