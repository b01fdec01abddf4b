"""What concerns a database rather than one store in it: its tables, who is there, how it is, and deleting a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from perdure.audit.audited_log import DIRECTORY
from perdure.errors import InvalidRequest, NotFound, PerdureError, Unavailable
from perdure.model.stores import DeletedTenant
from perdure.opening import KeystoreForm, is_address, keystore_of

if TYPE_CHECKING:
    from perdure.log.postgres.connections import Database
    from perdure.log.postgres.looking import Looking
    from perdure.log.postgres.presence import Presence

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Migrated:
    """Of which version the tables were, 0 for none, and are; and the role that was given what a store needs.

    `is_fenced`: whether row-level security holds that role, so that the database itself keeps tenants apart.
    `is_copy`: whether the tables say that they are of another database, so that nothing in them opens. `doubt`: which tables
    row-level security does not hold as it was made, as a sentence; empty where it holds all.
    """

    before: int
    version: int
    granted: str | None = None
    is_fenced: bool = True
    is_copy: bool = False
    doubt: str = ""


class Lookout:
    """Looks at one database, for whoever does so often. Thread-safe; close it at the end.

    It connects when it is first asked, and shares its connections with the stores of the same address and time-out.
    """

    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        """Take an address; nothing is connected yet. Raises InvalidRequest where it is none, or names none."""
        if not is_address(address):
            raise InvalidRequest("path is no address of a database: give postgresql://…", field="path")
        self._address, self._timeout_s = address, timeout_s
        self._database: Database | None = None

    def has_tenant(self, tenant: str) -> bool:
        """Whether a tenant is there, or is being deleted; makes neither it nor any table.

        Raises:
            InvalidRequest: the name is none.
            Busy, Unavailable: the database could not be asked.
        """
        from perdure.log.postgres.presence import has_tenant  # noqa: PLC0415 - only where there is a driver

        return has_tenant(self._opened(), tenant)

    def survey(self, tenant: str) -> Presence | None:
        """Return how much is there of a tenant, None where there is nothing. Raises as `has_tenant`."""
        from perdure.log.postgres.presence import survey_tenant  # noqa: PLC0415 - likewise

        return survey_tenant(self._opened(), tenant)

    def holds_tenants(self) -> bool:
        """Whether there is any tenant, or was one lately. Raises Busy, Unavailable."""
        from perdure.log.postgres.presence import holds_tenants  # noqa: PLC0415 - likewise

        return holds_tenants(self._opened())

    def answers(self) -> bool:
        """Whether the database answers at all, within a few seconds; asked before each of its stores is, which would wait."""
        from perdure.log.postgres.presence import answers  # noqa: PLC0415 - only where there is a driver

        try:
            return answers(self._opened())
        except PerdureError:
            return False

    def check(self) -> None:
        """Raise Busy or Unavailable where stores in the database cannot be read and written, or made."""
        from perdure.log.postgres.presence import check_usable  # noqa: PLC0415 - likewise

        check_usable(self._opened())

    def looking(self) -> Looking:
        """Return what asks, on no thread that waits, where spaces of stores in the database stand; it is closed apart.

        Raises Busy, Unavailable.
        """
        with _driver():
            from perdure.log.postgres.connections import acquire  # noqa: PLC0415 - only where there is a driver
            from perdure.log.postgres.looking import Looking  # noqa: PLC0415 - likewise

        return Looking(acquire(self._address, self._timeout_s))

    def close(self) -> None:
        """Give the connections back. Idempotent."""
        database, self._database = self._database, None
        if database is not None:
            from perdure.log.postgres.connections import release  # noqa: PLC0415 - likewise

            release(database)

    def __enter__(self) -> Lookout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self) -> Database:
        # Two threads that come first at once would each take the pool, and one of them never give it back.
        database = self._database
        if database is None:
            with _driver():
                from perdure.log.postgres.connections import acquire, release  # noqa: PLC0415 - likewise

            database = acquire(self._address, self._timeout_s)
            if self._database is None:
                self._database = database
            else:
                release(database)
        return database


def migrate(address: str, *, role: str | None = None, adopt: bool = False) -> Migrated:
    """Make the tables, or bring them up to the version of this library; any number of processes may do so at once.

    Args:
        address: for a role that may create, and owns the tables that are there.
        role: another one, which is given what a store needs and no more; it must exist.
        adopt: have stores open though the database is a copy, or was moved. Only where no other database is used with the
            same keystore: whatever is erased in the one destroys keys of the other.

    Raises:
        InvalidRequest: the address is none.
        Corrupt: there are tables, but one is missing; nothing was made in its place.
        Busy, Unavailable: the database refused, cannot be reached, has tables of a newer version, or there is no such role.
    """
    Lookout(address)
    with _driver():
        from perdure.log.postgres.connections import acquire, release  # noqa: PLC0415 - likewise
        from perdure.log.postgres.failures import translating  # noqa: PLC0415 - likewise
        from perdure.log.postgres.migrating import adopt as settle  # noqa: PLC0415 - likewise
        from perdure.log.postgres.migrating import (  # noqa: PLC0415 - likewise
            grant,
            migrate,
            open_tables,
            present_tables,
            tell_open,
        )
    database = acquire(address, TIMEOUT_S)
    try:
        with translating(), database.plain() as connection:
            before, version = migrate(connection)
            if adopt:
                settle(connection)
            is_fenced = role is None or grant(connection, role)
            is_copy = present_tables(connection).is_copy
            unheld = open_tables(connection)
    finally:
        release(database)
    return Migrated(before, version, role, is_fenced, is_copy, tell_open(unheld) if unheld else "")


def delete_tenant(address: str, tenant: str, *, keystore: KeystoreForm | None) -> DeletedTenant:
    """Delete a tenant: all its rows, the audit's too, in one transaction, then its keys. Cannot be undone.

    Works also where the tenant cannot be opened, and goes on where an earlier deletion was interrupted. Whoever has the
    tenant open gets Unavailable from then on.

    Args:
        keystore: the one that the tenant was made with; "off" for one that is not encrypted.

    Raises:
        NotFound: there is no such tenant.
        InvalidRequest, WrongKey, Busy: nothing was deleted.
        Unavailable: nothing was, or the database broke off as it was to confirm: the message says what is known, and the same
            call goes on.
    """
    Lookout(address)
    if keystore is None:
        raise InvalidRequest(
            "keystore is missing: give the one that the tenant was made with, so that its keys are destroyed too",
            field="keystore",
        )
    with _driver():
        from perdure.log.postgres.connections import acquire, release  # noqa: PLC0415 - likewise
        from perdure.log.postgres.dropping import drop  # noqa: PLC0415 - likewise
        from perdure.log.postgres.failures import translating  # noqa: PLC0415 - likewise
        from perdure.log.postgres.migrating import check_tables  # noqa: PLC0415 - likewise
    keys = keystore_of(keystore)
    database = acquire(address, TIMEOUT_S)
    try:
        with translating():
            with database.plain() as connection:
                check_tables(connection)
            dropped = drop(database, keys, tenant, [DIRECTORY])
    finally:
        release(database)
    if not dropped.existed:
        raise NotFound("there is no tenant of that name, so nothing was deleted", field="tenant")
    return DeletedTenant(tenant, dropped.spaces, dropped.records, dropped.pending)


def why_pending(keystore: KeystoreForm | None) -> str:
    """Return why the last step of an erasure waits just now in a store with this keystore, and what is to be done."""
    with _driver():
        from perdure.log.postgres.scrubbing import reach_with  # noqa: PLC0415 - only where there is a driver

    return reach_with(None if keystore is None else keystore_of(keystore)).waits


@contextmanager
def _driver() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise Unavailable(
            "a store in PostgreSQL needs more packages: pip install 'perdure[postgres]'"
        ) from error
