"""One partition: its records in columns, ascending by id, never changed once made."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from perdure.vectors.coding import Coding
from perdure.vectors.cosine import CHUNK_NUMBERS, Floats, Scores, norms
from perdure.vectors.partitioned.types import DIGEST_PREFIX, LabelFilter, VectorHit, VectorRecord
from perdure.vectors.storage import Block

ABSENT = -1
DIGEST_DOMAIN = b"perdure.vector-partition.v1\0"
_size = Struct("<Q")
_WIRE_FLOATS = np.dtype("<f4")

Flags = npt.NDArray[np.bool_]


class Reference(NamedTuple):
    """What a vector was made of, in words of a repository."""

    node_id: str | None = None
    node_revision: int | None = None
    content_digest: str | None = None

    def size_bytes(self) -> int:
        return sum(len(text.encode()) for text in (self.node_id, self.content_digest) if text is not None)


NO_REFERENCE = Reference()


class Words(NamedTuple):
    """What a partition holds beside numbers; a place in each list is a record."""

    name: str
    ids: tuple[str, ...]
    labels: tuple[dict[str, str], ...]  # keys ascending
    references: tuple[Reference, ...]

    def size_bytes(self) -> int:
        labels = sum(
            len(key.encode()) + len(value.encode()) for each in self.labels for key, value in each.items()
        )
        references = sum(each.size_bytes() for each in self.references if each is not NO_REFERENCE)
        return len(self.name.encode()) + sum(len(id_.encode()) for id_ in self.ids) + labels + references


class LabelColumn(NamedTuple):
    """The values of one label: a number for each distinct value, and the number at each place, or ABSENT."""

    numbers: dict[str, int]
    at: npt.NDArray[np.int32]

    def flags(self, wanted: LabelFilter) -> Flags:
        """Return at which places the label is as wanted."""
        if wanted is None:
            numbers = [ABSENT]
        else:
            values = (wanted,) if isinstance(wanted, str) else wanted
            numbers = [self.numbers[value] for value in values if value in self.numbers]
        flags: Flags = self.at == numbers[0] if len(numbers) == 1 else np.isin(self.at, numbers)
        return flags


class Partition:
    """Words and vectors of one partition, ready to be searched. Threads may share it."""

    def __init__(self, words: Words, vectors: Floats, coding: Coding, digest: bytes | None = None) -> None:
        """`vectors` has a row for each id, normalized where the index normalizes; `digest` where it is known."""
        self.words = words
        self.byte_count = words.size_bytes() + vectors.size * 4
        self.block = _block(vectors, coding)
        self._digest = digest
        self._columns: dict[str, LabelColumn] = {}

    @property
    def name(self) -> str:
        return self.words.name

    @property
    def record_count(self) -> int:
        return len(self.words.ids)

    @property
    def digest(self) -> bytes:
        """SHA-256 over all that the partition holds, whatever the order in which its records were given."""
        if self._digest is None:
            self.encoded()
        assert self._digest is not None
        return self._digest

    def encoded(self) -> bytes:
        """Return all that the partition holds: equal partitions give equal bytes."""
        words = self.words
        labels = [list(each.items()) for each in words.labels]
        references = [each if each != NO_REFERENCE else None for each in words.references]
        head = msgspec.msgpack.encode((words.name, words.ids, labels, references))
        numbers = np.ascontiguousarray(self.block.vectors, dtype=_WIRE_FLOATS).tobytes()
        encoded = _size.pack(len(head)) + head + numbers
        if self._digest is None:
            self._digest = digest_of(encoded)
        return encoded

    def find_place(self, id_: str) -> int | None:
        """Return the place of a record, None where there is none."""
        ids = self.words.ids
        place = bisect_left(ids, id_)
        return place if place < len(ids) and ids[place] == id_ else None

    def flags(self, key: str, wanted: LabelFilter) -> Flags:
        """Return at which places a label is as wanted."""
        column = self._columns.get(key)
        if column is None:
            # Two threads may make it at once, of the same content.
            column = self._columns[key] = self._column(key)
        return column.flags(wanted)

    def record(self, place: int) -> VectorRecord:
        words = self.words
        node_id, node_revision, digest = words.references[place]
        return VectorRecord(
            id=words.ids[place],
            embedding=tuple(self.block.vectors[place].tolist()),
            labels=dict(words.labels[place]),
            node_id=node_id,
            node_revision=node_revision,
            content_digest=digest,
        )

    def hit(self, place: int, score: float) -> VectorHit:
        words = self.words
        node_id, node_revision, digest = words.references[place]
        return VectorHit(
            id=words.ids[place],
            partition=words.name,
            score=score,
            labels=dict(words.labels[place]),
            node_id=node_id,
            node_revision=node_revision,
            content_digest=digest,
        )

    def _column(self, key: str) -> LabelColumn:
        numbers: dict[str, int] = {}
        at = np.full(self.record_count, ABSENT, dtype=np.int32)
        for place, labels in enumerate(self.words.labels):
            value = labels.get(key)
            if value is not None:
                at[place] = numbers.setdefault(value, len(numbers))
        return LabelColumn(numbers, at)


class _Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    name: str
    ids: tuple[str, ...]
    labels: tuple[tuple[tuple[str, str], ...], ...]
    references: tuple[Reference | None, ...]


def decoded(encoded: bytes, dimension: int) -> tuple[Words, Floats]:
    """Return what `Partition.encoded` wrote. ValueError for what it did not write."""
    size = _size.unpack_from(encoded)[0] if len(encoded) >= _size.size else len(encoded)
    start = _size.size + size
    try:
        head = msgspec.msgpack.decode(encoded[_size.size : start], type=_Head)
    except msgspec.MsgspecError as error:
        raise ValueError("its words cannot be read") from error
    count = len(head.ids)
    if len(head.labels) != count or len(head.references) != count:
        raise ValueError("its columns differ in length")
    if len(encoded) != start + 4 * count * dimension:
        raise ValueError("it holds another number of numbers than of records")
    vectors = np.frombuffer(encoded, dtype=_WIRE_FLOATS, offset=start).reshape(count, dimension)
    labels = tuple(dict(each) for each in head.labels)
    references = tuple(each if each is not None else NO_REFERENCE for each in head.references)
    return Words(head.name, head.ids, labels, references), vectors.astype(np.float32)


def digest_of(encoded: bytes) -> bytes:
    """Return the digest of an encoded partition, 32 bytes."""
    hashed = hashlib.sha256(DIGEST_DOMAIN)
    hashed.update(encoded)
    return hashed.digest()


def shown_digest(digest: bytes) -> str:
    return DIGEST_PREFIX + digest.hex()


def in_order(words: Words, vectors: Floats) -> tuple[Words, Floats]:
    """Return the same records, ascending by id."""
    order = sorted(range(len(words.ids)), key=words.ids.__getitem__)
    if order == list(range(len(order))):
        return words, vectors
    return Words(
        words.name,
        tuple(words.ids[at] for at in order),
        tuple(words.labels[at] for at in order),
        tuple(words.references[at] for at in order),
    ), vectors[order]


def _block(vectors: Floats, coding: Coding) -> Block:
    count, dimension = vectors.shape
    block = Block(0, count, dimension, coding.width)
    places = np.arange(count)
    lengths = norms(vectors)
    block.write(places, places, vectors, lengths)
    block.columns.write(places, coding.encode(*_directed(vectors, lengths)))
    return block


def _directed(vectors: Floats, lengths: Scores) -> tuple[Floats, Scores]:
    """Return vectors and lengths with some direction for those of length 0, whose bounds are multiplied by 0."""
    if lengths.all():
        return vectors, lengths
    directed, ones = vectors.copy(), np.where(lengths > 0, lengths, 1.0)
    directed[lengths == 0, 0] = 1.0
    return directed, ones


def unit_vectors(vectors: Floats) -> Floats:
    """Return float32 vectors of length 1, up to rounding, of vectors that are not all zero."""
    units = np.empty_like(vectors)
    lengths = norms(vectors)[:, np.newaxis]
    step = max(1, CHUNK_NUMBERS // vectors.shape[1])
    for start in range(0, len(vectors), step):
        part = slice(start, start + step)
        units[part] = vectors[part] / lengths[part]
    return units
