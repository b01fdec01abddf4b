"""The file of a tenant's keys, byte by byte: a head with the secret, then a slot a data key."""

from __future__ import annotations

import os
from hashlib import blake2b
from struct import Struct
from typing import Literal
from uuid import UUID

from perdure.base.disk import sync
from perdure.errors import Corrupt, StorageFull
from perdure.log.protocol import SECRET_BYTES

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]
    import msvcrt

KEY_SIZE_BYTES = 32  # AES-256
BINARY = getattr(os, "O_BINARY", 0)  # else Windows would translate line ends
MAGIC = b"perdure keys 1\0\0"
CHECK_BYTES = 16
_header = Struct(f"<16s16s{SECRET_BYTES}s{CHECK_BYTES}s")
_slot = Struct(f"<Q{KEY_SIZE_BYTES}s{CHECK_BYTES}s8x")
HEADER_BYTES, SLOT_BYTES = _header.size, _slot.size
_GONE = bytes(SLOT_BYTES)
_RUN = 4096  # slots that are read and overwritten at a time
_LOCK_PLACE = 1 << 40  # where nothing is ever written: what is locked there cannot be read by others
DAMAGED_ADVICE = "put the newest copy of the tenant's file that you have in its place, then run perdure purge"


def secret_of(tenant: UUID, head: bytes) -> bytes | None:
    """Return the secret in a head; None in one that was never finished, or was overwritten to the end.

    Raises Corrupt where it is damaged, or another tenant's.
    """
    if len(head) < HEADER_BYTES or not any(head):
        return None
    magic, own, secret, check = _header.unpack(head)
    if magic != MAGIC or own != tenant.bytes or check != _check(tenant, 0, secret):
        raise Corrupt(f"the tenant's file in the keystore is damaged at its head: {DAMAGED_ADVICE}")
    return bytes(secret)


def head_of(tenant: UUID, secret: bytes) -> bytes:
    """Return the head of a file."""
    return _header.pack(MAGIC, tenant.bytes, secret, _check(tenant, 0, secret))


def key_at(file: int, tenant: UUID, number: int) -> bytes | Literal[False] | None:
    """Return the key of a number; None where it was destroyed or never made; False where its slot makes no sense.

    So does one that is being destroyed at this moment: look again with the file locked.
    """
    slot = read_at(file, SLOT_BYTES, place(number)) if number > 0 else b""
    if len(slot) < SLOT_BYTES:
        return None
    own, key, check = _slot.unpack(slot)
    if own == 0:  # whoever destroyed it died before the slot's end
        return None
    return bytes(key) if own == number and check == _check(tenant, number, key) else False


def damaged(number: int) -> Corrupt:
    """Return the error of a slot that makes no sense though nobody changes it."""
    return Corrupt(f"data key {number} is damaged in the keystore: {DAMAGED_ADVICE}")


def last_number(file: int) -> int:
    """Return the highest number of a whole slot, 0 where there is none."""
    return max(0, (os.fstat(file).st_size - HEADER_BYTES) // SLOT_BYTES)


def add_keys(file: int, tenant: UUID, keys: list[bytes]) -> list[tuple[int, bytes]]:
    """Give keys the next numbers, durable when it returns.

    What a crash left of an unfinished slot is overwritten, and its number passed over: nobody was told it.
    """
    size = os.fstat(file).st_size - HEADER_BYTES
    whole, unfinished = size // SLOT_BYTES, size % SLOT_BYTES > 0
    made = list(enumerate(keys, 1 + whole + unfinished))
    told = b"".join(_slot.pack(number, key, _check(tenant, number, key)) for number, key in made)
    add_all(file, _GONE * unfinished + told, place(1 + whole))
    return made


def kept_runs(file: int, below: int) -> list[tuple[int, int]]:
    """Return runs of slots of numbers below that are not all zeros: the first number of each, and how many."""
    upto, found = min(below - 1, last_number(file)), []
    for first in range(1, upto + 1, _RUN):
        count = min(_RUN, upto + 1 - first)
        if any(read_at(file, SLOT_BYTES * count, place(first))):
            found.append((first, count))
    return found


def destroy_slots(file: int, first: int, count: int = 1) -> None:
    """Overwrite slots with zeros; `sync` the file afterwards."""
    write_all(file, _GONE * count, place(first))


def place(number: int) -> int:
    """Return where a key's slot begins."""
    return HEADER_BYTES + (number - 1) * SLOT_BYTES


def read_at(file: int, size: int, start: int) -> bytes:
    """Return the bytes there, fewer at the end of the file."""
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def write_all(file: int, told: bytes, start: int) -> None:
    """Write all of it there; raise StorageFull where the disk takes only a part."""
    os.lseek(file, start, os.SEEK_SET)
    if os.write(file, told) < len(told):
        raise StorageFull("the keystore's disk is full: make room and try again")


def add_all(file: int, told: bytes, start: int) -> None:
    """Write at the end of the file, durable when it returns; what cannot be written whole is taken away again."""
    try:
        write_all(file, told, start)
        sync(file)
    except (OSError, StorageFull):
        os.ftruncate(file, start)
        raise


def lock(file: int, *, shared: bool = False) -> None:
    """Wait until nobody else has the file locked, and lock it until it is closed."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    else:
        os.lseek(file, _LOCK_PLACE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)  # of Windows alone


def _check(tenant: UUID, number: int, key: bytes) -> bytes:
    hashed = blake2b(tenant.bytes + number.to_bytes(8, "little") + key, digest_size=CHECK_BYTES)
    return hashed.digest()
