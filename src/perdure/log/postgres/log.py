"""PostgresLog: the Log protocol over tables that any number of processes share, one tenant's rows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psycopg

from perdure.errors import (
    Busy,
    Conflict,
    NotFound,
    PerdureError,
    Unavailable,
)
from perdure.log.digests import check_batch, check_key, stored_key
from perdure.log.postgres import caches, scrubbing
from perdure.log.postgres.access import Access, parsed
from perdure.log.postgres.appending import Append
from perdure.log.postgres.connections import Database, Session, acquire, release
from perdure.log.postgres.dropping import Dropped, drop
from perdure.log.postgres.failures import is_broken, translated, translating
from perdure.log.postgres.keystore import Keystore
from perdure.log.postgres.migrating import check_tables, migrate
from perdure.log.postgres.naming import find_beside, open_beside, open_tenant
from perdure.log.postgres.noting import unknown
from perdure.log.postgres.presence import about
from perdure.log.postgres.purging import purge
from perdure.log.postgres.reading import entries, points
from perdure.log.postgres.replica import Replica
from perdure.log.postgres.tenants import tenant_id
from perdure.log.postgres.verifying import findings
from perdure.log.postgres.wire import Row
from perdure.log.postgres.writing import write_space
from perdure.log.protocol import Batch, Cached, Entry, Finding, Head, Progress, Purged, Rewrite
from perdure.model.certificate import Reach

T = TypeVar("T")
ROW_BYTES = 60  # of an erased record's row and of its place in the index, about


class PostgresLog:
    """A tenant's log in a database, shared by any number of threads, processes and machines.

    An acknowledged append survives whatever the database's own commits survive: set `synchronous_commit` and standbys
    there. What is stored is sealed under keys of the keystore, so that destroying a key erases what it opened from the
    write-ahead log, replicas and backups as well.
    """

    name = "postgres"
    keeps_names = True  # under the database's unique index
    is_shared = True  # with servers that may have room where this process has none
    looks_ahead = (
        True  # many spaces' heads come in one round trip, as `perdure.databases.Looking` asks for them
    )

    def __init__(self, access: Access, tenant: str, part: str = "") -> None:
        """Use `open`."""
        self._access, self.tenant = access, tenant
        self._named = tenant_id(tenant, part)
        self.commits = access.commits

    @classmethod
    def open(
        cls,
        address: str,
        *,
        tenant: str,
        keystore: Keystore | None,
        secret: bytes | None = None,
        timeout_s: float = 30.0,
        replica: str | None = None,
    ) -> PostgresLog:
        """Open a tenant's log, making the tables where there are none and the tenant where it is new.

        Args:
            address: `postgresql://…`, as libpq takes it.
            tenant: a name; nothing of another tenant is ever seen.
            keystore: where its secret and data keys are; None keeps the records as they are, and the secret nowhere.
            secret: SECRET_BYTES bytes that the caller keeps; needed without a keystore.
            timeout_s: how long an operation waits for others before it raises Busy.
            replica: the address of a standby of the same database that whole spaces and their snapshots are read from,
                where it is as far as the primary in what was erased; it is passed over where it is down, or is not.

        Raises:
            WrongKey: the keystore or the secret is not the tenant's; nothing was written.
            Corrupt: the keystore is damaged, or older than the database; or a row of the tenant is missing.
            InvalidRequest: an argument is wrong.
            Busy, Unavailable: the database cannot be used; it is a copy of another one, of the kind "copy".
        """
        database = acquire(address, timeout_s)
        try:
            database.warn_of_role()
            _ready(database)
            opened = open_tenant(database, tenant, keystore, secret)
            access = Access(database, opened.own, opened.secret, keystore, timeout_s)
            access.check_keystore()
            access.replica = None if replica is None else Replica(replica, opened.own, timeout_s)
            return cls(access, tenant)
        except BaseException:  # raised again: nobody else gives the pool back
            release(database)
            raise

    @property
    def secret(self) -> bytes:
        return self._access.secret

    @property
    def reach(self) -> Reach:
        """What erasures do here, and why their last step waits just now, if it does."""
        return scrubbing.reach_with(self._access.keystore)

    def epoch(self) -> int:
        return int(self._state()[0])

    def spaces(self) -> list[int]:
        rows = self._access.view(lambda session: session.rows("spaces", (self._access.tenant,)))
        return [row[0] for row in self._there(rows)]

    def find_space(self, name: bytes) -> int | None:
        told = (self._access.tenant, stored_key(0, name))
        row = self._there(self._access.view(lambda session: session.row("space_of_name", told)))
        return None if row is None else int(row[0])

    def create_space(self, name: bytes, first: bytes) -> int:
        access = self._access
        access.check_open()
        check_key(name, field="name")
        records, _ = check_batch(Batch(records=[first]), 0)
        try:
            return self._create(name, records[0])
        except psycopg.Error as error:
            if not is_broken(error):
                raise translated(error) from error
            # Whether it was committed is what the name tells.
            number = self._settled(name)
            if number is None:
                with translating():
                    return self._create(name, records[0])
            with suppress(PerdureError):
                if next(self.read(number, 0, 1)).data == records[0]:
                    return number
            raise Conflict(
                f"a space of this name exists already, as number {number}; use find_space", kind="head"
            ) from error

    def _settled(self, name: bytes) -> int | None:
        """Return the space of a name once whatever was on its way has ended."""
        access = self._access

        def work(session: Session) -> Row | None:
            # A commit that is on its way has the tenant's row locked, so it has ended once this has it.
            with session.transaction():
                session.send("number_spaces", (access.tenant, access.verifier))
                return session.row("space_of_name", (access.tenant, stored_key(0, name)))

        access.unlock()  # this thread would wait for itself
        try:
            row = access.view(work)
        except (Busy, Unavailable) as error:
            raise unknown() from error
        return None if row is None else int(row[0])

    def _create(self, name: bytes, first: bytes) -> int:
        with self._access.timed():
            return write_space(self._access, name, first)

    def head(self, space: int) -> Head:
        access = self._access
        if access.turns.held.space == space:
            # Whoever has the turn is about to write: from here on nobody else does.
            access.check_open()
            try:
                with translating():
                    return access.saw(space, access.lock(space).head)
            except NotFound:
                row = None
        else:
            row = access.head_row(space)
        if row is None:
            access.check_there()  # a space that nobody made is empty, one of a tenant that was deleted is not
        return access.saw(space, parsed(row))

    def place(self) -> Access:
        """Return what says whose rows they are, for who asks for those of several tenants at once."""
        return self._access

    def writer(
        self, timeout_s: float | None = None, *, space: int | None = None
    ) -> AbstractContextManager[None]:
        self._access.check_open()
        return self._access.turn(space, timeout_s)

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        access = self._access
        access.check_open()
        records, erase = check_batch(batch, expected.seq)
        attempt = Append(access, space, expected, batch._replace(records=records, erase=erase))
        try:
            return attempt.write()
        except psycopg.Error as error:
            if not is_broken(error):
                raise translated(error) from error
            return attempt.settle(error)

    def read(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        self._access.check_open()
        return entries(self._access, space, max(after, 0), upto)

    def get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        return points(self._access, space, seqs, head)

    def find(self, space: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
        access = self._access
        stored = {stored_key(space, key): key for key in hashes}
        rows = access.view(lambda session: session.rows("found", (access.tenant, space, list(stored))))
        return {stored[bytes(row[0])]: row[1] for row in self._there(rows)}

    def scrub(self) -> bool:
        return scrubbing.scrub(self._access)

    def scrub_pending(self) -> bool:
        return scrubbing.pending(self._access)

    def purge(self, rewrite: Rewrite, progress: Progress | None = None) -> Purged:
        access = self._access
        access.check_open()
        with translating(), access.whole() as session, access.timed():
            purged = purge(access, session, rewrite, progress)
        return purged._replace(pending=not self.scrub())

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
        self._access.check_open()
        return findings(self._access, self._named, quick=quick, progress=progress)

    def backup(self, directory: Path, progress: Progress | None = None) -> None:
        raise Unavailable(
            "a store in PostgreSQL is copied by the database's own tools (pg_dump, pg_basebackup), and its keystore apart "
            "from that; perdure copy makes a store in files of it"
        )

    def note_backup(self, at: int) -> None:
        access = self._access
        access.check_open()
        with translating(), access.changing() as session:
            # One after the other: each takes the number after the highest.
            if session.row("number_spaces", (access.tenant, access.verifier)) is None:
                raise access.missing()
            session.send("note_copy", (access.tenant, at, access.tenant))
            session.commit()

    def backups(self) -> list[int]:
        rows = self._access.view(lambda session: session.rows("copies", (self._access.tenant,)))
        return [row[0] for row in self._there(rows)]

    def put_cache(self, space: int, name: str, cached: Cached) -> None:
        self._access.check_open()
        with translating():
            replaced = caches.put(self._access, space, name, cached)
        if replaced:  # else the store would tell that an erasure is pending
            self.scrub()

    def get_cache(self, space: int, name: str) -> Cached | None:
        return self._there(caches.get(self._access, space, name))

    def cache_head(self, space: int, name: str) -> Head | None:
        """Return the head that a snapshot was taken at, None where there is none; reads nothing of it."""
        access = self._access
        row = self._there(
            access.view(lambda session: session.row("cache_head", (access.tenant, space, name)))
        )
        return None if row is None else Head(*row[:4])

    def load_bytes(self, space: int, name: str) -> int:
        """Return about how much there is to read of a space: its snapshot of this name, else its records."""
        access = self._access
        row = self._there(access.view(lambda session: session.row("load_size", (name, access.tenant, space))))
        if row is None:
            return 0
        records, kept = row
        return int(records if kept is None else kept)

    def check_writable(self) -> None:
        in_recovery, read_only = self._access.view(lambda session: session.rows("writable"))[0]
        if in_recovery or read_only:
            raise Unavailable(
                "the database may only be read: it is a standby, or was set so. Connect to the primary"
            )
        self._access.database.check_room()
        if self._access.keystore is not None:
            self._access.keystore.newest(self._access.tenant)  # raises where it cannot be reached

    def size_bytes(self) -> int:
        return self._sizes()[0] + self._cache_bytes()

    def reclaimable_bytes(self) -> int:
        _, erasures, records = self._sizes()
        return erasures * ROW_BYTES + self._cache_bytes() if records else 0

    def beside(self, part: str) -> BesideLog:
        """Return another log of this tenant's, in the same database and keystore, that may not have been made yet."""
        return BesideLog(self._access, self.tenant, part)

    def drop(self, *beside: str) -> Dropped:
        """Delete all that is kept of the tenant, the logs of these parts beside it too, and its keys; then close.

        All or nothing in the database. From then on whoever has the tenant open gets Unavailable, of the kind "gone".

        Raises:
            WrongKey, Busy: nothing was deleted.
            Unavailable: nothing was, also where the tenant is gone already; or the database broke off as it was to confirm:
                the message says what is known, and the same call goes on.
        """
        access = self._access
        access.check_open()
        with translating():
            dropped = drop(access.database, access.keystore, self.tenant, beside, only=access.tenant)
        if not dropped.existed:
            raise access.missing()
        access.close()
        return dropped

    def close(self) -> None:
        self._access.close()

    def _sizes(self) -> tuple[int, int, int]:
        access = self._access
        found: tuple[int, int, int] = access.view(lambda session: session.rows("sizes", (access.tenant,)))[0]
        self._there(found[2])
        return found

    def _cache_bytes(self) -> int:
        rows = self._access.view(lambda session: session.rows("cache_sizes", (self._access.tenant,)))
        return int(rows[0][0])

    def _state(self) -> tuple[int, int, int, int, bool]:
        row = self._access.view(lambda session: session.row("tenant_state", (self._access.tenant,)))
        if row is None:
            raise self._access.missing()
        return row

    def _there(self, found: T) -> T:
        """Return what was found; raise Unavailable where it is nothing, and the tenant was deleted."""
        held = self._access.turns.held
        if not found and held.locked is None and held.whole is None:  # else it is kept from being deleted
            self._access.check_there()
        return found


class BesideLog:
    """A log beside a tenant's own, under the name of its part, with an identity and keys of its own.

    Every method raises Unavailable, of the kind "gone", where the tenant was deleted.
    """

    def __init__(self, access: Access, tenant: str, part: str) -> None:
        """`access` is that of the tenant's own log."""
        self._access, self._tenant, self._part = access, tenant, part

    def exists(self) -> bool:
        """Return whether it was made."""
        return self._find() is not None

    def size_bytes(self) -> int:
        """Return the bytes that its records take."""
        own = self._find()
        if own is None:
            return 0
        row = about(self._access.database, own).view(lambda session: session.row("sizes", (own,)))
        return 0 if row is None else int(row[0])

    def open(self, secret: bytes) -> PostgresLog:
        """Open it, or make it, with this secret; close it apart from the other."""
        access = self._access
        access.check_open()
        database = acquire(access.database.address, access.timeout_s, beside=True)
        try:
            opened = open_beside(access, self._tenant, self._part, secret)
            own = Access(database, opened.own, opened.secret, access.keystore, access.timeout_s)
            return PostgresLog(own, self._tenant, self._part)
        except BaseException:  # raised again: nobody else gives the pool back
            release(database)
            raise

    def _find(self) -> UUID | None:
        self._access.check_open()
        return find_beside(self._access, self._tenant, self._part)


def _ready(database: Database) -> None:
    """Make the tables where there are none; raise Unavailable where they are of another version, or of another database."""
    with database.plain() as connection:
        if not check_tables(connection):
            migrate(connection)
