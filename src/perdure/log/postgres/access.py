"""What all operations of a log share: whose rows they are about, the keys, the turns, and how a failure is met."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from struct import Struct
from time import monotonic, perf_counter
from typing import TypeVar, cast
from uuid import UUID

import psycopg
from psycopg import errors as states
from psycopg.pq.abc import PGresult

from perdure.base.forking import OwnProcess
from perdure.base.haste import refuse_to_wait
from perdure.errors import Corrupt, NotFound, PerdureError, Unavailable, WrongKey
from perdure.log.commits import Commits
from perdure.log.postgres import noting
from perdure.log.postgres.connections import Database, Session, release
from perdure.log.postgres.failures import Silence, is_broken, translated, translating
from perdure.log.postgres.keystore import Keystore
from perdure.log.postgres.noting import Doomed, Fresh
from perdure.log.postgres.queries import query
from perdure.log.postgres.replica import Replica
from perdure.log.postgres.sealing import Sealer
from perdure.log.postgres.tenants import verifier_of
from perdure.log.postgres.turns import WHOLE, Locked, Turns, keep_out, pass_by
from perdure.log.protocol import EMPTY, Head

T = TypeVar("T")
log = logging.getLogger("perdure.log")
_HEAD = (query("head"), (2950, 20))  # the numbers of the types uuid and int8, the same in every PostgreSQL
_number, _number_of = Struct(">q").pack, Struct(">q").unpack


class Access:
    """One tenant's log in one database, as this process uses it."""

    def __init__(
        self, database: Database, tenant: UUID, secret: bytes, keystore: Keystore | None, timeout_s: float
    ) -> None:
        self.database, self.tenant, self.secret, self.keystore = database, tenant, secret, keystore
        self.timeout_s, self.verifier = timeout_s, verifier_of(secret)
        self.sealer = Sealer(tenant, keystore)
        self.held_below = 0  # no data key of a lower number was there when this process looked
        self.epoch = 0  # as it was last seen
        self.is_stained = False  # known to have erased something that lies about as it is
        self.turns = Turns(timeout_s)
        self.commits = Commits()
        self.replica: Replica | None = None  # that whole spaces are read from, as far as it serves
        self._counting = threading.Lock()  # commits of several spaces end at once
        self._closed = False
        self._process = OwnProcess()

    def check_open(self) -> None:
        """Raise Unavailable once it was closed, and in a process that was forked from the one that opened it."""
        if self._closed:
            raise Unavailable("the log was closed; open it again")
        self._process.check()

    def close(self) -> None:
        """Give the connections back; in a child of the process that has them leave them to that one. Idempotent."""
        if not self._closed:
            self._closed = True
            if self._process.is_parent:
                return
            if self.replica is not None:
                self.replica.close()
            release(self.database)

    # Reading

    def view(self, work: Callable[[Session], T]) -> T:
        """Return what `work` reads, on the session that this thread has, or on another.

        Only reads, so it is done again where a connection turned out to be broken.
        """
        self.check_open()
        refuse_to_wait()
        self.turns.held.found = True
        own = self.turns.held.locked
        if own is not None:
            try:
                return work(own.session)
            except psycopg.Error as error:
                if not is_broken(error):
                    raise translated(error) from error
                self.unlock()  # the lock is gone; an append asks for it anew, and finds whether others were faster
        whole = self.turns.held.whole
        if whole is not None and not whole.connection.closed:
            return self._view_within(whole, work)
        # As many connections of a pool may be as dead as the first, when the server was started anew.
        for _ in range(self.database.size_max):
            try:
                with self.database.session(self.tenant, brief=True) as session:
                    return work(session)
            except psycopg.Error as error:
                if not is_broken(error) or isinstance(error, Silence):
                    raise translated(error) from error
        with translating(), self.database.session(self.tenant, brief=True) as session:
            return work(session)

    def head_row(self, space: int) -> tuple[object, ...] | None:
        """Return where a space stands, as `parsed` takes it; None where it is not there.

        It is what every read asks for before anything else, and the one thing that most of them ask for.
        """
        self.check_open()
        refuse_to_wait()
        held = self.turns.held
        held.found = True
        if held.locked is None and held.whole is None:
            try:
                found = self.database.glance(self.tenant, _HEAD, (self.tenant.bytes, _number(space)))
            except psycopg.Error as error:
                if not is_broken(error) or isinstance(error, Silence):
                    raise translated(error) from error
                found = None
            if found is not None:
                return _head_of(found) if found.ntuples else None
        return self.view(lambda session: session.row("head", (self.tenant, space)))

    def check_speaks(self) -> None:
        """Raise Unavailable where the database says nothing for a few seconds, for who is to tell soon how it is."""
        self.check_open()
        try:
            with self.database.session(self.tenant, soon=True) as session:
                session.row("head", (self.tenant, 0))
        except psycopg.Error as error:
            if isinstance(error, Silence):  # else one connection is broken, and another one may do better
                raise translated(error) from error

    def _view_within(self, whole: Session, work: Callable[[Session], T]) -> T:
        # Not on a connection beside it: threads that each had one and waited for another would wait for each other.
        try:
            return work(whole)
        except psycopg.Error as error:
            self._lock_again(whole)
            raise translated(error) from error

    def saw(self, space: int, head: Head) -> Head:
        """Return a head, having let go of data keys where others erased since this process last saw the space."""
        self.epoch = max(self.epoch, head.epoch)
        self.sealer.note(space, head.epoch, head.erasures)
        return head

    # Data keys

    def new_keys(self, epoch: int, count: int) -> list[int]:
        """Return numbers of fresh data keys for an epoch, none where nothing is encrypted; to be noted before they are used.

        The keystore may be slow: nothing should be locked.

        Raises Corrupt where the keystore is older than the database.
        """
        if not self.sealer.encrypts or not count:
            return []
        with self.telling_gone():
            return self.sealer.new_keys(
                epoch, count, self.used_key() if self.sealer.lacks(epoch, count) else 0
            )

    def keys_of_purge(self, count: int) -> list[int]:
        """Return numbers as `new_keys`, higher than all that were used, for the epoch that a purge begins."""
        return self.sealer.keys_of_purge(count, self.used_key()) if self.sealer.encrypts else []

    def fresh(self, numbers: Sequence[int]) -> Fresh:
        """Return what a transaction takes its keys from that has claimed these."""
        return Fresh(numbers if self.sealer.encrypts else None)

    def used_key(self) -> int:
        """Return the highest number of a data key that is in use, or was."""
        [row] = self.view(lambda session: session.rows("newest_keys", (self.tenant,) * 4))
        return max(number or 0 for number in row)

    def check_keystore(self) -> None:
        """Look whether the keystore knows the newest keys that are in use, so that no number is ever given out twice.

        Raises Corrupt where it is older than the database.
        """
        if self.keystore is None:
            return
        # The database first: keys are made before they are used.
        used = self.used_key()
        if self.keystore.newest(self.tenant) < used:
            self.check_there()  # else it lets go of all numbers
            raise Corrupt(
                f"the keystore never made data key {used}, which is in use: an older copy of it was put in its place. Put the "
                "newer copy back"
            )

    def abandon(self, numbers: Sequence[int]) -> None:
        """Destroy keys that were noted for a transaction, unless it claimed and committed them; best effort.

        What cannot be done now is left to the next scrub.
        """
        if not numbers or self.keystore is None:
            return
        try:
            with translating(), self.changing() as session:
                doomed = noting.doom(session, self.tenant, numbers)
            if doomed:
                self.sealer.forget(doomed)
                if self.keystore.destroy(self.tenant, doomed):
                    self.note("absolve", (self.tenant, doomed))
        except PerdureError as error:
            log.info("data keys of a write that failed are still to be destroyed: %s", error.message)

    def note(self, name: str, params: Sequence[object]) -> None:
        """Change the tenant's rows by one statement, and commit."""
        with translating(), self.changing() as session, session.together():
            session.send(name, params)
            session.commit()

    def await_standby(self, lock: str | None = None, params: Sequence[object] = ()) -> None:
        """Return once all that was committed before is wherever commits have to be to be acknowledged.

        What can be read may be on this server alone: where its commit waited for a standby, and the connection that it
        waited on was ended. Keys of what was erased so must stay until the standby knows of it too.

        Args:
            lock: a statement that locks a row. That is written to the log, so its commit comes after all others there, and
                is waited for. Where it finds none, and without one, it is the tenant's row, buried or not.

        Raises Busy; Unavailable, of the kind "gone" where that is not there either.
        """
        locks: list[tuple[str, Sequence[object]]] = [("share_row", (self.tenant,))]
        if lock is not None:
            locks.insert(0, (lock, params))
        for name, told in locks:
            with translating(), self.changing() as session:
                with session.together():
                    found = session.send(name, told)
                    session.commit()
                if found.fetchall():
                    self.turns.held.found = False
                    return
        raise self.missing()

    # Turns

    @contextmanager
    def turn(self, space: int | None, timeout_s: float | None) -> Iterator[None]:
        """Hold the turn of a space, or of the store."""
        self.check_open()
        began, held = monotonic(), self.turns.held
        with self.turns.take(WHOLE if space is None else space, timeout_s):
            if space is not None:
                try:
                    yield
                    is_confirmed = self._is_confirmed()
                finally:
                    self.unlock()
            else:
                wait_s = self.turns.wait_s(timeout_s)
                with translating(), self.database.session(self.tenant) as session:
                    self.lock_all(session, wait_s - (monotonic() - began))
                    held.whole = session
                    try:
                        yield
                        is_confirmed = self._is_confirmed()
                    finally:
                        held.whole = None
            if not is_confirmed:  # on a session that nobody has who may wait for this thread
                self.await_standby()

    def _is_confirmed(self) -> bool:
        """Have all that a turn found be where an append's commit would have had it; whether that is so now.

        Who repeats a call finds what the first one wrote, and is answered as it would have been. It may be on this server
        alone still. Nothing is to be waited for where the turn found nothing after its last commit.

        Raises Busy, Unavailable.
        """
        held = self.turns.held
        if not held.found:
            return True
        if held.whole is not None and held.whole.connection.closed and held.wrote:
            return True  # others may have the turn since, for long, and what was committed is to be told
        session = held.whole if held.locked is None else held.locked.session
        claims_keys = held.locked is not None and len(held.locked.fresh.all) > 0
        if session is None or claims_keys or not session.in_transaction:
            return False
        try:
            session.commit()
        except psycopg.Error as error:
            if not is_broken(error):
                raise translated(error) from error
            if isinstance(error, Silence):
                raise noting.unknown() from error
            return False
        return True

    def lock_all(self, session: Session, wait_s: float | None = None) -> None:
        """Begin a transaction that keeps all writers out. Raises the driver's error where that takes longer than `wait_s`."""
        session.begin()
        keep_out(session, self.tenant, self.timeout_s if wait_s is None else wait_s)
        if session.row("own_tenant", (self.tenant, self.verifier)) is None:
            raise self.missing()

    @contextmanager
    def whole(self) -> Iterator[Session]:
        """Yield a session whose transaction keeps all writers out: that of this thread's turn, or one of its own."""
        if self.turns.held.whole is not None:
            with self.changing() as session:
                yield session
            return
        with self.turn(None, None):
            whole = self.turns.held.whole
            assert whole is not None
            yield whole

    @contextmanager
    def changing(self, keys: Sequence[int] = ()) -> Iterator[Session]:
        """Yield a session within a transaction, for the block to commit; what it has not committed is undone.

        A thread that keeps all writers out uses the session that it does so with, since it would wait for itself on
        another; its lock is taken anew afterwards. One that has a space locked lets go of it; an append asks for it anew.

        Args:
            keys: fresh ones that the transaction claims. Raises Doomed where it cannot.
        """
        held = self.turns.held.whole
        if held is None:
            # Else who waits to keep all writers out would wait for this thread, and the session for him.
            self.unlock()
            with self.database.session(self.tenant) as session:
                noting.begin(session, self.tenant, keys).check()
                yield session
            return
        try:
            self.claim_beside(held, keys)
            yield held
        finally:
            self._lock_again(held)

    def _lock_again(self, whole: Session) -> None:
        if whole.connection.closed:
            return
        whole.rollback()
        try:
            self.lock_all(whole)
        except (psycopg.Error, PerdureError):
            # What was committed before is to be told as such; whoever goes on in the turn finds that it is over.
            whole.close()

    def claim_beside(self, whole: Session, keys: Sequence[int]) -> None:
        """Have a transaction claim keys that keeps all writers out, and goes on doing so.

        Raises Doomed where it cannot.
        """
        if not keys:
            return
        # A note waits for nobody, and so for no thread that waits for this one.
        with self.database.session(self.tenant, brief=True) as beside:
            noting.note(beside, self.tenant, keys)
        with whole.together():
            claim = noting.claim(whole, self.tenant, keys)
            state = whole.send("tenant_state", (self.tenant,))
        row = state.fetchone()
        if row is None:
            raise self.missing()
        claim.check(row[2])

    # Locking a space

    def lock(self, space: int, epoch: int = 0, keys: int = 0) -> Locked:
        """Return the row of a space, locked until `unlock`; the one that this thread has locked already, where it serves.

        Args:
            epoch: that the keys are for.
            keys: how many fresh data keys its transaction is to have claimed, at least. Where it has fewer, it ends, since
                keys are noted before: others may come between.

        Raises NotFound where there is no such space; Busy, Corrupt, Unavailable; the driver's errors.
        """
        held = self.turns.held
        held.found = True
        if held.locked is not None:
            if held.locked.space == space and (
                len(held.locked.fresh.left) >= keys or not self.sealer.encrypts
            ):
                return held.locked
            self.unlock()
        was_broken = False
        for _ in range(noting.ATTEMPTS):
            numbers = self.new_keys(epoch, keys)
            try:
                held.locked = self._locked(space, numbers)
            except Doomed:
                self.sealer.drop_ahead()
                continue
            except psycopg.Error as error:
                # Nothing was changed yet. Within the turn of the whole store its lock is gone with the connection.
                is_lost = is_broken(error) and not isinstance(error, Silence)
                if is_lost and held.whole is None and not was_broken:
                    was_broken = True
                    continue
                if not is_broken(error):
                    self.abandon(numbers)
                raise
            except PerdureError:
                self.abandon(numbers)
                raise
            return held.locked
        raise noting.too_busy()

    def _locked(self, space: int, keys: Sequence[int]) -> Locked:
        held = self.turns.held
        with ExitStack() as ending:
            if held.whole is not None:
                session = ending.enter_context(self.changing(keys))
                found = session.send("lock_head", (self.tenant, space))
            else:
                session = ending.enter_context(self.database.session(self.tenant))
                with session.together():
                    pass_by(session, self.tenant)
                    claim = noting.begin(session, self.tenant, keys)
                    shared = session.send("share_tenant", (self.tenant, self.verifier))
                    found = session.send("lock_head", (self.tenant, space))
                tenant = shared.fetchone()
                if tenant is None:
                    raise self.missing()
                claim.check(tenant[1])
            row = found.fetchone()
            if row is None:
                raise NotFound(f"there is no space {space}; create_space makes one", field="space")
            return Locked(space, session, parsed(row), row[4], self.fresh(keys), ending.pop_all())

    def unlock(self) -> None:
        """End the transaction that `lock` began, if there is one; what was not committed is undone."""
        held = self.turns.held
        locked, held.locked = held.locked, None
        if locked is not None:
            locked.ending.close()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time the block as one commit; one that failed was none."""
        began = perf_counter()
        try:
            yield
        except states.DiskFull:
            self.database.note_write(is_full=True)
            raise
        self.database.note_write(is_full=False)
        with self._counting:
            self.commits.count += 1
            self.commits.seconds += perf_counter() - began

    @contextmanager
    def telling_gone(self) -> Iterator[None]:
        """Raise Unavailable, of the kind "gone", where the keystore knows nothing of the tenant since that was deleted."""
        try:
            yield
        except WrongKey:
            self.check_there()
            raise

    def check_there(self) -> None:
        """Raise Unavailable where the tenant was deleted, also where another one of its name was made since."""
        if not self.view(lambda session: session.rows("own_tenant", (self.tenant, self.verifier))):
            raise self.missing()

    def missing(self) -> Unavailable:
        """Return the error of a tenant whose rows are gone."""
        return Unavailable(
            "the tenant was deleted from the database, or this session may not see it: open it again to make it anew",
            kind="gone",
        )


def _head_of(found: PGresult) -> tuple[object, ...]:
    epoch, seq, erasures, digest = cast(list[bytes], [found.get_value(0, column) for column in range(4)])
    return *_number_of(epoch), *_number_of(seq), *_number_of(erasures), digest


def parsed(row: tuple[object, ...] | None) -> Head:
    """Return the head that a row begins with, EMPTY for none."""
    return EMPTY if row is None else Head(*row[:4])  # type: ignore[arg-type]
