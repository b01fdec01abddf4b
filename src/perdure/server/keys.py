"""Keys of the server: made, found, revoked; kept as digests in one private file beside the store.

A key is `pk_<id>_<256 random bits>`. The file knows its id and the SHA-256 of the whole, never the key itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import msgspec

from perdure.base.clock import Clock, SystemClock, checked_now
from perdure.base.ids import keyed_hash, random_secret
from perdure.contract.operations import ROLES, Role
from perdure.errors import Corrupt, InvalidRequest, InvalidTenant, NotFound, Unavailable
from perdure.model.namespace import checked_namespace
from perdure.planning.checks import checked_choice
from perdure.server.keyring_file import TIMEOUT_S, Sight, locked, replace, system_errors

KEYS_FILE = "keys.json"
LOCK_FILE = "keys.lock"
DEFAULT_TENANT = "default"
ID_BYTES = 8
KEY_BYTES = 32
FORMAT = "perdure keys"
VERSION = 1
_KEY = re.compile(r"pk_([0-9a-f]{16})_[0-9a-f]{64}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_NOBODY = bytes(32)  # compared with where there is no such key, so that absence takes as long

Random = Callable[[int], bytes]


@dataclass(frozen=True)
class Grant:
    """What a key is for. A principal or scope of None is chosen by each request; "" is the empty name."""

    tenant: str = DEFAULT_TENANT
    principal: str | None = field(default=None, repr=False)
    scope: str | None = field(default=None, repr=False)
    role: Role = "write"
    expires_at: int | None = None  # milliseconds since 1970; valid before it


class Key(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is known of a key: all but the key. Times are milliseconds since 1970."""

    id: str
    digest: str  # SHA-256 of the whole key, in hex
    tenant: str
    principal: str | None
    scope: str | None
    role: Role
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def is_valid(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def __repr__(self) -> str:
        return f"<Key {self.id}>"


def key_digest(secret: bytes, id_: str) -> str:
    """Return what stands for a key in the audit of a store: a digest of its id under the store's secret, in hex."""
    return keyed_hash(secret, b"audited key", id_.encode("ascii")).hex()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    keys: tuple[Key, ...]


class Keyring:
    """The keys of a store or of a root of tenants. Thread-safe; close it, or use it as a context manager.

    A change by any process is seen by the next `find`, which costs one stat where there was none. A file that was read
    once and is missing is no change: nobody removes the last key so, but a disk that is gone looks like it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock | None = None,
        random: Random = random_secret,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Take the directory's keys; nothing is read or written yet.

        Args:
            clock: tells creation, revocation and the present; the system's when absent.
            random: gives so many random bytes.
            timeout_s: how long a change waits for another process's.
        """
        self._path, self._lock_path = directory / KEYS_FILE, directory / LOCK_FILE
        self._clock, self._random, self._timeout_s = clock or SystemClock(), random, timeout_s
        self._turn = threading.Lock()
        self._sight: Sight | None = None
        self._was_there = False  # as far as this object has read
        self._keys: Mapping[str, Key] = {}

    def create(self, grant: Grant) -> tuple[Key, str]:
        """Add a key and return what is known of it, and the key, which nobody can tell again.

        The directory must exist.

        Raises:
            InvalidRequest, InvalidTenant: the grant is malformed, or its time is over.
            Busy, Corrupt, StorageFull, Unavailable: nothing was changed.
        """
        now = checked_now(self._clock)
        check_grant(grant, now)
        with system_errors(KEYS_FILE), locked(self._lock_path, self._timeout_s):
            keys = self._read()
            key, told = self._make(grant, now, keys)
            self._write({**keys, key.id: key})
        return key, told

    def revoke(self, id: str) -> Key:  # noqa: A002 - the field's name on every surface
        """End a key from the next request on, and return what is known of it; one that is revoked stays so.

        Raises:
            NotFound: there is no key of this id.
            InvalidRequest: this is the form of no id.
            Busy, Corrupt, StorageFull, Unavailable: nothing was changed.
        """
        if not _ID.fullmatch(id):
            # Not shown: somebody may give the whole key.
            raise InvalidRequest("id must be a key's id, 16 hex digits; keys list shows them", field="id")
        with system_errors(KEYS_FILE):
            if not self._path.exists():
                raise _absent()
            with locked(self._lock_path, self._timeout_s):
                keys = self._read()
                key = keys.get(id)
                if key is None:
                    raise _absent()
                if key.revoked_at is None:
                    key = msgspec.structs.replace(key, revoked_at=checked_now(self._clock))
                    self._write({**keys, id: key})
        return key

    def all_keys(self) -> list[Key]:
        """Return all keys, revoked and expired ones too, in the order of their creation.

        Raises:
            InvalidRequest: others may read the file.
            Unavailable: it cannot be read, or was there and is missing.
            Corrupt.
        """
        with self._turn, system_errors(KEYS_FILE):
            return list(self._current().values())

    def find(self, told: str) -> Key | None:
        """Return the key that was told, if it is known and valid now. An unknown id takes as long as a wrong key.

        Raises as `all_keys`.
        """
        with self._turn, system_errors(KEYS_FILE):
            keys = self._current()
        form = _KEY.fullmatch(told)
        key = keys.get(form[1]) if form else None
        expected = bytes.fromhex(key.digest) if key else _NOBODY
        same = hmac.compare_digest(digest_of(told), expected)
        return key if key and same and key.is_valid(checked_now(self._clock)) else None

    def close(self) -> None:
        """Let the file go. Idempotent."""
        with self._turn:
            self._forget()

    def __enter__(self) -> Keyring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _current(self) -> Mapping[str, Key]:
        if self._sight is None or not self._sight.is_current(self._path):
            self._forget()
            try:
                sight = Sight(self._path)
            except FileNotFoundError as error:
                if self._was_there:
                    raise _gone() from error
                return {}
            self._was_there = True
            try:
                self._keys = _decoded(sight.content)
            except BaseException:  # raised again: no file stays open
                sight.close()
                raise
            self._sight = sight
        return self._keys

    def _forget(self) -> None:
        if self._sight is not None:
            self._sight.close()
        self._sight, self._keys = None, {}

    def _read(self) -> dict[str, Key]:
        try:
            sight = Sight(self._path)
        except FileNotFoundError:
            return {}
        sight.close()
        return _decoded(sight.content)

    def _write(self, keys: Mapping[str, Key]) -> None:
        replace(self._path, msgspec.json.encode(_File(FORMAT, VERSION, tuple(keys.values()))) + b"\n")

    def _make(self, grant: Grant, now: int, others: Mapping[str, Key]) -> tuple[Key, str]:
        id_ = self._random(ID_BYTES).hex()
        while id_ in others:
            id_ = self._random(ID_BYTES).hex()
        told = f"pk_{id_}_{self._random(KEY_BYTES).hex()}"
        key = Key(
            id=id_,
            digest=digest_of(told).hex(),
            tenant=grant.tenant,
            principal=grant.principal,
            scope=grant.scope,
            role=grant.role,
            created_at=now,
            expires_at=grant.expires_at,
            revoked_at=None,
        )
        return key, told


def digest_of(told: str) -> bytes:
    """Return the SHA-256 of what was told as a key, whatever it is."""
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()


def checked_tenant(name: str) -> str:
    """Return the name if it is 1 to 64 of A-Z, a-z, 0-9, _ and -.

    Raises:
        InvalidTenant: it is not; the message does not repeat it.
    """
    if not _TENANT.fullmatch(name):
        raise InvalidTenant("a tenant's name must be 1 to 64 of A-Z, a-z, 0-9, _ and -", field="tenant")
    return name


def check_grant(grant: Grant, now: int) -> None:
    """Raise InvalidRequest or InvalidTenant for what no key can be made for."""
    checked_tenant(grant.tenant)
    checked_namespace(grant.principal, grant.scope)
    checked_choice(grant.role, "role", ROLES)
    if grant.expires_at is not None and grant.expires_at <= now:
        raise InvalidRequest("expires must be a moment that is still to come", field="expires")


def _absent() -> NotFound:
    return NotFound("there is no key of this id; keys list shows them", field="id")


def _gone() -> Unavailable:
    return Unavailable(
        f"{KEYS_FILE} was there and is gone: check that the disk of its directory is mounted, or put it back; a server that "
        "is to have no keys any more is started anew"
    )


def _decoded(content: bytes) -> dict[str, Key]:
    try:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version > VERSION:
            raise InvalidRequest(
                f"{KEYS_FILE} has version {version}, of a newer Perdure; this one knows {VERSION}: update it",
                field="store",
            )
        file = msgspec.json.decode(content, type=_File)
    except msgspec.DecodeError:
        raise _damaged() from None  # the cause tells values of the file
    found = {key.id: key for key in file.keys}
    whole = file.format == FORMAT and file.version == VERSION and len(found) == len(file.keys)
    if not whole or not all(map(_is_sound, file.keys)):
        raise _damaged()
    return found


class _Versioned(msgspec.Struct, frozen=True):
    version: int


def _is_sound(key: Key) -> bool:
    return bool(_ID.fullmatch(key.id) and _DIGEST.fullmatch(key.digest) and _TENANT.fullmatch(key.tenant))


def _damaged() -> Corrupt:
    return Corrupt(
        f"{KEYS_FILE} is damaged: put back a copy of it, or remove it and create new keys; until then no key is taken"
    )
