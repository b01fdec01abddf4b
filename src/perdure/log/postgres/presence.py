"""Looks at a database without any store of it being open: whether a tenant is there, whether it can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import psycopg
from psycopg import errors as states

from perdure.errors import Busy, Corrupt, Unavailable
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Database
from perdure.log.postgres.failures import translating
from perdure.log.postgres.migrating import check_tables
from perdure.log.postgres.queries import query
from perdure.log.postgres.tenants import BURIED, PARTS, tenant_id
from perdure.log.postgres.wire import Row
from perdure.log.protocol import SECRET_BYTES

_UNMADE = (states.UndefinedTable, states.InvalidSchemaName)
ATTEMPTS = 5  # of finding what others make and delete meanwhile
RESTORE = "somebody deleted it. Restore backups of the database and its keystore"


class Found(NamedTuple):
    """What stands for a tenant, or a log beside it, in every table, and what `find_row` returns of it."""

    own: UUID
    row: Row


class Presence(NamedTuple):
    """What is there of a tenant, and how much. `is_buried`: its rows are gone, of its keys it is not known."""

    spaces: int
    records: int  # erased ones included
    size_bytes: int
    is_buried: bool


def survey_tenant(database: Database, name: str) -> Presence | None:
    """Return what is there of a tenant, None where there is nothing; makes nothing.

    Raises InvalidRequest where the name is none; Corrupt where a part of it is missing; Busy, Unavailable.
    """
    found = _find(database, name)
    if found is None:
        return None
    own = found.own
    access = about(database, own)
    size, _, records = access.view(lambda session: session.rows("sizes", (own,)))[0]
    spaces = access.view(lambda session: session.rows("spaces", (own,)))
    return Presence(len(spaces), int(records), int(size), bytes(found.row[0]) == BURIED)


def has_tenant(database: Database, name: str) -> bool:
    """Whether a tenant is there, one too that is being deleted, of which opening it tells; makes nothing.

    Raises as `survey_tenant`.
    """
    return _find(database, name) is not None


def holds_tenants(database: Database) -> bool:
    """Whether there is a tenant, or was one lately; what is told is the size of a table, whose rows no role sees all of."""
    with translating(), database.plain() as connection:
        row = connection.execute(query("holds_tenants")).fetchone()
    return bool(row and row[0])


def answers(database: Database) -> bool:
    """Whether the database says anything, whatever it is; soon."""
    try:
        with database.plain(soon=True) as connection:
            connection.execute(query("server_version"))
    except (psycopg.Error, Busy, Unavailable):
        return False
    return True


def find_settled(database: Database, find: Callable[[], UUID | None]) -> Found | None:
    """Return what is there under a name that `find` looks for, None where nothing is.

    A name and its row come and go in one transaction, and what a name stands for never comes again: so one that stays
    without its row has lost it.

    Raises Corrupt where it has; Busy where others make and delete it all the time; as `find` does.
    """
    seen = set[UUID]()
    for _ in range(ATTEMPTS):
        own = find()
        if own is None:
            return None
        row = find_row(database, own)
        if row is not None:
            return Found(own, row)
        seen.add(own)
    if len(seen) == 1:
        raise Corrupt(f"the row of perdure.tenant is missing that the tenant's name leads to: {RESTORE}")
    raise Busy("a tenant of this name is made and deleted again and again; try again")


def check_unnamed(database: Database, name: str) -> None:
    """Raise Corrupt where a tenant has lost its name, as far as that can be told: a log beside it has kept its own."""
    for part in PARTS:
        beside = tenant_id(name, part)
        own = find_identity(database, beside)
        # The part was named all the time in between, and is only ever where the tenant is.
        if (
            own is not None
            and find_identity(database, tenant_id(name)) is None
            and find_identity(database, beside) == own
        ):
            raise Corrupt(
                f"the tenant's row of perdure.naming is missing, while that of its {part} is there: {RESTORE}"
            )


def find_identity(database: Database, digest: UUID) -> UUID | None:
    """Return what stands for the tenant, or the log, of a name's digest; None where there is none of that name."""
    row = about(database, digest).view(lambda session: session.row("identity", (digest,)))
    return None if row is None else row[0]


def find_row(database: Database, own: UUID) -> Row | None:
    """Return a tenant's verifier, BURIED where it is being deleted, and whether it is encrypted; None where it is gone."""
    return about(database, own).view(lambda session: session.row("find_tenant", (own,)))


def about(database: Database, tenant: UUID) -> Access:
    """Return what looks at the rows of a tenant, or of a name; ask it for nothing that takes a secret or a turn."""
    return Access(database, tenant, bytes(SECRET_BYTES), None, 0)


def _find(database: Database, name: str) -> Found | None:
    return find_settled(database, lambda: _find_named(database, name))


def _find_named(database: Database, name: str) -> UUID | None:
    digest = tenant_id(name)
    try:
        own = find_identity(database, digest)
        if own is None:
            check_unnamed(database, name)
        return own
    except Unavailable as error:
        if not isinstance(error.__cause__, _UNMADE):
            raise
    with database.plain() as connection:
        check_tables(connection)  # those of before have another place for it
    return None


def check_usable(database: Database) -> None:
    """Raise Unavailable where stores can be neither read nor written; StorageFull where the disk was full lately.

    That is where the database cannot be reached or may only be read, has tables of another version or of another database,
    or has none and the role may not make them, as the first store would.
    """
    database.warn_of_role()
    with translating(), database.plain(soon=True) as connection:
        if not check_tables(connection) and not _may_create(connection):
            raise Unavailable(
                "the database has no tables of a store that this role may see, and it may make none: run perdure migrate as a "
                "role that owns the database, with --role for this one"
            )
        [(in_recovery, read_only)] = connection.execute(query("writable")).fetchall()
    if in_recovery or read_only:
        raise Unavailable(
            "the database may only be read: it is a standby, or was set so. Connect to the primary"
        )
    database.check_room()


def _may_create(connection: psycopg.Connection[Row]) -> bool:
    row = connection.execute(query("may_create")).fetchone()
    return bool(row and row[0])
