"""Where a tenant's secret and data keys are kept: never in the database, nor in its backups.

Whatever reached the database's files, its write-ahead log, its replicas and its backups is of no use to anybody once the
keys that opened it are destroyed here. So a keystore must not be copied along with the database.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import UUID

from perdure.base.disk import FULL, erase, make_directory, open_private, sync, sync_directory
from perdure.base.ids import random_secret
from perdure.errors import InvalidRequest, PerdureError, StorageFull, Unavailable, WrongKey
from perdure.log.postgres import key_file
from perdure.log.postgres.key_file import KEY_SIZE_BYTES as KEY_SIZE_BYTES  # noqa: PLC0414 - of the protocol

MARK, HOLD = "keystore.mark", "keystore.hold"  # names of files
KEYS, DROPPED = ".keys", ".dropped"  # the ends of such


class Keystore(Protocol):
    """Holds a secret and any number of data keys of each tenant. Called from several threads and processes.

    A tenant is told by a UUID that stands for this making of it: one of the same name that is made after it was deleted
    has another.

    Whoever copies the database and then the keystore needs a way to have nothing destroyed in between: each keystore has
    its own. Meanwhile `destroy`, `destroy_below` and `drop_tenant` change nothing and return False, and what they were to
    destroy is given as before.

    Every method may raise Unavailable where the keystore cannot be reached: a write that needs a new key then changes
    nothing, reads go on as far as their keys are known already, and what was to be destroyed is tried again by the next
    operation. `perdure.testing.keystore_suite` holds an implementation to all of this.
    """

    def find_secret(self, tenant: UUID) -> bytes | None:
        """Return the SECRET_BYTES bytes that were kept for the tenant, None where there are none.

        Raises Corrupt where they are damaged.
        """
        ...

    def put_secret(self, tenant: UUID, secret: bytes) -> bytes:
        """Keep a secret, durable when it returns; return the one that is kept, which is another's if it was faster.

        Raises StorageFull where there is no room.
        """
        ...

    def new_keys(self, tenant: UUID, count: int) -> list[tuple[int, bytes]]:
        """Make data keys of KEY_SIZE_BYTES random bytes, durable when it returns.

        Their numbers begin with 1, ascend over the tenant's lifetime and never come again.

        Raises:
            WrongKey: no secret was kept for the tenant.
            StorageFull: there is no room; none was made.
        """
        ...

    def newest(self, tenant: UUID) -> int:
        """Return the highest number that was given out, also where its key is destroyed; 0 where none was.

        A store with higher numbers in use tells by it that an older copy of the keystore was put in its place.
        """
        ...

    def find_keys(self, tenant: UUID, numbers: Collection[int]) -> dict[int, bytes]:
        """Return the keys of these numbers; those that were to be destroyed, or never made, are left out.

        Raises:
            WrongKey: no secret was kept for the tenant.
            Corrupt: one is damaged; the message names what to do.
        """
        ...

    def keeps_below(self, tenant: UUID, number: int) -> bool:
        """Whether a key of a lower number is there. After `destroy_below` none is, unless an older copy was put back."""
        ...

    def destroy(self, tenant: UUID, numbers: Collection[int]) -> bool:
        """Destroy keys; whether every holder of them has confirmed that it did. May be called again.

        From then on nobody is given them any more, confirmed or not. False says that it is to be asked again; numbers
        that were never made, or are gone, are passed over.
        """
        ...

    def destroy_below(self, tenant: UUID, number: int) -> bool:
        """Destroy all keys of lower numbers, as `destroy`."""
        ...

    def drop_tenant(self, tenant: UUID) -> bool:
        """Destroy all that is kept of a tenant, the secret too, as `destroy`; remember for good that it was told to.

        May be called again, also by another process: of a tenant that it dropped it says once more whether every holder
        has confirmed, since what it said before may have been lost. A tenant's UUID never comes again, so what is
        remembered never stands in anybody's way.

        Raises WrongKey where it never kept anything of the tenant: of what it does not know it confirms nothing.
        """
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class FileKeystore:
    """A file a tenant, in a directory that all servers share; keys are destroyed by overwriting them in place.

    On a medium that writes elsewhere than it is told (a copy-on-write file system, flash memory that wears evenly) an
    old copy of a key may outlive that: keep the directory on a disk that is itself encrypted, or use a key service.

    The empty file `keystore.mark` tells the directory from the place that its disk is mounted at. It is made with the
    first secret that is kept: until then a directory holds nothing, which it says, but it confirms nothing. Where it was
    seen once and is missing, that a tenant's file is missing says nothing either.

    Of a tenant that was dropped an empty file is left, so that it is known for good: an older copy of its keys that is put
    beside that is given to nobody, and goes when it is dropped once more.

    While there is a file `keystore.hold`, which whoever makes copies puts there and takes away, nothing is destroyed.
    """

    def __init__(self, directory: Path) -> None:
        """Use a directory. Where there is none it is made, with mode 0700, when the first secret is kept.

        Raises:
            InvalidRequest: of the field keystore; others may read it, or it is no directory.
            Unavailable: it cannot be used.
        """
        self._directory = Path(directory).absolute()
        # While it was never there it is as one that is empty; once it was, that it is missing says nothing.
        try:
            self._was_there = self._find_directory()
        except OSError as error:
            raise _unusable(error) from error
        self._in_use: set[UUID] = set()  # tenants whose secret was given out from here
        self._was_marked = False  # as far as this process has seen
        try:
            # Files of keys tell what it is as well: whoever made the first one may have died before he marked it.
            if not self._is_marked() and any(self._directory.glob(f"*{KEYS}")):
                self._mark()
        except OSError as error:
            raise _unusable(error) from error

    @property
    def directory(self) -> Path:
        """Where the files are, absolute."""
        return self._directory

    def find_secret(self, tenant: UUID) -> bytes | None:
        try:
            with self._opened(tenant) as file:
                secret = key_file.secret_of(tenant, key_file.read_at(file, key_file.HEADER_BYTES, 0))
        except WrongKey:
            return None
        if secret is not None:
            self._in_use.add(tenant)
        return secret

    def put_secret(self, tenant: UUID, secret: bytes) -> bytes:
        if self._was_marked:
            self._check_mark()
        else:
            self._make_directory()
        if self._path(tenant, DROPPED).exists():
            raise missing(self)
        with self._locked(tenant, makes=True) as file:
            kept = key_file.secret_of(tenant, key_file.read_at(file, key_file.HEADER_BYTES, 0))
            if kept is None:
                # Whoever wrote less than a whole head died before he could tell anybody.
                key_file.add_all(file, key_file.head_of(tenant, secret), 0)
                sync_directory(self._directory)
            if not self._is_marked():
                self._mark()
            self._in_use.add(tenant)
            return secret if kept is None else kept

    def new_keys(self, tenant: UUID, count: int) -> list[tuple[int, bytes]]:
        with self._locked(tenant) as file:
            secret = key_file.secret_of(tenant, key_file.read_at(file, key_file.HEADER_BYTES, 0))
            if secret is None or self._path(tenant, DROPPED).exists():
                raise missing(self)
            return key_file.add_keys(file, tenant, [random_secret(KEY_SIZE_BYTES) for _ in range(count)])

    def newest(self, tenant: UUID) -> int:
        try:
            with self._opened(tenant) as file:
                return key_file.last_number(file)
        except WrongKey:
            return 0

    def find_keys(self, tenant: UUID, numbers: Collection[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        with self._opened(tenant) as file:
            doubtful = self._find(file, tenant, numbers, found)
            if doubtful:
                key_file.lock(file, shared=True)  # nobody is destroying now
                for number in self._find(file, tenant, doubtful, found):
                    raise key_file.damaged(number)
        return found

    @staticmethod
    def _find(file: int, tenant: UUID, numbers: Collection[int], found: dict[int, bytes]) -> list[int]:
        """Add the keys to those that were found; return the numbers of slots that make no sense."""
        doubtful = []
        for number in numbers:
            key = key_file.key_at(file, tenant, number)
            if key is False:
                doubtful.append(number)
            elif key is not None:
                found[number] = key
        return doubtful

    def keeps_below(self, tenant: UUID, number: int) -> bool:
        try:
            with self._opened(tenant) as file:
                return bool(key_file.kept_runs(file, number))
        except WrongKey:
            return False

    def destroy(self, tenant: UUID, numbers: Collection[int]) -> bool:
        with self._destroying(tenant) as file:
            if self.is_held():
                return False
            if file is not None:
                last = key_file.last_number(file)
                for number in numbers:
                    if 1 <= number <= last:
                        key_file.destroy_slots(file, number)
                sync(file)
        return True

    def destroy_below(self, tenant: UUID, number: int) -> bool:
        with self._destroying(tenant) as file:
            if self.is_held():
                return False
            if file is not None:
                for first, count in key_file.kept_runs(file, number):
                    key_file.destroy_slots(file, first, count)
                sync(file)
        return True

    def is_held(self) -> bool:
        """Whether nothing is to be destroyed now, since somebody makes copies. Raises Unavailable where that cannot be seen.

        Looked at for each order. What one destroys that looked before the file was there had been committed as condemned
        by then, so a copy of the database that is begun later does not need it.
        """
        try:
            return (self._directory / HOLD).exists()
        except OSError as error:
            raise _unusable(error) from error

    def drop_tenant(self, tenant: UUID) -> bool:
        try:
            # Locked: whoever makes keys at this moment is waited for, and finds no file afterwards.
            with self._locked(tenant):
                if self.is_held():
                    return False
                # Before anything goes: else nobody could tell that it did from that it never was.
                self._make_empty(self._path(tenant, DROPPED))
                erase(self._path(tenant))
                sync_directory(self._directory)
        except WrongKey:
            if not self._path(tenant, DROPPED).exists():
                raise
        self._in_use.discard(tenant)
        return True

    def close(self) -> None:
        pass

    def _path(self, tenant: UUID, end: str = KEYS) -> Path:
        return self._directory / f"{tenant}{end}"

    def _find_directory(self) -> bool:
        try:
            found = os.stat(self._directory)
        except FileNotFoundError:
            return False
        # One that is empty may still be open to others: it is closed to them when it is made a keystore.
        if not stat.S_ISDIR(found.st_mode) or any(self._directory.iterdir()):
            self._check_directory()
        return True

    def _make_directory(self) -> None:
        try:
            make_directory(self._directory)
            self._check_directory()
            self._was_there = True
        except FileExistsError as error:
            raise _no_directory() from error
        except OSError as error:
            raise _unusable(error) from error

    def _check_directory(self) -> None:
        """Raise InvalidRequest where it is no directory, or one that others may look into."""
        if not self._directory.is_dir():
            raise _no_directory()
        mode = self._directory.stat().st_mode & 0o777
        if os.name == "posix" and mode & 0o077:
            raise InvalidRequest(
                f"the keystore's directory has mode {mode:04o}: nobody but its owner may look into it. Run chmod 700 on it",
                field="keystore",
            )

    @contextmanager
    def _destroying(self, tenant: UUID) -> Iterator[int | None]:
        """Yield the tenant's file, locked; None where there is none, so that there is nothing to destroy.

        Raises Unavailable where the file was there and is missing: it may come back.
        """
        if not self._path(tenant).exists():
            self._check_mark()
            if tenant in self._in_use and not self._path(tenant, DROPPED).exists():
                raise Unavailable(
                    "the tenant's file is missing in the keystore, so nothing is known of its keys: put it back"
                )
            yield None
            return
        with self._locked(tenant) as file:
            yield file

    def _is_marked(self) -> bool:
        found = (self._directory / MARK).is_file()
        self._was_marked |= found
        return found

    def _mark(self) -> None:
        self._make_empty(self._directory / MARK)
        self._was_marked = True

    def _make_empty(self, path: Path) -> None:
        """Make an empty file, if it is not there; durable when it returns."""
        os.close(open_private(path))
        sync_directory(self._directory)

    def _check_mark(self) -> None:
        if not self._directory.is_dir():
            raise Unavailable(
                "the keystore's directory is not there: check its path, and that its disk is mounted"
            )
        # Where a disk is not mounted there is no file either; that confirms nothing.
        if not self._is_marked():
            raise Unavailable(
                f"the keystore's directory is gone, or has no {MARK} in it: check that its disk is mounted"
            )

    @contextmanager
    def _locked(self, tenant: UUID, *, makes: bool = False) -> Iterator[int]:
        path = self._path(tenant)
        try:
            while True:
                file = open_private(path) if makes else os.open(path, os.O_RDWR | key_file.BINARY)
                try:
                    _check_mode(file)
                    key_file.lock(file)
                    if not _is_at(file, path):  # the tenant was dropped while this waited
                        continue
                    yield file
                    return
                finally:
                    os.close(file)  # which unlocks
        except FileNotFoundError as error:
            raise self._gone() from error
        except OSError as error:
            raise _unusable(error) from error

    @contextmanager
    def _opened(self, tenant: UUID) -> Iterator[int]:
        try:
            if self._path(tenant, DROPPED).exists():
                raise missing(self)
            file = os.open(self._path(tenant), os.O_RDONLY | key_file.BINARY)
        except FileNotFoundError as error:
            raise self._gone() from error
        except OSError as error:
            raise _unusable(error) from error
        try:
            _check_mode(file)
            yield file
        except OSError as error:
            raise _unusable(error) from error
        finally:
            os.close(file)

    def _gone(self) -> PerdureError:
        was_there = self._was_there or self._in_use
        if self._was_marked or (was_there and not self._directory.is_dir()):
            self._check_mark()
        return missing(self)


def _no_directory() -> InvalidRequest:
    return InvalidRequest("keystore is no directory: give the one that holds the keys", field="keystore")


def missing(keystore: Keystore, tenant: UUID | None = None, part: str = "") -> WrongKey:
    """Return the error of a keystore that holds nothing of a tenant; of one in files it names the directory.

    Args:
        tenant: what stands for it, or for the log of a part beside it.
        part: that it is the log of, where the keystore knows the tenant itself: a copy of the keystore has its keys then.
    """
    where = f" in {keystore.directory}" if isinstance(keystore, FileKeystore) else ""
    is_absent = isinstance(keystore, FileKeystore) and not keystore.directory.is_dir()
    why = ", since there is no such directory" if is_absent else ""
    if part:
        what = f"the file {tenant}.keys" if isinstance(keystore, FileKeystore) else f"what it has of {tenant}"
        return WrongKey(
            f"the keystore{where} holds nothing of this tenant's {part}, which was made while a copy of the keystore was in use: "
            f"bring {what} from that copy, and use one keystore"
        )
    return WrongKey(
        f"the keystore{where} holds nothing of this tenant{why}: give the one that the tenant was made with, and check that "
        "its disk is mounted"
    )


def _check_mode(file: int) -> None:
    mode = stat.S_IMODE(os.fstat(file).st_mode)
    if os.name == "posix" and mode & 0o077:
        raise InvalidRequest(
            f"the tenant's file in the keystore has mode {mode:04o}: nobody but its owner may read it. Run chmod 600 on it",
            field="keystore",
        )


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _unusable(error: OSError) -> PerdureError:
    if error.errno in FULL:
        return StorageFull("the keystore's disk is full: nothing was written; make room and try again")
    return Unavailable(
        f"the keystore cannot be used ({error.strerror}): check its directory and who may write there"
    )
