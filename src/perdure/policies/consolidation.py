"""Consolidation: facts that take the place of several others. Nothing here runs by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from perdure.model.fact import Source
from perdure.policies.forgetting import FactSummary


@dataclass(frozen=True, kw_only=True)
class Consolidation:
    """A fact to add, which supersedes its sources. Times are milliseconds since 1970.

    The sources stay as history. `remove_sources` asks to remove them, which is obeyed only when the
    call of `consolidate` allows it too. `superseded_by` names a fact that the policy was shown and that
    supersedes the new one, from `superseded_from` on (from where that fact takes effect, when absent).
    `keeps_vector` gives it the vector of the earliest source that has one: for texts that say the same.
    `repr()` shows no text.
    """

    text: str = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    subject: str | None = field(default=None, repr=False)
    entities: tuple[str, ...] = field(default=(), repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    event_time: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    tags: tuple[str, ...] = field(default=(), repr=False)
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    source: Source | None = field(default=None, repr=False)
    superseded_by: str | None = field(default=None, repr=False)
    superseded_from: int | None = None
    keeps_vector: bool = False
    remove_sources: bool = False


class ConsolidationPolicy(Protocol):
    """Plans facts that merge others. Run by `consolidate` only."""

    def plan(self, facts: Sequence[FactSummary], now: int) -> Sequence[Consolidation]:
        """Return the facts to add, judged at `now`; a second run on the outcome should plan nothing.

        `facts` are all of the space, by number.
        """
        ...


@dataclass(frozen=True)
class NoConsolidation:
    """Plan nothing. The default."""

    reads_content: ClassVar[bool] = False

    def plan(self, facts: Sequence[FactSummary], now: int) -> Sequence[Consolidation]:
        return ()
