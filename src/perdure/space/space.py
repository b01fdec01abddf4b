"""A space: one consistent view for readers, one turn at a time for writers.

A write is plan, append, apply. Writers queue; the first in line leads: it takes the store's writer
turn, catches up with other processes, plans the queued requests in order, appends them in one durable
transaction, applies them and wakes the others. A read asks the log for the head, applies what other
processes appended, and works under the shared lock; it never waits for the disk.

The state is what the log holds at a head that the log had after the read began. Where the log's database was put back to
an earlier moment (a standby that lagged became the primary, a backup was restored), a state of what is no more is dropped
and loaded anew.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from perdure.base.acting import current_actor
from perdure.base.clock import Clock, checked_now
from perdure.base.forking import OwnProcess
from perdure.base.haste import refuse_to_wait, seen_once
from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Conflict, Corrupt, InvalidRequest, Moved, NotFound, Unavailable
from perdure.lexical.profile import Profile
from perdure.log.digests import checksums
from perdure.log.looks import head_of
from perdure.log.protocol import ANY_ADVICE, EMPTY, Batch, Head, Log
from perdure.log.records import ByRecord, FactRecord, RemovalRecord, SpaceRecord, encode
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.apply import apply_all
from perdure.space.continuing import Beyond, begin_state, read_beyond
from perdure.space.draft import Deferred, Draft, StateBase
from perdure.space.facts import FactReader
from perdure.space.heads import may_follow, unsettled
from perdure.space.keeping import Snapshots
from perdure.space.locks import SharedLock
from perdure.space.names import hashed_name
from perdure.space.preparing import Prepared, prepare_fact
from perdure.space.requests import Lead, Request, fail_all
from perdure.space.room import Room
from perdure.space.settings import Settings, refuse_others, settings_of
from perdure.space.sighting import sight
from perdure.space.state import SpaceState, new_state
from perdure.space.uses import StateUses

T = TypeVar("T")
WRITE_ATTEMPTS = 16
READ_ATTEMPTS = 3  # a read overtaken by three erasures in a row gives up with Busy
LOAD_ATTEMPTS = 5  # with a state, with a snapshot, without; and what overtakes
GROWTH_MIN = 64  # facts by which a small space grows before it is measured again
GROUP_MAX = 256  # requests that one transaction takes, so that the first does not wait for a crowd
View = tuple[SpaceState, FactReader]
log = logging.getLogger("perdure.space")


class Space:
    """See the module's text. There is one Space per (store, namespace) in a process."""

    def __init__(self, log: Log, namespace: Namespace, settings: Settings, clock: Clock) -> None:
        self.log, self.namespace, self.clock = log, namespace, clock
        self.usual = settings  # what the space is made with when it is made through here
        self.name = hashed_name(log.secret, namespace)
        self._head = head_of(log)
        self.find_number: Callable[[bytes], int | None] = log.find_space
        self._number: int | None = None
        self._view: View | None = None
        self._lock = SharedLock()
        self._loading = threading.Lock()
        self._queue: list[Request[object]] = []
        self._queue_lock = threading.Lock()
        self._leading = Lead()
        self._process = OwnProcess()
        self._planner: int | None = None  # the thread that plans now
        self._inside = threading.local()  # whether this very thread is inside a read
        self.snapshots, self.room = Snapshots(log), Room(log)
        self.memory_bytes = 0  # an estimate of what the state takes, as of the last load or growth
        self.uses = StateUses()  # the registry's, shared by all spaces of the store
        self.on_grown: Callable[[Space, bool], None] | None = None
        self.used = False  # set by every read and write; the registry clears it to see who is idle
        self._measured_at: int | None = None  # numbers given out at the last measurement; None: not loaded

    # Reading

    def read(self, work: Callable[[SpaceState, FactReader], T]) -> T:
        """Return work(state, reader) over one consistent view that holds every acknowledged write."""
        self.refuse_planner()
        self.used = True
        for _ in range(READ_ATTEMPTS):
            view = self._fresh_view()
            self._lock.acquire_shared()
            self._inside.reading = True
            try:
                # The view that passed the head check serves even if it was dropped meanwhile: nobody changes
                # a state that is no longer the space's own.
                return work(*view)
            except Moved:
                refuse_to_wait()  # what was seen is no longer so
                continue
            finally:
                self._inside.reading = False
                self._lock.release_shared()
        raise Busy("the space is being erased from again and again; retry the read")

    def now(self, state: SpaceState) -> int:
        """Return the present: the clock, or the newest recorded moment where clocks disagree."""
        return max(checked_now(self.clock), state.newest_ingest)

    @property
    def profile(self) -> Profile:
        """The space's analysis as this process knows it: no head check, since only a reindexing changes it.

        A write of this thread that comes after a change analyses its facts again.
        """
        profile = (self._view or self._fresh_view())[0].profile
        self._inside.__dict__.setdefault("profiles", set()).add(profile)
        return profile

    def check_settings(self, wanted: Settings, usual: Settings) -> None:
        """Raise InvalidRequest when a setting that is fixed at creation is asked for otherwise now.

        A setting at its usual value asks for nothing.
        """
        if wanted != usual:
            refuse_others(wanted, usual, settings_of(self._fresh_view()[0].settings))

    @property
    def number(self) -> int | None:
        """The space's number in the log, looked up where nothing was read yet; None while it has no records."""
        return self.find_number(self.name) if self._number is None else self._number

    @property
    def loaded_facts(self) -> int | None:
        """How many facts are in memory; None where the state is not loaded. Reads nothing from the log."""
        view = self._view
        if view is None:
            return None
        self._lock.acquire_shared()
        try:
            return view[0].fact_count
        finally:
            self._lock.release_shared()

    def _fresh_view(self) -> View:
        self._process.check()  # before any lock: a thread that is not in this process may have it
        number = self._number
        if number is None:
            # Not kept: a purge may give the number to another space before it is; who loads looks again.
            return self._empty_view() if self.find_number(self.name) is None else self._catch_up()
        seen = seen_once((self, number), lambda: sight(self._head, number, self._view))
        view = self._view
        if view is not None and seen.is_answered_by(view[0]):
            self.uses.hits += 1
            return view
        return self._catch_up()

    def _empty_view(self) -> View:
        refuse_to_wait()
        with self._loading:
            # The epoch is the store's, so that a cursor of the space while it was empty holds when it is not.
            head = EMPTY._replace(epoch=self.log.epoch())
            if self._view is None or self._view[0].head != head:
                self._number = None
                state = new_state(self._first_record(b""))
                state.stand_at(head)
                self._view = (state, FactReader(self.log, 0))
            return self._view

    def _first_record(self, block_key: bytes) -> SpaceRecord:
        name = self.namespace
        return SpaceRecord(name.principal, name.scope, *self.usual, checked_now(self.clock), block_key)

    def _catch_up(self) -> View:
        """Apply what the log holds beyond the state, or load it; the empty view of a space that is gone."""
        refuse_to_wait()
        with self._loading:
            for left in reversed(range(LOAD_ATTEMPTS)):
                if not left:  # what fails now although nothing moves is damage
                    self.snapshots.is_trusted, epoch = False, self.log.epoch()
                number, view = self._number, self._view
                known = EMPTY if view is None else view[0].head  # before the log is asked
                head = EMPTY if number is None else self.log.head(number)
                if number is None or view is None or not may_follow(known, head):
                    if known.seq and known.epoch >= (head.epoch if head.seq else self.log.epoch()):
                        self._tell_went_back()  # no purge came in between
                    # A purge gives spaces other numbers, and whoever erased this one took its name.
                    self._view = None
                    number = self._number = self.find_number(self.name)
                    if number is None:
                        break
                    head = self.log.head(number)
                    view = self._load(number, head)
                if view is not None and self._extend(number, view, head):
                    self._view = view  # only whole: a reader that meets it may work with it at once
                    break
                self._view = None
            else:
                raise unsettled(self.log, self.name, number, head, epoch)
        if self._number is None or view is None:
            return self._empty_view()
        self._note_growth(writing=False)
        self.room.check(view[0].head)
        self.snapshots.offer(self, view[0])
        return view

    def _load(self, number: int, head: Head) -> View | None:
        """Return a state that is a prefix of the space; None when the number is no longer this space's."""
        self.room.check_loading(number, head)
        self.uses.misses += 1
        reader = FactReader(self.log, number)
        state = self.snapshots.find(number, head)
        if state is None:
            state = begin_state(self.log, number, head)
            if state is None:
                return None
        settings, state.number, state.fields.records = state.settings, number, reader
        return (state, reader) if Namespace(settings.principal, settings.scope) == self.namespace else None

    def _extend(self, number: int, view: View, head: Head) -> bool:
        """Apply the entries after the state's head up to `head`, or beyond.

        False when that cannot be: the store was purged, or the space erased whole; or the state, or the snapshot that it
        is of, is none of these records.
        """
        state = view[0]
        for _ in range(WRITE_ATTEMPTS):
            known = state.head
            if known == head or head in state.passed:
                return True
            beyond = read_beyond(self.log, number, known, head) if may_follow(known, head) else None
            if beyond is None or beyond.is_gone:
                return False
            fits = beyond.adds_up(state.checks)
            prepared = beyond.prepared(state.profile) if fits else []
            with self._lock:
                if state.head == known:
                    if fits:
                        self._apply(view, prepared, beyond.checks(), beyond.head)
                    break
            head = beyond.head  # a writer of this process went on meanwhile, maybe as far
        else:
            raise Busy("other threads write to the space faster than it can be read; retry")
        if not fits:
            self._disbelieve(view, beyond)
        state.from_snapshot = False
        return fits

    def _disbelieve(self, view: View, beyond: Beyond) -> None:
        """Note that a state is none of what the log holds. Raises Corrupt where it was made of nothing but that."""
        if view[0].from_snapshot:
            self.snapshots.is_trusted = False
        elif view is self._view:
            self._tell_went_back()
        elif (
            beyond.looks == 1 and self.log.head(view[0].number) == beyond.head
        ):  # so it stood there all the time
            number = view[0].number
            raise Corrupt(
                f"the records of space {number} do not add up to its head: {ANY_ADVICE}",
                space=number,
                seq=None,
            )

    def _tell_went_back(self) -> None:
        log.warning(
            "the records of space %s are not those that were read before: its database was put back to an earlier moment, "
            "or another took its place. What the log holds now is loaded",
            self._number,
        )

    def _apply(self, view: View, prepared: Sequence[Prepared], checks: bytes, head: Head) -> None:
        """Apply the records between the state's head and another: those that live, and the checksums of all."""
        state, reader = view
        quoting = set(state.quote_seqs)
        apply_all(state, prepared, self.log.secret)
        state.checks.extend(checks)
        state.stand_at(head)
        self.snapshots.records_since += len(prepared)
        for removal in [p.record for p in prepared if isinstance(p.record, RemovalRecord)]:
            state.checks.erase(removal.seqs)
            reader.drop(removal.numbers)
        reader.drop(quoting.difference(state.quote_seqs))
        reader.undress(state.stale)
        state.stale.clear()

    # Writing

    def write(self, plan: Callable[[Draft], T], *, alone: bool = False) -> T:
        """Run the plan in the writer turn and return its reply once its records are durable and visible.

        `alone` plans see the state itself and share their transaction with no other request.

        Raises what the plan raised, or what the log raised; either way nothing of the plan is stored.
        """
        self.refuse_planner()
        self.used = True
        profiles = self._inside.__dict__.pop("profiles", ())
        request: Request[object] = Request(cast(Callable[[Draft], object], plan), profiles, current_actor())
        if alone:
            with self._leading.of(request):
                self._lead([request])
        else:
            with self._queue_lock:
                self._queue.append(request)
            with self._leading.of(request):
                # Whoever led before may have written this request along with its own.
                while not request.done:
                    self._lead(self._next_group())
        if request.error is not None:
            raise request.error
        self._note_growth(writing=True)
        view = self._view
        self.snapshots.follow_write(self, None if view is None else view[0])
        return cast(T, request.reply)

    def _next_group(self) -> list[Request[object]]:
        with self._queue_lock:
            group, self._queue = self._queue[:GROUP_MAX], self._queue[GROUP_MAX:]
        return group

    def _lead(self, group: Sequence[Request[object]]) -> None:
        try:
            for last in (False, False, True):
                with self.log.writer(space=self._number or 0):
                    if last or self._is_near():
                        self._write_group(group)
                        break
                # Loading takes its time, and after a purge every process has to: others may write meanwhile.
                self._fresh_view()
        except Exception as error:  # noqa: BLE001 - raised again on the threads that wait for it
            fail_all(group, error)
        except BaseException:  # raised again: an interrupt of the leader must not leave the others waiting
            fail_all(group, Unavailable("the thread that was writing was interrupted; look before you retry"))
            raise
        finally:
            for request in group:
                request.done = True

    def _is_near(self) -> bool:
        """Whether little or nothing has to be read before a write can be planned."""
        view, number = self._view, self._number
        if view is None or number is None:
            return view is not None
        known = view[0].head
        return may_follow(known, self.log.head(number))

    def _write_group(self, group: Sequence[Request[object]]) -> None:
        while group:
            group = self._write_once(group)

    def _write_once(self, group: Sequence[Request[object]]) -> list[Request[object]]:
        """Plan and write the group in one transaction; return the requests that must go into the next."""
        for _ in range(WRITE_ATTEMPTS):
            state, reader = self._fresh_view()
            # A reader may bring the state up while this plans, where the turn keeps nobody out.
            expected = state.head
            whole = Draft(StateBase(state, reader, self.log.secret), state, self.log.secret, self.now(state))
            self._planner = threading.get_ident()
            try:
                later = [r for r in group if not self._plan(r, whole, single=len(group) == 1)]
            finally:
                self._planner = None
            try:
                if whole.planned:
                    self._append((state, reader), expected, whole)
                    for request in group:
                        request.is_stored = request not in later
                return later
            except NotFound:
                pass  # purged, or erased whole, meanwhile: plan again on what is there now
            except Conflict as conflict:
                # A log whose writer turn does not reach other processes: plan again on what they wrote.
                if conflict.kind != "head":
                    raise
        raise Busy(f"other writers were faster {WRITE_ATTEMPTS} times in a row; retry")

    def _plan(self, request: Request[object], whole: Draft, *, single: bool) -> bool:
        """Plan one request into the whole. False when it has to wait for what the whole adds."""
        draft = whole if single else Draft(whole, whole.state, whole.secret, whole.now)
        request.error, draft.analysed_by = None, request.analysed_by
        try:
            request.reply = request.plan(draft)
            if request.actor is not None and draft.planned:
                draft.add(ByRecord(request.actor, len(draft.planned)))
        except Deferred:
            return False
        except Exception as error:  # noqa: BLE001 - raised again on the caller's own thread
            request.error = error
            if single:
                draft.planned.clear()
            return True
        if not single:
            whole.absorb(draft)
        return True

    def _append(self, view: View, expected: Head, draft: Draft) -> None:
        number = self._number
        if number is None:
            number = self._create()
            view = self._catch_up()
            expected = view[0].head
            if expected.seq != 1:
                raise Conflict("another process wrote to the space first", kind="head")
        state, reader = view
        prepared = self._prepared(expected.seq, draft)
        # No keys: the state's own map answers for ids, and a random page a fact would double what is written.
        records = [encode(p.record) for p in prepared]
        batch = Batch(records, draft.erased, unerased=draft.unerased, unchanged=draft.unchanged)
        head = self.log.append(number, expected, batch)
        checks = b"".join(checksums(number, expected.seq, batch.records))
        with self._lock:
            if state.head == expected:  # else a reader has caught up with these records already
                self._apply(view, prepared, checks, head)
            for item in prepared:
                if isinstance(item.record, FactRecord) and state.is_whole(item.record.number):
                    reader.put(item.record)

    def _prepared(self, base: int, draft: Draft) -> list[Prepared]:
        secret = self.log.secret
        return [
            prepare_fact(seq, record, units, draft.digest(record.id), secret)
            if isinstance(record, FactRecord)
            else Prepared(seq, record)
            for seq, (record, units) in enumerate(draft.planned, base + 1)
        ]

    def _create(self) -> int:
        self._number = self.log.create_space(self.name, encode(self._first_record(self.new_block_key())))
        return self._number

    def new_block_key(self) -> bytes:
        """Return what the space's blocks are keyed with when it is made."""
        # Not random: two stores of one secret that held the same are to be the same, byte for byte.
        return keyed_hash(self.log.secret, b"block key", self.namespace.key())

    def refuse_planner(self) -> None:
        """Raise InvalidRequest on a thread that is inside a read or a plan of this space; Unavailable in a forked process."""
        self._process.check()
        if self._planner == threading.get_ident() or getattr(self._inside, "reading", False):
            raise InvalidRequest(
                "a policy called the memory that was asking it; policies decide from what they are given"
            )

    # Memory

    def save_snapshot(self) -> bool:
        """Keep the derived state beside the log so that opening is fast.

        False when it would not pay: the space is small, or the snapshot that is there lacks little.
        """
        number, view = self._number, self._view
        if number is None or view is None or not self.snapshots.pays(view[0]):
            return False
        self._lock.acquire_shared()
        try:
            cached = snapshot.cached_state(view[0])
        finally:
            self._lock.release_shared()
        self.snapshots.put(number, cached, view[0])
        return True

    def fold(self) -> bool:
        """Keep a snapshot as `save_snapshot` does, unless another process has kept one that is about as new."""
        number, view = self._number, self._view
        if number is not None and view is not None:
            self.snapshots.look(number, view[0])
        return self.save_snapshot()

    def drop_state(self) -> bool:
        """Let go of the derived state; the next read loads it again. Waits for nobody: false where it is being brought up."""
        if not self._loading.acquire(blocking=False):
            self._measured_at = None  # whoever brings it up measures it again, and makes room then
            return False
        self._view, self.memory_bytes, self._measured_at = None, 0, None
        self._loading.release()
        return True

    def _note_growth(self, *, writing: bool) -> None:
        """Measure a loaded state, and again once it has grown by an eighth, and let the registry keep its budget.

        A state that is too large to be served goes itself, before others go for its sake.
        """
        view, before = self._view, self._measured_at
        if view is None or (before is not None and view[0].next_number < before * 9 // 8 + GROWTH_MIN):
            return
        self._measured_at = view[0].next_number
        self.memory_bytes = view[0].memory_bytes()
        if not self.room.is_enough(view[0].head, self.memory_bytes):
            self.drop_state()
        if self.on_grown is not None:
            self.on_grown(self, writing)
