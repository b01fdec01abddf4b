"""Audit: what happened to a store, told by its log in order, exactly once, in a log beside it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from perdure.audit.book import Book, Run, State, retried
from perdure.audit.deriving import HOLE, Pending, derive
from perdure.audit.numbers import Numbers
from perdure.audit.rows import CODES, NO_DIGEST, FactDigests, Mark, Plan, Position, Row, details_of
from perdure.base.acting import current_actor
from perdure.base.clock import Clock, checked_now
from perdure.base.ids import keyed_hash
from perdure.errors import Corrupt, Moved, PerdureError, Unavailable
from perdure.log.digests import checksum
from perdure.log.protocol import EMPTY, Entry, Head, Log, Read, Rewrite, Rewritten
from perdure.log.records import SpaceRecord, decode
from perdure.model.event import EventReference
from perdure.model.namespace import CONFIGURATION, Namespace

NUMBERS_BYTES_MAX = 64 << 20  # digests of spaces that were looked into lately
NO_SPACE = b""


class Place(Protocol):
    """Where the audit's own log is."""

    def exists(self) -> bool:
        """Whether it was begun; looks, and begins nothing."""
        ...

    def size_bytes(self) -> int:
        """Return its bytes; opens nothing."""
        ...

    @property
    def is_between(self) -> bool:
        """Whether what was opened last is under the key that holds while the store's is changed."""
        ...

    def open(self) -> Log:
        """Open it, making it where there is none."""
        ...

    def rekey(self, *, between: bool) -> None:
        """Write it under the key that is derived from the store's, or one that holds while that is changed."""
        ...


def space_digest(secret: bytes, namespace: Namespace) -> bytes:
    """Return the keyed digest of a space's name, as events name it."""
    return keyed_hash(secret, b"audited space", namespace.key())


class Found(NamedTuple):
    """A space of the main log whose first record was read: its digest, and what digests of its ids begin with."""

    name: bytes
    key: bytes
    was_erased: bool = False


class Audit:
    """Follows one main log. Thread-safe; any number of processes may follow the same one.

    The log is the truth: events are derived from its records, up to a mark that is kept with them in one
    transaction. So nothing is lost that a crash left behind the mark, and nothing is told twice. What erases from
    the log must have it followed before.
    """

    def __init__(
        self,
        log: Log,
        place: Place,
        clock: Clock,
        *,
        keeps_recalls: bool = False,
        keeps_queries: bool = False,
    ) -> None:
        """Follow a log; the audit's own is opened, or made, when there is something to keep or to read.

        Args:
            keeps_recalls: whether questions are to be noted as well.
            keeps_queries: with their words, instead of a keyed digest.
        """
        self._log, self._place, self.clock = log, place, clock
        self.keeps_recalls, self.keeps_queries = keeps_recalls, keeps_queries
        self._secret = log.secret
        self._own = space_digest(log.secret, CONFIGURATION)
        self._opened: Book | None = None
        self._opening = threading.Lock()
        self._following = threading.RLock()  # so that threads do not derive the same events side by side
        self._numbers: OrderedDict[tuple[int, int], Numbers] = OrderedDict()  # by epoch and number
        self._names: dict[tuple[int, int], Found] = {}
        self._erased_in: set[int] = set()  # spaces whose erasures are still to be followed, for a certificate

    @property
    def book(self) -> Book:
        """The audit's own log, opened."""
        with self._opening:
            if self._opened is None:
                self._opened = Book(self._place.open(), self._secret)
            return self._opened

    @property
    def exists(self) -> bool:
        """Whether there is anything of it yet."""
        return self._opened is not None or self._place.exists()

    def is_begun(self) -> bool:
        """Whether there is anything of it, once what is open and is not there any more was let go.

        Of a database that was put back to before the audit was begun there is nothing. Raises Unavailable, of the kind
        "gone", where the store is not there either.
        """
        with self._following:
            if self._opened is not None:
                try:
                    self._opened.log.epoch()
                except PerdureError as error:  # whatever else is wrong is met by who reads
                    if error.details.get("kind") == "gone":
                        self.close()
            return self.exists

    def size_bytes(self) -> int:
        """Return the bytes of its log."""
        return self._place.size_bytes()

    # Following

    def follow(self, spaces: Collection[int] | None = None, then: Sequence[Run] = ()) -> State:
        """Derive the events of all that the log holds beyond the marks, in these spaces or in all; then add events.

        Returns where the book stands. Writes nothing where there is nothing new.

        Raises:
            StorageFull, Busy, Unavailable, Corrupt: of the audit, or of the log; what was derived before is kept.
        """
        with self._following:
            try:
                return retried(lambda: self._followed(spaces, then))
            except Unavailable as error:
                # Of a database that was put back to before the audit was begun: it is begun anew, as it was then.
                if error.details.get("kind") != "gone" or self._opened is None:
                    raise
            self.close()
            return retried(lambda: self._followed(spaces, then))

    def note(
        self,
        kind: str,
        details: Mapping[str, int | str | bool] | None = None,
        *,
        namespace: Namespace | None = None,
        id_: str | None = None,
        spaces: Collection[int] | None = None,
    ) -> None:
        """Add an event that no record tells of, after those that the records of these spaces tell of, or of all.

        Args:
            kind: one of `EVENT_TYPES`.
            details: counts, digests and names out of this library; never text, never an id.
            id_: of the fact concerned, in the space of the namespace.
        """
        self.follow(spaces, [self.direct(kind, details or {}, namespace=namespace, id_=id_)])

    def direct(
        self,
        kind: str,
        details: Mapping[str, int | str | bool],
        *,
        namespace: Namespace | None = None,
        id_: str | None = None,
    ) -> Run:
        """Return such an event, of this moment and of who acts."""
        space = NO_SPACE if namespace is None else space_digest(self._secret, namespace)
        fact = NO_DIGEST
        if id_ is not None and namespace is not None:
            fact = FactDigests(self._secret, namespace.key()).of(id_)
        at, actor = checked_now(self.clock), current_actor()
        return Run(space, [Row(CODES[kind], at, fact, NO_DIGEST, actor, details_of(details.items()))])

    def _followed(self, spaces: Collection[int] | None, then: Sequence[Run]) -> State:
        book, epoch = self.book, self._log.epoch()
        state = book.state()
        if state.epoch != epoch:
            state = self._moved(state, epoch)
        for number in self._log.spaces() if spaces is None else spaces:
            state = self._follow_space(state, epoch, number)
        if then:
            position = Position(epoch, (), False, state.plan)
            state = book.append(state, then, position)
        return state

    def _follow_space(self, state: State, epoch: int, number: int) -> State:
        head = self._find_head(epoch, number)
        if not head.seq:
            return state
        mark = state.marks.get(number)
        seq = 0 if mark is None else mark.seq
        if seq > head.seq:
            return self._gone_back(state, epoch, Mark(number, state.marks[number].name, head.seq))
        if seq == head.seq:
            return state
        self._forget_other(epoch, number)
        found = self._name_of(epoch, number, mark)
        if found.name == NO_SPACE and not found.was_erased:  # its name is damaged
            return state
        numbers = self._numbers_from(epoch, number, found, seq)

        def flush(told: Pending) -> None:
            nonlocal state
            state = self._append(state, epoch, Mark(number, found.name, told[-1][0]), told)

        # Record 1 tells nothing, and a reading without it leaves out the check of the whole, which is verifying's.
        entries = self._readable(number, max(seq, 1), head.seq)
        load = partial(self._load, epoch, number, numbers)
        pending = derive(number, entries, numbers, load, flush)
        if pending:
            flush(pending)
        return state

    def _find_head(self, epoch: int, number: int) -> Head:
        """Return where a space stands; EMPTY where its head is damaged, or is none of the log's epoch."""
        with suppress(Corrupt):  # verifying tells of it
            head = self._log.head(number)
            if head.epoch == epoch or not head.seq:
                return head
            if self._log.epoch() != epoch:
                raise Moved("the store was purged meanwhile")
        return EMPTY

    def _readable(self, number: int, after: int, upto: int) -> Iterator[Entry]:
        """Yield entries up to the first that is damaged: what of the other spaces happened is told all the same."""
        with suppress(Corrupt):  # verifying tells of it
            yield from self._log.read(number, after, upto)

    def _append(self, state: State, epoch: int, mark: Mark, told: Pending) -> State:
        rows = self._gathered([row for _, events in told for row in events])
        # What the store itself keeps is of no space that anybody knows.
        space = NO_SPACE if mark.name == self._own else mark.name
        runs = [Run(space, rows)] if rows else []
        return self.book.append(state, runs, Position(epoch, (mark,), False, state.plan))

    def _gathered(self, rows: list[Row]) -> list[Row]:
        """Return the events with one gap, at the first of the holes among them, that counts them all."""
        if HOLE not in rows:
            return rows
        first = rows.index(HOLE)
        missing = (("records", rows.count(HOLE)),)
        gap = Row(HOLE.type, checked_now(self.clock), details=missing)
        return [*rows[:first], gap, *(row for row in rows[first:] if row != HOLE)]

    def _gone_back(self, state: State, epoch: int, mark: Mark) -> State:
        missing = state.marks[mark.number].seq - mark.seq
        gap = Row(CODES["gap"], checked_now(self.clock), details=(("records", missing),))
        return self.book.append(state, [Run(mark.name, [gap])], Position(epoch, (mark,), False, state.plan))

    def _moved(self, state: State, epoch: int) -> State:
        """Return the state once the marks are those of this epoch."""
        plan = state.plan
        if state.epoch is None:
            return self._begun(state, epoch)
        if plan is not None and plan.epoch == epoch:
            kept = dict(plan.kept)
            found = ((number, self._name_of(epoch, number, None).name) for number in self._log.spaces())
            marks = [Mark(number, name, kept[name]) for number, name in found if name in kept]
            details = details_of(
                [("dropped", plan.dropped), ("operation", plan.operation), ("records", sum(kept.values()))]
            )
            row = Row(CODES["purged"], plan.at, actor=plan.actor, details=details)
        else:
            marks = []
            for number in self._log.spaces():
                name, head = self._name_of(epoch, number, None).name, self._find_head(epoch, number)
                if name == NO_SPACE or not head.seq:
                    continue
                marks.append(Mark(number, name, head.seq))
            details = details_of([("purges", epoch - (state.epoch or 0))])
            row = Row(CODES["gap"], checked_now(self.clock), details=details)
        if self._log.epoch() != epoch:
            raise Moved("the store was purged meanwhile")
        return self.book.append(state, [Run(NO_SPACE, [row])], Position(epoch, tuple(marks), True, None))

    def _begun(self, state: State, epoch: int) -> State:
        """Return the state of an audit that begins; that of a store that was purged begins with a gap."""
        if not epoch:
            return replace(state, epoch=epoch)
        gap = Row(CODES["gap"], checked_now(self.clock), details=(("purges", epoch),))
        return self.book.append(state, [Run(NO_SPACE, [gap])], Position(epoch, (), True, None))

    def _name_of(self, epoch: int, number: int, mark: Mark | None) -> Found:
        """Return a space's digests; of a space that was erased whole what its mark says."""
        known = self._names.get((epoch, number))
        if known is not None:
            return known
        first = next(self._readable(number, 0, 1), None)
        record = None
        if first is not None and first.data is not None:
            with suppress(Corrupt, Unavailable):  # verifying tells of it
                record = decode(first.data, space=number, seq=1)
        if not isinstance(record, SpaceRecord):
            was_erased = first is not None and first.data is None
            return Found(NO_SPACE if mark is None else mark.name, b"", was_erased)
        namespace = Namespace(record.principal, record.scope)
        found = Found(space_digest(self._secret, namespace), namespace.key())
        if self._log.epoch() != epoch:
            raise Moved("the store was purged meanwhile")
        self._names = {place: kept for place, kept in self._names.items() if place[0] == epoch}
        self._names[epoch, number] = found
        return found

    # Numbers

    def _numbers_from(self, epoch: int, number: int, found: Found, seq: int) -> Numbers:
        """Return the space's numbers as far as they were learnt, up to this record or from it on."""
        known = self._numbers.pop((epoch, number), None)
        if known is None or seq < known.since:
            known = Numbers(FactDigests(self._secret, found.key), seq)
        if known.upto < seq:  # another process followed what lies between
            self._learn(number, known, known.upto, seq)
        for place in [place for place in self._numbers if place[0] != epoch]:
            del self._numbers[place]
        self._numbers[epoch, number] = known
        while (
            len(self._numbers) > 1 and sum(n.size_bytes for n in self._numbers.values()) > NUMBERS_BYTES_MAX
        ):
            self._numbers.popitem(last=False)
        return known

    def _load(self, epoch: int, number: int, numbers: Numbers) -> None:
        """Have the numbers learnt that were given out before the first record that was read."""
        self._learn(number, numbers, 1, numbers.since)
        if self._log.epoch() != epoch:
            raise Moved("the store was purged meanwhile")
        numbers.since = 0

    def _forget_other(self, epoch: int, number: int) -> None:
        """Let go of what was learnt of a space, unless its last record is still what was read then.

        A log that was put back to an earlier moment, and went on another way, gives the same numbers to others.
        """
        known = self._numbers.get((epoch, number))
        if known is not None:
            for seq, data in self._readable(number, known.upto - 1, known.upto):
                if data is not None and checksum(number, seq, data) == known.check:
                    return
        self._numbers.pop((epoch, number), None)
        self._names.pop((epoch, number), None)

    def _learn(self, number: int, numbers: Numbers, after: int, upto: int) -> None:
        for seq, data in self._readable(number, after, upto):
            if seq > numbers.upto:
                numbers.upto, numbers.check = seq, b"" if data is None else checksum(number, seq, data)
            with suppress(Corrupt, Unavailable):  # verifying tells of it
                if data is not None:
                    numbers.learn(decode(data, space=number, seq=seq))

    def numbers_of(
        self, number: int, facts: Collection[bytes], nodes: Collection[bytes] = ()
    ) -> tuple[dict[bytes, list[int]], dict[bytes, list[int]]]:
        """Return which facts and which nodes of a space may have these digests, by digest; confirm each on what is
        there."""
        if not facts and not nodes:
            return {}, {}
        with self._following:
            for _ in range(2):
                epoch = self._log.epoch()
                try:
                    state = self.follow((number,))
                    mark = state.marks.get(number)
                    if mark is None or state.epoch != epoch:
                        continue
                    self._forget_other(epoch, number)
                    found = self._name_of(epoch, number, mark)
                    numbers = self._numbers_from(epoch, number, found, mark.seq)
                    if numbers.since:
                        self._load(epoch, number, numbers)
                    return numbers.find(facts), numbers.find_nodes(nodes)
                except Moved:
                    continue
            return {}, {}

    # Erasing

    def erasing(self, space: int) -> None:
        """Follow a space before records of it are erased. The caller has the writer's turn."""
        self.follow((space,))
        self._erased_in.add(space)

    @contextmanager
    def purging(self, rewrite: Rewrite, operation: str) -> Iterator[Rewrite]:
        """Hold the writer's turn, and follow everything; yield what is to be purged with in place of `rewrite`.

        Whoever calls it has everything followed before, while others write.
        What was rewritten notes where the log stands afterwards, before it does: so the events go on behind it,
        whether the purge takes effect or not.
        """
        turn: Callable[[], AbstractContextManager[None]] = getattr(self._log, "purging", self._log.writer)
        with turn():
            self._settle()
            self.follow()
            epoch, spaces = self._log.epoch(), self._log.spaces()
            before = sum(self._log.head(number).seq for number in spaces)
            plan = Plan(epoch + 1, (), before, checked_now(self.clock), operation, current_actor())
            planning = _Planning(self, rewrite, spaces, plan)
            if not spaces:  # so nothing will be asked for
                planning.note()
            yield planning.rewrite

    def _settle(self) -> None:
        """Write the audit under the store's key again, where a crash has left it under the one between."""
        if not self.exists:
            return
        self.book.state()  # opened, so that it is known which key opens it
        if self._place.is_between:
            self.close()
            self._place.rekey(between=False)

    @contextmanager
    def rekeying(self) -> Iterator[None]:
        """Write the audit under a key of its own while the store's is changed, and under the new one then."""
        if not self.exists:
            yield
            return
        self.close()
        self._place.rekey(between=True)
        try:
            yield
        finally:
            self.close()
            with suppress(PerdureError):  # whoever opens it next does it
                self._place.rekey(between=False)

    def reference(self) -> EventReference | None:
        """Follow the erasures of this process; return the last event there is, None where it cannot be told."""
        spaces, self._erased_in = self._erased_in, set()
        try:
            state = self.follow(spaces)
        except PerdureError:  # what was erased is erased; its event is derived later
            self._erased_in |= spaces
            return None
        return EventReference(state.next - 1, state.chain.hex()) if state.next > 1 else None

    def close(self) -> None:
        """Release the audit's log. Idempotent; the next use opens it again."""
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.log.close()


class _Planning:
    """A rewriting that counts what it keeps of each space, and notes the plan with the last one."""

    def __init__(self, audit: Audit, rewrite: Rewrite, spaces: Collection[int], plan: Plan) -> None:
        self._audit, self._rewrite, self._left, self._plan = audit, rewrite, set(spaces), plan
        self._kept: dict[int, int] = {}

    def rewrite(self, space: int, read: Read) -> Iterator[Rewritten]:
        """Rewrite a space as `Log.purge` asks for it. Calls nothing of the main log."""
        count = 0
        for kept in self._rewrite(space, read):
            count += 1
            yield kept
        self._kept[space] = count
        self._left.discard(space)
        if not self._left:
            retried(self.note)

    def note(self) -> None:
        """Note the plan, with what was kept so far."""
        book, plan = self._audit.book, self._plan  # not kept: a change of the key opens another
        state = book.state()
        marked = ((mark.name, self._kept.get(number, 0)) for number, mark in sorted(state.marks.items()))
        kept = tuple((name, count) for name, count in marked if count and name != NO_SPACE)
        dropped = plan.dropped - sum(self._kept.values())
        planned = Plan(plan.epoch, kept, dropped, plan.at, plan.operation, plan.actor)
        book.append(state, (), Position(plan.epoch - 1, (), False, planned))
