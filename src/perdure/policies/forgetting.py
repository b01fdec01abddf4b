"""Forgetting: which facts `apply_forgetting` removes. Nothing here runs by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from perdure.model.fact import Source
from perdure.model.status import Status
from perdure.policies.parameters import Parameter, Whole, set_checked

REMOVAL_ORDER = (Status.SUPERSEDED, Status.EXPIRED, Status.CURRENT, Status.NOT_YET_VALID)


@dataclass(frozen=True, kw_only=True)
class FactSummary:
    """What a maintenance policy sees of one fact. Times are milliseconds since 1970, None where untold.

    Hidden facts and plain documents are not shown to policies. `status` is at now. `valid_to` counts
    ends told later; a retracted fact's lies before every instant. `superseded_since` is the earliest
    effective time among the links that supersede it, which may lie ahead; `superseders` are all visible
    facts that do, by (since, number). `linked` says whether any supersession link touches it. `text`,
    `entities`, `metadata` and `source` are empty where the policy says that it does not read them (see
    `reads_content`). `repr()` shows no text.
    """

    id: str = field(repr=False)
    number: int
    status: Status
    ingest_time: int
    subject: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    entities: tuple[str, ...] = field(default=(), repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    uses: int = 0
    event_time: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    superseded_since: int | None = None
    superseders: tuple[Superseder, ...] = ()
    source: Source | None = field(default=None, repr=False)
    linked: bool = False


class Superseder(NamedTuple):
    """A visible fact that supersedes another, by its number, and from when on it does."""

    number: int
    since: int


class ForgettingPolicy(Protocol):
    """Names facts to remove. Run by `apply_forgetting` only."""

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        """Return ids of facts to remove, judged at `now` (milliseconds since 1970).

        `facts` are all of the space, by number. Unknown and repeated ids are ignored.
        """
        ...


@dataclass(frozen=True)
class KeepAll:
    """Remove nothing. The default."""

    reads_content: ClassVar[bool] = False

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class ExpiredFor:
    """Remove facts whose validity ended more than `grace_ms` ago. A retracted fact goes at once.

    Args:
        grace_ms: milliseconds, 0 or more; exactly so long ago is not yet more.
    """

    grace_ms: int

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {"grace_ms": Whole(0)}
    reads_content: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        return [
            fact.id for fact in facts if fact.valid_to is not None and now - fact.valid_to > self.grace_ms
        ]


@dataclass(frozen=True)
class SupersededFor:
    """Remove facts that were first superseded more than `age_ms` ago.

    Args:
        age_ms: milliseconds, 0 or more; exactly so long ago is not yet more.
    """

    age_ms: int

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {"age_ms": Whole(0)}
    reads_content: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        return [
            fact.id
            for fact in facts
            if fact.superseded_since is not None and now - fact.superseded_since > self.age_ms
        ]


@dataclass(frozen=True)
class MaxFacts:
    """Keep at most `limit` facts, removing the surplus from the least alive on.

    Superseded facts go first, then expired, current and not-yet-valid ones; inside each status the
    longest stored goes first, by (ingest_time, number). So no removal makes another fact current.

    Args:
        limit: how many facts stay, 1 or more.
    """

    limit: int

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {"limit": Whole(1)}
    reads_content: ClassVar[bool] = False

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
        rank = {status: place for place, status in enumerate(REMOVAL_ORDER)}
        surplus = len(facts) - self.limit
        if surplus <= 0:
            return ()
        leaving = sorted(facts, key=lambda fact: (rank[fact.status], fact.ingest_time, fact.number))
        return [fact.id for fact in leaving[:surplus]]


def reads_content(policy: object) -> bool:
    """Return whether summaries for this policy need text, entities and metadata.

    A policy of one's own gets them unless it has `reads_content = False`; the built-ins of this
    module go without, which spares reading every record.
    """
    return bool(getattr(policy, "reads_content", True))
