"""Which id a number of the log means: keyed digests by number, learnt from the records as they are read."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.audit.rows import NO_DIGEST, FactDigests
from perdure.log.protocol import Entry
from perdure.log.records import FactRecord, NodeRecord, Record

DIGEST_BYTES = 16
Entries = Iterable[Entry]
_UNKNOWN = bytes(DIGEST_BYTES)


class Numbers:
    """The digests of one space's facts and nodes, 16 bytes each.

    `since`: records up to this one were not read yet; what they tell is unknown until they are.
    """

    def __init__(self, digests: FactDigests, since: int) -> None:
        self._digests, self.since = digests, since
        self.upto, self.check = since, b""  # the last record that was read, and its checksum
        self._facts, self._nodes = bytearray(), bytearray()

    def learn(self, record: Record) -> bytes:
        """Note the number that a record gives out; return the digest of its id, none where it gives out none."""
        if isinstance(record, FactRecord):
            return self.learn_fact(record.number, record.id)
        if isinstance(record, NodeRecord):
            digest = self._digests.of(record.id)
            _put(self._nodes, record.number, digest)
            return digest
        return NO_DIGEST

    def learn_fact(self, number: int, id_: str) -> bytes:
        """Note a fact's number; the units of a document have those after its own. Returns the digest of its id."""
        digest = self._digests.of(id_)
        _put(self._facts, number, digest)
        return digest

    def knows_fact(self, number: int) -> bool:
        return _get(self._facts, number) != NO_DIGEST

    def knows_node(self, number: int) -> bool:
        return _get(self._nodes, number) != NO_DIGEST

    def fact(self, number: int) -> bytes:
        """Return a fact's digest; none where its record was erased before it was read."""
        return _get(self._facts, number)

    def node(self, number: int) -> bytes:
        """Return a node's digest, likewise."""
        return _get(self._nodes, number)

    def id_digest(self, id_: str) -> bytes:
        """Return the digest of an id of the space."""
        return self._digests.of(id_)

    def find(self, wanted: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the numbers of the facts that have these digests, ascending; unknown ones are left out."""
        return _find(self._facts, wanted)

    def find_nodes(self, wanted: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the numbers of the nodes, likewise."""
        return _find(self._nodes, wanted)

    @property
    def size_bytes(self) -> int:
        return len(self._facts) + len(self._nodes)


def _find(table: bytearray, wanted: Iterable[bytes]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for digest in set(wanted):
        place = table.find(digest)
        while place >= 0:
            if place % DIGEST_BYTES == 0:
                found.setdefault(digest, []).append(place // DIGEST_BYTES)
            place = table.find(digest, place + 1)
    return found


def _put(table: bytearray, number: int, digest: bytes) -> None:
    place = number * DIGEST_BYTES
    if place == len(table):
        table += digest
        return
    if place > len(table):
        table.extend(bytes(place - len(table)))
    table[place : place + DIGEST_BYTES] = digest


def _get(table: bytearray, number: int) -> bytes:
    place = number * DIGEST_BYTES
    found = bytes(table[place : place + DIGEST_BYTES]) if number >= 0 else NO_DIGEST
    return NO_DIGEST if found == _UNKNOWN else found
