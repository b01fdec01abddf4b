"""Conversations of tests. Turn n of a session was said n minutes after the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.model.conversation import ConversationInput, ConversationTurn

START = 1_704_067_200_000
USER, ASSISTANT = "user", "assistant"


def turn(source_id: str, role: str, text: str, at: Any = START) -> ConversationTurn:
    return ConversationTurn(source_id=source_id, role=role, text=text, observation_time=at)


def talk(
    texts: Sequence[str], session: str = "s", version: str = "v1", roles: str | None = None
) -> ConversationInput:
    """Return a session whose turns are named t0, t1, …; roles as letters `u` and `a`, in turns when absent."""
    letters = roles or "ua" * len(texts)
    turns = [
        turn(f"t{n}", USER if letter == "u" else ASSISTANT, text, START + 60_000 * n)
        for n, (text, letter) in enumerate(zip(texts, letters, strict=False))
    ]
    return ConversationInput(session_id=session, version=version, turns=tuple(turns))


def names(context: Any) -> list[str]:
    """Return the source ids of a context's turns, in order."""
    return [source.source_id for source in context.sources]


def found(context: Any) -> list[str]:
    """Return the source ids of the anchors, best first."""
    return [anchor.source.rsplit("/", 1)[1] for anchor in context.anchors]


def left_out(context: Any) -> dict[str, str]:
    """Return why turns were dropped, by source id."""
    return {dropped.source.rsplit("/", 1)[1]: dropped.reason for dropped in context.dropped}
