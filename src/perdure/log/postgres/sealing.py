"""Records and caches as the database holds them: sealed under data keys that it never sees, or with a checksum."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from perdure.base.ids import random_secret
from perdure.errors import Corrupt, Moved
from perdure.log.digests import checksum
from perdure.log.postgres.keystore import Keystore
from perdure.log.protocol import CHECK_BYTES, DATABASE_ADVICE, Head

RECORDS_MAX = (
    256  # of one data key: what a forget writes anew, so that the key of the forgotten can be destroyed
)
KEYS_AHEAD = (
    16  # made at once, so that few writes wait for the keystore; what is not used is lost with the process
)
KEYS_AHEAD_MAX = 256
KEYS_KNOWN_MAX = 16_384  # ciphers of about half a kilobyte
NONCE_BYTES = 12
PLAIN = 0  # the number of no key
_place = Struct("<16scQQQ").pack
_snapshot = Struct("<QQQ32s").pack


class Sealed(NamedTuple):
    """A record as a row holds it."""

    key: int
    data: bytes


class CachePlace(NamedTuple):
    """What a cache is of: its parts open only as the parts of that very one."""

    space: int
    name: str
    head: Head
    parts: int


class Sealer:
    """Seals and opens one tenant's bytes. Thread-safe.

    A data key is for the records of one space whose numbers share `(seq - 1) // RECORDS_MAX`, or for one cache.
    """

    def __init__(self, tenant: UUID, keystore: Keystore | None) -> None:
        """Use a keystore, or none: then records are stored as they are, beside a checksum."""
        self._tenant, self._keystore = tenant, keystore
        self._known: OrderedDict[int, AESGCM] = OrderedDict()
        self._lock = threading.Lock()  # never held while the keystore is asked
        self._let_go = 0  # how often keys were let go of
        self._ahead: list[tuple[int, bytes]] = []
        self._ahead_of = -1  # the epoch that they were made for
        self._newest = 0  # number that was ever given out here
        self._seen: dict[int, tuple[int, int]] = {}  # epoch and erasures of each space

    @property
    def encrypts(self) -> bool:
        """Whether it does."""
        return self._keystore is not None

    def lacks(self, epoch: int, count: int) -> bool:
        """Whether the keystore has to be asked for so many fresh keys of this epoch."""
        return self._keystore is not None and (self._ahead_of != epoch or len(self._ahead) < count)

    def new_keys(self, epoch: int, count: int, used: int = 0) -> list[int]:
        """Return numbers of fresh keys, for records and caches of this epoch only, ascending.

        Args:
            used: a number that was in use before this was called.

        Raises Corrupt where the keystore gives out numbers that are in use.
        """
        if self._keystore is None:
            return [PLAIN] * count
        with self._lock:
            if self._ahead_of != epoch:
                self._ahead, self._ahead_of = [], epoch
            ahead, newest = self._ahead, max(used, self._newest)
            taken = ahead[:count]
            del ahead[:count]
        lacking = count - len(taken)
        more = min(KEYS_AHEAD_MAX, KEYS_AHEAD + count)
        made = self._made(self._keystore, lacking + more, newest) if lacking else []
        with self._lock:
            taken += made[:lacking]
            if made:
                self._newest = max(self._newest, made[-1][0])
            if self._ahead is ahead:  # else they are of an epoch that went by, or too old for a purge
                ahead += made[lacking:]
                ahead.sort()
            for number, key in taken:
                self._keep(number, key)
        return [number for number, _ in taken]

    def keys_of_purge(self, count: int, used: int) -> list[int]:
        """Return numbers of keys that are made now, for the epoch that a purge begins, ascending.

        Whoever makes keys of that epoch later has seen it, and is given higher numbers. So all keys of a lower number than
        the first of these are of the time before, and none of these is kept for later: the purge may fail, and another one
        begin that epoch.
        """
        if self._keystore is None:
            return [PLAIN] * count
        made = self._made(self._keystore, count, max(used, self._newest))
        with self._lock:
            self._newest = max(self._newest, made[-1][0])
            for number, key in made:
                self._keep(number, key)
        return [number for number, _ in made]

    def drop_ahead(self) -> None:
        """Make the next keys anew."""
        with self._lock:
            self._ahead = []

    def _made(self, keystore: Keystore, count: int, newest: int) -> list[tuple[int, bytes]]:
        # Not under the lock: a keystore may be slow. `newest` is that of before, since others ask at the same time.
        made = list(keystore.new_keys(self._tenant, count))
        if made[0][0] <= newest:
            raise Corrupt(
                f"the keystore made data key {made[0][0]} twice: an older copy of it was put in its place. Put the newer "
                "copy back"
            )
        return made

    def note(self, space: int, epoch: int, erasures: int) -> None:
        """Take notice of where a space stands; let go of all keys where others have erased since it was last seen.

        One of them may have been destroyed. Those that are still there are asked for again when they are needed.
        """
        if self._keystore is None or self._seen.get(space) == (epoch, erasures):
            return
        with self._lock:
            before = self._seen.get(space)
            self._seen[space] = (epoch, erasures)
            if before is not None:
                self._known.clear()
                self._let_go += 1

    def lacking(self, numbers: Collection[int]) -> set[int]:
        """Return which of these keys are not at hand."""
        if self._keystore is None:
            return set()
        return {number for number in numbers if number != PLAIN and number not in self._known}

    def learn(self, numbers: Collection[int]) -> None:
        """Have these keys at hand, as far as there still are such."""
        while self._keystore is not None and (lacking := self.lacking(numbers)):
            let_go = self._let_go
            found = self._keystore.find_keys(self._tenant, lacking)
            with self._lock:
                if self._let_go == let_go:  # else one of them may have been destroyed since it was found
                    for number, key in found.items():
                        self._keep(number, key)
                    return

    def seal(self, key: int, space: int, epoch: int, seq: int, data: bytes) -> bytes:
        """Return what a row holds of a record at its place."""
        if key == PLAIN:
            return checksum(space, seq, data) + data
        nonce = random_secret(NONCE_BYTES)
        return nonce + self._cipher(key).encrypt(
            nonce, data, _place(self._tenant.bytes, b"r", space, epoch, seq)
        )

    def open(self, key: int, space: int, epoch: int, seq: int, sealed: bytes) -> bytes:
        """Return a record's bytes, verified.

        Raises:
            Corrupt: they are not what was sealed at this place.
            Moved: its key is gone, as when the record was written anew meanwhile; read it again.
        """
        if key == PLAIN:
            data = sealed[CHECK_BYTES:]
            if self._keystore is None and checksum(space, seq, data) == sealed[:CHECK_BYTES]:
                return data
            raise _damaged(space, seq)
        place = _place(self._tenant.bytes, b"r", space, epoch, seq)
        try:
            return self._cipher(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)
        except (InvalidTag, ValueError) as error:
            raise _damaged(space, seq) from error

    def seal_parts(self, key: int, of: CachePlace, parts: Sequence[bytes]) -> Iterator[bytes]:
        """Yield what rows hold of a cache's parts; the key is for this cache alone."""
        for number, part in enumerate(parts):
            if key == PLAIN:
                yield checksum(of.space, number, part) + part
            else:
                # A number of its own under a key of its own: no nonce comes twice.
                nonce, place = number.to_bytes(NONCE_BYTES, "little"), self._part(of, number)
                yield self._cipher(key).encrypt(nonce, part, place)

    def open_part(self, key: int, of: CachePlace, number: int, sealed: bytes) -> bytes | None:
        """Return a cache's part; None where it is damaged or its key is gone."""
        if key == PLAIN:
            part = sealed[CHECK_BYTES:]
            whole = self._keystore is None and checksum(of.space, number, part) == sealed[:CHECK_BYTES]
            return part if whole else None
        nonce, place = number.to_bytes(NONCE_BYTES, "little"), self._part(of, number)
        try:
            return self._cipher(key).decrypt(nonce, sealed, place)
        except (InvalidTag, ValueError, Moved):
            return None

    def forget(self, numbers: Collection[int]) -> None:
        """Let go of keys that were destroyed."""
        with self._lock:
            self._let_go += 1
            for number in numbers:
                self._known.pop(number, None)

    def forget_below(self, number: int) -> None:
        """Let go of all keys of lower numbers."""
        with self._lock:
            self._let_go += 1
            for known in [one for one in self._known if one < number]:
                del self._known[known]
            self._ahead = [one for one in self._ahead if one[0] >= number]

    def _part(self, of: CachePlace, number: int) -> bytes:
        place = _place(self._tenant.bytes, b"c", of.space, of.head.epoch, number)
        return place + _snapshot(of.head.seq, of.head.erasures, of.parts, of.head.digest) + of.name.encode()

    def _cipher(self, number: int) -> AESGCM:
        found = self._known.get(number)
        if found is None:
            self.learn((number,))
            found = self._known.get(number)
            if found is None:
                raise Moved(f"data key {number} is gone; read again", key=number)
        return found

    def _keep(self, number: int, key: bytes) -> None:
        self._known[number] = AESGCM(key)
        while len(self._known) > KEYS_KNOWN_MAX:
            self._known.popitem(last=False)


def bucket(seq: int) -> int:
    """Return which of a space's data keys is that of a record."""
    return (seq - 1) // RECORDS_MAX


def lacks_key(space: int, error: Moved) -> Corrupt:
    """Return the error of a record whose key is gone though nobody wrote it anew."""
    return Corrupt(
        f"the keystore lacks data key {error.details.get('key')}, which records of space {space} are sealed with: an older "
        "copy of the keystore, or of the database, was put in its place. Put the copy back that goes with the other",
        space=space,
    )


def _damaged(space: int, seq: int) -> Corrupt:
    return Corrupt(f"record {seq} of space {space} is damaged: {DATABASE_ADVICE}", space=space, seq=seq)
