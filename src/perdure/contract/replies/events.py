"""The replies about the audit."""

from __future__ import annotations

from typing import Annotated

from perdure.contract.replies.fields import Millis, Reply, says


class AuditEventObject(Reply, frozen=True):
    """One event: that something happened, never what anything says."""

    sequence: Annotated[int, says("From 1, without gaps in the store as a whole.")]
    type: str
    fact_id: Annotated[str | None, says("While the fact exists.")]
    node_id: Annotated[str | None, says("Of a node that the event is about, while it exists.")]
    details: Annotated[dict[str, int | str | bool], says("Counts, digests and names of the engine's own.")]
    at: Millis
    actor: Annotated[str | None, says("Who did it, where that was told.")]
    space: Annotated[str | None, says("The keyed digest of the space's name; null for the store as a whole.")]


class EventPage(Reply, frozen=True):
    """A part of the events, oldest first."""

    items: tuple[AuditEventObject, ...]
    total: Annotated[int, says("How many match, on all pages.")]
    has_more: bool
    cursor: Annotated[str | None, says("For the next page; null on the last one.")]
