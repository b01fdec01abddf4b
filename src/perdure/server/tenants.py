"""The stores behind a server: one, or one for each tenant; opened when asked for, a bounded number at once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from perdure.base.haste import refuse_to_wait
from perdure.errors import InvalidRequest, PerdureError, TenantLimit, Unavailable, WrongKey
from perdure.opening import EPHEMERAL
from perdure.planning.checks import checked_count
from perdure.server.keys import checked_tenant
from perdure.server.places import Places
from perdure.server.settings import OPEN_MAX, OPEN_TENANTS_DEFAULT
from perdure.store import Store

CLOSING_S = 30.0  # as long as a write waits for its turn

log = logging.getLogger("perdure.server")

OpenStore = Callable[[str], Store]
"""Opens (or creates) the store of a place, as `Places.place_of` names it, with the keys that the server was given."""


class _Entry:
    """A tenant's store while it is being opened, is open, or is being closed."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.error: BaseException | None = None
        self.users = 0
        self.closing = False
        self.is_gone = False  # what it was opened from is not there any more


class Tenants:
    """The stores of all tenants of a place. Thread-safe; close it at the end.

    A store is opened once for all who ask at a time, and stays open; where as many are open as may be, the one
    that nobody has used for longest makes room.
    """

    def __init__(
        self,
        places: Places,
        open_store: OpenStore,
        *,
        on_closed: Callable[[Store], None] = lambda _: None,
        open_max: int = OPEN_TENANTS_DEFAULT,
        closing_s: float = CLOSING_S,
    ) -> None:
        """Take the stores of a place; nothing is opened yet.

        Args:
            places: where they are.
            open_store: opens what is asked for.
            on_closed: told each store that was opened, once it is closed.
            open_max: how many stores may be open at once.
            closing_s: how long `close` waits for those who are in a store.

        Raises:
            InvalidRequest: open_max is no such number.
        """
        checked_count(open_max, "open_max", 1, OPEN_MAX)
        self._places = places
        self._open_store, self._open_max, self._closing_s = open_store, open_max, closing_s
        self._on_closed = on_closed
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the least recently used first
        self._failed: OrderedDict[str, None] = (
            OrderedDict()
        )  # whose stores could not be opened; the last ones
        self._changed = threading.Condition()
        self._empty: Store | None = None
        self._closed = False

    def reading(self, tenant: str) -> AbstractContextManager[Store]:
        """Give the tenant's store for something that writes nothing; for an absent one, a store that is empty.

        Raises:
            InvalidTenant: the name is malformed, or there is only one store, of another tenant.
            TenantLimit: as many stores as may be open are in use.
            Unavailable: all was closed, or the server's settings do not fit the store; the log says how.
            What else opening the store raises.
        """
        return self._in(tenant, writes=False)

    def writing(self, tenant: str) -> AbstractContextManager[Store]:
        """Give the tenant's store, made where there is none.

        Raises as `reading`.
        """
        return self._in(tenant, writes=True)

    @property
    def open_count(self) -> int:
        """How many stores are open, or being opened or closed."""
        with self._changed:
            return len(self._entries)

    def failing(self) -> int:
        """Return how many tenants' stores are not well: open ones that cannot be read or written, as a look at each
        finds, and those that could not be opened when somebody asked last, unless they are gone by now."""
        with self._changed:
            names, failed = list(self._entries), list(self._failed)
        return len({name for name in names if self._is_failing(name)} | set(filter(self._is_lost, failed)))

    def _is_lost(self, tenant: str) -> bool:
        """Whether a store that could not be opened is there still."""
        try:
            return self._places.is_there(self._place_of(tenant))
        except PerdureError:  # which is no better
            return True

    def _is_failing(self, tenant: str) -> bool:
        with self._changed:
            entry = self._entries.get(tenant)
            if entry is None or entry.store is None or entry.closing:
                return False
            entry.users += 1
        try:
            # One that others write to is well: nobody waits for his turn here.
            if entry.store.health(timeout_s=0).status in ("ok", "busy"):
                return False
            entry.is_gone |= _is_gone(entry.store)
            return not entry.is_gone  # else it was deleted, and is let go of
        finally:
            self._leave(tenant, entry)

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
            entry = self._find_open(tenant)
        if not known:
            refuse_to_wait()
            place = self._place_of(tenant)  # refused before it takes anybody's room
            if not writes and not self._places.is_there(place):
                yield self._nothing()
                return
        if entry is None:
            entry = self._enter(tenant)
        try:
            assert entry.store is not None
            yield entry.store
        except Unavailable as error:
            if error.details.get("kind") != "gone":
                raise
            entry.is_gone = True
            # Whoever asks over the wire has no store to open.
            raise Unavailable(
                "the tenant was deleted from the database after its store was opened here: send the request again, and it is "
                "answered by what is there now",
                kind="gone",
            ) from error
        except WrongKey as error:
            if self._places.lookout is None:
                raise
            raise _locked(error) from error
        finally:
            self._leave(tenant, entry)

    def _leave(self, tenant: str, entry: _Entry) -> None:
        with self._changed:
            entry.users -= 1
            is_last = entry.is_gone and not entry.users and not entry.closing
            entry.closing |= is_last
            self._changed.notify_all()
        if is_last:  # whoever asks next finds what has taken its place, or nothing
            self._evict(tenant, entry)

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

    def _find_open(self, tenant: str) -> _Entry | None:
        """Return an entry that this caller is in; None where it must be opened, or waited for."""
        entry = self._entries.get(tenant)
        if entry is None or entry.store is None or entry.closing or self._closed:
            return None
        entry.users += 1
        self._entries.move_to_end(tenant)
        return entry

    def _step(self, tenant: str) -> tuple[_Entry | None, tuple[str, _Entry] | None]:
        """Return an entry that this caller is in, open or his to open; or one that is his to close; or neither."""
        self._check_open()
        found = self._find_open(tenant)
        if found is not None:
            return found, None
        refuse_to_wait()
        entry = self._entries.get(tenant)
        if entry is None and len(self._entries) < self._open_max:
            entry = self._entries[tenant] = _Entry()
            entry.users = 1
            return entry, None
        if entry is None:
            return None, self._make_room()
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
            raise TenantLimit(
                f"{self._open_max} tenants are in use, as many as may be at once; try again, or raise --open-tenants of the server"
            )
        self._changed.wait_for(lambda: closing[0] not in self._entries.values())
        return None

    def _open(self, tenant: str, entry: _Entry) -> None:
        try:
            store = self._opened(tenant)
        except BaseException as error:  # raised again, here and for those who wait for it
            with self._changed:
                entry.error = error
                if not _is_buried(error):  # which is nobody's fault
                    self._failed[tenant] = None
                if len(self._failed) > OPEN_MAX:
                    self._failed.popitem(last=False)
                self._drop(tenant, entry)
            raise
        with self._changed:
            self._failed.pop(tenant, None)
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
        except WrongKey as error:
            if self._places.lookout is None:  # told at the start as well, to whoever starts it
                raise
            raise _locked(error) from error

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
        try:
            return self._places.place_of(tenant)
        except InvalidRequest as error:
            raise _unusable(error) from error

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


def _is_buried(error: BaseException) -> bool:
    """Whether a store could not be opened because its tenant is being deleted."""
    return isinstance(error, Unavailable) and error.details.get("kind") == "buried"


def _is_gone(store: Store) -> bool:
    """Whether what the store was opened from is not there any more."""
    try:
        store.spaces()
    except PerdureError as error:
        return error.details.get("kind") == "gone"
    return False


def _locked(error: WrongKey) -> WrongKey:
    """Return what a request is told where the keys of a tenant are not those of the server, whose directory is not told."""
    log.error("a tenant's store cannot be used: %s", error.message)
    return WrongKey("the server has not the keys of this tenant now; its log says why")


def _unusable(error: InvalidRequest) -> Unavailable:
    """Return what a request is told where the server's own settings do not fit what lies on the disk."""
    log.error("a tenant's store cannot be used: %s", error.message)
    return Unavailable("the server cannot use its store now; its log says why")
