"""Where the turns of a session are: in this process, or in a space of a store that processes share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from perdure.audit.audited_log import follow_first
from perdure.base.canonical import canonical_json, decode_json
from perdure.base.clock import Clock, checked_now
from perdure.log.records import FactRecord, SourceFields
from perdure.memory.quoting import erase_quotes, find_quoted
from perdure.memory.scopes import numbers_with
from perdure.model.conversation_forms import session_uri
from perdure.model.namespace import SESSIONS_SUFFIX, Namespace
from perdure.planning.blocks import refuse_blocked
from perdure.planning.certificates import Removed, conclude
from perdure.planning.removing import remove_certified
from perdure.repository.repository import Repository
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import SpaceState

SWEEP_MIN = 16  # expired turns that are erased along with the next one that is added


def sessions_of(namespace: Namespace) -> Namespace:
    """Return the space in which the sessions of this space are kept."""
    return Namespace(namespace.principal, namespace.scope + SESSIONS_SUFFIX)


class Told(NamedTuple):
    """A turn as it is kept; `at` in ms."""

    role: str
    content: str
    at: int
    position: int


class Bounds(NamedTuple):
    """Which turns still count: those after a moment (ms), and the last so many of them; None where unbounded."""

    after: int | None
    last: int | None

    def living(self, turns: Sequence[Told]) -> list[Told]:
        """Return the turns that count, in order."""
        found = [turn for turn in turns if self.after is None or turn.at > self.after]
        return found if self.last is None else found[max(0, len(found) - self.last) :]


class Turns(Protocol):
    """What a session needs of the place where its turns are."""

    def now(self) -> int: ...
    def all(self) -> list[Told]: ...
    def add(self, role: str, content: str, at: int | None, bounds: Bounds | None) -> Told: ...
    def expire(self, bounds: Bounds) -> int: ...
    def clear(self, quoted_in: Callable[[], Collection[Repository]]) -> int: ...
    def cleared(self, turns: Sequence[Told], bounds: Bounds) -> frozenset[str]: ...


class InProcess:
    """Turns that are gone with the process."""

    def __init__(self, clock: Clock, session_id: str) -> None:
        self._clock, self._turns, self._next = clock, list[Told](), 0
        self._cleared_below = 0  # the positions that a clear has taken, also of turns that had expired
        self._uri = session_uri(session_id)
        self._lock = threading.Lock()

    def now(self) -> int:
        return checked_now(self._clock)

    def all(self) -> list[Told]:
        with self._lock:
            return list(self._turns)

    def add(self, role: str, content: str, at: int | None, bounds: Bounds | None) -> Told:
        with self._lock:
            turn = Told(role, content, self.now() if at is None else at, self._next)
            self._next += 1
            self._turns.append(turn)
            if bounds is not None:
                self._turns = bounds.living(self._turns)
            return turn

    def expire(self, bounds: Bounds) -> int:
        with self._lock:
            before = len(self._turns)
            self._turns = bounds.living(self._turns)
            return before - len(self._turns)

    def clear(self, quoted_in: Callable[[], Collection[Repository]]) -> int:
        with self._lock:
            # One that does not count any more may be quoted as well.
            uris = _uris(self._uri, range(self._next))
            before, self._turns, self._cleared_below = len(self._turns), [], self._next
        # Asked when the turns are gone: whoever hands them over is known before he quotes them, and looks afterwards.
        for repository in quoted_in():
            unquote(repository, uris)
        return before

    def cleared(self, turns: Sequence[Told], bounds: Bounds) -> frozenset[str]:
        """Return the uris of those of these turns that were cleared since they were read; not of those that expired."""
        del bounds
        with self._lock:
            return _uris(self._uri, (turn.position for turn in turns if turn.position < self._cleared_below))


class Kept:
    """Turns as facts of a space of their own; several processes may add to one session."""

    def __init__(self, space: Space, beside: Space, session_id: str) -> None:
        """Take the space of the turns, and that of the nodes and facts that may quote them."""
        self._space, self._beside = space, beside
        self._session, self._uri = session_id, session_uri(session_id)

    def now(self) -> int:
        return self._space.read(lambda state, _: self._space.now(state))

    def all(self) -> list[Told]:
        secret = self._space.log.secret

        def work(state: SpaceState, reader: FactReader) -> list[Told]:
            records = reader.get_many(state, self._numbers(state, secret))
            # What somebody told of a turn later is not what was said.
            return [_told(record) for record in records if record.id.startswith(f"{self._uri}/")]

        return sorted(self._space.read(work), key=lambda turn: turn.position)

    def _numbers(self, state: SpaceState, secret: bytes) -> list[int]:
        found = numbers_with(state, {"session": self._session}, secret)
        return [number for number in found if state.is_live(number)]

    def add(self, role: str, content: str, at: int | None, bounds: Bounds | None) -> Told:
        units = (self._space.profile.document_terms(content),)

        def plan(draft: Draft) -> tuple[Told, bool]:
            numbers = self._turns_of(draft)
            # In order of arrival, so that the last one has the highest position: under the writer's turn nobody
            # else takes the next.
            position = _told(draft.fact(numbers[-1])).position + 1 if numbers else 0
            turn = Told(role, content, draft.now if at is None else at, position)
            id_ = f"{self._uri}/{position}"
            refuse_blocked(draft, id_, content, ("id", "content"))
            expired = [] if bounds is None else self._expired(draft, numbers, bounds)
            if len(expired) >= SWEEP_MIN:
                remove_certified(draft, expired, cause="expired")
            draft.add_fact(self._record(draft, turn, id_), units)
            return turn, len(expired) >= SWEEP_MIN

        turn, swept = self._space.write(plan, alone=True)
        if swept:
            self._space.log.scrub()
        return turn

    def _turns_of(self, draft: Draft) -> list[int]:
        prefix = f"{self._uri}/"
        found = self._numbers(draft.state, draft.secret)
        return [number for number in found if draft.fact(number).id.startswith(prefix)]

    def _record(self, draft: Draft, turn: Told, id_: str) -> FactRecord:
        # No subject: a policy would take each turn for what supersedes the one before.
        return FactRecord(
            number=draft.next_number,
            id=id_,
            text=turn.content,
            ingest_time=draft.now,
            event_time=turn.at,
            metadata=canonical_json({"session": self._session, "role": turn.role}),
            kind="working",
            source=SourceFields(uri=self._uri, position=turn.position, actor=turn.role),
        )

    def _expired(self, draft: Draft, numbers: Sequence[int], bounds: Bounds) -> list[int]:
        turns = {number: _told(draft.fact(number)) for number in numbers}
        living = {turn.position for turn in bounds.living(list(turns.values()))}
        return [number for number, turn in turns.items() if turn.position not in living]

    def expire(self, bounds: Bounds) -> int:
        return self._drop(bounds, "expired", Removed(self._space.log.secret))

    def clear(self, quoted_in: Callable[[], Collection[Repository]]) -> int:
        del quoted_in  # what quotes a turn that is kept lies beside it
        for space in (self._space, self._beside):
            follow_first(space.log, space.number)
        # First, since whoever is stopped in between finds the turns and begins again; and once more after them.
        removed = self._erase_quotes()
        return self._drop(Bounds(None, 0), "", removed)

    def cleared(self, turns: Sequence[Told], bounds: Bounds) -> frozenset[str]:
        """Return the uris of those of these turns that were erased since they were read; not of those that expired.

        One whose time went by since, and that is gone, is taken for one that expired.
        """
        present = self.all()
        gone = [turn for turn in turns if turn not in present]
        counting = bounds.living(sorted([*present, *gone], key=lambda turn: turn.position))
        # Positions begin anew where all were erased.
        taken = {turn.position for turn in present}
        was_cleared = any(turn in counting or turn.position in taken for turn in gone)
        return _uris(self._uri, (turn.position for turn in gone)) if was_cleared else frozenset()

    def _erase_quotes(self) -> Removed:
        return erase_quotes(self._beside, find_quoted(self._beside, f"{self._uri}/"))

    def _drop(self, bounds: Bounds, cause: str, quotes: Removed) -> int:
        def plan(draft: Draft) -> tuple[int, Removed, int]:
            expired = self._expired(draft, self._turns_of(draft), bounds)
            return len(expired), remove_certified(draft, expired, cause=cause), draft.now

        count, removed, at = self._space.write(plan, alone=True)
        if not cause:
            removed.absorb(self._erase_quotes())
        removed.absorb(quotes)
        if removed.records:
            conclude(self._space.log, "forget", removed, at, purge=False)
        return count


def unquote(repository: Repository, uris: AbstractSet[str]) -> None:
    """Erase what nodes and facts of a repository's space quote of these turns."""
    space = repository.space
    follow_first(space.log, space.number)
    if erase_quotes(space, uris).records:
        space.log.scrub()


def _uris(session: str, positions: Iterable[int]) -> frozenset[str]:
    return frozenset(f"{session}/{position}" for position in positions)


def _told(record: FactRecord) -> Told:
    noted = decode_json(record.metadata or b"{}")
    source = record.source or SourceFields()
    at = record.ingest_time if record.event_time is None else record.event_time
    return Told(str(noted.get("role", "")), record.text, at, source.position or 0)
