"""Which backend a path means, for every store that is opened; only verifying and salvaging name backends too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from perdure.audit.audit import Audit, Place
from perdure.audit.audited_log import DIRECTORY, AuditedLog
from perdure.base.clock import Clock
from perdure.base.disk import size_bytes
from perdure.base.ids import keyed_hash
from perdure.base.text import counted, shown_number
from perdure.errors import Corrupt, InvalidRequest, Unavailable, WrongKey
from perdure.log.memory import MemoryLog
from perdure.log.places import checked_path, refuse_address, traces
from perdure.log.protocol import SECRET_BYTES, Log, Read, Rewritten
from perdure.planning.checks import checked_choice

if TYPE_CHECKING:
    from perdure.log.postgres.keystore import Keystore

EPHEMERAL = ":memory:"
AUDITS = ("on", "full", "off")
AuditLevel = Literal["on", "full", "off"]
TIMEOUT_MAX_S = 86_400
DURABILITIES = ("full", "normal")
BACKENDS = ("sqlite", "journal")
Durability = Literal["full", "normal"]
Backend = Literal["sqlite", "journal"]
KeyForm = bytes | str | Path | Callable[[], bytes | str]
"""32 raw bytes, a passphrase, a file of one of them, or what returns one of the first two."""
KeystoreForm: TypeAlias = "str | Path | Keystore"
"""The directory of a file keystore, `"off"`, or an object of the protocol."""
ADDRESSES = ("postgresql://", "postgres://")
"""What the address of a database begins with, in letters of either case."""
ADDRESS_MAX = max(map(len, ADDRESSES))
DEFAULT_TENANT = "default"


UNENCRYPTED = "off"


class Beside(Protocol):
    """Another log that a log has beside it, under a name: where it is, and whether it was made."""

    def exists(self) -> bool: ...

    def open(self, secret: bytes) -> Log: ...

    def size_bytes(self) -> int: ...


@dataclass(frozen=True, repr=False)  # it holds a secret and a key
class Opening:
    """How a store is opened; the arguments of `Store.open`."""

    backend: Backend | None = None
    secret: bytes | None = None
    key: KeyForm | None = None
    durability: Durability = "full"
    timeout_s: float = 30.0
    tenant: str | None = None
    keystore: KeystoreForm | None = None
    replica: str | None = None


NO_DIRECTORY = (
    "the keystore's directory is not there, and the database holds tenants, or did lately: check its path, and that its disk "
    "is mounted"
)
MAKE_DIRECTORY = "Nothing was made; to begin another keystore, make the directory first (mkdir -m 700)"
ROOT_MARK = "perdure.tenants"
"""The file that marks the root of many tenants' stores, which is no store itself."""


def open_log(path: object, opening: Opening) -> Log:
    """Open (or create) the log at a path; without a backend told, that of what lies there, else sqlite.

    Raises:
        InvalidRequest: an argument is wrong, or the store there is of another backend than the one that was told.
        Corrupt: files of both backends lie there, and none was told.
        What the backend raises.
    """
    _check(path, opening)
    if is_address(path):
        return _open_postgres(str(path), opening)
    refuse_tenant(tenant=opening.tenant, keystore=opening.keystore, replica=opening.replica)
    if str(path) == EPHEMERAL:
        return _open_memory(opening)
    # Imported here: an ephemeral store needs no driver, and a store of one backend not the other's.
    from perdure.log.journal import JournalLog  # noqa: PLC0415

    directory = Path(str(path))
    found = find_backend(directory, opening.backend)
    backend = opening.backend or found or "sqlite"
    if found not in (None, backend):
        raise InvalidRequest(
            f"backend is {backend!r}, but there is a store of the backend {found!r}: leave backend out, or give "
            "another directory",
            field="backend",
        )
    if backend == "journal":
        if opening.key is not None:
            raise InvalidRequest(
                "a journal is not encrypted: leave key out, or use the backend 'sqlite'", field="key"
            )
        return JournalLog.open(
            directory, secret=opening.secret, durability=opening.durability, timeout_s=opening.timeout_s
        )
    from perdure.log.sqlite.log import SqliteLog  # noqa: PLC0415

    return SqliteLog.open(
        directory,
        secret=opening.secret,
        key=opening.key,
        durability=opening.durability,
        timeout_s=opening.timeout_s,
    )


def is_address(path: object) -> bool:
    """Whether a place is the address of a database."""
    return isinstance(path, str) and path[:ADDRESS_MAX].lower().startswith(ADDRESSES)


def refuse_tenant(**told: object) -> None:
    """Raise InvalidRequest where something is told beside a path that only the address of a database takes."""
    for name, value in told.items():
        if value is not None:
            raise InvalidRequest(
                f"{name} goes with the address of a database, postgresql://…; a path is one tenant's: leave {name} out",
                field=name,
            )


def has_tenant(address: str, opening: Opening) -> bool:
    """Whether the database has the tenant's store, or what a deletion that is not at its end left of it; makes nothing.

    Raises InvalidRequest where the address or the tenant's name is none, Busy and Unavailable.
    """
    try:
        from perdure.log.postgres.connections import acquire, release  # noqa: PLC0415 - as in open_log
        from perdure.log.postgres.presence import has_tenant as found  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise _lacks_packages() from error
    database = acquire(address, opening.timeout_s)
    try:
        return found(database, DEFAULT_TENANT if opening.tenant is None else opening.tenant)
    finally:
        release(database)


def _lacks_packages() -> Unavailable:
    return Unavailable("a store in PostgreSQL needs more packages: pip install 'perdure[postgres]'")


def keystore_of(told: KeystoreForm) -> Keystore | None:
    """Return the keystore that was told, None where nothing is to be encrypted; raises as `FileKeystore`."""
    if told == UNENCRYPTED:
        return None
    if not isinstance(told, str | Path):
        if not callable(getattr(told, "find_secret", None)):
            raise InvalidRequest(
                f'keystore must be a directory, "off", or an object that keeps keys, got {type(told).__name__}',
                field="keystore",
            )
        return told
    try:
        from perdure.log.postgres.keystore import FileKeystore  # noqa: PLC0415 - as in open_log
    except ImportError as error:
        raise _lacks_packages() from error
    return FileKeystore(checked_path(told, "keystore"))


def _open_postgres(address: str, opening: Opening) -> Log:
    for name, usual in (("backend", None), ("key", None), ("durability", "full")):
        if getattr(opening, name) != usual:
            raise InvalidRequest(
                f"{name} is for a store in files: a database has its own, and its records are encrypted with what the "
                f"keystore holds. Leave {name} out",
                field=name,
            )
    # Imported here: only a store in a database needs its driver.
    try:
        from perdure.log.postgres.log import PostgresLog  # noqa: PLC0415
    except ImportError as error:
        raise _lacks_packages() from error
    told = opening.keystore
    if told is None:
        raise InvalidRequest(
            "keystore is missing: give a directory outside the database and its backups, where the keys are kept that "
            'records are encrypted with; or "off" and a secret, to store them as they are',
            field="keystore",
        )
    keystore = keystore_of(told)
    _check_directory(address, opening, keystore)
    return PostgresLog.open(
        address,
        tenant=DEFAULT_TENANT if opening.tenant is None else opening.tenant,
        keystore=keystore,
        secret=opening.secret,
        timeout_s=opening.timeout_s,
        replica=checked_replica(opening.replica),
    )


def _check_directory(address: str, opening: Opening, keystore: Keystore | None) -> None:
    """Raise Unavailable where a new tenant would begin a keystore in a directory that is not there, though the database
    holds tenants, who have one."""
    directory = getattr(keystore, "directory", None)  # of one in files
    if not isinstance(directory, Path) or directory.exists():
        return
    from perdure.log.postgres.connections import acquire, release  # noqa: PLC0415 - as in open_log
    from perdure.log.postgres.presence import holds_tenants  # noqa: PLC0415 - likewise

    database = acquire(address, opening.timeout_s)
    try:
        is_begun = holds_tenants(database)
    finally:
        release(database)
    # Whoever makes the first tenant makes the directory before its row. What is there tells why it does not open.
    if is_begun and not directory.exists() and not has_tenant(address, opening):
        raise Unavailable(f"{NO_DIRECTORY}. {MAKE_DIRECTORY}")


def checked_replica(replica: str | None) -> str | None:
    """Return the address of a standby, or None; raises InvalidRequest for anything else."""
    if replica is not None and not is_address(replica):
        raise InvalidRequest(
            "replica is no address of a database: give postgresql://…, of a standby of the store's",
            field="replica",
        )
    return replica


@dataclass(frozen=True)
class Auditing:
    """What is audited, and where, if not beside the log; see `Store.open`."""

    level: AuditLevel = "on"
    queries: bool = False
    log: Log | None = None


def audited(log: Log, path: object, opening: Opening, clock: Clock, auditing: Auditing) -> Log:
    """Return a log with the audit that follows it; the log itself where it is to have none.

    The audit has a log of its own, of the same backend, secret, key and durability, in a directory within the
    store's; it is made when there is something to keep. Beside a log that was given it is the one that was given
    with it, or lasts as long as the process. The log of a store that is open has its audit already, and keeps it.

    Raises InvalidRequest where the level is none, or that audit keeps less than what is asked for.
    """
    level = checked_choice(auditing.level, "audit", AUDITS)
    if isinstance(log, AuditedLog):
        return _with_own(log, auditing)
    if level == "off":
        return log
    if auditing.log is None and (beside := getattr(log, "beside", None)) is not None:
        place: Place = _AuditBeside(log, beside)
    elif auditing.log is None and isinstance(path, str | Path) and str(path) != EPHEMERAL:
        place = _AuditFiles(log, Path(path) / DIRECTORY, opening)
    else:
        place = _AuditGiven(log, auditing.log)
    full = level == "full"
    return AuditedLog(log, Audit(log, place, clock, keeps_recalls=full, keeps_queries=auditing.queries))


def _with_own(log: AuditedLog, auditing: Auditing) -> Log:
    # Two audits of one log would each take the writer's turn around a purge; so a second store shares the first one's.
    audit = log.audit
    lacks = {
        "audit_log": auditing.log is not None,
        "audit": auditing.level == "full" and not audit.keeps_recalls,
        "audit_queries": auditing.queries and not audit.keeps_queries,
    }
    for name, is_lacking in lacks.items():
        if is_lacking:
            raise InvalidRequest(
                f"log is that of a store that is open, and has its audit already: leave {name} out, or give it where "
                "that store is opened",
                field=name,
            )
    return log


class _AuditGiven:
    """An audit's log that was given, or that is kept in memory."""

    is_between = False

    def __init__(self, log: Log, audit_log: Log | None) -> None:
        self._log, self._given = log, audit_log

    def exists(self) -> bool:
        return self._given is not None

    def open(self) -> Log:
        if self._given is None:
            self._given = MemoryLog(keyed_hash(self._log.secret, b"audit secret", b"", SECRET_BYTES))
        return self._given

    def size_bytes(self) -> int:
        return 0 if self._given is None else self._given.size_bytes()

    def rekey(self, *, between: bool) -> None:
        pass


class _AuditBeside:
    """An audit's log in the same database, as a tenant's of its own, with keys of its own."""

    is_between = False

    def __init__(self, log: Log, beside: Callable[[str], Beside]) -> None:
        self._log, self._beside = log, beside(DIRECTORY)

    def exists(self) -> bool:
        return self._beside.exists()

    def open(self) -> Log:
        return self._beside.open(keyed_hash(self._log.secret, b"audit secret", b"", SECRET_BYTES))

    def size_bytes(self) -> int:
        return self._beside.size_bytes()

    def rekey(self, *, between: bool) -> None:
        pass


class _AuditFiles:
    """An audit's log in files. Its key is derived from the store's, so that whoever opens the one opens the other.

    While the store's key is changed the audit is under a key of the secret's, and whatever comes between, one of the
    two opens it. It goes back under the store's key in the store's next purge: only there can no change be under way.
    """

    def __init__(self, log: Log, directory: Path, opening: Opening) -> None:
        self._log, self._directory, self._opening = log, directory, opening
        self.is_between = False

    def exists(self) -> bool:
        try:
            found = traces(self._directory)
        except ValueError:  # there is no such path
            return False
        except OSError:  # there is nothing, or what is no directory, which opening says
            return os.path.lexists(self._directory)
        return bool(found) and not _is_unfinished(self._directory, found)

    def size_bytes(self) -> int:
        # Not asked of the audit's log: on a full disk it can often not be opened.
        try:
            return sum(size_bytes(path) for path in self._directory.iterdir() if path.is_file())
        except OSError:  # there is no such directory
            return 0

    def open(self) -> Log:
        key = self._key()
        try:
            opened = self._open(key)
        except WrongKey:
            opened = self._open(self._between())
            self.is_between = True
        else:
            self.is_between = False
        return opened

    def rekey(self, *, between: bool) -> None:
        opened = self.open()
        try:
            opened.rekey(_kept, self._between() if between else self._key())  # type: ignore[attr-defined]
        finally:
            opened.close()

    def _open(self, key: bytes | None) -> Log:
        if os.path.lexists(self._directory) and not self._directory.is_dir():
            raise Unavailable(
                f"what lies at {DIRECTORY} in the store's directory is no directory, so no events can be kept or read "
                "there: move it away"
            )
        if not self._directory.exists():
            self._log.check_writable()  # nothing is begun in the place of a store that was moved
        secret = keyed_hash(self._log.secret, b"audit secret", b"", SECRET_BYTES)
        told = replace(self._opening, backend=_backend(self._log), secret=secret, key=key)
        return open_log(self._directory, told)

    def _key(self) -> bytes | None:
        derived: Callable[[bytes], bytes | None] | None = getattr(self._log, "derived_key", None)
        return None if derived is None else derived(b"audit")

    def _between(self) -> bytes:
        return keyed_hash(self._log.secret, b"audit key", b"", SECRET_BYTES)


def _is_unfinished(directory: Path, found: Mapping[str, str]) -> bool:
    """Whether the log there was never made to the end, so that it holds nothing; False where that cannot be told."""
    if "sqlite" in found:
        from perdure.log.sqlite.creation import is_unfinished  # noqa: PLC0415 - as in open_log
    else:
        from perdure.log.journal.medium import is_unfinished  # noqa: PLC0415
    return is_unfinished(directory)


def _backend(log: Log) -> Backend:
    return "journal" if log.name == "journal" else "sqlite"


def _kept(space: int, read: Read) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def find_backend(directory: Path, told: Backend | None = None) -> Backend | None:
    """Return the backend of the store that lies there, whole or damaged; None where none is seen.

    Raises:
        Corrupt: files of both lie there, and it was not told which of them is meant.
        InvalidRequest: it is the root of many tenants' stores, or a file.
    """
    refuse_file(directory)
    try:
        found, is_root = traces(directory), (directory / ROOT_MARK).exists()
    except (OSError, ValueError):  # no directory, or none that can be read: the backend says what is wrong
        return None
    if is_root:
        raise InvalidRequest(
            "this folder holds the stores of many tenants and is no store itself: name one of those below it, in "
            "tenants, or serve it",
            field="path",
        )
    if len(found) == 2 and told is None:
        raise Corrupt(
            f"files of two stores lie there: {found['sqlite']} of the backend sqlite, and {found['journal']} of a "
            "journal. Move away those that do not belong there"
        )
    if told in found:
        return told
    if "sqlite" in found:
        return "sqlite"
    return "journal" if found else None


def refuse_file(path: Path, field: str = "path") -> None:
    """Raise InvalidRequest, of this field, where the path of a store leads to a file."""
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # the backend says what is wrong with it
        return
    if is_file:
        raise InvalidRequest(
            f"{field} is a file, not a store: a store is a directory; what an export wrote is stored by an import",
            field=field,
        )


def check_timeout(timeout_s: float) -> None:
    """Raise InvalidRequest for what is no time-out in seconds."""
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 <= timeout_s <= TIMEOUT_MAX_S:
        shown = shown_number(timeout_s) if number else type(timeout_s).__name__
        raise InvalidRequest(
            f"timeout_s must be 0 to {TIMEOUT_MAX_S} seconds, got {shown}", field="timeout_s"
        )


def _check(path: object, opening: Opening) -> None:
    secret = opening.secret
    if path == "":
        raise InvalidRequest(f"path is empty: give a directory, or {EPHEMERAL!r}", field="path")
    if not isinstance(path, str | Path):
        raise InvalidRequest(f"path must be text or a Path, got {type(path).__name__}", field="path")
    if isinstance(path, str) and not is_address(path):
        refuse_address(path, "path")
    if secret is not None and (not isinstance(secret, bytes) or len(secret) != SECRET_BYTES):
        shown = f"{counted(len(secret), 'byte')}" if isinstance(secret, bytes) else type(secret).__name__
        raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {shown}", field="secret")
    if opening.backend is not None:
        checked_choice(opening.backend, "backend", BACKENDS)
    checked_choice(opening.durability, "durability", DURABILITIES)
    check_timeout(opening.timeout_s)


def _open_memory(opening: Opening) -> Log:
    if opening.key is not None:
        raise InvalidRequest("an ephemeral store writes no file to encrypt: leave key out", field="key")
    if opening.backend is not None:
        raise InvalidRequest(
            "an ephemeral store has a backend of its own: leave backend out", field="backend"
        )
    return MemoryLog(opening.secret, timeout_s=opening.timeout_s)
