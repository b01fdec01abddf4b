"""Perdure under a LoCoMo evidence-recall harness: conversations in, ids of turns out, by the public API only.

The harness asks for `recall(conversation, question, k)` after `ingest(conversation, turns)`; a turn is an
object with id, session, index, date, speaker, text, caption and image_query. Facts have the texts that
`perdure import` gives them. Configuration and policies are the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure import Memory, NewFact, Source, Store
from perdure.importers.conversations import turn_text


def fact_of_turn(conversation: str, turn: Mapping[str, Any]) -> NewFact:
    return NewFact(
        text=turn_text(
            turn["speaker"], turn["text"], date=turn["date"], picture=(turn["caption"], turn["image_query"])
        ),
        id=f"{conversation}/{turn['id']}",
        metadata={"dia_id": turn["id"], "session": turn["session"]},
        source=Source(
            uri=f"{conversation}/session-{turn['session']}", position=turn["index"], actor=turn["speaker"]
        ),
    )


class Perdure:
    """One store; each conversation is a principal of its own."""

    def __init__(self, path: str = ":memory:") -> None:
        self._store = Store.open(path)
        self._memories: dict[str, Memory] = {}

    def ingest(self, conversation: str, turns: Sequence[Mapping[str, Any]]) -> None:
        memory = self._memories[conversation] = self._store.memory(principal=conversation)
        memory.remember_many([fact_of_turn(conversation, turn) for turn in turns])

    def recall(self, conversation: str, question: str, k: int) -> list[str]:
        return [hit.fact.metadata["dia_id"] for hit in self._memories[conversation].recall(question, k=k)]

    def close(self) -> None:
        self._store.close()
