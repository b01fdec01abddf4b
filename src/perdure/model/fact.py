"""A fact: what an agent was told, when it holds, and what has been said of it since."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from perdure.base.text import counted
from perdure.model.status import Status

FactKind = Literal["episodic", "semantic", "procedural", "working"]
FACT_KINDS: tuple[str, ...] = ("episodic", "semantic", "procedural", "working")


class _Unchangeable(dict[str, Any]):
    """The metadata of a fact that has none: one object for all of them, so nobody may change it."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a fact is frozen: use annotate(metadata=...) to change its metadata")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse


EMPTY: dict[str, Any] = _Unchangeable()


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a fact comes from. `position` orders the facts of one `uri`; `actor` said it."""

    uri: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    position: int | None = None
    actor: str | None = None

    def __repr__(self) -> str:
        told = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"<Source {', '.join(told)}>"


class End(msgspec.Struct, frozen=True):
    """A close of validity told later. `at` is None for a retraction: the fact was never true."""

    at: datetime | None
    recorded_at: datetime
    reason: str | None

    def __repr__(self) -> str:
        at = "never true" if self.at is None else self.at.isoformat()
        return f"<End {at}, recorded {self.recorded_at.isoformat()}>"


class Merges(msgspec.Struct, frozen=True):
    """How many other tellings and facts were merged into a fact, and when the last of them was."""

    count: int
    last_at: datetime


class Fact(msgspec.Struct, frozen=True):
    """A stored fact as seen by one read. Times are aware UTC datetimes.

    `status` is at the read's `as_of`. `supersedes` and `superseded_by` are ids of the facts linked
    directly and visible to the read, each sorted. `repr()` shows no text.
    """

    id: str
    text: str
    subject: str | None
    entities: tuple[str, ...]
    metadata: dict[str, Any]
    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    event_time: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    ingest_time: datetime
    ends: tuple[End, ...]
    uses: int
    last_used_at: datetime | None
    hidden: bool
    source: Source | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    status: Status
    merged: Merges | None = None

    def __repr__(self) -> str:
        # People's text does not belong in logs and tracebacks.
        return f"<Fact {self.status.value}, {counted(len(self.text), 'character')}, recorded {self.ingest_time.isoformat()}>"
