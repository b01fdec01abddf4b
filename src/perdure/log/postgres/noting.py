"""Data keys are noted before anything is sealed under them, so that none is left of a transaction that fails.

What a transaction sent lies in dead rows and in the write-ahead log also where it was undone. So the numbers of the keys
that it is to use are committed first, as notes. The transaction itself takes its notes away, it *claims* the keys: that is
committed, or undone, with all that it wrote. A note that nobody is about to claim is of a transaction that came to nothing,
and its key is condemned by the next scrub. Whoever finds a note doomed, or gone, takes other keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from perdure.errors import Busy, Unavailable
from perdure.log.postgres.connections import Session
from perdure.log.postgres.queries import multi_row
from perdure.log.postgres.sealing import PLAIN
from perdure.log.postgres.wire import Params, Reply

ATTEMPTS = 5  # of taking keys that others do not doom before they are claimed, which is a moment
ROWS_MAX = 256  # of one statement; a power of two


class Snapshot(NamedTuple):
    """What a snapshot is taken of. Its key is doomed once the space's erasures moved on, claimed or not."""

    space: int
    epoch: int
    erasures: int


NO_SNAPSHOT = Snapshot(0, 0, 0)  # for records: their key is claimed at once


class Fresh:
    """Data keys that one transaction has claimed, to be taken one after the other, ascending."""

    def __init__(self, numbers: Sequence[int] | None) -> None:
        """None where nothing is encrypted: then every key is PLAIN."""
        self._numbers = numbers
        self._taken = 0

    def take(self) -> int:
        """Return the next one."""
        if self._numbers is None:
            return PLAIN
        self._taken += 1
        return self._numbers[self._taken - 1]

    @property
    def all(self) -> Sequence[int]:
        """All of them, taken or not."""
        return self._numbers or ()

    @property
    def left(self) -> Sequence[int]:
        """Those that were not taken."""
        return self.all[self._taken :]


class Doomed(Exception):
    """Keys were doomed before they could be claimed: begin anew with others."""


class Claim:
    """The answer to a claim, once the round trip that it goes with has ended."""

    def __init__(self, numbers: Sequence[int], reply: Reply | None) -> None:
        self._numbers, self._reply = numbers, reply

    def check(self, keys_from: int = PLAIN) -> None:
        """Raise Doomed unless all keys were claimed, and none is of the time before the last purge."""
        if self._reply is None:
            return
        if len(self._reply.fetchall()) < len(self._numbers) or self._numbers[0] < keys_from:
            raise Doomed


def note(session: Session, tenant: UUID, numbers: Sequence[int], snapshot: Snapshot = NO_SNAPSHOT) -> None:
    """Commit notes of keys; with what follows, where that is said together.

    A transaction that the session is in must have changed nothing: it ends, and its locks with it.
    """
    with session.together():
        if not session.in_transaction:
            session.begin()
        # Not waited for until it is on the disk: the write-ahead log is written, and sent to standbys, in its order. So
        # wherever anything arrives that is sealed under these keys, the notes have arrived before.
        session.send("set_lazy_commit")
        rows = [(tenant, number, *snapshot) for number in numbers]
        insert(session, "add_notes", "note_row", rows, "already_noted")
        session.run(
            "END"
        )  # as COMMIT; whoever reads the server's log tells it from that of the transaction itself


def claim(session: Session, tenant: UUID, numbers: Sequence[int], *, of_snapshot: bool = False) -> Claim:
    """Take the notes away within the session's transaction; look at what is returned after the round trip.

    Args:
        of_snapshot: whose space's row the transaction has locked. One whose space's erasures moved on is not claimed.
    """
    name = "claim_snapshot" if of_snapshot else "claim"
    return Claim(numbers, session.send(name, (tenant, list(numbers))) if numbers else None)


def begin(session: Session, tenant: UUID, numbers: Sequence[int]) -> Claim:
    """Begin a transaction that has claimed these keys, noted just before: all in one round trip.

    Claimed before the transaction waits for anything: nobody dooms a key that is claimed. Nobody waits for a claim either,
    so none is part of a circle.
    """
    with session.together():
        if numbers:
            note(session, tenant, numbers)
        session.begin()
        return claim(session, tenant, numbers)


def doom(session: Session, tenant: UUID, numbers: Sequence[int] | None = None) -> list[int]:
    """Condemn the keys whose notes nobody has claimed, of these or of all, and commit; return their numbers."""
    if numbers is None:
        rows = session.rows("unclaimed", (tenant,))
    else:
        rows = session.rows("unclaimed_of", (tenant, list(numbers)))
    found = [int(row[0]) for row in rows]
    if found:
        with session.together():
            session.send("doom", (tenant, found))
            session.commit()
    return found


def insert(session: Session, statement: str, row: str, rows: Sequence[Params], end: str = "") -> None:
    """Insert rows by as few statements as there are powers of two in their number, so that few are prepared."""
    start = 0
    while start < len(rows):
        count = min(ROWS_MAX, 1 << ((len(rows) - start).bit_length() - 1))
        params = [value for one in rows[start : start + count] for value in one]
        session.run(multi_row(statement, row, count, end), params)
        start += count


def too_busy() -> Busy:
    """Return the error of a write whose keys were doomed again and again."""
    return Busy(
        "data keys that were made for this write were destroyed by others again and again; nothing was changed: try again"
    )


def unknown() -> Unavailable:
    """Return the error of a write that may have been stored, or not."""
    return Unavailable(
        "the database did not confirm a write: the connection broke, or a synchronous standby is away. Whether it was stored is "
        "unknown. Look, or repeat it under the same id or idempotency key, once the database is there",
        kind="unconfirmed",
    )
