"""Copying a store as it is at one moment while writers go on, and the moments at which that was done.

A copy holds backup.lock shared, a purge holds it exclusively. It is a lock of its own, since whoever keeps
store.lock shared keeps every forget from noting that an erasure is under way.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct

import apsw

from perdure.base.disk import create_private, erase, sync_directory, sync_file
from perdure.base.sqlite.ciphers import PLAIN, Cipher
from perdure.base.sqlite.driver import DriverError, open_file, rows_of, run, using
from perdure.base.text import counted
from perdure.errors import Busy, PerdureError, Unavailable
from perdure.log.places import checked_target, taken_target
from perdure.log.protocol import CHECK_BYTES, Progress
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.connections import open_generation, open_lock, see_lock
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles
from perdure.log.sqlite.state import damaged_lock, read_state, write_state
from perdure.log.sqlite.turns import WriterTurn, process_lock

STEP_PAGES = 256  # 1 MB: how much is copied between two looks at what the caller's progress says
NOTES = "CREATE TABLE IF NOT EXISTS backup(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, ck BLOB NOT NULL)"

_numbers = Struct("<Qq").pack


def back_up(
    access: Access, directory: Path, check: Callable[[Access], None], progress: Progress | None = None
) -> None:
    """Copy the store into a directory that is absent or empty; `check` reads the whole copy, and raises.

    The copy is that of one moment, on which its own files agree: acknowledged later than that is not in it, and
    what was erased before is not in it either, since pages come as SQLite reads them. Nothing of the write-ahead
    log and the caches is copied. Its store.lock comes last: a copy that was cut short does not open.

    Raises:
        InvalidRequest: the directory holds something, is no directory, or lies within the store.
        Busy: a purge kept the store.
        Corrupt: the store is damaged, so that its copy is not whole.
        StorageFull, Unavailable: the copy could not be written.
        In every case the directory is as it was.
    """
    access.check_open()
    target = _checked_target(access.files.directory, directory)
    with _made(target):
        try:
            with undisturbed(access.files, access.timeout_s):
                cipher = _copy(access, StoreFiles(target), progress)
            _check(access, StoreFiles(target), cipher, check)
            sync_directory(target)
        except DriverError as error:
            raise translated(error) from error


@contextmanager
def undisturbed(files: StoreFiles, timeout_s: float) -> Iterator[None]:
    """Keep purges out; any number of copies may be made at once. Raises Busy while a purge is under way."""
    with _held(files, timeout_s, "BEGIN", "SELECT count(*) FROM main.sqlite_schema"):
        yield


@contextmanager
def alone(files: StoreFiles, timeout_s: float) -> Iterator[None]:
    """Keep copies out, from before a purge chooses what it reads until the old files are gone.

    Raises Busy while a copy is being made.
    """
    with _held(files, timeout_s, "BEGIN EXCLUSIVE"):
        yield


@contextmanager
def _held(files: StoreFiles, timeout_s: float, *statements: str) -> Iterator[None]:
    try:
        create_private(files.backup)
        db = open_file(files.backup, PLAIN, timeout_s)
    except DriverError as error:
        raise translated(error) from error
    try:
        try:
            run(db, "PRAGMA main.journal_mode=MEMORY", *statements)
        except apsw.BusyError as error:
            raise Busy(
                f"a backup or a purge kept the store for {counted(timeout_s, 'second')}; try again when it is done"
            ) from error
        except apsw.Error as error:
            raise translated(error) from error
        yield
    finally:
        db.close(True)


def put_note(access: Access, at: int) -> None:
    """Note in store.lock that a backup is begun at this moment (milliseconds)."""
    try:
        with using(open_lock(access.files, access.timeout_s)) as db:
            run(db, "BEGIN IMMEDIATE", NOTES)
            number = len(noted(db)) + 1
            db.execute("INSERT INTO main.backup VALUES(?, ?, ?)", (number, at, _note_check(number, at)))
            run(db, "COMMIT")
    except DriverError as error:
        raise translated(error) from error


def noted(db: apsw.Connection) -> list[int]:
    """Return the moments of all backups that were noted, in the order of their noting.

    Raises:
        Corrupt: a note is damaged.
    """
    if not rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'backup'"):
        return []
    moments = []
    for expected, (number, at, check) in enumerate(rows_of(db, "SELECT * FROM main.backup ORDER BY id"), 1):
        if number != expected or type(at) is not int or check != _note_check(number, at):
            raise damaged_lock()
        moments.append(at)
    return moments


def _note_check(number: int, at: int) -> bytes:
    return blake2b(_numbers(number, at), digest_size=CHECK_BYTES).digest()


def _checked_target(store: Path, directory: Path) -> Path:
    """Return the place of the copy, its links resolved."""
    try:
        return checked_target(store, directory)
    except OSError as error:
        raise _unusable(error) from error


@contextmanager
def _made(target: Path) -> Iterator[None]:
    """Make the directory, private and with its parents; after a failure leave all as it was."""
    made = [place for place in (target, *target.parents) if not place.exists()]
    try:
        mode = None if made else stat.S_IMODE(target.stat().st_mode)
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.chmod(0o700)
        # Only one copy gets by here: whatever comes to be there later is its own, to be erased if it fails.
        is_ours = create_private(StoreFiles(target).writer)
    except OSError as error:
        _remove(made)
        raise _unusable(error) from error
    if not is_ours:
        raise taken_target()
    try:
        yield
    except BaseException:  # raised again: half a copy must not be taken for a whole one
        with suppress(OSError):
            for path in target.iterdir():
                erase(path)
        with suppress(OSError):
            if mode is not None:
                target.chmod(mode)
        _remove(made)
        raise
    with suppress(OSError):  # the copy is whole; its parents' entries are the file system's own matter
        for place in made:
            sync_directory(place.parent)


def _remove(made: list[Path]) -> None:
    with suppress(OSError):
        for place in made:
            place.rmdir()


def _copy(access: Access, to: StoreFiles, progress: Progress | None) -> Cipher:
    """Copy the present generation and store.lock; return what they are written under."""
    with using(see_lock(access.files, access.timeout_s)) as lock:
        run(lock, "BEGIN")
        state = read_state(lock)
        cipher = access.keyring.present(lock, state)
    generation = state.generation  # it stays, and so does the cipher: no purge goes on
    create_private(to.generation(generation))
    mark = HighWater(to.high_water(generation))
    try:
        mark.write(_copy_generation(access, generation, cipher, to, progress))
        mark.sync()
    finally:
        mark.close()
    sync_file(to.generation(generation))
    sync_directory(to.directory)
    _copy_lock(access, to)
    return cipher


def _copy_generation(
    access: Access, generation: int, cipher: Cipher, to: StoreFiles, progress: Progress | None
) -> int:
    """Copy all pages as they were when the first was read; return the last row there was."""
    with (
        using(open_generation(access.files, generation, cipher, access.timeout_s)) as source,
        using(open_generation(to, generation, cipher, timeout_s=0)) as copy,
    ):
        run(copy, "PRAGMA main.journal_mode=OFF", "PRAGMA main.synchronous=OFF")
        # With a transaction open, every step reads the same moment, whatever is written meanwhile.
        run(source, "BEGIN")
        last_row = int(rows_of(source, "SELECT coalesce(max(rid), 0) FROM main.rec")[0][0])
        _copy_pages(source, copy, progress)
        run(source, "COMMIT")
    return last_row


def _copy_lock(access: Access, to: StoreFiles) -> None:
    create_private(to.lock)
    with (
        using(see_lock(access.files, access.timeout_s)) as source,
        using(open_lock(to, timeout_s=0)) as copy,
    ):
        _copy_pages(source, copy, None)
        run(copy, "BEGIN IMMEDIATE")
        # No write-ahead log and no cache came along, so there is nothing to clean.
        write_state(copy, read_state(copy)._replace(dirty=False))
        run(copy, "COMMIT")
    sync_file(to.lock)


def _copy_pages(source: apsw.Connection, copy: apsw.Connection, progress: Progress | None) -> None:
    with copy.backup("main", source, "main") as pages:
        while not pages.done:
            pages.step(STEP_PAGES)
            if progress is not None:
                progress(pages.page_count - pages.remaining, pages.page_count)


def _check(access: Access, to: StoreFiles, cipher: Cipher, check: Callable[[Access], None]) -> None:
    turn = WriterTurn(process_lock(to), access.timeout_s)
    copy = Access(
        to, turn, secret=access.secret, cipher=cipher, durability="full", timeout_s=access.timeout_s
    )
    try:
        check(copy)
    finally:
        copy.close()


def _unusable(error: OSError) -> PerdureError:
    full = translated(error)
    if full.code == "storage_full":
        return full
    return Unavailable(
        f"the backup's directory cannot be used ({error.strerror}): check that this user may write there"
    )
