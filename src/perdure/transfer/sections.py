"""One space of an import: its records in chunks, judged in a dry run or written each as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from perdure.errors import Conflict
from perdure.log.protocol import Log
from perdure.log.records import (
    ConversationRecord,
    FactRecord,
    HideRecord,
    NodeRecord,
    Record,
    SpaceRecord,
    TurnRecord,
    encode,
)
from perdure.model.namespace import Namespace
from perdure.space.draft import Draft, StateBase
from perdure.space.facts import FactReader
from perdure.space.idmap import id_hash
from perdure.space.names import hashed_name
from perdure.space.preparing import units_of
from perdure.space.settings import Settings
from perdure.space.space import Space
from perdure.space.state import SpaceState
from perdure.transfer.book import Book
from perdure.transfer.earlier import Before, Earlier
from perdure.transfer.governed import GovernedBook, Line, step_of
from perdure.transfer.merging import Item, merge
from perdure.transfer.merging_governed import MERGES as GOVERNED
from perdure.transfer.merging_governed import is_torn
from perdure.transfer.reading import Refused
from perdure.transfer.restored import Restored

Spaces = Callable[[Namespace, Settings], Space]
Verdict = bool | Refused  # stored, there before, or why not


class Place(NamedTuple):
    """Where the records of a space go: the log, its space, and the first record if it is to be made."""

    log: Log
    space: Space
    first: SpaceRecord


def find_place(log: Log, spaces: Spaces, first: SpaceRecord, name: Namespace) -> Place:
    """Return where records go that are told under a first record; writes nothing.

    Raises:
        Refused: the space is there with other settings.
    """
    space = spaces(name, Settings(first.profile, first.k1, first.b))
    there = space.read(lambda state, _: state.settings if space.number is not None else None)
    if there is not None:
        for field in ("profile", "k1", "b"):
            here, told = getattr(there, field), getattr(first, field)
            if here != told:
                raise Refused(
                    f"{field} is {told} in the file, but the space is there with {here}: reindex the space "
                    "first, or import into another scope (into)"
                )
    return Place(log, space, msgspec.structs.replace(first, principal=name.principal, scope=name.scope))


class Judged:
    """A space that is only looked at: says of each record what an import would do."""

    def __init__(self, place: Place) -> None:
        self._space, self._earlier = place.space, Earlier()
        governed = GovernedBook(writes=False)
        self._book = Book(place.first.block_key, _unanalysed, Restored(place.log).of, governed)

    def take(self, items: Sequence[Item]) -> list[Verdict]:
        """Return a verdict an item, in order.

        Raises:
            Conflict: the space was purged or erased since the last call.
            Whatever a read raises.
        """

        def judge(state: SpaceState, reader: FactReader) -> tuple[Draft, list[Verdict]]:
            base = StateBase(state, reader, secret)
            _fetch(state, reader, base, items)
            draft = Draft(Before(base, self._earlier), state, secret, 0)
            return draft, _verdicts(draft, self._book, items)

        secret = self._space.log.secret
        draft, verdicts = self._space.read(judge)
        self._book.keep()
        self._earlier.keep(draft)
        return verdicts


class Written:
    """A space that is written to: each `take` is one transaction, durable when it returns."""

    def __init__(self, place: Place, *, strict: bool) -> None:
        self._place, self._space, self._strict = place, place.space, strict
        self._restored = Restored(place.log)
        governed = GovernedBook(writes=True)
        self._book = Book(place.first.block_key, self._units, self._restored.of, governed)

    def take(self, items: Sequence[Item]) -> list[Verdict]:
        """Store what is new and return a verdict an item, in order.

        Raises:
            Stopped: strict, and an item is refused; nothing of these was stored.
            Conflict: the space was purged or erased since the last call; nothing of these was stored.
            Whatever a write raises.
        """
        if not self._space.read(self._number):
            verdicts = Judged(self._place).take(items)
            if not any(verdict is True for verdict in verdicts):
                return verdicts  # a space comes into being with its first record, not with a bad one
            self._create()
        prepared = self._prepared(items)
        # Alone: what another request of the same transaction adds is not in the state that uses are counted in.
        verdicts = self._space.write(lambda draft: self._plan(draft, prepared), alone=True)
        self._book.keep()
        return verdicts

    def _number(self, state: SpaceState, _: FactReader) -> int:
        self._book.check(state)
        return state.number

    def _plan(self, draft: Draft, items: Sequence[Item]) -> list[Verdict]:
        self._book.check(draft.state)
        if not draft.state.number:
            raise Conflict("this memory was erased meanwhile: import again", kind="epoch")
        verdicts = _verdicts(draft, self._book, items)
        for item, verdict in zip(items, verdicts, strict=True):
            if self._strict and isinstance(verdict, Refused):
                raise Stopped(item.line, verdict)
        if (step := step_of(draft, self._book.governed)) is not None:
            draft.add(step)
        return verdicts

    def _prepared(self, items: Sequence[Item]) -> list[Item]:
        """Do before the writer's turn what takes long: analyse the texts that are probably new."""

        def known(state: SpaceState, reader: FactReader) -> set[int]:
            hidings = [item.record for item in items if isinstance(item.record, HideRecord)]
            if any(map(self._book.hides_others, hidings)):
                self._restored.of(state)
            return _fetch(state, reader, StateBase(state, reader, self._space.log.secret), items)

        there = self._space.read(known)
        return [
            item._replace(units=self._units(item.record))
            if isinstance(item.record, FactRecord) and item.line not in there
            else item
            for item in items
        ]

    def _units(self, record: FactRecord) -> tuple[list[str], ...]:
        return tuple(map(self._space.profile.document_terms, units_of(record)))

    def _create(self) -> None:
        log, space, first = self._place
        if not first.block_key:
            first = msgspec.structs.replace(first, block_key=space.new_block_key())
        try:
            log.create_space(hashed_name(log.secret, space.namespace), encode(first))
        except Conflict as conflict:  # another process was faster: the space is there
            if conflict.kind != "head":
                raise


class Stopped(Exception):
    """A strict import met a line that it cannot store."""

    def __init__(self, line: int, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.line, self.refused = line, refused


def _unanalysed(record: FactRecord) -> tuple[list[str], ...]:
    return ([],) * (1 + len(record.cuts))


def _verdicts(draft: Draft, book: Book, items: Sequence[Item]) -> list[Verdict]:
    """Plan what items add; return a verdict an item.

    Where a node or a turn is refused, what hangs together with it is too: then all is planned anew without it.
    """
    lines = [Line(item.line, item.record) for item in items]
    if not any(type(record) in GOVERNED or _is_governed(record) for _, record in lines):
        book.begin(draft)
        book.governed.begin(draft, (), {})
        return [_verdict(draft, book, item) for item in items]
    left_out: dict[int, Refused] = {}
    reasons: dict[
        int, Refused
    ] = {}  # the first of each line: later ones only say that something else is refused
    while True:
        attempt = Draft(draft, draft.state, draft.secret, draft.now)
        attempt.analysed_by = draft.analysed_by
        book.begin(attempt)
        book.governed.begin(attempt, lines, left_out)
        verdicts = [_verdict(attempt, book, item) for item in items]
        for item, verdict in zip(items, verdicts, strict=True):
            if isinstance(verdict, Refused):
                reasons.setdefault(item.line, verdict)
        more = {line: why for line, why in _torn(book, items, verdicts) if line not in left_out}
        if not more:
            draft.absorb(attempt)
            return [
                reasons[item.line] if isinstance(verdict, Refused) else verdict
                for item, verdict in zip(items, verdicts, strict=True)
            ]
        left_out = left_out | more


def _is_governed(record: Record) -> bool:
    return isinstance(record, FactRecord) and record.governed


def _torn(book: Book, items: Sequence[Item], verdicts: Sequence[Verdict]) -> Iterator[tuple[int, Refused]]:
    """Yield the lines of nodes and conversations of which a part is refused, with the reason."""
    begun: dict[int, int] = {}  # lines of conversations by number that have no turn yet
    for item, verdict in zip(items, verdicts, strict=True):
        record = item.record
        if type(record) not in GOVERNED:
            continue
        if isinstance(verdict, Refused):
            yield item.line, verdict
        elif is_torn(book, record, item.line):
            yield item.line, Refused("is a turn of which a part is left out")
        elif isinstance(record, ConversationRecord) and verdict:
            begun[record.number] = item.line
        elif isinstance(record, TurnRecord):
            begun.pop(record.conversation, None)
    wrong = book.governed.torn()
    for item in items:
        if isinstance(item.record, NodeRecord) and (what := wrong.get(item.record.number)) is not None:
            yield item.line, Refused(what)
    for line in begun.values():
        yield line, Refused("is a version of which no turn follows, or all are left out")


def _verdict(draft: Draft, book: Book, item: Item) -> Verdict:
    try:
        verdict = merge(draft, book, item)
        book.governed.take(item.line, item.record)
        return verdict
    except Refused as refused:
        return refused


def _fetch(state: SpaceState, reader: FactReader, base: StateBase, items: Sequence[Item]) -> set[int]:
    """Read the facts that items may repeat, all at once; return the lines of those items."""
    found: dict[int, int] = {}
    for item in items:
        if isinstance(item.record, FactRecord):
            for number in state.ids.find(id_hash(base.digest(item.record.id))):
                if state.exists(number):
                    found[number] = item.line
    if found:
        reader.get_many(state, sorted(found))
    return set(found.values())
