"""Conversations between two people in dated sessions (the LoCoMo form): one fact per turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from perdure.base.instants import to_millis
from perdure.errors import InvalidRequest
from perdure.importers.entries import Bad, Entry, Found, Place
from perdure.model.fact import Source
from perdure.model.inputs import NewFact

_SESSION = re.compile(r"session_(\d{1,6})")
_MEMBERS = ("speaker", "dia_id", "text")
_PICTURE = ("blip_caption", "query")
_FORMS = ("%I:%M %p on %d %B, %Y", "%H:%M on %d %B, %Y", "%d %B, %Y", "%d %B %Y")


def turn_text(speaker: str, text: str, *, date: str | None = None, picture: tuple[str, ...] = ()) -> str:
    """Return the text of a turn's fact: `[date] speaker: text (caption; search words)`.

    The date and the speaker are in it because questions ask by them; `picture` is what is known of a
    picture that was shared with the turn.
    """
    shown = "; ".join(part for part in picture if part)
    words = f"{speaker}: {text}" + (f" ({shown})" if shown else "")
    return f"[{date}] {words}" if date else words


def is_conversation(document: Any) -> bool:
    """Whether a decoded document is a conversation, a sample that holds one, or a list of samples."""
    if isinstance(document, list):
        return bool(document) and all(is_conversation(sample) for sample in document)
    if not isinstance(document, Mapping):
        return False
    return isinstance(document.get("conversation"), Mapping) or any(map(_SESSION.fullmatch, document))


def read_conversations(document: Any, name: str, file: str) -> Iterator[Entry]:
    """Yield the turns of every conversation in a decoded document, in order.

    Args:
        name: what a conversation is called that does not say so itself (`sample_id`); it begins the
            ids and names the principal.
        file: named in the places of what is found.
    """
    if isinstance(document, list):
        for index, sample in enumerate(document):
            if is_conversation(sample):
                yield from read_conversations(sample, f"{name}-{index + 1}", file)
            else:
                yield Bad(Place(file, entry=f"[{index}]"), "not a conversation: it has no session_1")
        return
    told = document.get("sample_id")
    called = told if isinstance(told, str) and told.strip() else name
    inner = document.get("conversation")
    yield from _sessions(inner if isinstance(inner, Mapping) else document, called, file)


def session_instant(date: str) -> int:
    """Return a session's date, like `1:56 pm on 8 May, 2023` or ISO text, as milliseconds (UTC).

    Raises:
        InvalidRequest: no such date.
    """
    folded = " ".join(date.split())
    for form in _FORMS:
        try:
            return to_millis(datetime.strptime(folded, form), field="date")  # noqa: DTZ007 - naive means UTC
        except ValueError:
            continue
    return to_millis(folded, field="date")


def _sessions(sessions: Mapping[str, Any], name: str, file: str) -> Iterator[Entry]:
    numbers = sorted(int(match[1]) for key in sessions if (match := _SESSION.fullmatch(key)))
    seen: set[str] = set()
    for number in numbers:
        key = f"session_{number}"
        turns, date = sessions.get(key), sessions.get(f"{key}_date_time")
        place = Place(file, entry=key)
        if not isinstance(turns, list):
            yield Bad(place, "must be a list of turns")
            continue
        try:
            at = None if date is None else session_instant(_text(date, f"{key}_date_time"))
        except InvalidRequest:
            yield Bad(place, f"{key}_date_time is no date; write it like 1:56 pm on 8 May, 2023")
            continue
        for position, turn in enumerate(turns):
            where = Place(file, entry=f"{key}[{position}]")
            try:
                fact = _fact(turn, _Session(name, number, position, date, at))
            except InvalidRequest as error:
                yield Bad(where, error.message)
                continue
            if fact.id in seen:
                yield Bad(where, "dia_id is that of an earlier turn; each turn needs its own")
                continue
            seen.add(str(fact.id))
            yield Found(where, fact, name)


class _Session:
    """Where a turn stands."""

    def __init__(
        self, conversation: str, number: int, position: int, date: str | None, at: int | None
    ) -> None:
        self.conversation, self.number, self.position = conversation, number, position
        self.date, self.at = date, at


def _fact(turn: Any, session: _Session) -> NewFact:
    if not isinstance(turn, Mapping):
        raise InvalidRequest("a turn must be an object")
    missing = [name for name in _MEMBERS if name not in turn]
    if missing:
        raise InvalidRequest(f"{missing[0]} is missing", field=missing[0])
    speaker, dia_id, text = (_text(turn[name], name) for name in _MEMBERS)
    picture = tuple(_text(turn[name], name) for name in _PICTURE if turn.get(name) is not None)
    conversation = session.conversation
    return NewFact(
        text=turn_text(speaker, text, date=session.date, picture=picture),
        id=f"{conversation}/{dia_id}",
        event_time=session.at,
        metadata={"dia_id": dia_id, "session": session.number},
        source=Source(
            uri=f"{conversation}/session-{session.number}", position=session.position, actor=speaker
        ),
    )


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be text, got {type(value).__name__}", field=name)
    return value
