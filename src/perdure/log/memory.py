"""A log in memory: for tests and for memories that need not outlive the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from perdure.base.ids import random_secret
from perdure.errors import Busy, Conflict, Corrupt, InvalidRequest, Moved, NotFound, Unavailable
from perdure.log.digests import (
    ERASED_CHECK,
    advance,
    check_batch,
    check_key,
    checksum,
    checksums,
    digest_bytes,
    digest_sum,
)
from perdure.log.protocol import EMPTY, SECRET_BYTES, Batch, Cached, Entry, Head
from perdure.log.turns import ThreadTurn


@dataclass(slots=True)
class _Space:
    head: Head = EMPTY
    rows: list[tuple[bytes | None, bytes]] = field(default_factory=list)  # (data, checksum) of seq 1, 2, …
    keys: dict[bytes, int] = field(default_factory=dict)
    caches: dict[str, Cached] = field(default_factory=dict)


class MemoryLog:
    """Everything in Python objects; gone at `close`. Erased bytes leave no reference behind."""

    name = "memory"

    def __init__(self, secret: bytes | None = None, *, timeout_s: float = 30.0) -> None:
        """Start empty.

        Args:
            secret: SECRET_BYTES bytes; random when None.
            timeout_s: how long `writer` waits for its turn before it raises Busy.
        """
        if secret is not None and len(secret) != SECRET_BYTES:
            raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(secret)}", field="secret")
        self._secret = random_secret(SECRET_BYTES) if secret is None else bytes(secret)
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._turn = ThreadTurn()
        self._spaces: dict[int, _Space] = {}
        self._names: dict[bytes, int] = {}
        self._closed = False

    @property
    def secret(self) -> bytes:
        return self._secret

    def spaces(self) -> list[int]:
        with self._opened():
            return sorted(self._spaces)

    def find_space(self, name: bytes) -> int | None:
        with self._opened():
            return self._names.get(name)

    def create_space(self, name: bytes, first: bytes) -> int:
        check_key(name, field="name")
        records, _ = check_batch(Batch(records=[first]), 0)
        with self._opened():
            if name in self._names:
                raise Conflict(
                    f"a space of this name exists already, as number {self._names[name]}; use find_space",
                    kind="head",
                )
            number = len(self._spaces) + 1
            space = _Space()
            self._commit(number, space, records, [])
            self._spaces[number] = space
            self._names[name] = number
            return number

    def head(self, space: int) -> Head:
        with self._opened():
            found = self._spaces.get(space)
            return EMPTY if found is None else found.head

    @contextmanager
    def writer(self) -> Iterator[None]:
        self._check_open()
        if not self._turn.take(self._timeout_s):
            raise Busy(f"another writer kept the turn for {self._timeout_s} seconds; try again")
        try:
            yield
        finally:
            self._turn.give()

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        records, erase = check_batch(batch, expected.seq)
        with self._opened():
            found = self._spaces.get(space)
            if found is None:
                raise NotFound(f"there is no space {space}; create_space makes one", field="space")
            if found.head != expected:
                raise Conflict(
                    f"space {space} is at record {found.head.seq}, not {expected.seq}, or was erased in; "
                    "catch up and try again",
                    kind="head",
                )
            before = found.head.seq
            self._commit(space, found, records, erase)
            found.keys.update((key, before + 1 + position) for key, position in batch.keys)
            return found.head

    def read(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        with self._opened():
            found = self._spaces.get(space)
            after = max(after, 0)
            rows = [] if found is None else found.rows[after : max(upto, 0)]
            head = EMPTY if found is None else found.head
        if after == 0 and len(rows) == head.seq:
            self._check_digest(space, head, rows)
        return self._entries(space, after, rows)

    def get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        with self._opened():
            found = self._spaces.get(space, _Space())
            if (found.head.epoch, found.head.erasures) != (head.epoch, head.erasures):
                raise Moved(f"space {space} had records erased since the head was read; read it again")
            for seq in seqs:
                if not 1 <= seq <= found.head.seq:
                    raise InvalidRequest(
                        f"seqs names record {seq}, but space {space} holds 1 to {found.head.seq}",
                        field="seqs",
                    )
            rows = [(seq, found.rows[seq - 1]) for seq in seqs]
        return [_verified(space, seq, row) for seq, row in rows]

    def find(self, space: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
        with self._opened():
            keys = self._spaces[space].keys if space in self._spaces else {}
            return {key: keys[key] for key in hashes if key in keys}

    def scrub(self) -> bool:
        with self._opened():
            return True

    def put_cache(self, space: int, name: str, cached: Cached) -> None:
        with self._opened():
            found = self._spaces.get(space)
            if found is not None and _same_content(found.head, cached.head):
                found.caches[name] = Cached(cached.head, bytes(cached.blob))

    def get_cache(self, space: int, name: str) -> Cached | None:
        with self._opened():
            found = self._spaces.get(space)
            cached = None if found is None else found.caches.get(name)
            return cached if found and cached and _same_content(found.head, cached.head) else None

    def size_bytes(self) -> int:
        with self._opened():
            return 0

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._spaces.clear()
            self._names.clear()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._lock:
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the log was closed; open it again")

    def _commit(self, number: int, space: _Space, records: list[bytes], erase: list[int]) -> None:
        checks = checksums(number, space.head.seq, records)
        erased = [(seq, space.rows[seq - 1][1]) for seq in erase if space.rows[seq - 1][0] is not None]
        head = advance(space.head, self._secret, checks, erased)
        # Nothing below can fail, so a batch is whole or absent.
        for seq, _ in erased:
            space.rows[seq - 1] = (None, ERASED_CHECK)
        if erased:
            space.caches.clear()
        space.rows.extend(zip(records, checks, strict=True))
        space.head = head

    def _check_digest(self, space: int, head: Head, rows: list[tuple[bytes | None, bytes]]) -> None:
        live = ((seq, check) for seq, (data, check) in enumerate(rows, 1) if data is not None)
        if digest_bytes(digest_sum(self._secret, live)) != head.digest:
            raise Corrupt(f"the records of space {space} do not add up to its digest", space=space)

    @staticmethod
    def _entries(space: int, after: int, rows: list[tuple[bytes | None, bytes]]) -> Iterator[Entry]:
        for seq, row in enumerate(rows, after + 1):
            yield Entry(seq, _verified(space, seq, row))


def _verified(space: int, seq: int, row: tuple[bytes | None, bytes]) -> bytes | None:
    data, check = row
    if data is not None and checksum(space, seq, data) != check:
        raise Corrupt(f"record {seq} of space {space} is damaged in memory", space=space, seq=seq)
    return data


def _same_content(head: Head, other: Head) -> bool:
    return (head.epoch, head.erasures) == (other.epoch, other.erasures)
