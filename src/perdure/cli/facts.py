"""How facts, receipts and explanations look to people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.base.instants import to_iso, to_millis
from perdure.cli.screen import STYLES, Screen, compact

if TYPE_CHECKING:
    from perdure.model.fact import End, Fact, Source
    from perdure.model.hit import ChainLink, Explanation, Hit
    from perdure.model.replies import Remembered

BAR_WIDTH = 30
REASONS = {
    "returned": "It comes back",
    "below-k": "It matches, but k other facts score higher",
    "below-min-score": "It matches, but scores less than --min-score",
    "below-candidates": "It matches, but more than --candidate-limit others match better",
    "no-match": "None of the query's words is in it",
    "not-current": "It does not hold at that moment",
    "not-known": "It was recorded after --known-at",
    "filtered": "It is outside what was asked for",
}


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


def show_hits(screen: Screen, hits: Sequence[Hit]) -> None:
    if not hits:
        screen.line("Nothing matches.")
        return
    rows = [[score(hit.score), hit.status.value, hit.text] for hit in hits]
    screen.table(["score", "status", "text"], rows, [notes_of(hit.fact) for hit in hits])
    for hit in hits:
        if hit.explanation is not None:
            screen.line()
            show_explanation(screen, hit.explanation)


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
        "used": f"{fact.uses} times, last {iso(fact.last_used_at)}" if fact.uses else None,
        "merged": None
        if fact.merged is None
        else f"{fact.merged.count} times, last {iso(fact.merged.last_at)}",
        "metadata": compact(fact.metadata) if fact.metadata else None,
        "source": _source(fact.source),
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


def show_explanation(screen: Screen, explanation: Explanation) -> None:
    """Print the reason, a bar per part of the score, the words that matched, and the chain."""
    rank = "" if explanation.rank is None else f"; rank {explanation.rank}"
    status = "unknown then" if explanation.status is None else explanation.status.value
    screen.heading(f"{explanation.reason}: {REASONS[explanation.reason]}{rank}.")
    told = {
        "id": explanation.id,
        "status": f"{status} (as of {iso(explanation.as_of)})",
        "known at": iso(explanation.known_at),
        "valid from": iso(explanation.valid_from),
        "valid to": iso(explanation.valid_to),
        "filtered by": ", ".join(explanation.filtered_by),
        "matched": ", ".join(explanation.matched_terms) or "no word",
        "actor": explanation.actor,
        "period": explanation.period,
        "neighbours": "; ".join(
            f"{one.distance:+d} holds {', '.join(one.terms)} ({one.id})" for one in explanation.neighbours
        ),
        "cosine": None if explanation.semantic_score is None else score(explanation.semantic_score),
        "weights": None
        if explanation.fusion is None
        else f"{explanation.fusion}, {', '.join(f'{k} {v:g}' for k, v in explanation.weights.items())}",
        "score": "none" if explanation.final_score is None else score(explanation.final_score),
        "source": _source(explanation.source),
    }
    screen.fields((name, value) for name, value in told.items() if value)
    _show_parts(screen, explanation)
    if len(explanation.chain) > 1:
        _show_chain(screen, explanation.chain)


def _show_parts(screen: Screen, explanation: Explanation) -> None:
    parts = [(part.name, part.value) for part in explanation.parts]
    if not parts and explanation.lexical_score:
        parts = [("lexical", explanation.lexical_score)]
    if not parts:
        return
    longest = max(value for _, value in parts)
    names = max(len(name) for name, _ in parts)
    for name, value in parts:
        bar = screen.block * round(BAR_WIDTH * value / longest) if longest else ""
        screen.line(f"  {name.ljust(names)}  {score(value):>8}  {bar}")


def _show_chain(screen: Screen, chain: Sequence[ChainLink]) -> None:
    screen.line("Chain, in the order in which its facts take effect:", style=STYLES["not-yet-valid"])
    rows, notes = [], []
    for link in chain:
        at = iso(link.effective_time)
        # The time beside a relative is that of the link: when the newer of the two takes over.
        takes_over = "" if link.relation == "self" else at
        rows.append([takes_over, link.relation, link.status.value, link.text])
        notes.append(f"{link.id}  takes effect {at}" if link.relation == "self" and at else link.id)
    screen.table(["takes over at", "relation", "status", "text"], rows, notes)


def _ended(end: End) -> str:
    what = "retracted" if end.at is None else f"ended {iso(end.at)}"
    return what if end.reason is None else f"{what} ({end.reason})"


def _source(source: Source | None) -> str | None:
    if source is None:
        return None
    from perdure.contract.wire import source_object  # noqa: PLC0415 - only where there is a source

    return compact(source_object(source))
