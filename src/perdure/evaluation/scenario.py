"""A scenario as values: what is told to a memory, step by step, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from perdure.importers.entries import Place
from perdure.model.inputs import NewFact

Operation = Literal["remember", "correct", "end", "retract", "annotate", "forget", "restore"]


@dataclass(frozen=True, slots=True)
class Step:
    """A call of Memory. `facts` is for `remember`: one transaction; `arguments` by name for every other.

    `clock`, where there is one, is the moment in milliseconds at which the call is made; None goes on at the last.
    `spelling` gives the names that the file spells otherwise than Python, by Python's, for messages.
    """

    place: Place
    operation: Operation
    clock: int | None = None
    facts: tuple[NewFact, ...] = field(default=(), repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    spelling: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its known answer. At least one of `expect` and `absent` says something.

    Args:
        options: of Memory.recall, by name.
        expect: the ids that answer it. None says nothing of them; an empty tuple says that nothing comes back.
        ordered: they come back in the order of `expect`.
        absent: ids that must not come back.
        category: rows of a report are made by it.
        spelling: as of a Step.
    """

    place: Place
    query: str = field(repr=False)
    clock: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    expect: tuple[str, ...] | None = None
    ordered: bool = False
    absent: tuple[str, ...] = ()
    category: str | None = None
    name: str | None = None
    spelling: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """The clock is set, and nothing else happens."""

    place: Place
    clock: int


Entry = Step | Case | Move


@dataclass(frozen=True, slots=True)
class Scenario:
    """Entries in the order in which they happen; a case is asked at its place among them."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, Case))

    @property
    def has_steps(self) -> bool:
        return any(not isinstance(entry, Case) or entry.clock is not None for entry in self.entries)
