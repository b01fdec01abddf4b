"""Checksums of records and the additive digest of a space: one arithmetic for every backend.

A record's checksum is unkeyed and catches damage. A space's digest is the sum, modulo 2**256, of one keyed
hash per live record, so that adding or erasing a record costs one hash whatever the size of the space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from struct import Struct

import numpy as np

from perdure.base.text import counted
from perdure.errors import Conflict, InvalidRequest
from perdure.log.protocol import CHECK_BYTES, DIGEST_BYTES, KEY_BYTES, Batch, Head, Rewritten

ERASED_CHECK = bytes(CHECK_BYTES)  # beside zeroed bytes: the mark of an erased record
_MODULUS = 1 << (8 * DIGEST_BYTES)
_FEW = 32  # below this many, adding integers is faster than adding columns of an array
_number = Struct("<Q").pack
_key_place = Struct("<QQQQ").pack
place = Struct("<QQ").pack  # (space, seq) as a checksum begins with them
# Copying a hash costs less than making one, and with a key saves hashing that key again.
new_check = blake2b(digest_size=CHECK_BYTES).copy


def checksum(space: int, seq: int, data: bytes) -> bytes:
    """Return the 16-byte blake2b of (space, seq, data): space and seq as unsigned 64-bit little-endian."""
    hashed = new_check()
    hashed.update(place(space, seq))
    hashed.update(data)
    return hashed.digest()


def checksums(space: int, after: int, records: Sequence[bytes]) -> list[bytes]:
    """Return the checksums of records that take the seqs after + 1, after + 2, … in order."""
    return [checksum(space, seq, data) for seq, data in enumerate(records, after + 1)]


def entry_digest(secret: bytes, seq: int, check: bytes) -> int:
    """Return what one live record adds to its space's digest: blake2b-256 of (seq, check), keyed."""
    return digest_sum(secret, ((seq, check),))


def digest_sum(secret: bytes, entries: Iterable[tuple[int, bytes]]) -> int:
    """Return the sum of the entry digests of (seq, check) pairs; not yet reduced modulo 2**256."""
    new, number = blake2b(key=secret, digest_size=DIGEST_BYTES).copy, _number
    digests = []
    for seq, check in entries:
        hashed = new()
        hashed.update(number(seq) + check)
        digests.append(hashed.digest())
    if len(digests) < _FEW:
        return sum(int.from_bytes(digest, "little") for digest in digests)
    limbs = np.frombuffer(b"".join(digests), dtype="<u4").reshape(len(digests), -1)
    return sum(
        int(limb) << (32 * position) for position, limb in enumerate(limbs.sum(axis=0, dtype=np.uint64))
    )


def digest_bytes(total: int) -> bytes:
    """Return a sum of entry digests, reduced modulo 2**256, as the 32 bytes that a head holds."""
    return (total % _MODULUS).to_bytes(DIGEST_BYTES, "little")


def advance(
    head: Head, secret: bytes, checks: Sequence[bytes], erased: Sequence[tuple[int, bytes]] = ()
) -> Head:
    """Return the head after an append.

    Args:
        head: where the space stood.
        checks: the checksums of the new records, which take the seqs after head.seq in order.
        erased: (seq, checksum before erasing) of each record that is live in `head` and now erased.
    """
    total = int.from_bytes(head.digest, "little") + digest_sum(secret, enumerate(checks, head.seq + 1))
    return Head(
        epoch=head.epoch,
        seq=head.seq + len(checks),
        erasures=head.erasures + len(erased),
        digest=digest_bytes(total - digest_sum(secret, erased)),
    )


def check_batch(batch: Batch, seq: int) -> tuple[list[bytes], list[int]]:
    """Return the batch's records as bytes of our own and the distinct seqs to erase, ascending.

    Args:
        seq: the last seq of the space before the batch.

    Raises:
        InvalidRequest: a record is not bytes, an erased seq is outside 1 to `seq`, a key is not KEY_BYTES
            long or points outside the records.
    """
    records = list(batch.records)
    for position, data in enumerate(records):
        if type(data) is not bytes:
            raise InvalidRequest(
                f"records[{position}] must be bytes, got {type(data).__name__}", field="records"
            )
    erase = sorted(set(batch.erase))
    if erase and not 1 <= erase[0] <= erase[-1] <= seq:
        wrong = erase[0] if erase[0] < 1 else erase[-1]
        raise InvalidRequest(f"erase names record {wrong}, but the space holds 1 to {seq}", field="erase")
    for key, position in batch.keys:
        check_key(key, field="keys")
        if not 0 <= position < len(records):
            raise InvalidRequest(
                f"keys points to records[{position}], but the batch has {counted(len(records), 'record')}",
                field="keys",
            )
    return records, erase


def check_unerased(space: int, known: Head, present: Head) -> None:
    """Raise Conflict, of the kind "head", where anything of a space was erased or purged since a head that it had."""
    if not present.seq or (present.epoch, present.erasures) != (known.epoch, known.erasures):
        raise Conflict(
            f"records of space {space}, which these rest on, were erased or purged meanwhile; look again and retry",
            kind="head",
        )


def check_unchanged(known: Head, present: Head) -> None:
    """Raise Conflict, of the kind "head", where a space is not at the head that it had."""
    if present != known:
        raise Conflict(
            "others wrote to a space that this rests on, or purged it; look again and retry", kind="head"
        )


def check_key(key: bytes, *, field: str) -> None:
    """Raise InvalidRequest unless the key is KEY_BYTES bytes."""
    if type(key) is not bytes or len(key) != KEY_BYTES:
        size = f"{counted(len(key), 'byte')}" if isinstance(key, bytes) else type(key).__name__
        raise InvalidRequest(f"{field} must hold hashes of {KEY_BYTES} bytes, got {size}", field=field)


def stored_key(space: int, key: bytes) -> bytes:
    """Return the form in which a log holds a caller's hash: spaces do not share their hashes.

    Names of spaces are kept under space 0, which never exists.
    """
    return blake2b(_key_place(space, 0, 0, 0) + key, digest_size=CHECK_BYTES).digest()


def purged_order(names: Mapping[int, bytes], spaces: Iterable[int]) -> list[int]:
    """Return spaces in the order that a purge gives them: of their names' stored forms.

    Any order that tells when spaces were made would tell of what was forgotten. The spaces without a name
    come last, as they were.
    """
    return sorted(spaces, key=lambda space: (space not in names, names.get(space, b""), space))


def check_first(record: Rewritten) -> None:
    """Raise InvalidRequest when a purge gives keys to what becomes record 1 of a space."""
    if record.keys:
        raise InvalidRequest(
            "record 1 of a space takes no keys: it is found by the space's name", field="keys"
        )
