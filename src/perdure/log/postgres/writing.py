"""What one append, one creation of a space, writes: within a transaction that has locked what it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from perdure.errors import Conflict, PerdureError
from perdure.log.digests import advance, checksum, checksums, stored_key
from perdure.log.postgres import noting
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Session
from perdure.log.postgres.failures import is_broken
from perdure.log.postgres.noting import Doomed, Fresh, insert
from perdure.log.postgres.reading import check_run, missing, opened
from perdure.log.postgres.sealing import PLAIN, RECORDS_MAX, bucket
from perdure.log.postgres.turns import Locked
from perdure.log.protocol import EMPTY, Head


class RecordRow(NamedTuple):
    """A row of the table of records."""

    tenant: UUID
    space: int
    epoch: int
    seq: int
    key: int
    data: bytes


def keys_needed(head: Head, key: int | None, records: int, erased: Sequence[int]) -> int:
    """Return how many fresh data keys an append takes at most: one for each bucket that it begins or writes anew.

    Args:
        key: of the bucket that the head's last record is in; None where it is not known, and taken to be there.
        records: how many it adds.
        erased: the numbers of those that it erases.
    """
    counts = Counter(bucket(seq) for seq in erased)
    # Of one that is erased as a whole nothing is left to be written anew.
    anew = {number for number, count in counts.items() if count < _size(number, head)}
    if records:
        first = bucket(head.seq + 1)
        goes_on = first == bucket(head.seq) and key != PLAIN and first not in counts
        anew.update(range(first + goes_on, bucket(head.seq + records) + 1))
    return len(anew)


def _size(number: int, head: Head) -> int:
    return min(head.seq, (number + 1) * RECORDS_MAX) - number * RECORDS_MAX


def record_rows(
    access: Access, space: int, head: Head, key: int, records: Sequence[bytes], fresh: Fresh
) -> tuple[list[RecordRow], int]:
    """Return the rows of records that follow a head, and the key of the last one's bucket.

    Args:
        key: of the bucket that the head's last record is in; not asked for where that one is full.
        fresh: what the keys of buckets that begin here are taken from.
    """
    number, rows = bucket(head.seq), list[RecordRow]()
    for seq, data in enumerate(records, head.seq + 1):
        if bucket(seq) != number or (key == PLAIN and access.sealer.encrypts):
            number, key = bucket(seq), fresh.take()
        sealed = access.sealer.seal(key, space, head.epoch, seq, data)
        rows.append(RecordRow(access.tenant, space, head.epoch, seq, key, sealed))
    return rows, key


def plan_append(
    access: Access, space: int, head: Head, records: Sequence[bytes], erased: Sequence[tuple[int, bytes]]
) -> Head:
    """Return where a space stands after an append."""
    return advance(head, access.secret, checksums(space, head.seq, records), erased)


class Erased(NamedTuple):
    """What erasures within a transaction did."""

    live: list[tuple[int, bytes]]  # the (seq, checksum) of what was not erased before
    key: int  # of the bucket of the last record
    freed: int  # the bytes that were given back


class Change(NamedTuple):
    """What an append changes beside what it erased."""

    space: int
    before: Head
    after: Head
    records: Sequence[bytes]
    keys: Sequence[tuple[bytes, int]]
    erased: Erased


def write_append(access: Access, session: Session, change: Change, fresh: Fresh) -> int:
    """Write the records, keys and head of an append, and commit, in one round trip; return the last record's key."""
    space, before, after = change[:3]
    rows, last = record_rows(access, space, before, change.erased.key, change.records, fresh)
    size = sum(len(row.data) for row in rows)
    newest = {stored_key(space, hash_): before.seq + 1 + position for hash_, position in change.keys}
    found = [(access.tenant, space, before.epoch, hash_, seq) for hash_, seq in newest.items()]
    with session.together():
        if change.erased.live:
            _drop_what_was_derived(access, session, space, change.erased)
        insert(session, "add_records", "record_row", rows)
        insert(session, "add_lookups", "lookup_row", found, "newer_wins")
        newest_key, grown = max((last, *fresh.all)), size - change.erased.freed
        told = (after.seq, after.erasures, after.digest, last, newest_key, grown, access.tenant, space)
        session.send("move_head", told)
        session.commit()
    return last


def _drop_what_was_derived(access: Access, session: Session, space: int, erased: Erased) -> None:
    for name in ("condemn_caches", "drop_caches", "drop_all_cache_parts"):
        session.send(name, (access.tenant, space))
    if not access.sealer.encrypts:
        session.send("stain_tenant", (access.tenant,))
    if erased.live[0][0] == 1:
        session.send("drop_name", (access.tenant, space))


def erase(access: Access, locked: Locked, seqs: Sequence[int]) -> Erased:
    """Erase records, and write those that shared a data key with them anew under another, so that it can be destroyed.

    Args:
        seqs: distinct, ascending, within the head.
    """
    session, space, head, key = locked.session, locked.space, locked.head, locked.key
    wanted, live, freed = set(seqs), list[tuple[int, bytes]](), 0
    for number, rows in _buckets(access, session, space, head, sorted({bucket(seq) for seq in seqs})):
        done = _erase_bucket(access, locked, rows, wanted)
        live += done.live
        freed += done.freed
        if number == bucket(head.seq) and done.live:
            key = done.key
    return Erased(live, key, freed)


def _buckets(
    access: Access, session: Session, space: int, head: Head, wanted: Sequence[int]
) -> Iterator[tuple[int, list[tuple[int, int, bytes | None]]]]:
    for number in wanted:
        after, upto = number * RECORDS_MAX, min(head.seq, (number + 1) * RECORDS_MAX)
        rows = session.rows("records_of", (access.tenant, space, head.epoch, after, upto))
        if len(rows) != upto - after:
            there = {row[0] for row in rows}
            raise missing(space, next(seq for seq in range(after + 1, upto + 1) if seq not in there))
        yield number, [(row[0], row[1], row[2]) for row in rows]


def _erase_bucket(
    access: Access, locked: Locked, rows: Sequence[tuple[int, int, bytes | None]], wanted: set[int]
) -> Erased:
    session, space, head = locked.session, locked.space, locked.head
    entries = opened(access, space, head.epoch, rows)
    check_run(space, rows[0][0] - 1, entries)
    live = [(seq, checksum(space, seq, data)) for seq, data in entries if data is not None and seq in wanted]
    if not live:
        return Erased([], PLAIN, 0)
    freed = sum(len(data) for seq, _, data in rows if data is not None and seq in wanted)
    spoilt = {key for _, key, data in rows if data is not None and key != PLAIN}
    survivors = [(seq, data) for seq, data in entries if data is not None and seq not in wanted]
    key = locked.fresh.take() if survivors else PLAIN
    with session.together():
        session.send("erase_records", (access.tenant, space, head.epoch, [seq for seq, _ in live]))
        if access.sealer.encrypts and survivors:
            seal, first = access.sealer.seal, survivors[0][0]
            anew: list[bytes | None] = [None] * (survivors[-1][0] - first + 1)  # by their numbers
            for seq, data in survivors:
                anew[seq - first] = seal(key, space, head.epoch, seq, data)
            place = (access.tenant, space, head.epoch, [seq for seq, _ in survivors])
            session.send("rewrite_records", (key, anew, first - 1, *place))
        for number in sorted(spoilt):
            session.send("condemn", (access.tenant, number))
    return Erased(live, key, freed)


def write_space(access: Access, name: bytes, first: bytes) -> int:
    """Create a space and number it, in a transaction of its own.

    Raises Conflict where there is one of the name; Busy, Corrupt, Unavailable; the driver's errors.
    """
    for _ in range(noting.ATTEMPTS):
        numbers = access.new_keys(access.epoch, 1)
        try:
            with access.changing(numbers) as session:
                made = _write_space(access, session, (name, first), access.fresh(numbers))
        except Doomed:
            access.sealer.drop_ahead()
            continue
        except psycopg.Error as error:
            if not is_broken(error):
                access.abandon(numbers)
            raise
        except PerdureError:
            access.abandon(numbers)
            raise
        if made is not None:
            return made
        access.abandon(numbers)
    raise noting.too_busy()


def _write_space(access: Access, session: Session, told: tuple[bytes, bytes], fresh: Fresh) -> int | None:
    """Return the number of the new space; None, with nothing written, where the keys are for another epoch."""
    name, first = told
    state = session.row("number_spaces", (access.tenant, access.verifier))
    if state is None:
        raise access.missing()
    taken = session.row("space_of_name", (access.tenant, stored_key(0, name)))
    if taken is not None:
        raise Conflict(
            f"a space of this name exists already, as number {taken[0]}; use find_space", kind="head"
        )
    epoch, number = state[0], state[1] + 1
    if epoch != access.epoch or (fresh.all and fresh.all[0] < state[2]):
        access.epoch = epoch
        access.sealer.drop_ahead()
        return None
    empty = EMPTY._replace(epoch=epoch)
    head = advance(empty, access.secret, checksums(number, 0, [first]))
    rows, key = record_rows(access, number, empty, PLAIN, [first], fresh)
    size = len(rows[0].data)
    with session.together():
        insert(session, "add_records", "record_row", rows)
        row = (access.tenant, number, stored_key(0, name), epoch, 1, head.digest, key, key, size)
        session.send("add_space", row)
        session.send("count_spaces", (number, access.tenant))
        session.commit()
    return int(number)
