"""The row of store.lock that recognises an encrypted store's key and keeps the store's secret under it."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from typing import NamedTuple

import apsw

from perdure.base.ids import random_secret
from perdure.base.sqlite.ciphers import NAME, PLAIN, RAW, Cipher, Key
from perdure.errors import Unavailable, WrongKey
from perdure.log.protocol import CHECK_BYTES, SECRET_BYTES
from perdure.log.sqlite.state import State, damaged_lock, read_state, write_state

PLAIN_VERSION = 1  # user_version of store.lock; equal to that of a store from before there were ciphers
SEALED_VERSION = 2  # an older library must not take an encrypted store for one without its secret
NONCE_BYTES = 32
TABLE = (
    "CREATE TABLE IF NOT EXISTS main.cipher(id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, "
    "derivation TEXT NOT NULL, salt BLOB NOT NULL, nonce BLOB NOT NULL, wrapped BLOB NOT NULL, "
    "tag BLOB NOT NULL, ck BLOB NOT NULL)"
)
_WHOLE = "SELECT name, derivation, salt, nonce, wrapped, tag, ck FROM main.cipher"
_PUT = "INSERT OR REPLACE INTO main.cipher VALUES(1, ?, ?, ?, ?, ?, ?, ?)"
_size = Struct("<Q").pack

NO_KEY = "the store is encrypted, and no key was given: give its key"
PLAIN_STORE = (
    "the store is not encrypted, but a key was given: leave the key out, or encrypt the store by rekey"
)
OTHER_KEY = "the store is encrypted with another key: give that one"
BYTES_WANTED = (
    "the store is encrypted with another key, one of 32 bytes, but a passphrase was given: give those bytes, or "
    "the file that holds them"
)
CHANGED = (
    "the store's key was changed since it was opened here: close it and open it again with the new key, or "
    "without one if it is no longer encrypted"
)


class Seal(NamedTuple):
    """What an encrypted store says of its cipher. `wrapped` is empty when the secret is kept outside."""

    name: str
    derivation: str
    salt: bytes
    nonce: bytes
    wrapped: bytes
    tag: bytes

    @property
    def check(self) -> bytes:
        """The row's checksum."""
        return blake2b(_joined(*self), digest_size=CHECK_BYTES).digest()

    def is_of(self, cipher: Cipher, state: State) -> bool:
        """Whether the seal was made with this cipher's key, for the store of this state."""
        return compare_digest(_tag(cipher, self, state.verifier), self.tag)

    def secret(self, cipher: Cipher) -> bytes | None:
        """Return the store's secret, None when it is kept outside; for the cipher that made the seal."""
        return _mixed(cipher, self.nonce, self.wrapped) if self.wrapped else None


def find_seal(db: apsw.Connection) -> Seal | None:
    """Return what store.lock (`main`) says of the cipher, None when the store is plain.

    Raises:
        Corrupt: the row is missing or damaged.
        Unavailable: the store uses a cipher that this library does not.
    """
    [(version,)] = list(db.execute("PRAGMA main.user_version"))
    return read_seal(db) if version == SEALED_VERSION else None


def read_seal(db: apsw.Connection) -> Seal:
    """Return the row of the cipher, whatever version store.lock has; raises as `find_seal` does."""
    try:
        rows = list(db.execute(_WHOLE))
    except apsw.SQLError as error:  # there is no such table
        raise damaged_lock() from error
    if len(rows) != 1 or [type(column) for column in rows[0]] != [str, str, *[bytes] * 5]:
        raise damaged_lock()
    *told, check = rows[0]
    seal = Seal(*told)
    if seal.check != check:
        raise damaged_lock()
    if seal.name != NAME:
        raise Unavailable("the store uses a cipher that this library does not know: upgrade perdure")
    return seal


def replace_cipher(db: apsw.Connection, cipher: Cipher, secret: bytes) -> None:
    """Make this the store's cipher, PLAIN for none.

    Within the write transaction of store.lock that makes the store a generation written under it, and after
    everything else that writes the state. A secret that the store kept, it keeps: under the cipher, or plain.
    """
    state, seal = read_state(db), find_seal(db)
    kept = state.secret is not None or (seal is not None and seal.wrapped != b"")
    if cipher.encrypts:
        db.execute(TABLE)
        made = _new_seal(cipher, secret if kept else b"", state.verifier)
        db.execute(_PUT, (*made, made.check))
        write_state(db, state._replace(secret=None))
    else:
        db.execute("DROP TABLE IF EXISTS main.cipher")
        write_state(db, state._replace(secret=secret if kept else None))
    db.execute(f"PRAGMA main.user_version={SEALED_VERSION if cipher.encrypts else PLAIN_VERSION}")


def unsealed(seal: Seal | None, key: Key | None, state: State) -> Cipher:
    """Return the cipher that the key makes for the store; slow where the key is a passphrase.

    Raises:
        WrongKey: the key is another one, or there is one too many or too few.
        Unavailable: as `Key.cipher`.
    """
    if seal is None:
        if key is not None:
            raise WrongKey(PLAIN_STORE)
        return PLAIN
    if key is None:
        raise WrongKey(NO_KEY)
    if key.is_passphrase and seal.derivation == RAW:
        raise WrongKey(BYTES_WANTED)
    cipher = key.cipher(seal.derivation, seal.salt)
    if not seal.is_of(cipher, state):
        raise WrongKey(OTHER_KEY)
    return cipher


class Keyring:
    """The cipher that an open log knows, and while it changes the key also the next one. Thread-safe."""

    def __init__(self, cipher: Cipher) -> None:
        self._ciphers: tuple[Cipher, ...] = (cipher,)

    def present(self, db: apsw.Connection, state: State) -> Cipher:
        """Return the cipher of the generation that this state names, read in the same transaction.

        Raises:
            WrongKey: the store's key was changed by somebody else.
            Corrupt: what store.lock says of the cipher is damaged.
        """
        seal = find_seal(db)
        for cipher in self._ciphers:
            if seal is None and not cipher.encrypts:
                return cipher
            if seal is not None and cipher.encrypts and seal.is_of(cipher, state):
                return cipher
        raise WrongKey(CHANGED)

    def admit(self, cipher: Cipher) -> None:
        """Know another cipher too: before the transaction that makes it the store's."""
        self._ciphers = (*self._ciphers, cipher)

    def settle(self, cipher: Cipher) -> None:
        """Know this one only: once that transaction has made it the store's."""
        self._ciphers = (cipher,)


def _new_seal(cipher: Cipher, secret: bytes, verifier: bytes) -> Seal:
    nonce = random_secret(NONCE_BYTES)
    seal = Seal(NAME, cipher.derivation, cipher.salt, nonce, _mixed(cipher, nonce, secret), b"")
    return seal._replace(tag=_tag(cipher, seal, verifier))


def _mixed(cipher: Cipher, nonce: bytes, secret: bytes) -> bytes:
    """Return the secret xor a stream of one block: its own inverse, and safe since no nonce comes twice."""
    assert len(secret) in (0, SECRET_BYTES)
    stream = cipher.keyed(b"secret")(nonce)
    return bytes(one ^ other for one, other in zip(secret, stream, strict=False))


def _tag(cipher: Cipher, seal: Seal, verifier: bytes) -> bytes:
    return cipher.keyed(b"tag")(_joined(*seal[:-1], verifier))


def _joined(*fields: str | bytes) -> bytes:
    """Return the fields with their sizes, so that no two lists of fields give the same bytes."""
    parts = [field.encode() if isinstance(field, str) else field for field in fields]
    return b"".join(_size(len(part)) + part for part in parts)
