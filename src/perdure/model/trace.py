"""What a recall did with everything it looked at, and what changed between two states of knowledge."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from perdure.model.fact import Fact
from perdure.model.hit import Hit, Reason
from perdure.model.status import Status


class Rejected(msgspec.Struct, frozen=True):
    """A fact or document that did not come back: why, its status (None: not known then), and what filtered it."""

    id: str
    reason: Reason
    status: Status | None
    filter: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Rejected {self.reason}>"


class Trace(msgspec.Struct, frozen=True):
    """A recall with what it left out.

    Args:
        query, options: as asked, without what was None; what was left to the configuration is not among them.
        seen: facts and documents that the memory shows at all.
        eligible: those that the options allow (time, status, scope).
        matched: those among them that the query matches in its mode.
        scored: candidates that were ranked.
        returned: hits.
        results: the hits, as recall gives them.
        rejected: up to `trace_limit` others: ranked ones first, by rank, then the rest in order of arrival. The
            counts are complete whatever the limit.
    """

    query: str
    options: dict[str, Any]
    seen: int
    eligible: int
    matched: int
    scored: int
    returned: int
    results: tuple[Hit, ...]
    rejected: tuple[Rejected, ...]

    def __repr__(self) -> str:
        return f"<Trace {self.returned} returned of {self.matched} matched of {self.seen} seen>"


class Difference(msgspec.Struct, frozen=True):
    """A fact that stands differently: as known at the end, with its status as known before (None: not known) and after.

    `by` are the ids of the facts that supersede or correct it, as known at the end.
    """

    fact: Fact
    before: Status | None
    after: Status
    by: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.fact.id

    def __repr__(self) -> str:
        before = "unknown" if self.before is None else self.before.value
        return f"<Difference {before} to {self.after.value}>"


class Diff(msgspec.Struct, frozen=True):
    """What came to be known after one moment and until another, each list in order of arrival.

    `learnt` are new facts; the others were known before or are among the new ones. A fact may be in several lists.
    """

    known_from: datetime
    known_to: datetime
    as_of: datetime
    learnt: tuple[Difference, ...]
    ended: tuple[Difference, ...]
    retracted: tuple[Difference, ...]
    superseded: tuple[Difference, ...]
    corrected: tuple[Difference, ...]
