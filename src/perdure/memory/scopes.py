"""The scopes of forget: exactly one, each an exact predicate over facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyroaring import BitMap

from perdure.base.canonical import checked_text
from perdure.base.ids import checked_known_id
from perdure.base.instants import to_millis
from perdure.base.text import folded, folded_space
from perdure.errors import InvalidRequest
from perdure.log.records import NO_FACT
from perdure.model.conversation_forms import TURN_PREFIX, escaped, session_uri
from perdure.model.node_forms import fact_id, find_node_id
from perdure.planning import checks
from perdure.planning.questions import checked_equalities, checked_filter
from perdure.space.draft import Draft
from perdure.space.filtering import numbers_matching
from perdure.space.nodes import NodeHead
from perdure.space.preparing import pair_digest
from perdure.space.state import NO_TIME, SpaceState
from perdure.temporal.columns import BEGINNING

SCOPES = (
    "ids",
    "subject",
    "entity",
    "ingested_before",
    "event_before",
    "matching",
    "tag",
    "text",
    "containing",
    "kind",
    "filter",
    "session",
    "all",
)
Scope = Callable[[Draft], list[int]]
"""Returns the numbers of the facts that a scope means, hidden ones included, ascending."""


def scope_of(**told: Any) -> Scope:
    """Return the one scope that was told; raises InvalidRequest for none, several or a bad value."""
    named = [name for name in SCOPES if told.get(name) is not None and told[name] is not False]
    if len(named) != 1:
        given = "none" if not named else ", ".join(named)
        raise InvalidRequest(
            f"forget takes exactly one of {', '.join(SCOPES)}; given: {given}", field="scope"
        )
    name = named[0]
    return _MAKERS[name](told[name])


class OfSession:
    """The scope of all that the turns of a session brought, kept as a conversation or as a session.

    These are the facts whose source is one of its turns, and the nodes with evidence from one, candidates too.
    """

    def __init__(self, session_id: str) -> None:
        self._prefixes = f"{TURN_PREFIX}{escaped(session_id)}/", f"{session_uri(session_id)}/"

    def __call__(self, draft: Draft) -> list[int]:
        told = (number for number, uri in draft.state.uri_of.items() if uri.startswith(self._prefixes))
        seen = (fact for head in self.nodes(draft) for fact in head.facts if fact != NO_FACT)
        return sorted({*told, *seen})

    def nodes(self, draft: Draft) -> list[NodeHead]:
        """Return the nodes with evidence from a turn of the session, in the order in which they were proposed."""
        heads = sorted(draft.state.nodes.heads.items())
        return [head for _, head in heads if any(uri.startswith(self._prefixes) for uri in head.uris)]


class OfIds:
    """The scope of facts by their ids, and of candidates by the ids of the facts that they would be."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = tuple(ids)

    def __call__(self, draft: Draft) -> list[int]:
        numbers = (draft.find_number(id_) for id_ in self._ids)
        return sorted({number for number in numbers if number is not None})

    def nodes(self, draft: Draft) -> list[NodeHead]:
        """Return the nodes that were never served and whose newest revision would be seen as one of the facts."""
        named = sorted({name for id_ in self._ids if (name := find_node_id(id_)) is not None})
        heads = (head for name in named if (head := draft.state.nodes.find(name)) is not None)
        ids = set(self._ids)
        return [head for head in heads if head.fact == NO_FACT and fact_id(head.id, head.revision) in ids]


def nodes_of(scope: Scope, draft: Draft) -> list[NodeHead]:
    """Return the nodes that a scope means by itself, not by the facts that they are seen as; most mean none."""
    return scope.nodes(draft) if isinstance(scope, OfSession | OfIds) else []


def everything_of(draft: Draft) -> list[int]:
    """Return all facts and documents, live and hidden, ascending."""
    return sorted((*draft.state.numbers(), *draft.state.hidden))


def facts_of(draft: Draft) -> list[int]:
    """Return all facts, live and hidden, ascending. Documents have no times, so scopes of time use this."""
    plain = draft.state.plain
    return [number for number in everything_of(draft) if number not in plain]


def _ids(value: Any) -> Scope:
    return OfIds(
        checked_known_id(id_, field=f"ids[{place}]")
        for place, id_ in enumerate(checks.members_of(value, "ids", "ids"))
    )


def _subject(value: Any) -> Scope:
    subject = checks.checked_name(value, "subject")

    def find(draft: Draft) -> list[int]:
        state = draft.state
        hidden = [n for n in state.hidden if state.subject_of.get(n) == subject]
        return sorted((*state.subjects.get(subject, ()), *hidden))

    return find


def _posted(value: Any, field: str, table: Callable[[SpaceState], Mapping[str, BitMap]]) -> Scope:
    name = checks.checked_name(value, field)
    return lambda draft: list(table(draft.state).get(name, ()))


def _kind(value: Any) -> Scope:
    kind = checks.checked_kind(value)
    return lambda draft: list(draft.state.kinds.get(kind or "", ()))


def _ingested_before(value: Any) -> Scope:
    moment = to_millis(value, field="ingested_before")
    return lambda draft: [n for n in facts_of(draft) if draft.ingest(n) < moment]


def _event_before(value: Any) -> Scope:
    moment = to_millis(value, field="event_before")
    return lambda draft: [n for n in facts_of(draft) if event_or_start(draft.state, n) < moment]


def event_or_start(state: SpaceState, number: int) -> int:
    """Return event_time, else valid_from, else ingest_time (another order than that of eff)."""
    if (event := state.event[number]) != NO_TIME:
        return event
    if (start := state.valid_from[number]) != BEGINNING:
        return start
    return state.ingested[number]


def _matching(value: Any, field: str) -> Scope:
    pairs = checked_equalities(value, field)
    return lambda draft: list(numbers_with(draft.state, pairs, draft.secret))


def numbers_with(state: SpaceState, pairs: Mapping[str, Any], secret: bytes) -> BitMap:
    """Return the facts whose metadata has every one of these pairs at its top level."""
    found: BitMap | None = None
    for key, value in pairs.items():
        posting = state.metadata.get(pair_digest(key, value, secret))
        if not posting:
            return BitMap()
        found = posting.copy() if found is None else found & posting
    return BitMap() if found is None else found


def _filter(value: Any) -> Scope:
    filter_ = checked_filter(value)
    return lambda draft: list(numbers_matching(draft.state, filter_, draft.secret))


def _text(value: Any) -> Scope:
    wanted = folded_space(checked_text(value, field="text"))
    if not wanted:
        raise InvalidRequest("text is blank", field="text")
    return lambda draft: [n for n in everything_of(draft) if folded_space(draft.fact(n).text) == wanted]


def _containing(value: Any) -> Scope:
    part = folded(checked_text(value, field="containing"))
    if not part:
        raise InvalidRequest("containing is blank and would match everything", field="containing")
    return lambda draft: [n for n in everything_of(draft) if part in folded(draft.fact(n).text)]


def _all(value: Any) -> Scope:
    checks.checked_flag(value, "all")
    return everything_of


_MAKERS: dict[str, Callable[[Any], Scope]] = {
    "ids": _ids,
    "subject": _subject,
    "entity": lambda value: _posted(value, "entity", lambda state: state.entities),
    "ingested_before": _ingested_before,
    "event_before": _event_before,
    "matching": lambda value: _matching(value, "matching"),
    "tag": lambda value: _posted(value, "tag", lambda state: state.tags),
    "text": _text,
    "containing": _containing,
    "kind": _kind,
    "filter": _filter,
    "session": lambda value: OfSession(checked_known_id(value, field="session")),
    "all": _all,
}
