"""What a log holds beyond a state: read as of one head, and held against its digest before it is applied.

So a state is always what the log held at a head that it had: also where erasures come between two readings, and where
the log's database was put back to an earlier moment and went on from there another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from perdure.base.text import counted
from perdure.errors import Busy, Corrupt, Moved
from perdure.lexical.profile import Profile
from perdure.log.digests import ERASED_CHECK, advance, checksum, digest_bytes, digest_sum
from perdure.log.protocol import CHECK_BYTES, EMPTY, Entry, Head, Log
from perdure.log.records import GoneRecord, Record, RemovalRecord, SpaceRecord, decode
from perdure.space.checks import Checks
from perdure.space.heads import content_of, may_follow
from perdure.space.preparing import Prepared, prepare
from perdure.space.state import SpaceState, new_state

ATTEMPTS = 64  # erasures in a row that overtake a reading of what came since the one before


class Beyond:
    """The records of a space after `known`, up to `head`, as they are there. `read` makes one."""

    def __init__(self, log: Log, number: int, known: Head) -> None:
        self._log, self._number = log, number
        self.known = self.head = known
        self._records: list[Record | None] = []
        self._checks = bytearray()  # of the records, as a state has them
        self._removed: set[int] = set()  # what removals among them say that they erased
        self.is_gone = False  # whether the space was erased whole
        self.looks = 0  # at where the space stood: more than one where erasures came between

    def take(self, upto: int) -> bool:
        """Read on, up to a seq; False where the log holds less."""
        fresh = set[int]()
        for entry in self._entries(upto):
            record = None if entry.data is None else decode(entry.data, space=self._number, seq=entry.seq)
            self._records.append(record)
            self._checks += (
                ERASED_CHECK if entry.data is None else checksum(self._number, entry.seq, entry.data)
            )
            if isinstance(record, RemovalRecord):
                fresh.update(record.seqs)
            elif isinstance(record, GoneRecord):
                self.is_gone = True
        self._blank(fresh)
        self._removed |= fresh
        return self._next > upto

    @property
    def _next(self) -> int:
        return self.known.seq + len(self._records) + 1

    def _entries(self, upto: int) -> Iterator[Entry]:
        if self._next == 2:  # all of the space, so that the log holds it against its digest as well
            return islice(self._log.read(self._number, 0, upto), 1, None)
        return iter(self._log.read(self._number, self._next - 1, upto))

    def _blank(self, seqs: set[int]) -> None:
        """Have what was read before it was erased be erased here too."""
        for seq in seqs:
            place = seq - self.known.seq - 1
            if 0 <= place < len(self._records):
                self._records[place] = None
                self._checks[place * CHECK_BYTES : (place + 1) * CHECK_BYTES] = ERASED_CHECK

    def check_holes(self) -> None:
        """Raise Corrupt where records are erased that no removal names."""
        holes = (seq for seq, record in enumerate(self._records, self.known.seq + 1) if record is None)
        unnamed = [seq for seq in holes if seq not in self._removed]
        if unnamed and not self.is_gone:
            raise Corrupt(
                f"{counted(len(unnamed), 'record was', 'records were')} zeroed without a removal that covers them: run a verify",
                space=self._number,
                seq=unnamed[0],
            )

    def adds_up(self, checks: Checks) -> bool:
        """Whether these records continue those of a state at `known`, whose checksums these are."""
        known, secret = self.known, self._log.secret
        lost = checks.live(seq for seq in self._removed if seq <= known.seq)
        live = [
            (seq, bytes(self._checks[place * CHECK_BYTES : (place + 1) * CHECK_BYTES]))
            for place, (seq, record) in enumerate(enumerate(self._records, known.seq + 1))
            if record is not None
        ]
        erasures = known.erasures + len(lost) + len(self._records) - len(live)
        total = (
            int.from_bytes(known.digest, "little")
            + digest_sum(secret, live)
            - digest_sum(secret, sorted(lost))
        )
        return (known.epoch, erasures, digest_bytes(total)) == (
            self.head.epoch,
            self.head.erasures,
            self.head.digest,
        )

    def checks(self) -> bytes:
        """Return the checksums of the records, one after the other."""
        return bytes(self._checks)

    def prepared(self, profile: Profile) -> list[Prepared]:
        """Return the records that live, ready to apply."""
        return [
            prepare(seq, record, profile, self._log.secret)
            for seq, record in enumerate(self._records, self.known.seq + 1)
            if record is not None
        ]


def read_beyond(log: Log, number: int, known: Head, head: Head) -> Beyond | None:
    """Return what the log holds beyond a state's head, up to `head` or to where the log stood after the reading.

    None where the space was purged meanwhile, or its database put back: what was looked at before is no more.

    Raises:
        Corrupt: records are damaged, or were zeroed without a removal.
        Busy: erasures came faster than they could be read.
    """
    beyond = Beyond(log, number, known)
    try:
        for _ in range(ATTEMPTS):
            is_whole = beyond.take(head.seq)
            now = log.head(number)
            if not is_whole or not may_follow(head, now):
                return None
            beyond.head, beyond.looks = head, beyond.looks + 1
            if content_of(now) == content_of(head):
                beyond.check_holes()
                return beyond
            head = now  # something was erased meanwhile, maybe before it was read: what did it comes after `head`
    except Moved:
        return None
    except Corrupt:
        now = log.head(number)
        if may_follow(head, now):
            raise
        return None
    raise Busy("the space is being erased from again and again; retry the read")


def begin_state(log: Log, number: int, head: Head) -> SpaceState | None:
    """Return the state of a space's record 1 alone, None where that is erased; what follows is applied next."""
    first = next(iter(log.read(number, 0, 1)), None)
    if first is None or first.data is None:
        return None
    record = decode(first.data, space=number, seq=1)
    if not isinstance(record, SpaceRecord):
        raise Corrupt("the first record of the space is damaged: run a verify", space=number, seq=1)
    state, check = new_state(record), checksum(number, 1, first.data)
    state.checks.extend(check)
    state.stand_at(advance(EMPTY._replace(epoch=head.epoch), log.secret, [check]))
    return state
