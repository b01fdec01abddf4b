"""Derived snapshots beside the records: in parts, sealed, and dropped with the first erasure after them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import psycopg

from perdure.base.ids import random_secret
from perdure.errors import Moved, PerdureError
from perdure.log.postgres.access import Access, parsed
from perdure.log.postgres.connections import Session
from perdure.log.postgres.failures import is_broken
from perdure.log.postgres.noting import Doomed, Snapshot, claim, note
from perdure.log.postgres.sealing import PLAIN, CachePlace
from perdure.log.postgres.turns import pass_by
from perdure.log.postgres.wire import Row
from perdure.log.protocol import Cached, Head

PART_BYTES = 1 << 20  # large enough for few round trips, small enough not to be kept twice


def put(access: Access, space: int, name: str, cached: Cached) -> bool:
    """Keep a snapshot, as `Log.put_cache` does; whether the data key of the one before is to be destroyed now.

    Writers of the space wait only while it takes the other one's place, and not while it is sent.
    """
    numbers = access.new_keys(cached.head.epoch, 1)
    try:
        with access.database.session(access.tenant) as session:
            replaced = _put(access, session, (space, name, cached), numbers)
    except psycopg.Error as error:
        if not is_broken(error):
            access.abandon(numbers)
        raise
    except Moved:  # its key is destroyed: something was erased meanwhile
        replaced = None
    except PerdureError:
        access.abandon(numbers)
        raise
    if replaced is None:
        access.abandon(numbers)
    return bool(replaced)


def _put(
    access: Access, session: Session, told: tuple[int, str, Cached], numbers: Sequence[int]
) -> bool | None:
    """Keep a snapshot; whether there was another one. None where it came too late: it was not kept then."""
    space, name, cached = told
    head, blob = cached.head, memoryview(cached.blob)
    with session.together():
        # Long before its row is shared: the parts are sent in between. So whoever keeps all out waits for snapshots that are
        # on their way, and for none that begin later.
        pass_by(session, access.tenant)
        if numbers:
            note(session, access.tenant, numbers, Snapshot(space, head.epoch, head.erasures))
        session.begin()
        # Looked at after the note: either this sees an erasure, and nothing is sealed that was erased, or whoever erased
        # sees the note, and dooms the key.
        found = session.send("head", (access.tenant, space))
    if not _same(parsed(found.fetchone()), head):
        return None
    # At least one, since what is authenticated is authenticated with a part.
    parts = [bytes(blob[start : start + PART_BYTES]) for start in range(0, max(1, len(blob)), PART_BYTES)]
    made, key = UUID(bytes=random_secret(16)), access.fresh(numbers).take()
    for number, part in enumerate(
        access.sealer.seal_parts(key, CachePlace(space, name, head, len(parts)), parts)
    ):
        session.send("add_cache_part", (access.tenant, space, name, made, number, part))
    row = (made, *head, key, len(parts), len(blob))
    return _exchange(access, session, (access.tenant, space, name), row, numbers)


def _exchange(
    access: Access,
    session: Session,
    place: tuple[UUID, int, str],
    row: tuple[object, ...],
    numbers: Sequence[int],
) -> bool | None:
    """Put a snapshot, whose parts are sent, in the place of the one before, and commit; as `_put`."""
    made, head, key = row[0], Head(*row[1:5]), row[5]  # type: ignore[arg-type]
    with session.together():
        shared = session.send("share_tenant", (access.tenant, access.verifier))
        found = session.send("lock_head", place[:2])
        known = session.send("cache_head", place)
        # Of a row that is locked by now: a note that an erasure has made stale is never hidden by a claim, not even by
        # one that is undone.
        claimed = claim(session, access.tenant, numbers, of_snapshot=True)
    tenant, before = shared.fetchone(), known.fetchone()
    if tenant is None:
        raise access.missing()
    try:
        claimed.check(tenant[1])
    except Doomed:
        return None
    if not _same(parsed(found.fetchone()), head):
        return None
    with session.together():
        if before is not None and before[4] != PLAIN:
            session.send("condemn", (access.tenant, before[4]))
        session.send("drop_cache", place)
        session.send("drop_cache_parts", (*place, made))
        session.send("add_cache", (*place, *row))
        session.send("raise_newest_key", (key, *place[:2]))
        session.commit()
    return before is not None and before[4] != PLAIN


def get(access: Access, space: int, name: str) -> Cached | None:
    """Return a snapshot, as `Log.get_cache` does."""
    place = (access.tenant, space, name)
    replica = access.replica
    if replica is not None and access.turns.held.locked is None:
        head, row = access.view(lambda session: _looked(session, access, place))
        if not _is_of(head, row):
            return None
        # The parts of that very snapshot, of the primary's own row: then they are of what is there now.
        found = replica.view(lambda session: _taken(access, place, row, *_read(session, place)))
        if found is not None:
            return found

    def work(session: Session) -> Cached | None:
        own = session.in_transaction
        with session.together():
            if not own:
                session.begin(snapshot=True)
            present = session.send("head", (access.tenant, space))
            found = session.send("cache_head", place)
            parts = session.send("cache_parts", place)
            if not own:
                session.commit()
        head, row = parsed(present.fetchone()), found.fetchone()
        return _taken(access, place, row, row, parts.fetchall()) if _is_of(head, row) else None

    return access.view(work)


def _looked(session: Session, access: Access, place: tuple[UUID, int, str]) -> tuple[Head, Row | None]:
    """Return where a space stands, and the row of its snapshot, which is read last: so it is never newer than it says."""
    head = parsed(session.row("head", (access.tenant, place[1])))
    return head, session.row("cache_head", place)


def _read(session: Session, place: tuple[UUID, int, str]) -> tuple[Row | None, list[Row]]:
    with session.together():
        session.begin(snapshot=True)
        found = session.send("cache_head", place)
        parts = session.send("cache_parts", place)
        session.commit()
    return found.fetchone(), parts.fetchall()


def _taken(
    access: Access, place: tuple[UUID, int, str], expected: Row | None, row: Row | None, parts: list[Row]
) -> Cached | None:
    """Return the snapshot of a row, opened and put together; None where it is another than expected, or not whole."""
    if row is None or row != expected:
        return None
    head, key, count, size = Head(*row[:4]), row[4], row[5], row[6]
    with access.telling_gone():
        access.sealer.learn((key,))
    of = CachePlace(place[1], place[2], head, count)
    opened = [access.sealer.open_part(key, of, number, sealed) for number, sealed in parts]
    whole = [part for part in opened if part is not None]
    if not 0 < count == len(whole) or sum(map(len, whole)) != size:
        return None
    return Cached(head, b"".join(whole))


def _is_of(head: Head, row: Row | None) -> bool:
    return row is not None and _same(head, Head(*row[:4]))


def _same(present: Head, taken: Head) -> bool:
    """Whether nothing was erased since a snapshot was taken; one that is ahead is of what is no more."""
    return present.seq >= taken.seq > 0 and (present.epoch, present.erasures) == (taken.epoch, taken.erasures)
