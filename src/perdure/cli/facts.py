"""How facts and receipts look to people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.base.instants import to_iso, to_millis
from perdure.base.text import counted
from perdure.cli.screen import Screen, compact

if TYPE_CHECKING:
    from perdure.model.fact import End, Fact, Source
    from perdure.model.replies import Remembered


def iso(moment: datetime | None) -> str:
    return "" if moment is None else to_iso(to_millis(moment, field="time"))


def score(value: float) -> str:
    """Return a score to four places, or to two digits where those would all be zeros."""
    return f"{value:.4f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def notes_of(fact: Fact) -> str:
    """Return what stands under a fact in a table: its id, when it holds and what it is about."""
    parts = [fact.id]
    if fact.valid_from is not None:
        parts.append(f"from {iso(fact.valid_from)}")
    if fact.valid_to is not None:
        parts.append(f"to {iso(fact.valid_to)}")
    parts += [_ended(end) for end in fact.ends]
    if fact.event_time is not None:
        parts.append(f"event {iso(fact.event_time)}")
    if fact.subject is not None:
        parts.append(f"subject {fact.subject}")
    return "  ".join(parts)


def show_facts(screen: Screen, facts: Sequence[Fact]) -> None:
    rows = [[iso(fact.ingest_time), fact.status.value, fact.text] for fact in facts]
    screen.table(["recorded", "status", "text"], rows, [notes_of(fact) for fact in facts])


def show_fact(screen: Screen, fact: Fact) -> None:
    """Print every field that has a value."""
    told = {
        "id": fact.id,
        "status": fact.status.value,
        "subject": fact.subject,
        "entities": ", ".join(fact.entities),
        "tags": ", ".join(fact.tags),
        "kind": fact.kind,
        "importance": None if fact.importance is None else str(fact.importance),
        "pinned": "yes" if fact.pinned else None,
        "valid from": iso(fact.valid_from),
        "valid to": iso(fact.valid_to),
        "event time": iso(fact.event_time),
        "recorded": iso(fact.ingest_time),
        "ends": "; ".join(_ended(end) for end in fact.ends),
        "supersedes": ", ".join(fact.supersedes),
        "superseded by": ", ".join(fact.superseded_by),
        "used": f"{counted(fact.uses, 'time')}, last {iso(fact.last_used_at)}" if fact.uses else None,
        "merged": None
        if fact.merged is None
        else f"{counted(fact.merged.count, 'time')}, last {iso(fact.merged.last_at)}",
        "metadata": compact(fact.metadata) if fact.metadata else None,
        "source": source_told(fact.source),
        "text": fact.text,
    }
    screen.fields((name, value) for name, value in told.items() if value)


def show_receipt(screen: Screen, reply: Remembered) -> None:
    told = {
        "outcome": reply.outcome,
        "id": reply.id,
        "status": None if reply.status is None else reply.status.value,
        "recorded": iso(reply.ingest_time),
        "supersedes": ", ".join(reply.supersedes),
        "superseded by": ", ".join(reply.superseded_by),
        "note": reply.reason,
    }
    screen.fields((name, value) for name, value in told.items() if value)


def _ended(end: End) -> str:
    what = "retracted" if end.at is None else f"ended {iso(end.at)}"
    return what if end.reason is None else f"{what} ({end.reason})"


def source_told(source: Source | None) -> str | None:
    if source is None:
        return None
    from perdure.contract.wire import source_object  # noqa: PLC0415 - only where there is a source

    return compact(source_object(source))
