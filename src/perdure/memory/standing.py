"""How a fact stands at the moment of a plan."""

from __future__ import annotations

from perdure.model.status import Status
from perdure.space.draft import Draft
from perdure.temporal.columns import BEGINNING, FOREVER
from perdure.temporal.links import effective_time
from perdure.temporal.status import status_at


def status_of(draft: Draft, number: int) -> Status:
    """Return the fact's status at the plan's now."""
    if not draft.is_live(number):
        return Status.HIDDEN
    fact = draft.fact(number)
    above = draft.above(number)
    if fact.version or (not above and fact.valid_from is None and draft.valid_to(number) == FOREVER):
        return Status.CURRENT
    superseded = min(
        (effective_time(link, draft) for link in above if draft.is_live(link.newer)),
        default=FOREVER,
    )
    start = BEGINNING if fact.valid_from is None else fact.valid_from
    return status_at(start, draft.valid_to(number), superseded, draft.now)
