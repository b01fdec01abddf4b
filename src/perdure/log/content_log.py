"""A whole log over anything that can load a store's content and make one change of it durable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Protocol

from perdure.base.haste import WouldWait, is_hurried
from perdure.base.text import counted
from perdure.errors import Busy, Corrupt, Unavailable
from perdure.log.commits import Commits
from perdure.log.content import (
    Change,
    Content,
    check_digest,
    damaged_rows,
    entries,
    plan_append,
    plan_space,
    points,
    purged_content,
    same_content,
)
from perdure.log.digests import check_batch, check_key
from perdure.log.protocol import Batch, Cached, Entry, Finding, Head, Progress, Purged, Rewrite
from perdure.log.turns import ThreadTurn


class Medium(Protocol):
    """Where a content is kept, by one process at a time. The log calls it from one thread at a time."""

    @property
    def name(self) -> str:
        """The backend's name."""
        ...

    def load(self) -> Content:
        """Return the content with every committed change. The log only reads it, under its lock.

        Called before every operation: keep the content, or read it anew where that is cheap enough.

        Raises:
            Corrupt: what is kept is damaged.
            Unavailable: it cannot be read.
        """
        ...

    def commit(self, change: Change) -> None:
        """Make a change durable, whole or not at all; from now on `load` returns a content that has it.

        A failure leaves the content as it was. The rows that the change erases are on the medium no more when
        `scrub` has returned True.

        Raises:
            StorageFull, Unavailable: nothing was committed.
        """
        ...

    def replace(self, content: Content) -> None:
        """Keep this content in place of the other, whole or not at all; `load` returns it from now on.

        Nothing of the other is left on the medium when `scrub` has returned True.

        Raises:
            StorageFull, Unavailable: the other content is kept.
        """
        ...

    def scrub(self) -> bool:
        """Clean what erasures left; True when nothing is left."""
        ...

    def scrub_pending(self) -> bool:
        """Whether there is something for `scrub` to clean."""
        ...

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong on the medium itself, found without the content that was loaded."""
        ...

    def backup(self, directory: Path) -> None:
        """Copy the medium into a new or empty directory; Unavailable where there are no files."""
        ...

    def note_backup(self, at: int) -> None:
        """Keep that a copy was made at this moment (ms)."""
        ...

    def backups(self) -> list[int]:
        """Return the moments that were noted, in the order they were."""
        ...

    def size_bytes(self) -> int:
        """Return the bytes taken on the medium."""
        ...

    def close(self) -> None:
        """Release everything; called once."""
        ...


class ContentLog:
    """The Log protocol over a medium: numbering, verified reads, compare and set, keys, turns.

    Caches are kept in the process alone. Spaces, rows and keys cost memory for as long as the medium keeps
    its content.
    """

    def __init__(self, medium: Medium, *, timeout_s: float = 30.0) -> None:
        """Use what the medium holds.

        Args:
            medium: this log's alone from now on; closed with it.
            timeout_s: how long `writer` waits for its turn before it raises Busy.
        """
        self._medium = medium
        self._secret = medium.load().secret
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._turn = ThreadTurn()
        self._caches: dict[tuple[int, str], Cached] = {}
        self._closed = False
        self.commits = Commits()

    @property
    def secret(self) -> bytes:
        return self._secret

    @property
    def name(self) -> str:
        return self._medium.name

    def epoch(self) -> int:
        with self._content() as content:
            return content.epoch

    def spaces(self) -> list[int]:
        with self._content() as content:
            return list(range(1, len(content.spaces) + 1))

    def find_space(self, name: bytes) -> int | None:
        with self._content() as content:
            return content.names.get(name)

    def create_space(self, name: bytes, first: bytes) -> int:
        check_key(name, field="name")
        records, _ = check_batch(Batch(records=[first]), 0)
        with self._content() as content:
            change = plan_space(content, name, records[0])
            with self.commits.timed():
                self._medium.commit(change)
            return change.space

    def head(self, space: int) -> Head:
        with self._content() as content:
            return content.space(space).head

    @contextmanager
    def writer(self, timeout_s: float | None = None, *, space: int | None = None) -> Iterator[None]:
        self._check_open()
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        if not self._turn.take(wait_s):
            raise Busy(f"another writer kept the turn for {counted(wait_s, 'second')}; try again")
        try:
            yield
        finally:
            self._turn.give()

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        records, erase = check_batch(batch, expected.seq)
        with self._content() as content:
            change = plan_append(content, space, expected, batch._replace(records=records), erase)
            with self.commits.timed():
                self._medium.commit(change)
            if change.erase:
                self._caches = {place: kept for place, kept in self._caches.items() if place[0] != space}
            return change.head

    def read(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        after = max(after, 0)
        with self._content() as content:
            found = content.space(space)
            head, whole = found.head, after == 0 and upto >= found.head.seq
            rows = found.rows[after : None if whole else max(upto, 0)]  # rows past the head are damage too
        if whole:
            check_digest(space, self._secret, head, rows)
        return entries(space, after, rows)

    def get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        with self._content() as content:
            return points(space, content.space(space), seqs, head)

    def find(self, space: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
        with self._content() as content:
            keys = content.space(space).keys
            return {key: keys[key] for key in hashes if key in keys}

    def scrub(self) -> bool:
        with self._content():
            return self._medium.scrub()

    def scrub_pending(self) -> bool:
        with self._content():
            return self._medium.scrub_pending()

    def purge(self, rewrite: Rewrite, progress: Progress | None = None) -> Purged:
        # Readers wait: a content is one value, and there is no telling what they would see meanwhile.
        with self._shared_turn(), self._content() as content:
            before = sum(len(space.rows) for space in content.spaces)
            purged = purged_content(content, rewrite, progress)
            self._medium.replace(purged)
            self._caches.clear()
            after = sum(len(space.rows) for space in purged.spaces)
            return Purged(purged.epoch, after, before - after, pending=not self._medium.scrub())

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
        self._check_open()
        return self._findings(quick, progress)

    def _findings(self, quick: bool, progress: Progress | None) -> Iterator[Finding]:
        with self._content() as content:
            spaces = [(space.head, space.rows[:]) for space in content.spaces]
            found = list(self._medium.findings())
        yield from found
        total, done = sum(len(rows) for _, rows in spaces), 0
        for number, (head, rows) in enumerate(spaces, 1):
            if not quick:
                yield from damaged_rows(number, rows)
            try:
                check_digest(number, self._secret, head, rows)
            except Corrupt as error:
                yield Finding(error.message, number)
            done += len(rows)
            if progress is not None:
                progress(done, total)

    def backup(self, directory: Path, progress: Progress | None = None) -> None:
        with self._content() as content:
            self._medium.backup(directory)
            if progress is not None:
                total = sum(len(space.rows) for space in content.spaces)
                progress(total, total)

    def note_backup(self, at: int) -> None:
        with self._content():
            self._medium.note_backup(at)

    def backups(self) -> list[int]:
        with self._content():
            return self._medium.backups()

    def put_cache(self, space: int, name: str, cached: Cached) -> None:
        with self._content() as content:
            head = content.space(space).head
            if head.seq and same_content(head, cached.head):
                self._caches[space, name] = Cached(cached.head, bytes(cached.blob))

    def get_cache(self, space: int, name: str) -> Cached | None:
        with self._content() as content:
            cached = self._caches.get((space, name))
            return cached if cached and same_content(content.space(space).head, cached.head) else None

    def check_writable(self) -> None:
        """Pass: only some media can tell beforehand."""
        with self._content():
            return

    def size_bytes(self) -> int:
        with self._content():
            return self._medium.size_bytes()

    def reclaimable_bytes(self) -> int:
        with self._content():
            return 0  # an erased record is a mark without a place

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._caches.clear()
                self._medium.close()

    @contextmanager
    def _shared_turn(self) -> Iterator[None]:
        if self._turn.mine:
            yield
            return
        with self.writer():
            yield

    @contextmanager
    def _content(self) -> Iterator[Content]:
        if is_hurried():
            if not self._lock.acquire(blocking=False):  # whoever has it may be waiting for the disk
                raise WouldWait
        else:
            self._lock.acquire()
        try:
            self._check_open()
            yield self._medium.load()
        finally:
            self._lock.release()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the log was closed; open it again")
