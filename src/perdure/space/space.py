"""A space: one consistent view for readers, one turn at a time for writers.

A write is plan, append, apply. Writers queue; the first in line leads: it takes the store's writer
turn, catches up with other processes, plans the queued requests in order, appends them in one durable
transaction, applies them and wakes the others. A read asks the log for the head, applies what other
processes appended, and works under the shared lock; it never waits for the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from perdure.base.clock import Clock, checked_now
from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Conflict, Corrupt, InvalidRequest, Moved, Unavailable
from perdure.lexical.profile import Profile
from perdure.log.digests import advance, checksum
from perdure.log.protocol import EMPTY, Batch, Entry, Head, Log
from perdure.log.records import FactRecord, GoneRecord, Record, RemovalRecord, SpaceRecord, decode, encode
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.apply import apply_all
from perdure.space.draft import Deferred, Draft, StateBase
from perdure.space.facts import FactReader
from perdure.space.locks import SharedLock
from perdure.space.names import hashed_name
from perdure.space.preparing import Prepared, prepare, prepare_fact
from perdure.space.requests import Request, fail_all
from perdure.space.settings import Settings, refuse_others, settings_of
from perdure.space.state import SpaceState, new_state
from perdure.space.uses import StateUses

T = TypeVar("T")
WRITE_ATTEMPTS = 16
READ_ATTEMPTS = 3  # a read overtaken by three erasures in a row gives up with Busy
GROWTH_MIN = 64  # facts by which a small space grows before it is measured again
SNAPSHOT_RECORDS = 10_000  # a writer keeps a snapshot after as many, and after this share of the space:
GROWTH_SHARE = 4  # each snapshot is whole, so their cost must not grow with every ten thousand records
SNAPSHOT_MIN = 1_000  # records that are analysed again in about 50 ms
SNAPSHOT_SHARE = 50
GROUP_MAX = 256  # requests that one transaction takes, so that the first does not wait for a crowd


View = tuple[SpaceState, FactReader]


class Space:
    """See the module's text. There is one Space per (store, namespace) in a process."""

    def __init__(self, log: Log, namespace: Namespace, settings: Settings, clock: Clock) -> None:
        self.log, self.namespace, self.clock = log, namespace, clock
        self.usual = settings  # what the space is made with when it is made through here
        self.name = hashed_name(log.secret, namespace)
        self.find_number: Callable[[bytes], int | None] = log.find_space
        self._number: int | None = None
        self._view: View | None = None
        self._lock = SharedLock()
        self._loading = threading.Lock()
        self._queue: list[Request[object]] = []
        self._queue_lock = threading.Lock()
        self._leading = threading.Lock()
        self._planner: int | None = None  # the thread that plans now
        self._inside = threading.local()  # whether this very thread is inside a read
        self.records_since_snapshot = 0
        self.memory_bytes = 0  # an estimate of what the state takes, as of the last load or growth
        self.uses = StateUses()  # the registry's, shared by all spaces of the store
        self.on_grown: Callable[[Space, bool], None] | None = None
        self.used = False  # set by every read and write; the registry clears it to see who is idle
        self._measured_at: int | None = None  # numbers given out at the last measurement; None: not loaded
        self._trusts_snapshot = True
        # Epoch and erasures of the head that the kept snapshot was taken at.
        self._snapshot_content: tuple[int, int] | None = None

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
        """The space's number in the log, or None while it has no records."""
        return self._number

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
        number = self._number
        if number is None:
            # Not kept: a purge may give the number to another space before it is; who loads looks again.
            return self._empty_view() if self.find_number(self.name) is None else self._catch_up()
        view = self._view
        head = self.log.head(number)
        if view is not None:
            known = view[0].head
            if known == head or (known.seq > head.seq and _continues(view[0], head)):
                self.uses.hits += 1
                return view
        return self._catch_up()

    def _empty_view(self) -> View:
        with self._loading:
            # The epoch is the store's, so that a cursor of the space while it was empty holds when it is not.
            head = EMPTY._replace(epoch=self.log.epoch())
            if self._view is None or self._view[0].head != head:
                self._number = None
                state = new_state(self._first_record(b""))
                state.head = head
                self._view = (state, FactReader(self.log, 0))
            return self._view

    def _first_record(self, block_key: bytes) -> SpaceRecord:
        chosen = self.usual
        return SpaceRecord(
            self.namespace.principal,
            self.namespace.scope,
            chosen.profile,
            chosen.k1,
            chosen.b,
            checked_now(self.clock),
            block_key,
        )

    def _catch_up(self) -> View:
        """Apply what the log holds beyond the state; load it where there is none. The empty view of a space
        that is gone."""
        with self._loading:
            for _ in range(READ_ATTEMPTS):
                number, view = self._number, self._view
                head = EMPTY if number is None else self.log.head(number)
                if number is None or view is None or not _continues(view[0], head):
                    # A purge gives spaces other numbers, and whoever erased this one took its name.
                    self._view = None
                    number = self._number = self.find_number(self.name)
                    if number is None:
                        break
                    head = self.log.head(number)
                    view = self._load(number, head)
                if view is not None and (view[0].head.seq >= head.seq or self._extend(number, view, head)):
                    self._view = view  # only whole: a reader that meets it may work with it at once
                    if not view[0].gone:
                        break
                self._view = None
            else:
                raise Busy("the store is being purged again and again; retry")
        if self._number is None or view is None:
            return self._empty_view()
        self._note_growth(writing=False)
        return view

    def _load(self, number: int, head: Head) -> View | None:
        """Return a state that is a prefix of the space; None when the number is no longer this space's."""
        self.uses.misses += 1
        reader = FactReader(self.log, number)
        cached = self.log.get_cache(number, snapshot.NAME) if self._trusts_snapshot else None
        state = None
        if cached is not None and (
            cached.head == head or (cached.head.epoch == head.epoch and cached.head.seq < head.seq)
        ):
            state = snapshot.find_state(cached)
            if state is not None:
                self._snapshot_content = _content_of(cached.head)
                self.records_since_snapshot = 0
        if state is None:
            first = next(iter(self.log.read(number, 0, 1)), None)
            if first is None or first.data is None:
                return None
            record = decode(first.data, space=number, seq=1)
            if not isinstance(record, SpaceRecord):
                raise Corrupt("the first record of the space is damaged: run a verify", space=number, seq=1)
            state = new_state(record)
            # What follows record 1 is applied next, and brings its own head.
            state.head = head if head.seq == 1 else Head(head.epoch, 1, 0, EMPTY.digest)
        settings, state.number, state.fields.records = state.settings, number, reader
        return (state, reader) if Namespace(settings.principal, settings.scope) == self.namespace else None

    def _extend(self, number: int, view: View, head: Head) -> bool:
        """Apply the entries after the state's head up to `head`.

        False when that cannot be: the store was purged meanwhile, or a snapshot is not of these records.
        """
        state = view[0]
        if state.head.seq == 1:  # all of the space, so that the log holds it against its digest
            entries = list(self.log.read(number, 0, head.seq))[1:]
        else:
            entries = list(self.log.read(number, state.head.seq, head.seq))
        now = self.log.head(number)
        if now.epoch != head.epoch:
            return False
        if state.from_snapshot and not self._adds_up(number, state.head, entries, head):
            self._trusts_snapshot = False
            return False
        state.from_snapshot = False
        prepared: list[Prepared] = []
        holes: set[int] = set()
        for entry in entries:
            if entry.data is None:
                holes.add(entry.seq)
            else:
                record = decode(entry.data, space=number, seq=entry.seq)
                prepared.append(prepare(entry.seq, record, state.profile, self.log.secret))
        if holes and not self._explained(number, holes, [p.record for p in prepared], head, now):
            return False
        with self._lock:
            self._apply(view, prepared, head)
        return True

    def _explained(self, number: int, holes: set[int], told: Sequence[Record], head: Head, now: Head) -> bool:
        """Whether removals cover the erased records; False when what explained them went meanwhile.

        Raises:
            Corrupt: nothing explains them.
        """
        # An erasure may have come between the two heads: its removal record lies beyond `head`.
        later = self.log.read(number, head.seq, now.seq)
        beyond = [decode(e.data, space=number, seq=e.seq) for e in later if e.data is not None]
        for record in (*told, *beyond):
            if isinstance(record, RemovalRecord):
                holes.difference_update(record.seqs)
            elif isinstance(record, GoneRecord):
                holes.clear()
        after = self.log.head(number)
        if holes and _content_of(after) != _content_of(now):
            return False  # a purge took the removal, or it was erased with the whole space
        if holes:
            raise Corrupt(
                f"{len(holes)} records were zeroed without a removal that covers them: run a verify",
                space=number,
                seq=min(holes),
            )
        return True

    def _adds_up(self, number: int, known: Head, entries: Sequence[Entry], head: Head) -> bool:
        """Whether a snapshot's head and the entries after it give the log's head: else it is no prefix."""
        if known.erasures != head.erasures:
            return False
        checks = [checksum(number, entry.seq, entry.data) for entry in entries if entry.data is not None]
        return advance(known, self.log.secret, checks) == head

    def _apply(self, view: View, prepared: Sequence[Prepared], head: Head) -> None:
        state, reader = view
        # A reader may have caught up with a writer's records before the writer got here, or the other way round.
        fresh = [p for p in prepared if p.seq > state.head.seq]
        apply_all(state, fresh, self.log.secret)
        if head.seq > state.head.seq:
            state.head = head
        self.records_since_snapshot += len(fresh)
        reader.drop(n for p in fresh if isinstance(p.record, RemovalRecord) for n in p.record.numbers)
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
        request: Request[object] = Request(cast(Callable[[Draft], object], plan), profiles)
        if alone:
            with self._leading:
                self._lead([request])
        else:
            with self._queue_lock:
                self._queue.append(request)
            with self._leading:
                # Whoever led before may have written this request along with its own.
                while not request.done:
                    self._lead(self._next_group())
        if request.error is not None:
            raise request.error
        self._note_growth(writing=True)
        if self.records_since_snapshot >= SNAPSHOT_RECORDS:
            view = self._view
            if view is None or self.records_since_snapshot >= view[0].head.seq // GROWTH_SHARE:
                self.save_snapshot()
        return cast(T, request.reply)

    def _next_group(self) -> list[Request[object]]:
        with self._queue_lock:
            group, self._queue = self._queue[:GROUP_MAX], self._queue[GROUP_MAX:]
        return group

    def _lead(self, group: Sequence[Request[object]]) -> None:
        try:
            for last in (False, False, True):
                with self.log.writer():
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
        return view is not None and (number is None or _continues(view[0], self.log.head(number)))

    def _write_group(self, group: Sequence[Request[object]]) -> None:
        while group:
            group = self._write_once(group)

    def _write_once(self, group: Sequence[Request[object]]) -> list[Request[object]]:
        """Plan and write the group in one transaction; return the requests that must go into the next."""
        for _ in range(WRITE_ATTEMPTS):
            state, reader = self._fresh_view()
            whole = Draft(StateBase(state, reader, self.log.secret), state, self.log.secret, self.now(state))
            self._planner = threading.get_ident()
            try:
                later = [r for r in group if not self._plan(r, whole, single=len(group) == 1)]
            finally:
                self._planner = None
            try:
                if whole.planned:
                    self._append(state, reader, whole)
                return later
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

    def _append(self, state: SpaceState, reader: FactReader, draft: Draft) -> None:
        number = self._number
        if number is None:
            number = self._create()
            state, reader = self._catch_up()
            if state.head.seq != 1:
                raise Conflict("another process wrote to the space first", kind="head")
        prepared = self._prepared(state.head.seq, draft)
        # No keys: the state's own map answers for ids, and a random page a fact would double what is written.
        batch = Batch([encode(p.record) for p in prepared], draft.erased)
        head = self.log.append(number, state.head, batch)
        with self._lock:
            self._apply((state, reader), prepared, head)
            for item in prepared:
                if isinstance(item.record, FactRecord) and state.exists(item.record.number):
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
        """Raise InvalidRequest on a thread that is inside a read or a plan of this space."""
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
        if number is None or view is None or not self._snapshot_pays(view[0]):
            return False
        self._lock.acquire_shared()
        try:
            cached = snapshot.cached_state(view[0])
        finally:
            self._lock.release_shared()
        self.log.put_cache(number, snapshot.NAME, cached)
        self._trusts_snapshot = True
        self.records_since_snapshot = 0
        self._snapshot_content = _content_of(cached.head)
        return True

    def _snapshot_pays(self, state: SpaceState) -> bool:
        behind = self.records_since_snapshot
        if self._snapshot_content != _content_of(state.head):  # an erasure took the snapshot with it
            behind = state.head.seq
        return behind >= max(SNAPSHOT_MIN, state.head.seq // SNAPSHOT_SHARE)

    def drop_state(self) -> None:
        """Let go of the derived state; the next read loads it again."""
        with self._loading, self._lock:
            self._view = None
            self.memory_bytes, self._measured_at = 0, None

    def _note_growth(self, *, writing: bool) -> None:
        """Measure a loaded state, and again once it has grown by an eighth, and let the registry keep its budget."""
        view, before = self._view, self._measured_at
        if view is None or (before is not None and view[0].next_number < before * 9 // 8 + GROWTH_MIN):
            return
        self._measured_at = view[0].next_number
        self.memory_bytes = view[0].memory_bytes()
        if self.on_grown is not None:
            self.on_grown(self, writing)


def _continues(state: SpaceState, head: Head) -> bool:
    """Whether what the log holds can be this state's continuation: the space of its number is still the same.

    A head without records is that of a number that no space has any more; its epoch says nothing.
    """
    return bool(state.head.seq and head.seq) and not state.gone and state.head.epoch == head.epoch


def _content_of(head: Head) -> tuple[int, int]:
    return head.epoch, head.erasures
