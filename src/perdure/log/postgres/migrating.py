"""Brings a database's tables up to the version that this library reads, and distributes them where that is to be had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import psycopg
from psycopg import errors as states
from psycopg import sql

from perdure.errors import Unavailable
from perdure.log.postgres.failures import translating
from perdure.log.postgres.queries import migrations, query
from perdure.log.postgres.wire import Row

TABLES = ("tenant", "naming", "space", "record", "lookup", "cache", "cache_part", "key_note", "copy_note")
OWNER = "run perdure migrate as the role that owns the tables or, where there are none, as one that may create there"
ATTEMPTS = 3  # of processes that make the tables at once, one is the first


def newest() -> int:
    """Return the version of the tables that this library makes, and the newest that it reads."""
    return migrations()[-1][0]


def present_version(connection: psycopg.Connection[Row]) -> int:
    """Return the version of the tables that are there, 0 for none.

    Raises Unavailable for one that is newer than this library.
    """
    with translating():
        if not _value(connection, "schema_exists"):
            return 0
        found = [row[0] for row in connection.execute(query("schema_versions")).fetchall()]
    version = found[-1] if found else 0
    if version > newest():
        raise Unavailable(
            f"the database's tables have version {version}, this library reads up to {newest()}: upgrade perdure"
        )
    return version


def check_migrated(version: int) -> None:
    """Raise Unavailable where the tables are of an older version than this library writes."""
    if version < newest():
        raise Unavailable(
            f"the database's tables have version {version}, this library writes {newest()}: run perdure migrate"
        )


def migrate(connection: psycopg.Connection[Row]) -> tuple[int, int]:
    """Bring the tables up to the newest version; return both versions.

    Each migration is a transaction of its own, but all are one where there are no tables yet.

    Several processes may do it at once. Roles that had what a store needs have it of new tables too. Where the extension citus is there, the tables are distributed by tenant.

    Args:
        connection: in autocommit mode, of a role that may create and owns the tables.
    """
    for attempt in range(1, ATTEMPTS + 1):
        before = present_version(connection)
        try:
            with owning(), translating():
                # The first time at once, so that nobody who opens a store meanwhile meets an older version.
                with nullcontext() if before else connection.transaction():
                    for version, text in migrations():
                        if version > before:
                            _apply(connection, version, text)
                if 0 < before < newest():
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
    for (role,) in connection.execute(query("granted_roles")).fetchall():
        grant(connection, role)


def _apply(connection: psycopg.Connection[Row], version: int, text: str) -> None:
    with connection.transaction():
        connection.execute(text.encode(), prepare=False)
        connection.execute(query("add_version"), (version,))


def distribute(connection: psycopg.Connection[Row]) -> None:
    """Distribute the tables by tenant, rows of a tenant on one node, those that are not yet."""
    told = [f"perdure.{table}" for table in TABLES]
    lacking = [table for table in told if not _value(connection, "is_distributed", (table,))]
    if not lacking:
        return
    with connection.transaction():
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
