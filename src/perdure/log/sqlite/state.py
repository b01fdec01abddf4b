"""The one row of store.lock: which generation is the store, whether it must be cleaned, whose secret it has."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception's name
from typing import NamedTuple

import apsw

from perdure.errors import Corrupt
from perdure.log.protocol import ADVICE, CHECK_BYTES, SECRET_BYTES

STATE = "SELECT gen, dirty FROM main.state"
UNFINISHED = 0  # the generation while a store is being created
_WHOLE = "SELECT gen, dirty, secret, verifier, ck FROM main.state"
_PUT = "INSERT OR REPLACE INTO main.state VALUES(1, ?, ?, ?, ?, ?)"
_counts = Struct("<QQ").pack


class State(NamedTuple):
    """What store.lock says."""

    generation: int
    dirty: bool
    secret: bytes | None  # None when it is given from outside
    verifier: bytes

    @property
    def check(self) -> bytes:
        """The row's checksum."""
        hashed = blake2b(_counts(self.generation, self.dirty), digest_size=CHECK_BYTES)
        hashed.update(self.secret or b"")
        hashed.update(self.verifier)
        return hashed.digest()

    def is_of(self, secret: bytes) -> bool:
        """Whether the store was made with this secret."""
        return compare_digest(make_verifier(secret), self.verifier)


def make_verifier(secret: bytes) -> bytes:
    """Return what a store keeps of its secret: enough to refuse another one, and no more."""
    return blake2b(b"verifier", key=secret, digest_size=32).digest()


def new_state(secret: bytes, *, keep: bool) -> State:
    """Return the state of a store that is being created; `keep` keeps its secret in it."""
    return State(UNFINISHED, False, secret if keep else None, make_verifier(secret))


def present(db: apsw.Connection) -> tuple[int, int]:
    """Return (gen, dirty), unverified: cheap enough for every operation, since `read_state` checked them once."""
    rows = list(db.execute(STATE))
    if not rows:
        raise damaged_lock()
    generation, dirty = rows[0]
    return generation, dirty


def read_state(db: apsw.Connection) -> State:
    """Return the state, verified.

    Raises:
        Corrupt: the row is missing or damaged, or the secret in it is not the one the store was made with.
    """
    rows = list(db.execute(_WHOLE))
    if len(rows) != 1:
        raise damaged_lock()
    generation, dirty, secret, verifier, check = rows[0]
    kept = secret is None or (type(secret) is bytes and len(secret) == SECRET_BYTES)
    try:
        state = State(generation, bool(dirty), secret, verifier)
        whole = kept and dirty in (0, 1) and state.check == check
    except (StructError, TypeError) as error:  # a damaged column may be of any type
        raise damaged_lock() from error
    if not whole or (secret is not None and not state.is_of(secret)):
        raise damaged_lock()
    return state


def write_state(db: apsw.Connection, state: State) -> None:
    """Replace the row; within a write transaction that read the old one, or made the table."""
    db.execute(_PUT, (state.generation, int(state.dirty), state.secret, state.verifier, state.check))


def damaged_lock() -> Corrupt:
    return Corrupt(f"store.lock is damaged: {ADVICE}")
