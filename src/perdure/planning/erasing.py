"""Erasing whole spaces: every record of theirs, their names too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from perdure.base.acting import current_actor
from perdure.errors import Busy, Conflict, NotFound
from perdure.log.protocol import Batch, Head, Log
from perdure.log.records import (
    ByRecord,
    ConversationRecord,
    FactRecord,
    GoneRecord,
    NodeRecord,
    SpaceRecord,
    TurnRecord,
    decode,
    encode,
)
from perdure.model.conversation_forms import turn_uri
from perdure.model.namespace import BESIDE, CONFIGURATION, Namespace
from perdure.planning.certificates import Removed
from perdure.space.purging import between_purges

ATTEMPTS = 16


class ErasedSpaces(NamedTuple):
    """What went with spaces that were erased: their names, sorted, and the uris of the turns of each."""

    removed: Removed
    names: tuple[Namespace, ...]
    turns: dict[Namespace, frozenset[str]]


class Beside(Protocol):
    """What quotes the turns of spaces that are erased, from beside them."""

    def erase_quotes(self) -> None:
        """Erase what is quoted of the spaces as they are."""
        ...

    def unquoted(self, namespace: Namespace, turns: frozenset[str]) -> Sequence[tuple[bytes, Head]]:
        """Return the spaces that the erasure of one rests on, none of which quotes its turns, as `Batch.unchanged`.

        Raises Conflict, of the kind "head", where one does.
        """
        ...


class NamedSpace(NamedTuple):
    """A space that holds records, and its name."""

    number: int
    namespace: Namespace


def named_spaces(log: Log) -> list[NamedSpace]:
    """Return the spaces of a store in the order of their numbers; not those that were erased whole, nor that of
    the configuration.

    Raises Busy where purges overtook the reading again and again.
    """
    return between_purges(log, lambda: _named_spaces(log))


def has_remains(log: Log) -> bool:
    """Whether a space that was erased whole still has a place in the store: its purge was stopped, or is to come.

    Raises Busy where purges overtook the reading again and again.
    """
    return between_purges(log, lambda: any(_find_name(log, number) is None for number in log.spaces()))


def _named_spaces(log: Log) -> list[NamedSpace]:
    found = [NamedSpace(number, name) for number in log.spaces() if (name := _find_name(log, number))]
    return [space for space in found if space.namespace != CONFIGURATION]


def _find_name(log: Log, number: int) -> Namespace | None:
    for entry in log.read(number, 0, 1):
        record = None if entry.data is None else decode(entry.data, space=number, seq=1)
        if isinstance(record, SpaceRecord):
            return Namespace(record.principal, record.scope)
    return None


def survey_spaces(log: Log, principal: str, scope: str | None) -> tuple[Removed, tuple[Namespace, ...]]:
    """Return what `erase_spaces` would erase, and the names, sorted. Changes nothing."""

    def survey() -> tuple[Removed, tuple[Namespace, ...]]:
        removed, found = Removed(log.secret), matching(log, principal, scope)
        for space in found:
            _survey_space(log, space, removed)
        return removed, _sorted(space.namespace for space in found)

    return between_purges(log, survey)


def _survey_space(log: Log, space: NamedSpace, removed: Removed, turns: set[str] | None = None) -> Head:
    """Note all that the space holds as removed, and the uris of its turns; return the head at which it holds that."""
    head = log.head(space.number)
    versions: dict[int, tuple[str, str]] = {}
    removed.spaces += 1
    removed.records += head.seq - head.erasures
    for seq, data in log.read(space.number, 0, head.seq):
        record = None if data is None else decode(data, space=space.number, seq=seq)
        if isinstance(record, FactRecord):
            removed.add(space.namespace, record)
        elif isinstance(record, NodeRecord):
            removed.add_revision(space.namespace, record)
        elif isinstance(record, TurnRecord):
            removed.add_turn(space.namespace, record)
            if turns is not None and record.conversation in versions:
                turns.add(turn_uri(*versions[record.conversation], record.source_id))
        elif isinstance(record, ConversationRecord):
            versions[record.number] = record.session, record.version
    return head


def erase_spaces(log: Log, principal: str, scope: str | None, now: int, beside: Beside) -> ErasedSpaces:
    """Erase the spaces of a principal, or those of one scope, each in one transaction of its own.

    Called again after a crash it erases those that are left. What quotes their turns beside them goes first, and turns go
    only while nothing does. Waits for the writer's turn.
    """
    removed, turns = Removed(log.secret), dict[Namespace, frozenset[str]]()
    for _ in range(ATTEMPTS):
        beside.erase_quotes()
        try:
            with log.writer():
                for space in matching(log, principal, scope):
                    turns[space.namespace] = _erase_space(log, space, removed, now, beside)
        except (Conflict, NotFound):
            # Of a log whose turn does not reach other processes, or of what was quoted meanwhile.
            continue
        return ErasedSpaces(removed, _sorted(turns), turns)
    raise Busy(f"other writers were faster {ATTEMPTS} times in a row; retry")


def _erase_space(log: Log, space: NamedSpace, removed: Removed, now: int, beside: Beside) -> frozenset[str]:
    """Erase a space; return the uris of its turns."""
    found = Removed(log.secret)
    turns = set[str]()
    head = _survey_space(log, space, found, turns)
    actor = current_actor()
    records = [encode(GoneRecord(now))] + ([] if actor is None else [encode(ByRecord(actor, 1))])
    unchanged = beside.unquoted(space.namespace, frozenset(turns))
    log.append(space.number, head, Batch(records, range(1, head.seq + 1), unchanged=unchanged))
    removed.absorb(found)
    return frozenset(turns)


def matching(log: Log, principal: str, scope: str | None) -> list[NamedSpace]:
    """Return the spaces of a principal, all of them where no scope is given; names are compared exactly.

    To a scope belongs what is kept beside it: its conversations and its sessions.
    """
    scopes = None if scope is None else {scope, *(scope + suffix for suffix in BESIDE)}
    return [
        space
        for space in named_spaces(log)
        if space.namespace.principal == principal and (scopes is None or space.namespace.scope in scopes)
    ]


def _sorted(names: Iterable[Namespace]) -> tuple[Namespace, ...]:
    return tuple(sorted(names, key=lambda name: (name.principal, name.scope)))
