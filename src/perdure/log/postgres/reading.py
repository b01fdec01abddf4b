"""Records as they are read: run after run, each run as of one moment, opened and held against the head's digest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perdure.errors import Busy, Corrupt, InvalidRequest, Moved
from perdure.log.digests import checksum, digest_bytes, digest_sum
from perdure.log.postgres.access import Access, parsed
from perdure.log.postgres.connections import Session
from perdure.log.postgres.replica import Replica
from perdure.log.postgres.sealing import lacks_key
from perdure.log.protocol import DATABASE_ADVICE, EMPTY, Entry, Head

RUN_MIN = 64  # records of the first run: each may be of a megabyte
RUN_MAX = 8_192
RUN_BYTES = 4 << 20  # what a run is to take, by the size of the records before
TAIL_MAX = 10_000  # records appended while a whole space is read that are still added to its digest
POINTS_MAX = 10_000  # numbers that one statement asks for
ATTEMPTS = 5  # of reading what is being written anew

SealedRow = tuple[int, int, bytes | None]  # seq, key, data


class Run(NamedTuple):
    """Where a space stands, and some of its records, as of one moment."""

    head: Head
    rows: list[SealedRow]


def read_run(session: Session, access: Access, space: int, after: int, upto: int, count: int) -> Run:
    """Read the records after < seq <= upto in order, at most so many."""
    own = session.in_transaction  # then the locked row keeps others from writing
    with session.together():
        if not own:
            session.begin(snapshot=True)
        heads = session.send("head", (access.tenant, space))
        # The epoch is that of the head, which is known when the statement runs; the read is one round trip.
        rows = session.send(
            "records_between", (access.tenant, space, access.tenant, space, after, upto, count)
        )
        if not own:
            session.commit()
    return Run(parsed(heads.fetchone()), rows.fetchall())


def opened(access: Access, space: int, epoch: int, rows: Sequence[SealedRow]) -> list[Entry]:
    """Return the records of rows.

    Raises:
        Corrupt: one is damaged.
        Moved: one was written anew under another key meanwhile; read again.
        Unavailable: the tenant was deleted meanwhile.
    """
    sealer = access.sealer
    with access.telling_gone():
        sealer.learn({key for _, key, data in rows if data is not None})
        return [
            Entry(seq, None if data is None else sealer.open(key, space, epoch, seq, data))
            for seq, key, data in rows
        ]


def entries(access: Access, space: int, after: int, upto: int) -> Iterator[Entry]:
    """Yield the entries after < seq <= upto, as `Log.read` does."""
    whole = WholeSpace(access.secret) if after == 0 else None
    replica = access.replica if whole is not None and upto > 1 and access.turns.held.locked is None else None
    first, position, count, is_replicated = EMPTY, after, RUN_MIN, False
    while True:
        told = None if replica is None else _replicated_run(replica, access, space, (position, upto, count))
        replica, is_replicated = (None, is_replicated) if told is None else (replica, True)
        run, found = told or _opened_run(access, space, position, upto, count)
        if position == after:
            first = run.head
            # Of a part of a space nothing tells whether it is right, but what is from a replica is held against the rest.
            whole = None if upto < first.seq and not is_replicated else whole
        elif run.head.epoch != first.epoch:
            raise Moved(f"space {space} was purged while it was read; read it again from its start")
        check_run(space, position, found)
        yield from found
        position += len(found)
        if whole is not None:
            whole.add(space, found)
        if position >= min(upto, run.head.seq):
            break
        if not found:
            raise missing(space, position + 1)
        count = _next_count(run.rows)
    # An erasure during the read took records out of the digest that were added to the sum.
    if whole is not None and run.head.erasures == first.erasures:
        try:
            _check_whole(access, space, whole, run.head, position, is_to_end=is_replicated)
        except Corrupt:
            if is_replicated and access.replica is not None:
                raise access.replica.distrust() from None
            raise


def _replicated_run(
    replica: Replica, access: Access, space: int, wanted: tuple[int, int, int]
) -> tuple[Run, list[Entry]] | None:
    """Return a run of records as a replica has them, under the primary's head; None where it does not serve.

    The primary is asked first. What was erased by then is erased in what is taken from the replica: it has come as far
    in the one history of both, since the number of erasures only grows.
    """
    after, upto, count = wanted
    head = parsed(access.view(lambda session: session.row("head", (access.tenant, space))))

    def work(session: Session) -> tuple[Run, list[Entry]] | None:
        run = read_run(session, access, space, after, upto, count)
        if (run.head.epoch, run.head.erasures) != (head.epoch, head.erasures):
            replica.tell("is behind the primary")
            return None
        # What has come to it since the primary was asked is left for the next reading.
        rows = [row for row in run.rows if row[0] <= head.seq]
        return (Run(head, rows), opened(access, space, head.epoch, rows)) if rows else None

    return replica.view(work)


def _opened_run(access: Access, space: int, after: int, upto: int, count: int) -> tuple[Run, list[Entry]]:
    lacking = None
    for _ in range(ATTEMPTS):
        run = access.view(lambda session: read_run(session, access, space, after, upto, count))
        if run.head == EMPTY:
            access.check_there()  # nothing is read of a tenant that was deleted, and it is not empty
        try:
            return run, opened(access, space, run.head.epoch, run.rows)
        except Moved as error:
            lacking = _checked_lack(space, error, lacking)
    raise Busy("the space is being erased from again and again; retry the read")


def _checked_lack(space: int, error: Moved, before: object) -> object:
    """Return the number of the key that is gone.

    Raises Corrupt where rows that were read after that was seen still name it: a key is destroyed only after they do not.
    """
    number = error.details.get("key")
    if number == before:
        raise lacks_key(space, error) from error
    return number


def _check_whole(
    access: Access, space: int, whole: WholeSpace, head: Head, position: int, *, is_to_end: bool
) -> None:
    """Hold what was read, with what was appended meanwhile, against the digest; however much that is with `is_to_end`."""
    while position < head.seq and (is_to_end or whole.tail <= TAIL_MAX):
        run, found = _opened_run(access, space, position, head.seq, TAIL_MAX // 10)
        if (run.head.epoch, run.head.erasures) != (head.epoch, head.erasures):
            return  # an erasure of what was read: there is nothing to hold it against
        check_run(space, position, found)
        if not found:
            raise missing(space, position + 1)
        whole.add(space, found)
        whole.tail += len(found)
        position += len(found)
    if position >= head.seq:
        whole.check(space, head)


class WholeSpace:
    """The sum of the digests of all live records that were read."""

    def __init__(self, secret: bytes) -> None:
        self._secret, self._sum, self.tail = secret, 0, 0

    def add(self, space: int, found: Sequence[Entry]) -> None:
        live = ((seq, checksum(space, seq, data)) for seq, data in found if data is not None)
        self._sum += digest_sum(self._secret, live)

    def check(self, space: int, head: Head) -> None:
        if digest_bytes(self._sum) != head.digest:
            raise Corrupt(
                f"the records of space {space} do not add up to its head: {DATABASE_ADVICE}", space=space
            )


def check_run(space: int, after: int, found: Sequence[Entry]) -> None:
    """Raise Corrupt where a record is missing between those that were read."""
    if found and found[-1].seq != after + len(found):
        place = next(number for number, entry in enumerate(found, after + 1) if entry.seq != number)
        raise missing(space, place)


def _next_count(rows: Sequence[SealedRow]) -> int:
    size = sum(len(data) for _, _, data in rows if data is not None) // max(1, len(rows))
    return max(1, min(RUN_MAX, RUN_BYTES // max(1, size)))


def points(access: Access, space: int, seqs: Sequence[int], head: Head) -> list[bytes | None]:
    """Return the records of these numbers, as `Log.get` does."""
    lacking = None
    for _ in range(ATTEMPTS):
        rows = access.view(
            lambda session: session.rows("head_and_records", (list(set(seqs)), access.tenant, space))
        )
        if not rows:
            access.check_there()
        actual = parsed(rows[0] if rows else None)
        # What one statement read is of one moment, so the records are those of this head.
        if (actual.epoch, actual.erasures) != (head.epoch, head.erasures) or actual.seq < head.seq:
            raise Moved(
                f"space {space} had records erased, was purged or put back since the head was read; read it again"
            )
        try:
            found = dict(opened(access, space, actual.epoch, [row[4:] for row in rows if row[4] is not None]))
        except Moved as error:  # written anew between the statement and the keystore
            lacking = _checked_lack(space, error, lacking)
            continue
        return [_point(space, seq, found, actual) for seq in seqs]
    raise Busy("the space is being erased from again and again; retry the read")


def _point(space: int, seq: int, found: dict[int, bytes | None], head: Head) -> bytes | None:
    if seq in found:
        return found[seq]
    if 1 <= seq <= head.seq:
        raise missing(space, seq)
    raise InvalidRequest(f"seqs names record {seq}, but space {space} holds 1 to {head.seq}", field="seqs")


def missing(space: int, seq: int) -> Corrupt:
    """Return the error of a record that is not there."""
    return Corrupt(f"record {seq} of space {space} is missing: {DATABASE_ADVICE}", space=space, seq=seq)
