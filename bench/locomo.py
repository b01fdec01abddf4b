"""LoCoMo conversations by the public API: how they are read, and how much of a question's evidence comes back.

    python -m bench.locomo CONVERSATIONS.zip            figures per category, and milliseconds per recall
    python -m bench.locomo CONVERSATIONS.zip --context  the same, with what stands around a match
    python -m bench.locomo CONVERSATIONS.zip --forms    R@10 of other forms of a fact's text

Each turn is a fact as `perdure import` makes it: `[date] speaker: text (caption; search words)`, with the session
as source, the turn as position, the speaker as actor and the session's date as event time. Configuration and
policies are the defaults. bench/quality.py measures more on the same conversations. `Perdure` is an adapter for
harnesses that hand over conversations one by one: `ingest(conversation, turns)`, then
`recall(conversation, question, k)`; a turn is an object with id, session, index, date, speaker, text, caption and
image_query.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from perdure import Memory, NewFact, Source, Store
from perdure.importers.archives import members
from perdure.importers.conversations import read_conversations, turn_text
from perdure.importers.entries import Found

KS = (5, 10, 20)
DEPTH = 50
FORMS = {
    "speaker: text": {"date", "blip_caption", "query"},
    "[date] speaker: text": {"blip_caption", "query"},
    "[date] speaker: text (caption)": {"query"},
    "[date] speaker: text (caption; search words)": set(),
    "speaker: text (caption; search words)": {"date"},
}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = (
    5  # their evidence is of the other speaker: they ask whether an answerer is taken in, not what is found
)


class Question(NamedTuple):
    """A question and the ids of the turns that answer it, at least one."""

    text: str
    category: int
    evidence: frozenset[str]


class Conversation(NamedTuple):
    """One conversation: its turns as facts, in order, and its questions with evidence."""

    name: str
    facts: tuple[NewFact, ...]
    questions: tuple[Question, ...]


def conversations(path: Path, left_out: frozenset[str] = frozenset()) -> Iterator[Conversation]:
    """Yield each conversation of a zip archive.

    Questions whose evidence names no turn are left out.

    Args:
        left_out: what the facts are not told: `date`, `blip_caption`, `query`.
    """
    for name, document in _documents(path):
        entries = read_conversations(_without(document, left_out), name, name)
        facts = tuple(entry.fact for entry in entries if isinstance(entry, Found))
        known = {turn_id(fact) for fact in facts}
        asked = ((told, evidence_of(told, known)) for told in document["qa"])
        yield Conversation(
            name,
            facts,
            tuple(
                Question(told["question"], told["category"], evidence) for told, evidence in asked if evidence
            ),
        )


def turn_id(fact: Any) -> str:
    """Return the id that a conversation gives the turn of a fact."""
    found: str = fact.metadata["dia_id"]
    return found


def evidence_of(question: Mapping[str, Any], known: set[str]) -> frozenset[str]:
    """Return the ids of turns that a question's evidence names, in their one spelling (`D3:7`)."""
    named = re.findall(r"D:?(\d+):0*(\d+)", " ".join(question["evidence"]))
    return frozenset(f"D{session}:{turn}" for session, turn in named) & known


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
    """One store; each conversation is a principal of its own. `options` are those of recall."""

    def __init__(self, path: str = ":memory:", **options: Any) -> None:
        self._store, self._options = Store.open(path), options
        self._memories: dict[str, Memory] = {}

    def ingest(self, conversation: str, turns: Sequence[Mapping[str, Any]]) -> None:
        memory = self._memories[conversation] = self._store.memory(principal=conversation)
        memory.remember_many([fact_of_turn(conversation, turn) for turn in turns])

    def recall(self, conversation: str, question: str, k: int) -> list[str]:
        return [
            turn_id(hit.fact) for hit in self._memories[conversation].recall(question, k=k, **self._options)
        ]

    def close(self) -> None:
        self._store.close()


def measure(
    path: Path, left_out: frozenset[str] = frozenset(), *, context: bool = False
) -> tuple[dict[int, list[list[float]]], list[float]]:
    """Return, per category, a row of R@k for each question, and the seconds that each recall took.

    R@k is the share of a question's evidence among the first k turns.
    """
    rows: dict[int, list[list[float]]] = defaultdict(list)
    seconds: list[float] = []
    with Store.open(":memory:") as store:
        for conversation in conversations(path, left_out):
            memory = store.memory(principal=conversation.name)
            memory.remember_many(list(conversation.facts))
            for question in conversation.questions:
                start = time.perf_counter()
                hits = memory.recall(question.text, k=DEPTH, context=context or None)
                seconds.append(time.perf_counter() - start)
                ranked = [turn_id(hit.fact) for hit in hits]
                rows[question.category].append(
                    [len(question.evidence.intersection(ranked[:k])) / len(question.evidence) for k in KS]
                )
    return rows, seconds


def _documents(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open("rb") as stream:
        for name, data in members(stream):
            yield PurePosixPath(name).stem, json.loads(data)


def _without(document: dict[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    reduced = {}
    for key, value in document.items():
        if re.fullmatch(r"session_\d+", key):
            reduced[key] = [{name: turn[name] for name in turn.keys() - left_out} for turn in value]
        elif not (key.endswith("_date_time") and "date" in left_out):
            reduced[key] = value
    return reduced


def _row(name: str, rows: Sequence[Sequence[float]]) -> str:
    means = (f"{100 * statistics.fmean(column):.1f}" for column in zip(*rows, strict=True))
    return f"| {name} | {len(rows)} | {' | '.join(means)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an archive of LoCoMo conversations")
    parser.add_argument("--context", action="store_true", help="count what stands around a match")
    parser.add_argument("--forms", action="store_true", help="compare forms of a fact's text instead")
    told = parser.parse_args()
    path = told.file
    if told.forms:
        print("| text of a fact | n | R@5 | R@10 | R@20 |\n|---|---|---|---|---|")
        for name, left_out in FORMS.items():
            print(_row(f"`{name}`", _all_but_adversarial(measure(path, frozenset(left_out))[0])))
        return
    rows, seconds = measure(path, context=told.context)
    print("| questions | n | R@5 | R@10 | R@20 |\n|---|---|---|---|---|")
    print(_row("categories 1-4", _all_but_adversarial(rows)))
    for category, name in CATEGORIES.items():
        if rows[category]:
            print(_row(f"{category} {name}", rows[category]))
    cuts = statistics.quantiles(seconds, n=20)
    print(f"\nmilliseconds per recall: median {1000 * cuts[9]:.2f}, 95th percentile {1000 * cuts[18]:.2f}")


def _all_but_adversarial(rows: Mapping[int, list[list[float]]]) -> list[list[float]]:
    return [row for category, found in rows.items() if category != ADVERSARIAL for row in found]


if __name__ == "__main__":
    main()
