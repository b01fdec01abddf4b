"""The stores behind a server: one, or one for each tenant; opened when asked for, a bounded number at once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from perdure.errors import InvalidRequest, InvalidTenant, PerdureError, TenantLimit, Unavailable
from perdure.log.disk import make_directory
from perdure.log.places import traces
from perdure.opening import EPHEMERAL, ROOT_MARK
from perdure.planning.checks import checked_count
from perdure.server.keyring_file import locked, replace, system_errors
from perdure.server.keys import DEFAULT_TENANT, KEYS_FILE, LOCK_FILE, checked_tenant
from perdure.store import Store

MARK_FILE = ROOT_MARK
TENANTS = "tenants"
VERSION = 1
OPEN_DEFAULT = 64
OPEN_MAX = 65_536
CLOSING_S = 30.0  # as long as a write waits for its turn

log = logging.getLogger("perdure.server")

OpenStore = Callable[[str], Store]
"""Opens (or creates) the store of a place with the keys and secrets that the server was given."""


def is_root(directory: Path) -> bool:
    """Whether the directory is marked as a root of tenants.

    Raises:
        InvalidRequest: by a newer version, or there is a store as well.
        Unavailable: it cannot be looked at.
    """
    with system_errors(MARK_FILE):
        try:
            content = (directory / MARK_FILE).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return False
    try:
        version = msgspec.json.decode(content, type=_Mark).version
    except msgspec.DecodeError:
        version = 0
    if version != VERSION:
        raise InvalidRequest(
            f"{MARK_FILE} is not of version {VERSION}, the one that this Perdure knows", field="store"
        )
    if has_store(directory):
        raise InvalidRequest(
            f"store is a root of tenants, but a store lies in it too: move that away, or remove {MARK_FILE}",
            field="store",
        )
    return True


def make_root(directory: Path) -> None:
    """Mark a new or empty directory as a root of tenants; one that is marked stays so.

    Raises:
        InvalidRequest: there is a store, or there are keys of one.
        StorageFull, Unavailable, Busy.
    """
    with system_errors(MARK_FILE):
        make_directory(directory)
        with locked(directory / LOCK_FILE):
            if is_root(directory):
                return
            if has_store(directory) or (directory / KEYS_FILE).exists():
                raise InvalidRequest(
                    f"there is one store, of the tenant {DEFAULT_TENANT!r}: give another directory for several",
                    field="tenant",
                )
            replace(directory / MARK_FILE, msgspec.json.encode(_Mark(VERSION)) + b"\n")


def admit(directory: Path, tenant: str) -> None:
    """Make the place of a tenant: another one than the default makes a new directory a root of tenants.

    Raises as `checked_tenant` and `make_root`.
    """
    checked_tenant(tenant)
    if tenant != DEFAULT_TENANT:
        make_root(directory)
    with system_errors(TENANTS):
        make_directory(directory)
        if is_root(directory):
            make_directory(directory / TENANTS)
            make_directory(_tenant_directory(directory, tenant))


def find_directory(directory: Path, tenant: str) -> Path | None:
    """Return where the tenant's store is or would be; None where one store is all there is, of another tenant."""
    if is_root(directory):
        return _tenant_directory(directory, tenant)
    return directory if tenant == DEFAULT_TENANT else None


def has_store(directory: Path) -> bool:
    """Whether a store lies there, or something else that opening it must judge."""
    try:
        return bool(traces(directory))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):  # a file, or a directory that may not be read
        return True


class _Mark(msgspec.Struct, frozen=True):
    version: int


class _Entry:
    """A tenant's store while it is being opened, is open, or is being closed."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.error: BaseException | None = None
        self.users = 0
        self.closing = False


class Tenants:
    """The stores of all tenants of a place. Thread-safe; close it at the end.

    A store is opened once for all who ask at a time, and stays open; where as many are open as may be, the one
    that nobody has used for longest makes room.
    """

    def __init__(
        self,
        place: str,
        open_store: OpenStore,
        *,
        on_closed: Callable[[Store], None] = lambda _: None,
        open_max: int = OPEN_DEFAULT,
        closing_s: float = CLOSING_S,
    ) -> None:
        """Take the stores of a place; nothing is opened yet.

        Args:
            place: a directory, of one store or a root of tenants, or one that is absent or empty; ":memory:" is
                one ephemeral store.
            open_store: opens what is asked for.
            on_closed: told each store that was opened, once it is closed.
            open_max: how many stores may be open at once.
            closing_s: how long `close` waits for those who are in a store.

        Raises:
            InvalidRequest: the place is a root and a store at once, or open_max is no such number.
        """
        checked_count(open_max, "open_max", 1, OPEN_MAX)
        self._directory = None if place == EPHEMERAL else Path(place)
        self._open_store, self._open_max, self._closing_s = open_store, open_max, closing_s
        self._on_closed = on_closed
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the least recently used first
        self._changed = threading.Condition()
        self._empty: Store | None = None
        self._closed = False
        if self._directory is not None:
            is_root(self._directory)

    @contextmanager
    def reading(self, tenant: str) -> Iterator[Store]:
        """Give the tenant's store for something that writes nothing; for an absent one, a store that is empty.

        Raises:
            InvalidTenant: the name is malformed, or there is only one store, of another tenant.
            TenantLimit: as many stores as may be open are in use.
            Unavailable: all was closed, or the server's settings do not fit the store; the log says how.
            What else opening the store raises.
        """
        with self._in(tenant, writes=False) as store:
            yield store

    @contextmanager
    def writing(self, tenant: str) -> Iterator[Store]:
        """Give the tenant's store, made where there is none.

        Raises as `reading`.
        """
        with self._in(tenant, writes=True) as store:
            yield store

    @property
    def open_count(self) -> int:
        """How many stores are open, or being opened or closed."""
        with self._changed:
            return len(self._entries)

    def close(self) -> None:
        """Let nobody in any more, wait for those within, and close every store. Idempotent.

        Raises the first error of a store's closing, after all were closed.
        """
        with self._changed:
            self._closed = True
            self._changed.wait_for(self._is_quiet, self._closing_s)
            stores = [entry.store for entry in self._entries.values() if entry.store is not None]
            self._entries.clear()
            stores += [self._empty] if self._empty is not None else []
            self._empty = None
        errors = [error for store in stores if (error := self._close(store)) is not None]
        if errors:
            raise errors[0]

    @contextmanager
    def _in(self, tenant: str, *, writes: bool) -> Iterator[Store]:
        checked_tenant(tenant)
        with self._changed:
            known = tenant in self._entries
        if not known:
            place = self._place_of(tenant)  # refused before it takes anybody's room
            if not writes and not self._is_there(place):
                yield self._nothing()
                return
        entry = self._enter(tenant)
        try:
            assert entry.store is not None
            yield entry.store
        finally:
            with self._changed:
                entry.users -= 1
                self._changed.notify_all()

    def _is_there(self, place: str) -> bool:
        return place == EPHEMERAL or has_store(Path(place))

    def _find(self, directory: Path, tenant: str) -> Path | None:
        try:
            return find_directory(directory, tenant)
        except InvalidRequest as error:
            raise _unusable(error) from error

    def _nothing(self) -> Store:
        """Return the store that stands for all that are absent. Only reads get it, so it stays empty."""
        with self._changed:
            self._check_open()
            if self._empty is None:
                self._empty = Store.open(EPHEMERAL)
            return self._empty

    def _enter(self, tenant: str) -> _Entry:
        while True:
            with self._changed:
                entry, victim = self._step(tenant)
            if victim is not None:
                self._evict(*victim)
            elif entry is not None and entry.store is None:
                self._open(tenant, entry)
                return entry
            elif entry is not None:
                return entry

    def _step(self, tenant: str) -> tuple[_Entry | None, tuple[str, _Entry] | None]:
        """Return an entry that this caller is in, open or his to open; or one that is his to close; or neither."""
        self._check_open()
        entry = self._entries.get(tenant)
        if entry is None and len(self._entries) < self._open_max:
            entry = self._entries[tenant] = _Entry()
            entry.users = 1
            return entry, None
        if entry is None:
            return None, self._make_room()
        if entry.store is not None and not entry.closing:
            entry.users += 1
            self._entries.move_to_end(tenant)
            return entry, None
        self._changed.wait_for(lambda: self._is_settled(tenant, entry))
        if entry.error is not None:
            raise entry.error
        return None, None

    def _is_settled(self, tenant: str, entry: _Entry) -> bool:
        return self._entries.get(tenant) is not entry or (entry.store is not None and not entry.closing)

    def _make_room(self) -> tuple[str, _Entry] | None:
        """Return the idle store that is to be closed; None after one that was being closed is."""
        for name, entry in self._entries.items():
            if entry.users == 0 and not entry.closing:
                entry.closing = True
                return name, entry
        closing = [entry for entry in self._entries.values() if entry.closing]
        if not closing:
            raise TenantLimit(f"{self._open_max} tenants are in use, as many as may be at once; try again")
        self._changed.wait_for(lambda: closing[0] not in self._entries.values())
        return None

    def _open(self, tenant: str, entry: _Entry) -> None:
        try:
            store = self._opened(tenant)
        except BaseException as error:  # raised again, here and for those who wait for it
            with self._changed:
                entry.error = error
                self._drop(tenant, entry)
            raise
        with self._changed:
            entry.store = store
            self._changed.notify_all()
            late = self._entries.get(tenant) is not entry
        if late:  # everything was closed meanwhile
            self._close(store)

    def _opened(self, tenant: str) -> Store:
        place = self._place_of(tenant)
        try:
            return self._open_store(place)
        except InvalidRequest as error:
            raise _unusable(error) from error

    def _evict(self, tenant: str, entry: _Entry) -> None:
        assert entry.store is not None
        try:
            error = self._close(entry.store)
        finally:
            with self._changed:
                self._drop(tenant, entry)
        if error is not None:  # not this caller's store
            log.warning("a tenant's store was not closed as it should be: %s", error.code)

    def _drop(self, tenant: str, entry: _Entry) -> None:
        if self._entries.get(tenant) is entry:
            del self._entries[tenant]
        self._changed.notify_all()

    def _place_of(self, tenant: str) -> str:
        found = None
        if self._directory is not None:
            found = self._find(self._directory, tenant)
        elif tenant == DEFAULT_TENANT:
            return EPHEMERAL
        if found is None:
            raise InvalidTenant(
                f"this server keeps one store, of the tenant {DEFAULT_TENANT!r}: leave the tenant out",
                field="tenant",
            )
        return str(found)

    def _close(self, store: Store) -> PerdureError | None:
        try:
            store.close()
        except PerdureError as error:
            return error
        finally:
            self._on_closed(store)
        return None

    def _is_quiet(self) -> bool:
        return not any(entry.users or entry.closing for entry in self._entries.values())

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the server is ending; ask another, or try again later")


def _tenant_directory(directory: Path, tenant: str) -> Path:
    # In hex, so that names that differ in case alone are two on every filesystem.
    return directory / TENANTS / checked_tenant(tenant).encode("ascii").hex()


def _unusable(error: InvalidRequest) -> Unavailable:
    """Return what a request is told where the server's own settings do not fit what lies on the disk."""
    log.error("a tenant's store cannot be used: %s", error.message)
    return Unavailable("the server cannot use its store now; its log says why")
