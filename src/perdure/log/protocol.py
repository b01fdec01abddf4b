"""The Log protocol: what every backend must do; the shipped suite holds each to it.

A store holds spaces; a space is an append-only sequence of opaque records numbered by
`seq` = 1, 2, 3 … without gaps. Spaces are numbered 1, 2, 3 … without gaps as well, in the order
of their creation. A log orders, stores, verifies and erases bytes; it knows nothing of facts or
time. All methods may be called from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from perdure.model.finding import Finding as Finding  # noqa: PLC0414 - part of the protocol

CHECK_BYTES = 16  # blake2b-128 of a row: enough to catch any accident, small beside the text
KEY_BYTES = 16  # keyed blake2b-128 of an id: collisions are confirmed on the record
SECRET_BYTES = 32
DIGEST_BYTES = 32
# After damage: of files, of a database, and where it is not known which.
ADVICE = "keep the files, run verify --salvage to save what is whole, or restore a backup"
DATABASE_ADVICE = (
    "keep the database and the keystore as they are; restore backups of both, or take the other memories out one by one, with "
    "perdure export --principal NAME --scope NAME for each that perdure spaces lists"
)
ANY_ADVICE = (
    "keep all as it is; save what is whole (verify --salvage of files, perdure export of each other memory of a database), or "
    "restore a backup"
)


class Head(NamedTuple):
    """Where a space stands. Two equal heads of one store hold equal records."""

    epoch: int  # changes at a purge only
    seq: int  # the last record's number; 0 while the space is empty
    erasures: int  # records erased since the last purge
    digest: bytes  # sum modulo 2**256 of keyed digests over live records, little-endian, 32 bytes


EMPTY = Head(epoch=0, seq=0, erasures=0, digest=bytes(DIGEST_BYTES))


class Entry(NamedTuple):
    """One record as read back. `data` is None where it was erased."""

    seq: int
    data: bytes | None


class Batch(NamedTuple):
    """What one append writes, all or nothing.

    `records` take the next seqs in order. `erase` names earlier seqs whose bytes are zero-filled
    in the same transaction (already erased ones are ignored). `keys` maps exact-lookup hashes of
    KEY_BYTES to positions in `records` (0-based); a hash told again points to the newer record. `unerased` names other
    spaces that the records rest on, each with a head that it had: the append is done only if nothing was
    erased of them since, and whoever erases of them does it after the append. `unchanged` names others by the hashes
    that they were created under, each with its head, EMPTY where there is none of the name: the append is done only if all
    are at these heads; whoever rests on this space, as `unerased`, and was committed before is seen there.
    """

    records: Sequence[bytes]
    erase: Sequence[int] = ()
    keys: Sequence[tuple[bytes, int]] = ()
    unerased: Sequence[tuple[int, Head]] = ()
    unchanged: Sequence[tuple[bytes, Head]] = ()


class Cached(NamedTuple):
    """A derived snapshot and the head of the space it was taken at."""

    head: Head
    blob: bytes


class Rewritten(NamedTuple):
    """One record that a purge keeps, with the keys that lead to it from then on.

    Record 1 of a space takes none: what leads to it is the space's name.
    """

    data: bytes
    keys: Sequence[bytes] = ()


Read = Callable[[], Iterator[Entry]]
Rewrite = Callable[[int, Read], Iterator[Rewritten]]
"""Says what a purge keeps of a space: called with its number and with what reads it whole, as often as needed."""

Progress = Callable[[int, int], None]
"""Told how much is done, of how much in all; the unit is the teller's own."""


class Purged(NamedTuple):
    """What a purge did. `pending`: the old files are still to be overwritten; a later operation does it."""

    epoch: int  # of the store from now on
    records: int  # how many there are now
    dropped: int  # how many fewer than before, erased ones included
    pending: bool


class Log(Protocol):
    """Append, read, erase. Times out with Busy, fails closed with Corrupt, never skips a row.

    A log whose erasures are not those of files has an attribute `reach` too, a `perdure.model.certificate.Reach`:
    certificates name its steps.
    """

    @property
    def secret(self) -> bytes:
        """The store's SECRET_BYTES random bytes; every keyed digest of the store uses them."""
        ...

    @property
    def name(self) -> str:
        """The backend's name: memory, sqlite, …"""
        ...

    def epoch(self) -> int:
        """Return the epoch of the store: that of every space's head, one more after each purge."""
        ...

    def spaces(self) -> list[int]:
        """Return the numbers of all spaces, ascending; also of those whose records were all erased."""
        ...

    def find_space(self, name: bytes) -> int | None:
        """Return the space that was created under this keyed name hash (KEY_BYTES), or None.

        A space whose record 1 is erased has lost its name.
        """
        ...

    def create_space(self, name: bytes, first: bytes) -> int:
        """Create a space whose record 1 is `first`; durable when it returns.

        A name that a space has lost may be given out again.

        Raises:
            Conflict: kind "head": a space of that name exists (another process was faster).
            InvalidRequest: `name` is not KEY_BYTES bytes, or `first` is not bytes.
        """
        ...

    def head(self, space: int) -> Head:
        """Return the space's head as last committed by any process; EMPTY for an unknown space.

        Cheap enough to be asked before every read.
        """
        ...

    def writer(
        self, timeout_s: float | None = None, *, space: int | None = None
    ) -> AbstractContextManager[None]:
        """Take the store's writer turn across threads and processes. Writes nothing by itself.

        Only fairness depends on it: `append` is a compare-and-set of its own. Not reentrant.

        Args:
            timeout_s: how long to wait for the turn, 0 or less for not at all; the log's own time-out when None.
            space: the one that is to be written to, 0 for one that is still to be made: a log may let others write to
                other spaces meanwhile. None keeps all writers out.

        Raises:
            Busy: others kept the turn for as long.
        """
        ...

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        """Append and erase in one atomic transaction, durable when it returns.

        Raises:
            Conflict: kind "head": the space's head is not `expected`, or something was erased of a space of
                `unerased`, or written to one of `unchanged`; nothing was written.
            NotFound: there is no such space; only `create_space` makes one.
            InvalidRequest: a record is not bytes, an erased seq is outside 1 to expected.seq, or a key is
                not KEY_BYTES long or points outside the records.
            StorageFull, Busy, Unavailable: nothing was written.

        May wait for the writer's turn, unless the calling thread has it.
        """
        ...

    def read(self, space: int, after: int, upto: int) -> Iterator[Entry]:
        """Yield the entries with after < seq <= upto in order, each verified against its checksum.

        What lies past the head is left out; an unknown space has nothing. A read of a whole space
        (after 0, upto its head) also recomputes its digest and counts what was erased. No lock is held
        between two entries: a record may be erased meanwhile and then reads None.

        Raises:
            Corrupt: a row is missing, repeated or damaged, or the rows do not add up to the digest.
            Moved: a purge renumbered the space while it was being read.
        """
        ...

    def get(self, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
        """Return the records of these seqs in the order asked, verified; None where erased.

        Raises:
            Moved: the space's epoch or erasures differ from `head`, or it holds fewer records; read the head again.
            InvalidRequest: a seq is not within 1 to the space's last one.
            Corrupt: a row is missing or damaged.
        """
        ...

    def find(self, space: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """Return the seqs of the records that carry these key hashes; unknown ones are left out.

        An erased record's key may still be found (its record then reads None).
        """
        ...

    def scrub(self) -> bool:
        """Clean what erasures left elsewhere (write-ahead log, caches). True when nothing is left;
        False while something keeps it from the last step: a reader, a full disk (a later operation
        finishes it). What was erased stays erased either way."""
        ...

    def scrub_pending(self) -> bool:
        """Whether an erasure has left something that is still to be cleaned; only looks."""
        ...

    def purge(self, rewrite: Rewrite, progress: Progress | None = None) -> Purged:
        """Rewrite the store so that nothing is left of what was erased, not even its places.

        For every space `rewrite` gives the records that it holds from now on. A space that is left with none is
        gone, and its name with it. Records keep their order; spaces take that of their names' keyed hashes, so
        that nothing tells which came first; both are numbered without gaps again. The epoch is one more, caches
        are dropped; equal records in equal spaces give equal files, whatever was
        there before. Holds the writer's turn; reads go on meanwhile. All or nothing: a failure, of `rewrite`
        too, leaves the store as it was. Runs also when nothing was erased.

        Args:
            rewrite: must not call this log but by what it is given.
            progress: told the records that were read so far, of all.

        Raises:
            Busy: readers or another writer kept the store; nothing was changed.
            StorageFull: there is no room for a second copy of the store; nothing was changed.
            Corrupt, Unavailable.
        """
        ...

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
        """Check all that is kept, whatever was checked before, and yield what is wrong; nothing when all is whole.

        Changes nothing and goes on after each finding. Others may write meanwhile. `quick` leaves out what
        needs every record's bytes, as far as the backend can.

        Raises:
            Busy, Unavailable: it could not be looked at.
        """
        ...

    def backup(self, directory: Path, progress: Progress | None = None) -> None:
        """Copy the store as it is at one moment into a directory that does not exist yet, or is empty.

        The copy is a store of the same secret and key. Writers go on meanwhile; a purge does not.

        Raises:
            InvalidRequest: the directory is in use, or lies within the store.
            Unavailable: this backend keeps no files.
            Busy, StorageFull, Corrupt: the directory is left as it was.
        """
        ...

    def note_backup(self, at: int) -> None:
        """Keep with the store that a copy of it was made at this moment (ms): certificates name such copies."""
        ...

    def backups(self) -> list[int]:
        """Return the moments at which copies were noted, in the order they were."""
        ...

    def put_cache(self, space: int, name: str, cached: Cached) -> None:
        """Keep a derived snapshot in place of the space's older one of this name.

        Refused silently when (epoch, erasures) moved; may be dropped at any time."""
        ...

    def get_cache(self, space: int, name: str) -> Cached | None:
        """Return the newest snapshot whose (epoch, erasures) are the space's, unverified against
        the records but whole (its own checksum holds); a damaged one is dropped and None returned."""
        ...

    def check_writable(self) -> None:
        """Look whether a write would find room and be allowed. Writes nothing, waits for nobody.

        Raises:
            StorageFull: little is left of the medium, though a small write might still fit.
            Unavailable: the medium may only be read, or is gone.
        """
        ...

    def size_bytes(self) -> int:
        """Return the bytes the store takes on its medium (0 when it has none)."""
        ...

    def reclaimable_bytes(self) -> int:
        """Return about how many of these a purge would give back: the places of erased records, what is free
        but not returned, caches. What it folds together comes on top."""
        ...

    def close(self) -> None:
        """Release everything. Idempotent; later calls raise Unavailable."""
        ...
