"""How much of a question's evidence comes back: the LoCoMo conversations, by the public API only.

    python bench/locomo.py CONVERSATIONS.zip            figures per category, and milliseconds per recall
    python bench/locomo.py CONVERSATIONS.zip --forms    R@10 of other forms of a fact's text

Each conversation is imported as `perdure import` does it and asked its questions. Configuration and policies
are the defaults. `Perdure` is the same as an adapter for harnesses that hand over conversations one by one:
`ingest(conversation, turns)`, then `recall(conversation, question, k)`; a turn is an object with id, session,
index, date, speaker, text, caption and image_query.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from perdure import Memory, NewFact, Source, Store
from perdure.importers.archives import members
from perdure.importers.conversations import read_conversations, turn_text
from perdure.importers.importing import Target, import_entries


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


def documents(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each conversation of an archive with its name."""
    with path.open("rb") as stream:
        for name, data in members(stream):
            yield PurePosixPath(name).stem, json.loads(data)


def without(document: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    """Return the conversation without some of what it knows: the dates, captions or search words."""
    reduced = {}
    for key, value in document.items():
        if _is_session(key):
            reduced[key] = [{name: turn[name] for name in turn.keys() - left_out} for turn in value]
        elif not (key.endswith("_date_time") and "date" in left_out):
            reduced[key] = value
    return reduced


def evidence_of(question: Mapping[str, Any], known: set[str]) -> set[str]:
    """Return the ids of turns that a question's evidence names, in their one spelling (`D3:7`)."""
    named = re.findall(r"D:?(\d+):0*(\d+)", " ".join(question["evidence"]))
    return {f"D{session}:{turn}" for session, turn in named} & known


def measure(path: Path, left_out: set[str]) -> tuple[dict[int, list[list[float]]], list[float]]:
    """Return, per category, a row of R@k for each question, and the seconds that each recall took.

    R@k is the share of a question's evidence among the first k turns; questions whose evidence names
    no turn are left out.
    """
    rows: dict[int, list[list[float]]] = defaultdict(list)
    seconds: list[float] = []
    with Store.open(":memory:") as store:
        for name, document in documents(path):
            import_entries(read_conversations(without(document, left_out), name, name), Target(store))
            memory = store.memory(principal=name)
            known = {turn["dia_id"] for key in document if _is_session(key) for turn in document[key]}
            for question in document["qa"]:
                evidence = evidence_of(question, known)
                if not evidence:
                    continue
                start = time.perf_counter()
                hits = memory.recall(question["question"], k=DEPTH)
                seconds.append(time.perf_counter() - start)
                ranked = [hit.fact.metadata["dia_id"] for hit in hits]
                rows[question["category"]].append(
                    [len(evidence.intersection(ranked[:k])) / len(evidence) for k in KS]
                )
    return rows, seconds


def _is_session(key: str) -> bool:
    return re.fullmatch(r"session_\d+", key) is not None


def _row(name: str, rows: Sequence[Sequence[float]]) -> str:
    means = (f"{100 * statistics.fmean(column):.1f}" for column in zip(*rows, strict=True))
    return f"| {name} | {len(rows)} | {' | '.join(means)} |"


def main() -> None:
    path = Path(sys.argv[1])
    if "--forms" in sys.argv:
        print("| text of a fact | n | R@5 | R@10 | R@20 |\n|---|---|---|---|---|")
        for name, left_out in FORMS.items():
            print(_row(f"`{name}`", _all_but_adversarial(measure(path, left_out)[0])))
        return
    rows, seconds = measure(path, set())
    print("| questions | n | R@5 | R@10 | R@20 |\n|---|---|---|---|---|")
    print(_row("categories 1-4", _all_but_adversarial(rows)))
    for category, name in CATEGORIES.items():
        print(_row(f"{category} {name}", rows[category]))
    cuts = statistics.quantiles(seconds, n=20)
    print(f"\nmilliseconds per recall: median {1000 * cuts[9]:.2f}, 95th percentile {1000 * cuts[18]:.2f}")


def _all_but_adversarial(rows: Mapping[int, list[list[float]]]) -> list[list[float]]:
    return [row for category in (1, 2, 3, 4) for row in rows[category]]


if __name__ == "__main__":
    main()
