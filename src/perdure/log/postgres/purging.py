"""The purge of a tenant: every record written anew under new keys, in one transaction; then the old keys are destroyed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg

from perdure.errors import Busy, Moved, PerdureError, Unavailable
from perdure.log.digests import advance, check_first, checksums, purged_order, stored_key
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Session
from perdure.log.postgres.failures import is_broken
from perdure.log.postgres.noting import ATTEMPTS, Doomed, Fresh, insert, too_busy, unknown
from perdure.log.postgres.reading import RUN_BYTES, RUN_MIN, WholeSpace, check_run, missing, opened
from perdure.log.postgres.sealing import PLAIN, bucket, lacks_key
from perdure.log.postgres.writing import record_rows
from perdure.log.protocol import EMPTY, Entry, Head, Progress, Purged, Rewrite, Rewritten

WRITTEN_MAX = 1024  # records that are written at a time


class _Old(NamedTuple):
    """A space as it stands before the purge; its name in the form that the table holds."""

    number: int
    name: bytes | None
    head: Head


class _Store(NamedTuple):
    epoch: int
    spaces: dict[int, _Old]


class _Made(NamedTuple):
    """What a purge puts in the place of all that was: its spaces' rows, the epoch, the first of its data keys."""

    heads: list[tuple[object, ...]]
    epoch: int
    keys_from: int

    def stand(self) -> dict[int, Head]:
        """Return where each space stands."""
        return {row[1]: Head(row[3], row[4], 0, row[5]) for row in self.heads}  # type: ignore[misc, arg-type]


def purge(access: Access, session: Session, rewrite: Rewrite, progress: Progress | None) -> Purged:
    """Purge, and commit. The session has locked the tenant's row, and keeps it so: nobody else writes from then on.

    What is not committed is undone with the session's transaction.

    Raises Unavailable where the connection broke and it cannot be told whether it was committed; the driver's errors.
    """
    store, keys = _claimed(access, session)
    try:
        return _purge(access, session, store, access.fresh(keys), (rewrite, progress))
    except BaseException as error:  # raised again: whatever it was, what was written is undone
        _undo(access, session, keys, error)
        raise


def _undo(access: Access, session: Session, keys: Sequence[int], error: BaseException) -> None:
    if not (isinstance(error, psycopg.Error) and is_broken(error)):
        session.rollback()
        access.abandon(keys)


def _claimed(access: Access, session: Session) -> tuple[_Store, list[int]]:
    """Return the store as it stands, and data keys that the transaction has claimed, which goes on keeping all writers out.

    They are made while it does, so they have higher numbers than all that is sealed by then.
    """
    store = _store(access, session)
    for _ in range(ATTEMPTS):
        keys = access.keys_of_purge(_keys_needed(store))
        try:
            access.claim_beside(session, keys)
        except Doomed:  # by whoever scrubbed between the note and the claim
            continue
        except (psycopg.Error, PerdureError) as error:
            _undo(access, session, keys, error)
            raise
        return store, keys
    raise too_busy()


def _store(access: Access, session: Session) -> _Store:
    state = session.row("tenant_state", (access.tenant,))
    if state is None:
        raise access.missing()
    rows = session.rows("all_heads", (access.tenant,))
    return _Store(state[0], {row[0]: _Old(row[0], row[1], Head(*row[2:6])) for row in rows})


def _keys_needed(store: _Store) -> int:
    return max(1, sum(1 + bucket(old.head.seq) for old in store.spaces.values()))


def _purge(
    access: Access,
    session: Session,
    store: _Store,
    fresh: Fresh,
    told: tuple[Rewrite, Progress | None],
) -> Purged:
    (epoch, spaces), (rewrite, progress) = store, told
    total, done, written = sum(old.head.seq for old in spaces.values()), 0, 0
    names = {number: old.name for number, old in spaces.items() if old.name is not None}
    heads: list[tuple[object, ...]] = []
    for number in purged_order(names, spaces):
        old = spaces[number]
        check_readable(access, session, old)
        kept = rewrite(number, lambda old=old: readable(access, session, old.number, old.head))  # type: ignore[misc]
        made = _write_space(access, session, (len(heads) + 1, epoch + 1, old.name), kept, fresh)
        if made is not None:
            heads.append(made)
            written += made[4]  # type: ignore[operator]  # its last seq
        done += old.head.seq
        if progress is not None:
            progress(done, total)
    _commit(access, session, _Made(heads, epoch + 1, min(fresh.all, default=1)), fresh)
    access.turns.held.committed()
    return Purged(epoch + 1, written, total - written, pending=False)


def check_readable(access: Access, session: Session, old: _Old) -> None:
    """Raise Corrupt unless a space's records are whole."""
    for _ in readable(access, session, old.number, old.head):
        pass


def readable(access: Access, session: Session, space: int, head: Head) -> Iterator[Entry]:
    """Yield all of a space's entries within the session's transaction, verified; nobody writes meanwhile."""
    whole, position, count = WholeSpace(access.secret), 0, RUN_MIN
    while position < head.seq:
        upto = min(head.seq, position + count)
        rows = session.rows("records_of", (access.tenant, space, head.epoch, position, upto))
        try:
            found = opened(access, space, head.epoch, [(row[0], row[1], row[2]) for row in rows])
        except Moved as error:
            raise lacks_key(space, error) from error
        check_run(space, position, found)
        if len(found) < upto - position:
            raise missing(space, position + len(found) + 1)
        yield from found
        whole.add(space, found)
        position = upto
        size = sum(len(row[2]) for row in rows if row[2] is not None) // len(rows)
        count = max(1, min(WRITTEN_MAX, RUN_BYTES // max(1, size)))
    whole.check(space, head)


def _write_space(
    access: Access,
    session: Session,
    place: tuple[int, int, bytes | None],
    kept: Iterator[Rewritten],
    fresh: Fresh,
) -> tuple[object, ...] | None:
    """Write what is kept of a space; return its row, None where nothing is."""
    number, epoch, name = place
    head, key, size = EMPTY._replace(epoch=epoch), PLAIN, 0
    while some := _some(kept):
        if head.seq == 0:
            check_first(some[0])
        records = [one.data for one in some]
        rows, key = record_rows(access, number, head, key, records, fresh)
        newest = {
            stored_key(number, hash_): seq for seq, one in enumerate(some, head.seq + 1) for hash_ in one.keys
        }
        found = [(access.tenant, number, epoch, hash_, seq) for hash_, seq in newest.items()]
        with session.together():
            insert(session, "add_records", "record_row", rows)
            insert(session, "add_lookups", "lookup_row", found, "newer_wins")
        head = advance(head, access.secret, checksums(number, head.seq, records))
        size += sum(len(row.data) for row in rows)
    if head.seq == 0:
        return None
    return (access.tenant, number, name, epoch, head.seq, head.digest, key, key, size)


def _some(kept: Iterator[Rewritten]) -> list[Rewritten]:
    found: list[Rewritten] = []
    size = 0
    for one in kept:
        found.append(one)
        size += len(one.data)
        if len(found) >= WRITTEN_MAX or size >= RUN_BYTES:
            break
    return found


def _commit(access: Access, session: Session, made: _Made, fresh: Fresh) -> None:
    try:
        _replace(access, session, made, fresh)
    except psycopg.Error as error:
        if not is_broken(error) or not _is_done(access, made):
            raise


def _is_done(access: Access, made: _Made) -> bool:
    """Whether a purge was committed whose connection broke as it was; another's is never taken for it.

    Raises Unavailable where it cannot be told.
    """
    try:
        # A commit that is on its way has the tenant's row locked, so it has ended once this has it.
        with access.database.session(access.tenant) as session, session.transaction():
            state = session.row("number_spaces", (access.tenant, access.verifier))
            rows = session.rows("all_heads", (access.tenant,))
    except (psycopg.Error, Busy, Unavailable) as error:
        raise unknown() from error
    if state is None:
        raise access.missing()
    if state[0] < made.epoch:
        return False
    if access.sealer.encrypts:
        if state[2] == made.keys_from:  # no two are given the same keys
            return True
        if state[0] == made.epoch:
            return False
    elif {row[0]: Head(*row[2:6]) for row in rows} == made.stand():
        return True
    raise unknown()


def _replace(access: Access, session: Session, made: _Made, fresh: Fresh) -> None:
    # Notes of the keys of before stay, for the scrub that follows: taken away here, they would be hidden from others'
    # until this is committed, which would then say that nothing is left of what they erased.
    tenant, epoch = access.tenant, made.epoch
    with session.together():
        session.lift_limits()  # a tenant's rows are dropped all at once, however many there are
        session.send("tenant_drops_spaces", (tenant,))
        for row in made.heads:
            session.send("add_space", row)
        session.send("tenant_drops_records", (tenant, epoch))
        session.send("tenant_drops_lookups", (tenant, epoch))
        session.send("tenant_drops_caches", (tenant,))
        session.send("tenant_drops_cache_parts", (tenant,))
        insert(session, "condemn_all", "doomed_row", [(tenant, key) for key in fresh.left], "is_doomed")
        session.send("note_purge", (epoch, len(made.heads), made.keys_from, tenant))
    session.commit()
