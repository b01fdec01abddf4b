"""Hits and explanations drawn for people: texts with their matches, a bar per part of the score, the chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.base.text import counted
from perdure.cli.facts import iso, notes_of, score, source_told
from perdure.cli.screen import STYLES, Screen
from perdure.contract import limits

if TYPE_CHECKING:
    from perdure.model.hit import ChainLink, Explanation, Hit, Neighbour, Part

BAR_WIDTH = 30
BAR_WIDTH_MIN = 4  # a narrower bar compares nothing; the line then wraps
TABLE_WIDTH_MIN = 75  # else a chain's table leaves no room for its texts
REASONS = {
    "returned": "It comes back",
    "below-k": "It matches, but k other facts score higher",
    "below-min-score": "It matches, but scores less than --min-score",
    "below-candidates": "It matches, but more than --candidate-limit others match better",
    "no-match": "None of the query's words is in it",
    "no-vector": "It has no vector to compare; perdure embed-missing adds it",
    "not-current": "It does not hold at that moment",
    "not-known": "It was recorded after --known-at",
    "filtered": "It is outside what was asked for",
}


def show_hits(screen: Screen, hits: Sequence[Hit]) -> None:
    if not hits:
        screen.line("Nothing matches.")
        return
    rows = [[score(hit.score), hit.status.value, hit.text] for hit in hits]
    screen.table(["score", "status", "text"], rows, [_notes(hit) for hit in hits])
    for hit in hits:
        if hit.explanation is not None:
            screen.line()
            show_explanation(screen, hit.explanation)


def _notes(hit: Hit) -> str:
    if hit.space is None:
        return notes_of(hit.fact)
    where = "/".join(name for name in (hit.space.principal, hit.space.scope) if name)
    return f"{notes_of(hit.fact)}  in {where or 'the default memory'}"


def show_explanation(screen: Screen, explanation: Explanation) -> None:
    """Print the reason, what it goes by, the text with its matches marked, a bar per part, and the chain."""
    rank = "" if explanation.rank is None else f"; rank {explanation.rank}"
    screen.heading(f"{explanation.reason}: {_reason(explanation)}{rank}.")
    screen.fields((name, value) for name, value in _fields(explanation).items() if value)
    _show_text(screen, explanation)
    _show_parts(screen, explanation)
    if len(explanation.chain) > 1:
        _show_chain(screen, explanation.chain)


def _reason(explanation: Explanation) -> str:
    if explanation.reason == "no-vector" and explanation.fusion is not None:
        return f"{REASONS['no-match']}. {REASONS['no-vector']}"
    return REASONS[explanation.reason]


def _fields(explanation: Explanation) -> dict[str, str | None]:
    status = "unknown then" if explanation.status is None else explanation.status.value
    weights = ", ".join(f"{name} {weight:g}" for name, weight in explanation.weights.items())
    uses = f"{counted(explanation.uses, 'time')}, last {iso(explanation.last_used_at)}"
    return {
        "id": explanation.id,
        "status": f"{status} (as of {iso(explanation.as_of)})",
        "known at": iso(explanation.known_at),
        "valid from": iso(explanation.valid_from),
        "valid to": iso(explanation.valid_to),
        "filtered by": ", ".join(explanation.filtered_by),
        "matched": ", ".join(explanation.matched_terms) or "no word",
        "actor": explanation.actor,
        "period": explanation.period,
        "neighbours": "; ".join(_neighbour(one) for one in explanation.neighbours),
        "cosine": None if explanation.semantic_score is None else score(explanation.semantic_score),
        "fusion": None if explanation.fusion is None else f"{explanation.fusion}, {weights}",
        "score": _final(explanation),
        "used": uses if explanation.uses else None,
        "source": source_told(explanation.source),
        **_governed(explanation),
    }


def _governed(explanation: Explanation) -> dict[str, str]:
    """Return what is told of the node that the fact stands for, and of each thing that vouches for it."""
    node = explanation.node
    if node is None:
        return {}
    rows = {"node": f"{node.id}, revision {node.revision}, {node.status.value}"}
    for place, one in enumerate(node.evidence, 1):
        quoted = "" if one.quote is None else f": {one.quote}"
        rows[f"evidence {place}"] = f"{one.kind}, {one.uri}{quoted}"
    return rows


def _final(explanation: Explanation) -> str:
    if explanation.final_score is not None:
        return score(explanation.final_score)
    by_words = explanation.lexical_score
    return f"none; its words alone would give {score(by_words)}" if by_words else "none"


def _neighbour(one: Neighbour) -> str:
    return f"{one.distance:+d} holds {', '.join(one.terms)} ({one.id})"


def _show_text(screen: Screen, explanation: Explanation) -> None:
    """Print the text where words matched, unless it is one of several pieces of a document."""
    text = next((link.text for link in explanation.chain if link.relation == "self"), "")
    whole = len(text.encode()) <= limits.TEXT_BYTES_MAX and len(text.split()) <= limits.TEXT_WORDS_MAX
    if explanation.marks and whole:
        screen.marked("  ", text, explanation.marks)


def _show_parts(screen: Screen, explanation: Explanation) -> None:
    """Print a bar per part: addends beside the longest one, factors, which have a sign, beside 1."""
    parts = list(explanation.parts)
    factors = _factors(parts)
    longest = max(
        (part.value for part, factor in zip(parts, factors, strict=True) if not factor), default=0.0
    )
    names = max((len(part.name) for part in parts), default=0)
    room = min(BAR_WIDTH, max(BAR_WIDTH_MIN, screen.room - names - 14))
    for part, factor in zip(parts, factors, strict=True):
        value = f"{screen.times}{score(part.value)}" if factor else score(part.value)
        share = min(part.value, 1.0) if factor else part.value / longest if longest else 0.0
        screen.line(f"  {part.name.ljust(names)}  {value:>8}  {screen.block * round(room * share)}")


def _factors(parts: Sequence[Part]) -> list[bool]:
    """Say of each part whether it multiplies what stands before it; docs/concepts/scoring.md has the rule."""
    before = ["", *(part.name for part in parts)]
    return [
        part.name == "historical" or (part.name == "recency" and previous != "importance")
        for part, previous in zip(parts, before, strict=False)
    ]


def _show_chain(screen: Screen, chain: Sequence[ChainLink]) -> None:
    screen.line("Chain, in the order in which its facts take effect:", style=STYLES["not-yet-valid"])
    rows, notes = [], []
    for link in chain:
        at = iso(link.effective_time)
        # The time beside a relative is that of the link: when the newer of the two takes over.
        takes_over = "" if link.relation == "self" else at
        rows.append([takes_over, link.relation, link.status.value, link.text])
        notes.append(f"{link.id}  takes effect {at}" if link.relation == "self" and at else link.id)
    if screen.room >= TABLE_WIDTH_MIN:
        screen.table(["takes over at", "relation", "status", "text"], rows, notes)
        return
    for (at, relation, status, text), note in zip(rows, notes, strict=True):
        screen.line(f"- {relation}, {status}")
        screen.marked("  ", text, ())
        screen.marked("  ", f"{note}  takes over {at}" if at else note, ())
