"""Where a server's stores are: one in memory, one in a directory or many below it, or the tenants of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from perdure.base.disk import check_writable
from perdure.databases import Lookout
from perdure.errors import InvalidRequest, InvalidTenant, PerdureError, Unavailable
from perdure.opening import EPHEMERAL, UNENCRYPTED, checked_replica, is_address, refuse_file
from perdure.server.keyring_file import system_errors
from perdure.server.keys import DEFAULT_TENANT, KEYS_FILE
from perdure.server.roots import MARK_FILE, TENANTS, find_directory, has_store, is_root
from perdure.server.settings import Settings

Options = dict[str, Any]
MARK = "keystore.mark"  # of a FileKeystore; its module takes the database's driver
DOUBT = (
    "the keystore's directory holds no keys at all, and the database holds tenants: check that its disk is mounted, and that "
    "it is the one that they were made with"
)


class Places(Protocol):
    """The stores of a server, by their tenants. Thread-safe."""

    @property
    def keys(self) -> Path | None:
        """The directory of the keys, their lock and the token; None where there are no keys."""
        ...

    @property
    def lookout(self) -> Lookout | None:
        """What looks at the database that the stores are in; None where they are in none."""
        ...

    def has_tenants(self) -> bool:
        """Whether there may be several tenants. Raises InvalidRequest, Unavailable where that cannot be told."""
        ...

    def place_of(self, tenant: str) -> str:
        """Return what opens the tenant's store, or would make it; `tenant` is a checked name.

        Raises:
            InvalidTenant: there is one store only, of another tenant.
            InvalidRequest, Unavailable.
        """
        ...

    def is_there(self, place: str) -> bool:
        """Whether there is a store, or something else that opening it must judge; makes none.

        Raises Busy, Unavailable where that cannot be told.
        """
        ...

    def options(self, place: str) -> tuple[str, Options]:
        """Return the path that `Store.open` takes for a place, and what goes with it."""
        ...

    def check(self) -> None:
        """Raise what keeps all stores from being written to: StorageFull, Busy, Unavailable."""
        ...

    def doubt(self) -> str | None:
        """Return why the directory of the keys may not be the one that is meant, None where nothing speaks against it."""
        ...

    def close(self) -> None:
        """Release what looking took. Idempotent."""
        ...


def places_of(settings: Settings) -> Places:
    """Return the places that the settings mean. Raises InvalidRequest."""
    if is_address(settings.store):
        return Database(settings)
    if settings.opening.keystore is not None:
        raise InvalidRequest(
            "keystore goes with the address of a database, postgresql://…: leave it out", field="keystore"
        )
    if settings.opening.replica is not None:
        raise InvalidRequest(
            "replica goes with the address of a database, postgresql://…: leave it out", field="replica"
        )
    return Ephemeral() if str(settings.store) == EPHEMERAL else Directory(settings)


class Ephemeral:
    """One store in memory, of the default tenant."""

    keys = None
    lookout = None

    def has_tenants(self) -> bool:
        return False

    def place_of(self, tenant: str) -> str:
        if tenant != DEFAULT_TENANT:
            raise _one_only()
        return EPHEMERAL

    def is_there(self, place: str) -> bool:
        del place
        return True

    def options(self, place: str) -> tuple[str, Options]:
        return place, {}

    def check(self) -> None:
        pass

    def doubt(self) -> str | None:
        return None

    def close(self) -> None:
        pass


class Directory:
    """One store in a directory, of the default tenant, or many below it; one that is empty becomes either."""

    lookout = None

    def __init__(self, settings: Settings) -> None:
        """Raises InvalidRequest where it is a file, or a root and a store at once."""
        self.keys = self._directory = Path(settings.store)
        refuse_file(self._directory)
        told = settings.opening
        self._options = {"key": told.key, "secret": told.secret, "backend": told.backend}
        self._has_been_root = self.has_tenants()
        self._has_been_there = self._directory.exists()

    def has_tenants(self) -> bool:
        return is_root(self._directory)

    def place_of(self, tenant: str) -> str:
        found = find_directory(self._directory, tenant)
        if found is None:
            raise _one_only()
        return str(found)

    def is_there(self, place: str) -> bool:
        return has_store(Path(place))

    def options(self, place: str) -> tuple[str, Options]:
        return place, self._options

    def check(self) -> None:
        has_tenants = self.has_tenants()
        if self._has_been_root and not has_tenants:
            raise Unavailable(f"the root of tenants, or its {MARK_FILE}, is gone")
        self._has_been_root = has_tenants
        self._has_been_there |= self._directory.exists()
        if self._has_been_there:  # before that, the first write makes it
            with system_errors(MARK_FILE if has_tenants else "store"):
                check_writable(self._directory, [self._directory / TENANTS] if has_tenants else [])

    def doubt(self) -> str | None:
        return None

    def close(self) -> None:
        pass


class Database:
    """The tenants of a database, which any number of servers share; a tenant's place is its name."""

    def __init__(self, settings: Settings) -> None:
        """Raises InvalidRequest for settings that are of files alone, and without a keystore."""
        told = settings.opening
        for name in ("key", "backend"):
            if getattr(told, name) is not None:
                raise InvalidRequest(
                    f"{name} is for stores in files: leave it out, and give the keystore", field=name
                )
        if told.keystore is None:
            raise InvalidRequest(
                "keystore is missing: give the directory, outside the database and its backups, of the keys that its "
                "tenants are encrypted with; all servers share it",
                field="keystore",
            )
        self.keys = None if told.keystore == UNENCRYPTED else Path(told.keystore)
        if self.keys is not None:
            refuse_no_directory(self.keys)
        self._was_marked = False  # the keystore, as far as this process has seen
        self._address = str(settings.store)
        replica = checked_replica(told.replica)
        self._options = {"secret": told.secret, "keystore": told.keystore, "replica": replica}
        self.lookout = Lookout(self._address)

    def has_tenants(self) -> bool:
        return True

    def place_of(self, tenant: str) -> str:
        return tenant

    def is_there(self, place: str) -> bool:
        return self.lookout.has_tenant(place)

    def options(self, place: str) -> tuple[str, Options]:
        return self._address, {**self._options, "tenant": place}

    def check(self) -> None:
        self._check_keystore()
        self.lookout.check()

    def doubt(self) -> str | None:
        return None if self.keys is None else doubt_of(self.keys, self.lookout)

    def close(self) -> None:
        self.lookout.close()

    def _check_keystore(self) -> None:
        if self.keys is None:
            return
        with system_errors(MARK):
            is_marked = (self.keys / MARK).is_file()
        if self._was_marked and not is_marked:
            raise Unavailable(
                f"the keystore's directory is gone, or has no {MARK} in it: check that its disk is mounted"
            )
        self._was_marked |= is_marked


def doubt_of(keystore: Path, lookout: Lookout) -> str | None:
    """Return what is to be told of a directory that holds nothing of a keystore though the database holds tenants.

    None where it holds something, where the database holds nobody, and where it cannot be asked.
    """
    try:
        with system_errors(MARK):
            if any((keystore / name).exists() for name in (MARK, KEYS_FILE)) or any(keystore.glob("*.keys")):
                return None
        return DOUBT if lookout.holds_tenants() else None
    except PerdureError:  # whoever uses it is told of that
        return None


def refuse_no_directory(keystore: Path) -> None:
    """Raise InvalidRequest, of the field keystore, where it leads to something else than a directory."""
    if keystore.exists() and not keystore.is_dir():
        raise InvalidRequest("keystore is no directory: give the one that holds the keys", field="keystore")


def _one_only() -> InvalidTenant:
    return InvalidTenant(
        f"this server keeps one store, of the tenant {DEFAULT_TENANT!r}: leave the tenant out", field="tenant"
    )
