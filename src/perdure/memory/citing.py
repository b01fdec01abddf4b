"""Forgetting in a space of conversations or sessions, with what quotes or cites the turns in the space beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from perdure.audit.audited_log import follow_first
from perdure.errors import Busy, Conflict
from perdure.log.protocol import EMPTY, Head
from perdure.log.records import NO_FACT
from perdure.memory.forgetting import ForgetRules, Planned, block_content, plan_forget, receipt_of
from perdure.memory.quoting import erase_quotes, find_quoted, is_quoted
from perdure.memory.scopes import Scope
from perdure.model.conversation_forms import SESSION_PREFIX, turn_uri, turns_of
from perdure.model.namespace import SESSIONS_SUFFIX, Namespace
from perdure.model.replies import Forgotten
from perdure.planning.certificates import Removed
from perdure.planning.receipts import Keyed
from perdure.planning.removing import remove_certified
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import SpaceState

Quoted = Iterable[tuple[Space, AbstractSet[str]]]
ATTEMPTS = 16  # of forgetting turns that others quote at the same time


class _Quoted(Exception):
    """Turns were quoted after what quotes them had been looked for."""

    def __init__(self, turns: AbstractSet[str]) -> None:
        super().__init__()
        self.turns = turns


class Citing(NamedTuple):
    """What cites turns: nodes, and facts that are no node's, by number; and the ids of both, sorted."""

    nodes: tuple[int, ...]
    facts: tuple[int, ...]
    ids: tuple[str, ...]


class Taken(NamedTuple):
    """What a forget took, or would take: the uris of turns, and the ids of what cites them, which went along where
    that was asked for and stays otherwise."""

    planned: Planned
    turns: frozenset[str]
    citing: frozenset[str]

    def receipt(self, space: Space, rules: ForgetRules) -> Forgotten:
        """Finish the forget as `receipt_of` does, and name what cites the turns with the facts."""
        told = receipt_of(space.log, self.planned, rules)
        gone = self.citing if rules.include_derived else ()
        stays = () if rules.include_derived else self.citing
        return structs.replace(
            told,
            forgotten=tuple(sorted({*told.forgotten, *gone})),
            derived=tuple(sorted({*told.derived, *stays})),
        )


def forget_with_citing(space: Space, beside: Space, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Taken:
    """Forget facts, and with the turns among them what nodes quote of them, or all that cites them if asked.

    What cites turns lies in a space of its own. What goes of it goes first, in a transaction of its own: whoever is
    stopped in between finds it again by the turns, which go only while no node quotes them. It is looked for once more
    after them, since a fact may be told with any source, at any time. The scope is asked again each time.

    Args:
        beside: the space of the nodes and facts that may cite the turns.
        rules: of a forget that is not soft: of turns there is none.

    Raises Busy where others quote the turns again and again: they are still there.
    """
    planned = _forget(space, scope, replace(rules, dry_run=True), keyed)
    turns = turns_of(planned.ids)
    citing = frozenset(_find_citing(beside, turns).ids)
    if rules.dry_run:
        return Taken(planned, turns, citing)
    for one in (space, beside):
        follow_first(one.log, one.number)
    removed, gone = Removed(beside.log.secret), set[str]()

    def take() -> None:
        ids, more = _take(beside, turns, rules)
        removed.absorb(more)
        gone.update(ids)

    for _ in range(ATTEMPTS):
        take()
        try:
            planned = space.write(
                lambda draft: _plan_unquoted(draft, beside, scope, rules, keyed), alone=True
            )
        except _Quoted as error:
            turns |= error.turns
            continue
        turns |= turns_of(planned.ids)
        take()
        if planned.removed is not None:
            planned.removed.absorb(removed)
        return Taken(planned, turns, frozenset(gone) if rules.include_derived else citing)
    raise Busy(
        "others quote what is to be forgotten again and again; it is still there, and its quotes of before are gone: try again"
    )


def _forget(space: Space, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Planned:
    return space.write(lambda draft: plan_forget(draft, scope, rules, keyed), alone=True)


def _plan_unquoted(draft: Draft, beside: Space, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Planned:
    """Plan the forget, to be written only while nothing quotes the turns that go, so that nobody who dies leaves a quote.

    Looked at in the writer's turn: whoever quotes a turn of this space waits for it at the latest, and finds it gone.

    Raises _Quoted where something does.
    """
    planned = plan_forget(draft, scope, rules, keyed)
    turns = turns_of(planned.ids)
    if planned.removed is not None and turns:

        def look(state: SpaceState, reader: FactReader) -> Head:
            cites = citing_of(state, turns, lambda number: reader.get(state, number).id).ids
            if cites if rules.include_derived else is_quoted(state, turns):
                raise _Quoted(turns)
            return state.head if state.head.seq else EMPTY

        draft.unchanged.append((beside.name, beside.read(look)))
    return planned


def _find_citing(beside: Space, turns: AbstractSet[str]) -> Citing:
    return beside.read(lambda state, reader: citing_of(state, turns, lambda n: reader.get(state, n).id))


def _take(beside: Space, turns: AbstractSet[str], rules: ForgetRules) -> tuple[frozenset[str], Removed]:
    """Erase what cites the turns where that was asked for, else what is quoted of them; return the ids that went."""
    if not rules.include_derived:
        return frozenset(), erase_quotes(beside, turns)

    def plan(draft: Draft) -> tuple[frozenset[str], Removed]:
        citing = citing_of(draft.state, turns, lambda number: draft.fact(number).id)
        if rules.block:
            block_content(draft, citing.facts, citing.nodes)
        return frozenset(citing.ids), remove_certified(draft, citing.facts, nodes=citing.nodes)

    return (
        beside.write(plan, alone=True)
        if _find_citing(beside, turns).ids
        else (frozenset(), Removed(beside.log.secret))
    )


class QuotedBeside:
    """What quotes turns of spaces that are erased alone; see `perdure.planning.erasing.Beside`."""

    def __init__(
        self, removed: Removed, find: Callable[[dict[Namespace, frozenset[str]] | None], Quoted]
    ) -> None:
        """Note what is erased in `removed`. `find` tells the spaces beside, each with turns of spaces that are erased:
        of those that are named the turns of before, else what they hold."""
        self._removed, self._find = removed, find

    def erase_quotes(self, gone: dict[Namespace, frozenset[str]] | None = None) -> None:
        """Erase what is quoted of the spaces as they are, or of what they held."""
        for beside, turns in self._find(gone):
            self._removed.absorb(erase_quotes(beside, turns))

    def unquoted(self, namespace: Namespace, turns: frozenset[str]) -> list[tuple[bytes, Head]]:
        def look(state: SpaceState, quoted: AbstractSet[str]) -> Head:
            if is_quoted(state, quoted):
                raise Conflict("turns are quoted that were to be erased; try again", kind="head")
            return state.head if state.head.seq else EMPTY

        return [
            (beside.name, beside.read(lambda state, _, quoted=quoted: look(state, quoted)))  # type: ignore[misc]
            for beside, quoted in self._find({namespace: turns})
        ]


def all_turns(space: Space, beside: Space) -> frozenset[str]:
    """Return the uris of all turns of a space of conversations; of one of sessions those that are quoted beside it,
    since a turn that has expired may be quoted still."""
    if space.namespace.scope.endswith(SESSIONS_SUFFIX):
        return find_quoted(beside, SESSION_PREFIX)
    return space.read(lambda state, _: _turns_in(state))


def _turns_in(state: SpaceState) -> frozenset[str]:
    return frozenset(
        turn_uri(head.session, head.version, turn.source_id)
        for head in state.conversations.heads.values()
        for turn in head.turns.values()
    )


def citing_of(state: SpaceState, turns: AbstractSet[str], id_of: Callable[[int], str]) -> Citing:
    """Return the nodes with evidence from these turns, and the facts with one as their source or made from such.

    Args:
        turns: their uris.
        id_of: the id of a fact by its number.
    """
    nodes = [head for head in state.nodes.heads.values() if not turns.isdisjoint(head.uris)] if turns else []
    told = {number for number, uri in state.uri_of.items() if uri in turns and number not in state.governed}
    projected = {fact for head in nodes for fact in head.facts if fact != NO_FACT}
    made = state.made_of(told | projected).difference(state.governed)
    facts = tuple(sorted(told | made))
    ids = {*(head.id for head in nodes), *(id_of(number) for number in facts)}
    return Citing(tuple(head.number for head in nodes), facts, tuple(sorted(ids)))
