"""Finding out which generation a damaged store is, under which cipher, and with which secret."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from perdure.base.ids import random_secret
from perdure.base.sqlite.ciphers import PLAIN, RAW, Cipher, Key
from perdure.base.sqlite.driver import DriverError, rows_of, using
from perdure.errors import Corrupt, InvalidRequest, WrongKey
from perdure.log.protocol import SECRET_BYTES
from perdure.log.sqlite.connections import open_generation, see_lock
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.seals import BYTES_WANTED, NO_KEY, OTHER_KEY, PLAIN_STORE, Seal, find_seal, read_seal
from perdure.log.sqlite.state import State, make_verifier, read_state

WAIT_S = 5.0
_LOCK_ROW = "SELECT gen, secret, verifier FROM main.state"


class Secrets(NamedTuple):
    """Whose secret the store has, as far as that could be found out."""

    secret: bytes
    kept: bool  # in the store itself, not outside
    new: bool  # made now: the old one is lost


def find_state(files: StoreFiles, notes: list[str]) -> State | None:
    """Return what store.lock says; with a secret only if the verifier beside it proves that secret."""
    try:
        with using(see_lock(files, WAIT_S)) as db:
            with suppress(Corrupt):
                state = read_state(db)
                if state.dirty:
                    notes.append(
                        "something was being forgotten or purged when the store was last used: look whether it is "
                        "among what was saved, and forget it again"
                    )
                return state
            rows = rows_of(db, _LOCK_ROW)
    except DriverError:
        rows = []
    notes.append("store.lock is damaged or missing: the newest generation was read")
    for generation, secret, verifier in rows[:1]:
        number = generation if type(generation) is int else 0
        proven = type(secret) is bytes and len(secret) == SECRET_BYTES and make_verifier(secret) == verifier
        if type(verifier) is bytes and (proven or secret is None):
            return State(number, False, secret, verifier)
    return None


class Sealing(NamedTuple):
    """What is known of a store's cipher."""

    cipher: Cipher
    secret: bytes | None = None  # the store's, if it is wrapped under the cipher
    is_lost: bool = False  # whether the seal, and with it such a secret, is damaged or missing


def find_sealing(files: StoreFiles, key: Key | None, state: State | None, numbers: list[int]) -> Sealing:
    """Return what is known of the cipher, having tried the key on these generations where nothing else proves it.

    Raises:
        WrongKey: the key is another one, or there is one too many or too few.
        Corrupt: what a passphrase is derived with is lost.
        Unavailable: a newer build wrote it.
    """
    try:
        seal, is_lost = _find_seal(files), state is None and key is not None
    except (*DriverError, Corrupt):
        seal, is_lost = None, True
    if seal is not None:
        return _unsealed(files, seal, key, state, numbers)
    if key is None:
        return Sealing(PLAIN, is_lost=is_lost)
    if key.is_passphrase and is_lost:
        raise Corrupt(
            "store.lock is damaged, and with it what the key is derived from the passphrase with: restore store.lock "
            "from a backup"
        )
    # Without a seal a generation alone tells whether this is its key.
    cipher = PLAIN if key.is_passphrase else key.new_cipher()
    if cipher.encrypts and _reads(files, numbers, cipher):
        return Sealing(cipher, is_lost=True)
    if not is_lost or _reads(files, numbers, PLAIN):
        raise WrongKey(PLAIN_STORE)
    return Sealing(cipher, is_lost=True)


def _find_seal(files: StoreFiles) -> Seal | None:
    with using(see_lock(files, WAIT_S)) as db:
        if rows_of(db, "SELECT 1 FROM main.sqlite_schema WHERE name = 'cipher'"):  # whatever the version says
            return read_seal(db)
        return find_seal(db)


def _unsealed(
    files: StoreFiles, seal: Seal, key: Key | None, state: State | None, numbers: list[int]
) -> Sealing:
    """Return what a seal that is whole says to the right key: that which opens it, or reads a generation."""
    if key is None:
        raise WrongKey(NO_KEY)
    if key.is_passphrase and seal.derivation == RAW:
        raise WrongKey(BYTES_WANTED)
    cipher = key.cipher(seal.derivation, seal.salt)
    if (state is None or not seal.is_of(cipher, state)) and not _reads(files, numbers, cipher):
        raise WrongKey(OTHER_KEY)
    return Sealing(cipher, seal.secret(cipher))


def _reads(files: StoreFiles, numbers: list[int], cipher: Cipher) -> bool:
    """Whether any generation can be read under a cipher."""
    for number in numbers:
        with suppress(*DriverError), using(open_generation(files, number, cipher, WAIT_S)) as db:
            rows_of(db, "SELECT count(*) FROM main.sqlite_schema")
            return True
    return False


def find_secrets(state: State | None, sealing: Sealing, given: bytes | None, notes: list[str]) -> Secrets:
    """Return the store's secret, a new one where the old one is lost; adds to the notes what that means.

    Raises:
        WrongKey: it is another one, or is kept outside and was not given.
        InvalidRequest: the one that was given is no secret.
    """
    if given is not None:
        if len(given) != SECRET_BYTES:
            raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(given)}", field="secret")
        if state is not None and not state.is_of(given):
            raise WrongKey(
                "this store was created with another secret: give that one, or none if it keeps its own"
            )
        return Secrets(bytes(given), kept=False, new=False)
    kept = sealing.secret if sealing.secret is not None else (None if state is None else state.secret)
    if kept is not None:
        return Secrets(kept, kept=True, new=False)
    if state is not None and not sealing.is_lost:
        raise WrongKey("this store's secret is kept outside it: give it as secret=")
    notes.append(
        "the store's secret could not be recovered, so the new store has a new one: idempotency keys that were used "
        "are not known there. If it is kept outside the store, salvage again and give it as secret="
    )
    return Secrets(random_secret(SECRET_BYTES), kept=True, new=True)
