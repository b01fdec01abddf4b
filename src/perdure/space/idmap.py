"""Where an id's fact is: an open-addressed table of 64-bit keyed hashes.

A dict of id strings would cost 150 bytes or more a fact. Two ids may share a hash, so that every
answer is a candidate which the caller confirms on the record.
"""

from __future__ import annotations

from array import array

from perdure.base.ids import keyed_hash

_EMPTY = -1
_SPREAD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: neighbours come to lie far apart
_LOAD_MAX = 0.6  # linear probing stays below two probes on average


def id_digest(secret: bytes, id_: str) -> bytes:
    """Return the id's 16-byte digest under the store's secret: the source of `id_hash`."""
    return keyed_hash(secret, b"id", id_.encode())


def id_hash(digest: bytes) -> int:
    """Return the 64 bits of an id's digest that the table keeps."""
    return int.from_bytes(digest[:8], "little")


def use_hash(context: bytes, number: int) -> int:
    """Return where a fact's use in a context (named by its digest) is kept.

    Each fact of a context has a place of its own: under one hash for all, the table would be walked from end to end.
    """
    return (id_hash(context) + number * _SPREAD) % 2**64


class IdMap:
    """A multimap from 64-bit hashes to fact numbers, 13 to 27 bytes an entry."""

    def __init__(self, capacity: int = 64) -> None:
        self._size = max(64, 1 << (capacity - 1).bit_length())
        self._hashes = array("Q", bytes(8 * self._size))
        self._numbers = array("i", [_EMPTY]) * self._size
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def add(self, hash_: int, number: int) -> None:
        """Add a pair; the same hash may be added for several numbers."""
        if self._filled >= self._size * _LOAD_MAX:
            self._resize()
        mask = self._size - 1
        slot = hash_ & mask
        numbers = self._numbers
        while numbers[slot] >= 0:
            slot = (slot + 1) & mask
        self._filled += 1
        self._hashes[slot], numbers[slot] = hash_, number

    def find(self, hash_: int) -> list[int]:
        """Return the numbers added under this hash, the newest last.

        Forgotten facts stay in the table until it is rebuilt: check that each number still exists.
        """
        mask = self._size - 1
        slot = hash_ & mask
        hashes, numbers = self._hashes, self._numbers
        found: list[int] = []
        while (number := numbers[slot]) != _EMPTY:
            if hashes[slot] == hash_:
                found.append(number)
            slot = (slot + 1) & mask
        return found

    def _resize(self) -> None:
        pairs = [(h, n) for h, n in zip(self._hashes, self._numbers, strict=True) if n >= 0]
        grown = IdMap(self._size * 2)
        for hash_, number in pairs:
            grown.add(hash_, number)
        self._size, self._hashes, self._numbers = grown._size, grown._hashes, grown._numbers

    def dump(self) -> tuple[bytes, bytes]:
        """Return (hashes, numbers) as little-endian arrays, for a snapshot."""
        return self._hashes.tobytes(), self._numbers.tobytes()

    @classmethod
    def load(cls, hashes: bytes, numbers: bytes) -> IdMap:
        """Return the map that `dump` described; raises ValueError for arrays of other shapes."""
        table = cls()
        table._hashes, table._numbers = array("Q"), array("i")
        table._hashes.frombytes(hashes)
        table._numbers.frombytes(numbers)
        size = len(table._numbers)
        if size < 64 or size & (size - 1) or len(table._hashes) != size:
            raise ValueError("id map arrays have the wrong shape")
        table._size = size
        table._filled = size - table._numbers.count(_EMPTY)
        if table._filled >= size:
            raise ValueError("id map is over-full")
        return table
