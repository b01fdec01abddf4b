"""Time recall by meaning and by both beside recall by words, with the static table on texts like people's.

    python -m bench.hybrid                           1,000, 10,000 and 100,000 facts
    python -m bench.hybrid --rows 1000 --out bench/results/hybrid.md

Texts are sentences about people, places and things, told by templates, with names that come again as they do in what
people say (a few often, most seldom). Questions are asked of the same people and things in other words. Every way is
asked the same questions in turn, so that a slow moment of the machine meets them all; each question is new, so that
its vector is made and not found in the cache. Milliseconds a question; the embedding of the question is a part of it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench.machine import describe
from bench.report import Report
from perdure import Memory, MemoryConfig, Store

SIZES = (1_000, 10_000, 100_000)
QUERIES, WARM_UP, TRACES = 300, 20, 20
PEOPLE, THINGS = 400, 300
SYLLABLES = (
    "an",
    "bo",
    "da",
    "el",
    "fi",
    "gor",
    "ha",
    "ju",
    "ka",
    "lin",
    "mar",
    "nor",
    "os",
    "pe",
    "ru",
    "sa",
    "ti",
    "vo",
)
NOUNS = [
    "bicycle",
    "piano",
    "garden",
    "puppy",
    "novel",
    "kitchen",
    "boat",
    "passport",
    "violin",
    "winter",
    "coat",
    "telescope",
    "camera",
    "invoice",
    "deadline",
    "meeting",
    "contract",
    "recipe",
    "marathon",
    "surgery",
    "wedding",
    "apartment",
    "mortgage",
    "scholarship",
    "concert",
    "exhibition",
    "server",
    "database",
    "migration",
]
KINDS = [
    "red",
    "old",
    "new",
    "broken",
    "borrowed",
    "second-hand",
    "expensive",
    "small",
    "wooden",
    "electric",
    "shared",
    "rented",
]
TELLINGS = (
    "{who} bought a {thing} in {place}",
    "{who} told {other} that the {thing} has to be repaired before {month}",
    "{who} and {other} argued about the {thing}",
    "In {month} {who} moved to {place} and sold the {thing}",
    "{who} is worried about the {thing}, since {other} has not answered yet",
    "Everyone liked the {thing} that {who} showed in {place} last {month}",
)
ASKINGS = (
    "What did {who} purchase in {place}?",
    "Whom did {who} quarrel with about the {thing}?",
    "Where does {who} live since {month}?",
    "Why is {who} anxious about the {thing}?",
    "What needs fixing before {month}, {who}?",
)
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
PLACES = [
    "Oslo",
    "Rome",
    "Paris",
    "Bergen",
    "Lyon",
    "Haifa",
    "Kyoto",
    "Lima",
    "Quito",
    "Porto",
    "Ghent",
    "Turin",
    "Leeds",
    "Cork",
    "Basel",
]
WAYS: dict[str, dict[str, Any]] = {
    "words": {"mode": "lexical"},
    "meaning": {"mode": "semantic"},
    "both": {"mode": "hybrid"},
    "both, explained": {"mode": "hybrid", "explain": True},
    "both, of a tenth": {"mode": "hybrid", "filter": {"tenth": 3}},
}


class Talk:
    """Endless sentences and questions, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(seed)
        self._people = ["".join(random.choices(SYLLABLES, k=3)).title() for _ in range(PEOPLE)]
        self._things = [f"{random.choice(KINDS)} {random.choice(NOUNS)}" for _ in range(THINGS)]
        self._weights = {
            count: [*accumulate(1 / (n + 2) for n in range(count))] for count in (PEOPLE, THINGS)
        }

    def _one(self, names: Sequence[str]) -> str:
        return self._random.choices(names, cum_weights=self._weights[len(names)])[0]

    def say(self, forms: Sequence[str]) -> str:
        random = self._random
        return random.choice(forms).format(
            who=self._one(self._people),
            other=self._one(self._people),
            thing=self._one(self._things),
            place=random.choice(PLACES),
            month=random.choice(MONTHS),
        )


def in_turn(ways: dict[str, Callable[[str], Any]], questions: Sequence[str]) -> dict[str, list[float]]:
    """Return the milliseconds of each way, question by question."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, question in enumerate(questions):
        for place, (name, ask) in enumerate(ways.items()):
            fresh = f"{question} {number}{'abcdefgh'[place]}"  # a token that no fact has makes it new to the cache
            start = time.perf_counter()
            ask(fresh)
            if number >= WARM_UP:
                times[name].append(1000 * (time.perf_counter() - start))
    return times


def measure(memory: Memory, rows: int, report: Report) -> None:
    talk = Talk(rows)
    start = time.perf_counter()
    for at in range(0, rows, 1_000):
        facts = [
            {"text": talk.say(TELLINGS), "metadata": {"tenth": n % 10}}
            for n in range(at, min(at + 1_000, rows))
        ]
        memory.remember_many(facts)
    told = rows / (time.perf_counter() - start)
    questions = [talk.say(ASKINGS) for _ in range(QUERIES + WARM_UP)]
    ways = {
        name: lambda question, options=options: memory.recall(question, **options)
        for name, options in WAYS.items()
    }
    times = in_turn(ways, questions)
    traced = in_turn({"trace": memory.trace}, questions[: TRACES + WARM_UP])
    report.say(f"\n## {rows:,} facts\n\nTold, embedded and stored at {told:,.0f} facts/s.\n")
    report.say("| ms | least | p50 | p95 | p99 |\n| --- | ---: | ---: | ---: | ---: |")
    for name, each in (times | traced).items():
        cells = " | ".join(f"{value:.2f}" for value in np.percentile(each, [0, 50, 95, 99]))
        report.say(f"| {name} | {cells} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="a size; may be given several times")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Recall by words, by meaning and by both\n\n`python -m bench.hybrid`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say("```text\n" + describe(Path(folder)) + "\n```")
        for rows in told.rows or SIZES:
            with Store.open(Path(folder) / str(rows), durability="normal") as store:
                measure(store.memory(config=MemoryConfig(embedder="static")), rows, report)
    report.say(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}.")
    if told.out:
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
