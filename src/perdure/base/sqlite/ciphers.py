"""What a store's files are written under: a cipher with its key, or nothing.

Both go one way through the code: PLAIN is a cipher whose key is empty, which SQLite takes for none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import apsw

from perdure.base.ids import random_secret
from perdure.errors import Unavailable

NAME = "chacha20"  # authenticates every page, and fast on processors without AES; none that does not is used
PAGE_KEY_BYTES = 32
SALT_BYTES = 16
RAW = "raw"  # the derivation of a key that is taken as it is
# OWASP's password storage cheat sheet: 32 MiB, three passes; about 0.3 s, once per opening.
SCRYPT = "scrypt-32768-8-3"
_SCRYPT = re.compile(r"scrypt-(\d{1,8})-(\d{1,3})-(\d{1,3})", re.ASCII)
_SCRYPT_BYTES_MAX = 1 << 30  # a store may ask for no more memory than this to be opened


class Cipher:
    """A key for pages and what it was derived by. Two openings of a store make two; nothing shows the key."""

    __slots__ = ("_key", "derivation", "salt")

    def __init__(self, key: bytes, derivation: str, salt: bytes) -> None:
        self._key: Final = key
        self.derivation: Final = derivation
        self.salt: Final = salt

    @property
    def encrypts(self) -> bool:
        return bool(self._key)

    def keyed(self, purpose: bytes) -> Callable[[bytes], bytes]:
        """Return the keyed hash of 32 bytes for a purpose (of at most 16 bytes) other than pages."""
        key = blake2b(key=self._key, person=b"perdure wrapping", digest_size=32).digest()
        return lambda data: blake2b(data, key=key, person=purpose, digest_size=32).digest()

    def attach(self, db: apsw.Connection, path: str, schema: str) -> None:
        """Attach a file that is written under this cipher."""
        self._choose(db)
        # Bound, not written into the statement: SQLite keeps and reports statements.
        db.execute(f"ATTACH ? AS {schema} KEY ?", (path, self._told()))

    def unlock(self, db: apsw.Connection) -> None:
        """Read and write the connection's main file under this cipher; before any other statement."""
        if self.encrypts:
            self._choose(db)
            list(db.execute(f"PRAGMA main.key='{self._told()}'", can_cache=False))

    def _choose(self, db: apsw.Connection) -> None:
        if self.encrypts:
            # Pinned: the defaults are those that the library was compiled with.
            list(db.execute(f"PRAGMA cipher='{NAME}'"))
            list(db.execute("PRAGMA legacy=0"))

    def _told(self) -> str:
        return f"raw:{self._key.hex()}" if self.encrypts else ""

    def __repr__(self) -> str:
        return f"Cipher({NAME if self.encrypts else 'plain'})"


PLAIN = Cipher(b"", "", b"")


class Key:
    """A checked key: 32 bytes, or a passphrase. Nothing shows it."""

    __slots__ = ("_bytes", "_derived", "is_passphrase")

    def __init__(self, key: bytes, *, is_passphrase: bool) -> None:
        self._bytes = key
        self.is_passphrase = is_passphrase
        self._derived: dict[tuple[str, bytes], Cipher] = {}

    def new_cipher(self) -> Cipher:
        """Return a cipher for a store that is to be written under this key."""
        if self.is_passphrase:
            return self.cipher(SCRYPT, random_secret(SALT_BYTES))
        return self.cipher(RAW, b"")

    def cipher(self, derivation: str, salt: bytes) -> Cipher:
        """Return the cipher that this key makes with what a store says of its own.

        32 bytes are never derived from, whatever the store says: they may be what a passphrase leads to.
        Deriving is slow on purpose, so it is done once.

        Raises:
            Unavailable: this library does not know the derivation, or will not afford it.
        """
        known = (derivation, salt)
        if known not in self._derived:
            key = self._bytes if not self.is_passphrase else _derived(self._bytes, derivation, salt)
            self._derived[known] = Cipher(key, derivation, salt)
        return self._derived[known]

    def __repr__(self) -> str:
        return "Key(passphrase)" if self.is_passphrase else "Key(32 bytes)"


def _derived(passphrase: bytes, derivation: str, salt: bytes) -> bytes:
    found = _SCRYPT.fullmatch(derivation)
    if found is None:
        raise Unavailable(
            "the store's key is derived in a way that this library does not know: upgrade perdure"
        )
    n, r, p = map(int, found.groups())
    if 128 * n * r > _SCRYPT_BYTES_MAX:
        raise Unavailable(
            f"the store's key takes {128 * n * r} bytes of memory to derive, more than the {_SCRYPT_BYTES_MAX} "
            "that this library allows: restore store.lock from a backup, or upgrade perdure"
        )
    if not hasattr(hashlib, "scrypt"):
        raise Unavailable(
            "this Python was built without scrypt, so that no passphrase opens a store: use another"
        )
    try:
        return hashlib.scrypt(
            passphrase, salt=salt, n=n, r=r, p=p, dklen=PAGE_KEY_BYTES, maxmem=2 * _SCRYPT_BYTES_MAX - 1
        )
    except ValueError as error:
        raise Unavailable(
            "the store's key is derived in a way that this library cannot follow: restore store.lock from a backup"
        ) from error
