"""Purging: the next generation is built beside the present one, takes its place, and the old one is overwritten.

The steps, each of which may be the last before a crash:

1. store.lock exclusively: what lies about of other generations is overwritten and unlinked, `dirty` becomes 1.
2. Reads go on in generation N while N+1 is written and synced. Nobody writes: the turn is held throughout.
3. store.lock exclusively: `gen` becomes N+1. Its commit is the switch.
4. store.lock exclusively: generation N is overwritten and unlinked, `dirty` becomes 0.

Before the switch the store is what it was, after it is the purged one. Steps 1 and 4 are what `clean` does for
whoever finds `dirty` at 1 or a stray generation: any process, at any operation, at an opening, at the next purge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import apsw

from perdure.base.disk import sync_directory, sync_file
from perdure.base.sqlite.ciphers import Cipher
from perdure.base.sqlite.driver import DriverError, rows_of
from perdure.errors import Corrupt, Unavailable
from perdure.log.digests import advance, check_first, checksums, purged_order, stored_key
from perdure.log.protocol import ADVICE, EMPTY, Entry, Head, Progress, Purged, Read, Rewrite, Rewritten
from perdure.log.sqlite.access import Access
from perdure.log.sqlite.creation import create_generation
from perdure.log.sqlite.failures import translated
from perdure.log.sqlite.files import HighWater, StoreFiles
from perdure.log.sqlite.reading import HEADS, head_check, parsed_head
from perdure.log.sqlite.seals import Keyring
from perdure.log.sqlite.state import State, read_state

CHUNK_ROWS = 1000  # rows that are hashed and inserted at once
PASSES = 2  # that a rewrite usually makes over a space: progress counts them
# A space whose record 1 is erased has lost its name.
SPACE_NAMES = "SELECT r.space, k.h FROM log.key k JOIN log.rec r ON r.rid = k.rid WHERE r.seq = 1 AND r.ck != zeroblob(16)"

ReadSpace = Callable[[int, int, int], Iterator[Entry]]


def purge(
    access: Access,
    rewrite: Rewrite,
    read: ReadSpace,
    progress: Progress | None,
    cipher: Cipher | None = None,
) -> Purged:
    """Purge the store as `Log.purge` says. The caller has the writer's turn.

    Args:
        read: the log's own `read`.
        cipher: what the store is written under from then on; None for what it is written under now.
    """
    access.begin_purge()
    try:
        source = access.view(partial(_Source, access.keyring))
        target = source.generation + 1
        counter = _Counter(source, progress)
        again = partial(_read_counted, read, counter)
        written = _build(access, source, cipher or source.cipher, again, rewrite)
        counter.end()
        access.switch(partial(_switched, access.files, target), cipher)
    except BaseException:  # raised again: whatever ends a purge before its switch, its half store must go
        access.end_purge()
        raise
    pending = not access.end_purge()
    return Purged(target - 1, written, source.records - written, pending)


def _switched(files: StoreFiles, target: int, state: State) -> State:
    """Return the state after the switch, having looked once more that there is something to switch to."""
    if not files.generation(target).is_file():
        raise Unavailable(
            "the next generation was taken away while it was built; nothing was changed. Purge again"
        )
    return state._replace(generation=target)


class _Source:
    """The generation that is rewritten: its spaces' heads, ascending, and the hashes of their names."""

    def __init__(self, keyring: Keyring, db: apsw.Connection, generation: int) -> None:
        self.generation = generation
        self.cipher = keyring.present(db, read_state(db))
        self.heads = {space: parsed_head(space, generation, row) for space, *row in rows_of(db, HEADS)}
        self.names: dict[int, bytes] = dict(rows_of(db, SPACE_NAMES))
        self.records = sum(head.seq for head in self.heads.values())


class _Counter:
    """Tells the progress of a purge in records read, over all passes."""

    def __init__(self, source: _Source, progress: Progress | None) -> None:
        self._progress, self._total = progress, PASSES * source.records
        self._done = 0

    def count(self) -> None:
        self._done += 1
        if self._progress is not None and self._done % CHUNK_ROWS == 0 and self._done <= self._total:
            self._progress(self._done, self._total)

    def end(self) -> None:
        if self._progress is not None:
            self._progress(self._total, self._total)


def _read_counted(read: ReadSpace, counter: _Counter, space: int, head: Head) -> Iterator[Entry]:
    for entry in read(space, 0, head.seq):
        counter.count()
        yield entry


def _build(
    access: Access,
    source: _Source,
    cipher: Cipher,
    read: Callable[[int, Head], Iterator[Entry]],
    rewrite: Rewrite,
) -> int:
    """Write the next generation, durable and whole but not yet the store; return its number of records."""
    files, number = access.files, source.generation + 1
    building = _Building(access.secret)

    def fill(db: apsw.Connection) -> None:
        for space in purged_order(source.names, source.heads):
            head = source.heads[space]
            again: Read = partial(read, space, head)
            building.add_space(db, source.names.get(space), space, again, rewrite(space, again))
        building.put_keys(db)

    try:
        create_generation(files, number, cipher, fill)
        sync_file(files.generation(number))
        mark = HighWater(files.high_water(number))
        mark.write(building.last_row)
        mark.sync()
        mark.close()
        sync_directory(files.directory)
    except DriverError as error:
        raise translated(error, generation=number) from error
    return building.last_row


class _Building:
    """The rows of a generation in the making: everything in the order of the spaces' names and of records, without gaps."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._space = 0
        self._keys: list[tuple[bytes, int]] = []
        self.last_row = 0

    def add_space(
        self, db: apsw.Connection, name: bytes | None, old: int, read: Read, kept: Iterator[Rewritten]
    ) -> None:
        """Insert what is kept of a space, if anything is."""
        number, head, first_row = self._space + 1, EMPTY, self.last_row + 1
        while chunk := list(islice(kept, CHUNK_ROWS)):
            if head == EMPTY:
                check_first(chunk[0])
            if name is None and head == EMPTY:
                _check_nameless(old, read)
            head = self._insert(db, number, head, chunk)
        if head.seq:
            self._space = number
            row = (number, 0, head.seq, 0, head.digest, head_check(number, head))
            db.execute("INSERT INTO main.head VALUES(?, ?, ?, ?, ?, ?)", row)
        if head.seq and name is not None:
            self._keys.append((name, first_row))

    def _insert(self, db: apsw.Connection, space: int, head: Head, chunk: Sequence[Rewritten]) -> Head:
        checks = checksums(space, head.seq, [record.data for record in chunk])
        rows: list[tuple[int, int, int, bytes, bytes]] = []
        for record, check in zip(chunk, checks, strict=True):
            self.last_row += 1
            rows.append((self.last_row, space, head.seq + len(rows) + 1, record.data, check))
            self._keys += [(stored_key(space, key), self.last_row) for key in record.keys]
        db.executemany("INSERT INTO main.rec VALUES(?, ?, ?, ?, ?)", rows)
        return advance(head, self._secret, checks)

    def put_keys(self, db: apsw.Connection) -> None:
        # In their own order: the table is one b-tree by hash, and a later row of a key takes its place.
        db.executemany("INSERT INTO main.key VALUES(?, ?)", sorted(dict(self._keys).items()))


def _check_nameless(space: int, read: Read) -> None:
    """Raise Corrupt unless the space has lost its name with its record 1."""
    first = next(iter(read()), None)
    if first is not None and first.data is not None:
        raise Corrupt(
            f"space {space} is not found under its name: {ADVICE}",
            space=space,
        )
