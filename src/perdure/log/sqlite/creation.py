"""Creating a store's files, and finding out whose secret a store has."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest

import apsw

from perdure.base.ids import random_secret
from perdure.errors import Corrupt, InvalidRequest, WrongKey
from perdure.log.disk import check_private, create_private, erase, sync_directory
from perdure.log.protocol import SECRET_BYTES
from perdure.log.sqlite.connections import open_file, open_generation, open_lock, rows_of, run
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles
from perdure.log.sqlite.schema import GENERATION, LOCK, PINNED, check_version
from perdure.log.sqlite.turns import WriterTurn

UNFINISHED = 0  # store.lock's generation while a store is being created


def open_or_create(files: StoreFiles, secret: bytes | None, turn: WriterTurn, timeout_s: float) -> bytes:
    """Make sure that the store exists whole and return its secret.

    Raises:
        WrongKey: the directory holds something else, or the store has another secret.
        InvalidRequest: store.lock may be read by others.
        Corrupt: generations are there without the file that says which one is the store.
    """
    if secret is not None and len(secret) != SECRET_BYTES:
        raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(secret)}", field="secret")
    try:
        if not _is_created(files, timeout_s):
            with turn.held():
                if not _is_created(files, timeout_s):
                    _create(files, secret, timeout_s)
        return _secret(files, secret, timeout_s)
    except apsw.Error as error:
        raise translated(error) from error


def verifier(secret: bytes) -> bytes:
    """Return what a store keeps of a secret that is given from outside: enough to refuse another one."""
    return blake2b(b"verifier", key=secret, digest_size=32).digest()


def _is_created(files: StoreFiles, timeout_s: float) -> bool:
    if not files.lock.exists():
        if files.generations():
            raise Corrupt(
                "store.lock is missing beside a generation: restore it, or the whole directory, from a backup"
            )
        return False
    check_private(files.lock)
    db = open_file(files.lock, timeout_s)
    try:
        created = bool(rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'state'"))
        if created or files.lock.stat().st_size > 0:  # a creation that died may have left an empty file
            check_version(db, "main", files.lock.name)
        if not created:
            return False
        return bool(rows_of(db, "SELECT gen FROM main.state")[0][0] != UNFINISHED)
    finally:
        db.close()


def _create(files: StoreFiles, secret: bytes | None, timeout_s: float) -> None:
    # store.lock comes first and says "unfinished" until all else is durable: a crash at any step leaves
    # either nothing that counts, or the whole store.
    create_private(files.lock)
    db = open_lock(files, timeout_s)
    try:
        if not rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'state'"):
            _create_lock(db, secret)
        for leftover in [*files.directory.glob("gen-*"), *files.caches()]:
            erase(leftover)
        create_private(files.generation(1))
        create_generation(files, 1)
        HighWater(files.high_water(1)).close()
        sync_directory(files.directory)
        db.execute("UPDATE main.state SET gen = 1 WHERE gen = ?", (UNFINISHED,))
    finally:
        db.close()


def _create_lock(db: apsw.Connection, secret: bytes | None) -> None:
    run(db, *PINNED, "BEGIN IMMEDIATE", *LOCK)
    kept = random_secret(SECRET_BYTES) if secret is None else None
    check = None if secret is None else verifier(secret)
    db.execute("INSERT INTO state VALUES(1, ?, 0, ?, ?)", (UNFINISHED, kept, check))
    run(db, "COMMIT")


def create_generation(files: StoreFiles, number: int) -> None:
    """Write the tables of a generation into its empty, private file and make it durable."""
    db = open_generation(files, number, timeout_s=0)
    try:
        run(db, *PINNED, "PRAGMA journal_mode=OFF", "BEGIN", *GENERATION, "COMMIT")
        run(db, "PRAGMA journal_mode=WAL")
    finally:
        db.close()


def _secret(files: StoreFiles, given: bytes | None, timeout_s: float) -> bytes:
    db = open_file(files.lock, timeout_s)
    try:
        kept, check = rows_of(db, "SELECT secret, verifier FROM main.state")[0]
    finally:
        db.close()
    if given is None:
        if kept is None:
            raise WrongKey("this store's secret is kept outside it: give it as secret=")
        return bytes(kept)
    right = compare_digest(given, kept) if kept is not None else compare_digest(verifier(given), check)
    if not right:
        raise WrongKey(
            "this store was created with another secret: give that one, or none if it keeps its own"
        )
    return bytes(given)
