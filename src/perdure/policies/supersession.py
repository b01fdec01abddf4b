"""Supersession: which stored facts of its subject a new fact replaces, and which replace it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from perdure.base.text import counted
from perdure.errors import InvalidRequest


class SlotFact(Protocol):
    """A stored fact of the arrival's subject. Times are milliseconds since 1970, or None where untold.

    `number` is the fact's arrival order in the space. The attributes may be read from the store on
    first use, so a policy should read those that it needs.
    """

    @property
    def number(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def effective_at(self) -> int: ...
    @property
    def valid_from(self) -> int | None: ...
    @property
    def valid_to(self) -> int | None: ...
    @property
    def event_time(self) -> int | None: ...
    @property
    def ingest_time(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A fact with a subject that is about to be stored. Times are milliseconds since 1970.

    `effective_at` is when it takes effect on what it supersedes: its valid_from, else its
    event_time, else its ingest_time. `repr()` shows no text.
    """

    id: str = field(repr=False)
    subject: str = field(repr=False)
    text: str = field(repr=False)
    effective_at: int
    valid_from: int | None
    valid_to: int | None
    event_time: int | None
    ingest_time: int
    number: int
    entities: tuple[str, ...] = field(default=(), repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Slot(Protocol):
    """The stored facts of exactly the arrival's subject, earlier members of its batch included.

    Facts are ordered by (effective_at, number). The arrival itself is not among them.
    """

    def predecessor(self) -> SlotFact | None:
        """Return the last fact that takes effect at the arrival's effective_at or before."""
        ...

    def successor(self) -> SlotFact | None:
        """Return the first fact that takes effect after the arrival's effective_at."""
        ...

    def overtaken(self) -> Sequence[SlotFact]:
        """Return the facts that a latest arrival stands over: the predecessor first, mostly it alone.

        After a correction others may follow, which stand although they lie before the predecessor.
        """
        ...

    def overtaking(self) -> Sequence[SlotFact]:
        """Return the facts that stand over the arrival: the successor first, mostly it alone."""
        ...

    def facts(self) -> Sequence[SlotFact]:
        """Return all of them in order. This costs a step for each; the neighbours cost a bisection."""
        ...

    def holds(self, fact: object) -> bool:
        """Return whether this is a fact that the slot gave."""
        ...


@dataclass(frozen=True, kw_only=True)
class SupersessionDecision:
    """Facts of the slot that the arrival supersedes, and those that supersede it, as the slot gave them.

    Both kinds of link are stored with the arrival, united with the ids that it lists itself. A link
    that would close a cycle is left out.
    """

    supersedes: tuple[SlotFact, ...] = ()
    superseded_by: tuple[SlotFact, ...] = ()


class SupersessionPolicy(Protocol):
    """Consulted once for each new fact that has a subject, inside the write."""

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        """Return the links to store with the arrival; the same answer for the same input.

        It runs while the space is locked: it must not call the memory that it serves.
        """
        ...


@dataclass(frozen=True)
class ExplicitOnly:
    """Link nothing beyond the ids that a fact lists itself. The default."""

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        return SupersessionDecision()


@dataclass(frozen=True)
class LatestBySubject:
    """Supersede the slot's predecessor and be superseded by its successor.

    Whatever the order of arrival, the current fact of a subject is then the last one to have begun.
    Of facts with the same effective time the later arrival wins. A valid_to changes no link, so an
    expired latest fact leaves its subject without a current one. After corrections a few more facts
    of the slot are linked (see `Slot.overtaken`).
    """

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        return SupersessionDecision(
            supersedes=tuple(slot.overtaken()), superseded_by=tuple(slot.overtaking())
        )


def checked_decision(decision: SupersessionDecision, slot: Slot) -> SupersessionDecision:
    """Return a custom policy's decision if it names facts of the slot only.

    Raises:
        InvalidRequest: no SupersessionDecision, or anything in it that the slot did not give.
    """
    if not isinstance(decision, SupersessionDecision):
        raise InvalidRequest(
            f"the supersession policy must return a SupersessionDecision, got {type(decision).__name__}",
            field="supersession",
        )
    named = (*decision.supersedes, *decision.superseded_by)
    strangers = sum(not slot.holds(fact) for fact in named)
    if strangers:
        raise InvalidRequest(
            f"the supersession policy named {counted(strangers, 'fact')} that its slot did not give; link facts of other "
            "subjects by `supersedes` in remember",
            field="supersession",
        )
    return decision
