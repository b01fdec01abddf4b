"""One append, and what became of it when the connection broke."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import psycopg

from perdure.errors import Conflict, Moved, NotFound, PerdureError
from perdure.log.digests import check_unchanged, check_unerased, stored_key
from perdure.log.postgres.access import Access, parsed
from perdure.log.postgres.failures import Silence, is_broken, translated
from perdure.log.postgres.noting import unknown
from perdure.log.postgres.reading import entries
from perdure.log.postgres.sealing import bucket, lacks_key
from perdure.log.postgres.turns import Locked
from perdure.log.postgres.writing import Change, Erased, erase, keys_needed, plan_append, write_append
from perdure.log.protocol import EMPTY, Batch, Head

ATTEMPTS = 3  # of finding out what became of a commit, where connections break again and again
LOCKS = 4  # that an append takes at most: what it turns out to need is got while nothing is locked


class Append:
    """A batch at an expected head. Used by one thread, for one append."""

    def __init__(self, access: Access, space: int, expected: Head, batch: Batch) -> None:
        """The batch was checked: records are bytes, erased numbers distinct and ascending."""
        self._access, self._space, self._expected, self._batch = access, space, expected, batch
        self._planned: Head | None = None  # where the space stands if it is committed; None: it is not

    def write(self) -> Head:
        """Append, or raise with nothing written: Conflict, NotFound, and the driver's errors.

        Where the connection breaks it is unknown whether anything was.
        """
        return self._write(self._lock())

    def _lock(self) -> Locked:
        """Lock the space at the expected head, in a transaction that has claimed the data keys that the batch takes.

        Raises Conflict where it is at another one. A thread that has the turn keeps it locked then, and the keys: when it
        has caught up, nobody is faster once more.
        """
        access, expected = self._access, self._expected
        is_plain = not access.sealer.encrypts
        if self._batch.erase and is_plain and not access.is_stained and access.turns.held.whole is None:
            # By itself: who waits to keep all writers out waits for whoever shares the tenant's row, and this for him. Once
            # is enough: nobody takes it back, and who is in his turn gives up his place for it.
            access.note("stain_tenant", (access.tenant,))
            access.is_stained = True
        known = access.turns.held.locked
        key = known.key if known is not None and known.space == self._space else None
        # Who keeps all writers out, or lost his place once, goes on holding it.
        stays = access.turns.held.whole is not None or (known is not None and len(known.fresh.all) > 0)
        asked = set[int]()
        if self._batch.erase and (known is None or len(known.fresh.left) < self._needed(key)):
            access.unlock()
            asked = self._learn_spoilt()
        for _ in range(LOCKS):
            needed = self._needed(key)
            locked = access.lock(self._space, expected.epoch, needed)
            if locked.head != expected:
                if access.turns.held.space != self._space:
                    self._undo(locked)
                raise Conflict(
                    f"space {self._space} is at record {locked.head.seq}, not {expected.seq}, or was erased in or "
                    "purged; catch up and try again",
                    kind="head",
                )
            key = locked.key
            lacking = access.sealer.lacking({key} if self._goes_on and not stays else ()) - asked
            if self._needed(key) <= needed and not lacking:
                return locked
            if lacking:
                # A keystore may be slow: nothing is locked while it is asked. One that has the key no more is asked once.
                self._undo(locked)
                access.sealer.learn(lacking)
                asked |= lacking
        raise AssertionError("unreachable: at this head the key is the one that was looked at before")

    @property
    def _goes_on(self) -> bool:
        """Whether records are added to a bucket that others are in."""
        seq = self._expected.seq
        return len(self._batch.records) > 0 and bucket(seq + 1) == bucket(seq)

    def _learn_spoilt(self) -> set[int]:
        """Have the keys of what is erased at hand, as far as they can be told before anything is locked; return them."""
        access = self._access
        one_each = {bucket(seq): seq for seq in self._batch.erase}
        told = (access.tenant, self._space, self._expected.epoch, list(one_each.values()))
        keys = {int(row[0]) for row in access.view(lambda session: session.rows("keys_of", told))}
        access.sealer.learn(keys)
        return keys

    def _needed(self, key: int | None) -> int:
        if not self._access.sealer.encrypts:
            return 0
        return keys_needed(self._expected, key, len(self._batch.records), self._batch.erase)

    def _write(self, locked: Locked) -> Head:
        access, batch = self._access, self._batch
        try:
            self._hold_what_it_rests_on(locked)
            erased = erase(access, locked, batch.erase) if batch.erase else Erased([], locked.key, 0)
            moved = plan_append(access, self._space, self._expected, batch.records, erased.live)
            if moved == self._expected:
                self._undo(locked)
                access.await_standby("lock_head", (access.tenant, self._space))
                return moved
            self._planned = moved
            with access.timed():
                change = Change(self._space, self._expected, moved, batch.records, batch.keys, erased)
                last = write_append(access, locked.session, change, locked.fresh)
            access.turns.held.committed()
        except psycopg.Error as error:
            if not is_broken(error):
                self._undo(locked)
            raise
        except Moved as error:  # nobody writes anew what this thread has locked
            self._undo(locked)
            raise lacks_key(self._space, error) from error
        except PerdureError:
            self._undo(locked)
            raise
        finally:
            access.unlock()  # the transaction has ended, or is undone
        if erased.live:
            self._look_again(moved, last)
        return moved

    def _hold_what_it_rests_on(self, locked: Locked) -> None:
        """Keep the spaces that the records rest on from being erased from until the transaction ends.

        Raises Conflict where they were, or where one that is to be unchanged was written to. A row that is rested on is
        only locked by who has that of the space he writes to, and nobody goes the other way: what rests on a space lies
        beside it. So a space that is to be unchanged is looked at and not locked: who rests on this one and has not
        committed waits for this transaction, and finds what it erased.
        """
        session, tenant = locked.session, self._access.tenant
        for space, known in self._batch.unerased:
            check_unerased(space, known, parsed(session.row("share_head", (tenant, space))))
        for name, known in self._batch.unchanged:
            check_unchanged(known, parsed(session.row("head_of_name", (tenant, stored_key(0, name)))))

    def _look_again(self, moved: Head, key: int) -> None:
        """Let go of all keys after an erasure, and have the one at hand that the next append goes on with."""
        self._access.saw(self._space, moved)
        with suppress(PerdureError):  # it is done; whoever needs the key asks once more
            self._access.sealer.learn((key,))

    def _undo(self, locked: Locked) -> None:
        """Undo the transaction, and destroy the keys that it had claimed."""
        self._planned = None
        self._access.unlock()
        self._access.abandon(locked.fresh.all)

    def settle(self, error: psycopg.Error) -> Head:
        """Find out whether the append was committed before its connection broke; append again where it was not.

        Raises:
            Conflict: it was not, and others were faster.
            NotFound: the space is gone.
            Unavailable: the database cannot be reached, or it cannot be told, whatever the reason.
            Others as `write`: it was not.
        """
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._settled(error)
            except psycopg.Error as again:
                is_lost = is_broken(again)
                if is_lost and left and not isinstance(again, Silence):
                    continue
                raise (translated(again) if self._planned is None else unknown()) from again
            except (Conflict, NotFound):
                raise
            except PerdureError as unsettled:
                if self._planned is None:
                    raise
                raise unknown() from unsettled
            finally:
                self._access.unlock()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _settled(self, error: psycopg.Error) -> Head:
        access, planned = self._access, self._planned
        try:
            # The commit may still be on its way: its transaction has the row locked, so it has ended once this has it.
            present = access.lock(self._space).head
            if present == self._expected:
                self._planned = None
                return self._write(self._lock())
        except NotFound:
            present = EMPTY
        if planned is not None and (present == planned or self._is_stored(present, planned)):
            # It may be here alone, where it was waiting for a standby: a commit after it has that to wait for.
            access.lock(self._space).session.commit()
            access.turns.held.committed()
            return planned
        if present == EMPTY:
            raise NotFound(f"there is no space {self._space}; create_space makes one", field="space")
        raise Conflict(
            f"space {self._space} moved on while the connection was broken; catch up and try again",
            kind="head",
        ) from error

    def _is_stored(self, present: Head, planned: Head) -> bool:
        """Whether the records are there, with others after them. What was only erased cannot be told so."""
        records = self._batch.records
        if not records or present.epoch != planned.epoch:
            raise unknown()
        if present.seq < planned.seq:
            return False
        found = _data_of(self._access, self._space, self._expected.seq, planned.seq)
        live = [(kept, own) for kept, own in zip(found, records, strict=True) if kept is not None]
        if not live:
            raise unknown()
        return all(kept == own for kept, own in live)


def _data_of(access: Access, space: int, after: int, upto: int) -> Sequence[bytes | None]:
    return [entry.data for entry in entries(access, space, after, upto)]
