"""Brings a database's tables up to the version that this library reads, and distributes them where that is to be had.

The tables say which database they are of, their *home*: the number of its server, and its own number there. So a copy is
known as one. With the keystore of the original, whatever is erased in a copy would destroy keys that the original needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import psycopg
from psycopg import errors as states
from psycopg import sql

from perdure.errors import Busy, Corrupt, Unavailable
from perdure.log.postgres.failures import translating
from perdure.log.postgres.queries import migrations, query
from perdure.log.postgres.wire import Line, Row

TABLES = ("tenant", "naming", "space", "record", "lookup", "cache", "cache_part", "key_note", "copy_note")
OWNER = "run perdure migrate as the role that owns the tables or, where there are none, as one that may create there"
COPY = (
    "the database is a copy, or was moved, so it is not used yet: with the keystore of the original, whatever is erased here "
    "would destroy keys that the original needs. Give it a copy of that keystore of its own (or keep the keystore, where the "
    "original is gone for good); then run perdure migrate --adopt as the role that owns the tables"
)
ATTEMPTS = 3  # of processes that make the tables at once, one is the first


def newest() -> int:
    """Return the version of the tables that this library makes, and the newest that it reads."""
    return migrations()[-1][0]


class Tables(NamedTuple):
    """What is told of the tables that are there: their version, 0 for none, and of which database they are.

    `home`: as noted in them, None where nothing is; `present`: of the database that they are in, None where the role may
    not ask, or it is distributed.
    """

    version: int
    home: str | None = None
    present: str | None = None

    @property
    def is_copy(self) -> bool:
        """Whether they were made in another database, as far as that can be told."""
        return None not in (self.home, self.present) and self.home != self.present


def present_tables(connection: psycopg.Connection[Row]) -> Tables:
    """Return what is told of the tables that are there.

    Raises:
        Unavailable: the version is newer than this library.
        Corrupt: tables of this version are there, but not all of them.
    """
    with translating():
        is_there, tells_home = connection.execute(query("schema_exists")).fetchall()[0]
        found: list[Row] = []
        if is_there:
            found = connection.execute(query("schema_home" if tells_home else "schema_versions")).fetchall()
        # Afterwards: whoever brings them up meanwhile makes those that are new together with the version.
        lacking = _lacking(connection) if not found or found[-1][0] == newest() else []
        if not found:
            if len(lacking) == len(TABLES):
                return Tables(0)
            # Others may have made all of them in between.
            if not is_there and connection.execute(query("schema_exists")).fetchall()[0][0]:
                return present_tables(connection)
            raise _incomplete(["schema_version"])
    if lacking:
        raise _incomplete(lacking)
    version = found[-1][0]
    if version > newest():
        raise Unavailable(
            f"the database's tables have version {version}, this library reads up to {newest()}: upgrade perdure"
        )
    return Tables(version, found[0][1], found[0][2])


def _lacking(connection: psycopg.Connection[Row]) -> list[str]:
    rows = connection.execute(query("lacking_tables"), (list(TABLES),)).fetchall()
    return [name for (name,) in rows]


def _incomplete(lacking: Sequence[str]) -> Corrupt:
    names = ", ".join(f"perdure.{table}" for table in lacking)
    return Corrupt(
        f"the database has tables of a store, but lacks {names}, or what was in it: somebody dropped it, and perdure migrate "
        "cannot bring back what it held. Restore backups of the database and its keystore"
    )


def open_tables(connection: psycopg.Connection[Row]) -> list[str]:
    """Return the tables that row-level security does not hold as the migrations left it."""
    with translating():
        rows = connection.execute(query("open_tables"), (list(TABLES),)).fetchall()
    return [name for (name,) in rows]


def tell_open(tables: Sequence[str]) -> str:
    """Return what is said of such tables."""
    names = ", ".join(f"perdure.{table}" for table in tables)
    return (
        f"row-level security does not hold {names} as perdure migrate left it, so the database itself keeps no tenants apart "
        "there, or lets nobody see his own rows: put it back, as the role that owns the tables"
    )


def check_tables(connection: psycopg.Connection[Row]) -> bool:
    """Whether there are tables.

    Raises Unavailable where they are of another version than this library writes; of the kind "copy", where they are of
    another database. Raises Corrupt where one of them is missing.
    """
    tables = present_tables(connection)
    if tables.version == 0:
        return False
    if tables.version < newest():
        raise Unavailable(
            f"the database's tables have version {tables.version}, this library writes {newest()}: run perdure migrate"
        )
    if tables.is_copy:
        raise Unavailable(COPY, kind="copy")
    return True


def migrate(connection: psycopg.Connection[Row]) -> tuple[int, int]:
    """Bring the tables up to the newest version; return both versions.

    Each migration is a transaction of its own, but all are one where there are no tables yet.

    Several processes may do it at once. Roles that had what a store needs have it of new tables too. Where the extension
    citus is there, the tables are distributed by tenant. Where no home is noted, the present one is.

    However large the tables are it goes on; what others keep it waits for as long as the connection says.

    Args:
        connection: in autocommit mode, of a role that may create and owns the tables.

    Raises Busy where others kept what is to be changed for longer; what was brought up before stays so.
    """
    for attempt in range(1, ATTEMPTS + 1):
        before = present_tables(connection).version
        try:
            with owning(), _telling_kept(), translating():
                # The first time at once, so that nobody who opens a store meanwhile meets an older version.
                with nullcontext() if before else connection.transaction():
                    for version, text in migrations():
                        if version > before:
                            _apply(connection, version, text)
                    _settle(connection)
                if before:
                    _grant_again(connection)
                if _value(connection, "has_citus"):
                    distribute(connection)
        except Unavailable as error:
            raced = isinstance(
                error.__cause__, states.UniqueViolation | states.DuplicateTable | states.DuplicateObject
            )
            if not raced or attempt == ATTEMPTS:
                raise
        else:
            return before, newest()
    raise AssertionError("unreachable: the last attempt returns or raises")


def _grant_again(connection: psycopg.Connection[Row]) -> None:
    """Give roles that had what a store needs what new tables take; also where a migration ended before it did so."""
    for (role,) in connection.execute(query("granted_roles")).fetchall():
        if not _has_all(connection, role):
            grant(connection, role)


def _apply(connection: psycopg.Connection[Row], version: int, text: str) -> None:
    with connection.transaction(), _lasting(connection):
        connection.execute(text.encode(), prepare=False)
        connection.execute(query("add_version"), (version,))


def _settle(connection: psycopg.Connection[Row]) -> None:
    """Note the present home where none is, unless the role may not; whoever runs this again may be another one."""
    tables = present_tables(connection)
    if tables.home is None and tables.present is not None and _value(connection, "may_note_home"):
        connection.execute(query("note_home"), (tables.present,))


def adopt(connection: psycopg.Connection[Row]) -> None:
    """Note the present home whatever the tables say of another one, so that stores in them open.

    Raises Unavailable where the role does not own the tables, or may not ask for the home.
    """
    with owning(), translating():
        tables = present_tables(connection)
        if tables.present is None and not _value(connection, "has_citus"):
            raise Unavailable(
                "the role may not ask which database this is: GRANT EXECUTE ON FUNCTION pg_control_system() to it, as a superuser"
            )
        connection.execute(query("note_home"), (tables.present,))


def distribute(connection: psycopg.Connection[Row]) -> None:
    """Distribute the tables by tenant, rows of a tenant on one node, those that are not yet."""
    told = [f"perdure.{table}" for table in TABLES]
    lacking = [table for table in told if not _value(connection, "is_distributed", (table,))]
    if not lacking:
        return
    with connection.transaction(), _lasting(connection):
        if not _value(connection, "is_distributed", ("perdure.schema_version",)):
            connection.execute(query("share_versions"))
        for table in lacking:
            beside = "none" if table == told[0] else told[0]
            connection.execute(query("distribute"), (table, beside))


def grant(connection: psycopg.Connection[Row], role: str) -> bool:
    """Give a role what a store needs, and no more; it owns nothing. Return whether row-level security holds it.

    Raises Unavailable where there is no such role, or it has not what a store needs afterwards: a grant by who does not
    own the tables may give nothing and still be no error.
    """
    with translating():
        unfenced = _value(connection, "role_state", (role,))
    if unfenced is None:
        raise Unavailable(
            "the database has no role of that name, so none was given anything: make it first, with CREATE ROLE. The tables "
            "are there"
        )
    name = sql.Identifier(role)
    with owning(), translating(), connection.transaction():
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA perdure TO {}").format(name))
        connection.execute(sql.SQL("GRANT SELECT ON perdure.schema_version TO {}").format(name))
        for table in TABLES:
            told = sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}")
            connection.execute(told.format(sql.Identifier("perdure", table), name))
        if not _has_all(connection, role):
            raise Unavailable(f"the role was not given what a store needs: {OWNER}")
    return not unfenced


def _has_all(connection: psycopg.Connection[Row], role: str) -> bool:
    return bool(_value(connection, "may_use_schema", (role, role))) and all(
        _value(connection, "may_use_table", (role, f"perdure.{table}") * 4) for table in TABLES
    )


@contextmanager
def _lasting(connection: psycopg.Connection[Row]) -> Iterator[None]:
    """Let what the block says within a transaction take as long as it does; what others keep is waited for as before."""
    connection.execute(query("set_statement_wait"), ("0",))
    with connection.wire.patience() if isinstance(connection, Line) else nullcontext():
        yield


@contextmanager
def _telling_kept() -> Iterator[None]:
    """Say of what the block waited for in vain that others keep a table."""
    try:
        yield
    except Busy as error:
        if not isinstance(error.__cause__, states.LockNotAvailable):
            raise
        raise Busy(
            "others kept a table that is to be changed past the time-out (55P03), by a write, a dump or a query that lasts: "
            "let them end, and run perdure migrate again"
        ) from error.__cause__


@contextmanager
def owning() -> Iterator[None]:
    """Say of what the block is refused that it takes the owner of the tables."""
    try:
        yield
    except Unavailable as error:
        if not isinstance(error.__cause__, states.InsufficientPrivilege):
            raise
        raise Unavailable(f"the role that is connected may not do that (42501): {OWNER}") from error.__cause__


def _value(connection: psycopg.Connection[Row], name: str, params: tuple[object, ...] = ()) -> object:
    row = connection.execute(query(name), params).fetchone()
    return None if row is None else row[0]
