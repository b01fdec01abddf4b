"""Quotes of conversation turns, held against the turns' originals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perdure.base.text import counted
from perdure.errors import Corrupt
from perdure.log.protocol import Head
from perdure.log.records import TurnRecord
from perdure.model.conversation_forms import TURN_PREFIX, names_of
from perdure.model.node import Evidence
from perdure.model.node_change import ChangeSet, Create
from perdure.repository_errors import QuoteNotFound
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.heads import content_of, may_follow
from perdure.space.space import Space
from perdure.space.state import SpaceState

Placed = tuple[str, Evidence]
"""An evidence, with where it stands in its change set."""


def quoting(changes: ChangeSet) -> list[Placed]:
    """Return the evidence of a checked change set that quotes a turn."""
    return [
        (place, one)
        for place, one in _all_evidence(changes)
        if one.quote is not None and one.uri.startswith(TURN_PREFIX)
    ]


def _all_evidence(changes: ChangeSet) -> Iterator[Placed]:
    for number, operation in enumerate(changes.operations):
        is_new = isinstance(operation, Create)
        told = operation.draft.evidence if is_new else operation.evidence  # type: ignore[attr-defined]
        for place, one in enumerate(told):
            yield f"operations[{number}].{'draft.' if is_new else ''}evidence[{place}]", one


class TurnsMoved(Exception):
    """Turns were erased after quotes were held against them."""


@dataclass(frozen=True, slots=True)
class CheckedQuotes:
    """The state of a space of conversations in which every quote was in its turn."""

    _space: Space
    _number: int
    _head: Head

    def hold(self, draft: Draft) -> None:
        """Have what is planned be written only while no turn goes. Raises TurnsMoved where some may have gone since.

        A writer's turn may be that of his own space only. Turns that go before the append make it a conflict, and the
        plan is asked again; those that go after it are looked for in what quotes them once more when they have gone.
        """
        head = self._space.log.head(self._number)
        if not may_follow(self._head, head) or content_of(head) != content_of(self._head):
            raise TurnsMoved
        draft.unerased.append((self._number, self._head))


def check_quotes(space: Space, evidence: Iterable[Placed]) -> CheckedQuotes:
    """Raise QuoteNotFound unless each quote is in its turn, and at its place where one is told."""
    told = list(evidence)

    def work(state: SpaceState, reader: FactReader) -> tuple[list[str | None], CheckedQuotes]:
        originals = [_find_original(state, reader, one.uri) for _, one in told]
        return originals, CheckedQuotes(space, state.number, state.head)

    originals, checked = space.read(work)
    for (place, one), original in zip(told, originals, strict=True):
        _check(one, original, f"{place}.quote")
    return checked


def _check(evidence: Evidence, original: str | None, field: str) -> None:
    quote, start = evidence.quote, evidence.start
    assert quote is not None
    if original is None:
        raise QuoteNotFound(
            f"{field} is said to be of a turn that is not in this store: tell the conversation first",
            uri=evidence.uri,
            field=field,
        )
    if start is not None and not original.startswith(quote, start):
        raise QuoteNotFound(
            f"{field} is not in its turn at {start}: give the place in code points, or leave it out",
            uri=evidence.uri,
            field=field,
        )
    if quote not in original:
        raise QuoteNotFound(
            f"{field} is not in its turn of {counted(len(original), 'character')}: give its very words",
            uri=evidence.uri,
            field=field,
        )


def _find_original(state: SpaceState, reader: FactReader, uri: str) -> str | None:
    """Return the text of the turn; None where there is no such turn."""
    names = names_of(uri)
    if names is None:
        return None
    session, version, source_id = names
    told = state.conversations.find(session, version)
    turns = () if told is None else told.turns.values()
    seq = next((turn.seq for turn in turns if turn.source_id == source_id), None)
    if seq is None:
        return None
    (record,) = reader.records(state, [seq])
    if not isinstance(record, TurnRecord):
        raise Corrupt(f"record {seq} is no turn: run a verify", seq=seq)
    return record.text
