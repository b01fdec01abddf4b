"""Time filters: recall narrowed to 1, 10 and 80 % of a memory, and of few facts, beside recall of all of it.

    python -m bench.filters                           100,000 facts
    python -m bench.filters --rows 20000 --out bench/results/filters.md

Three ways of being asked: *first* reads the metadata and builds what the filter needs, *after a write* decides it
anew, as the first question after each write does, and *again* finds the answer kept. Ratios are to the same
query without a filter, in the same run; each is the median over the queries of the least of interleaved runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report, ratio, timed
from perdure import Memory, Store

ROWS, QUERIES, WRITES = 100_000, 200, 15
CITIES = ("Oslo", "Rome", "Paris", "Bergen", "Lyon")
FILTERS: dict[str, dict[str, Any]] = {
    "1 % by equality": {"percent": 7},
    "1 % by a range": {"rank": {"$lt": 0.01}},
    "10 % by a range": {"rank": {"$lt": 0.1}},
    "80 % by a range": {"rank": {"$lt": 0.8}},
    "80 % by a list": {"percent": {"$in": list(range(80))}},
    "80 % by elements": {"at.cities": {"$contains": "Oslo"}},
    "20 % by a negation": {"$not": {"at.cities": {"$contains": "Oslo"}}},
    "40 % by three conditions": {
        "$or": [{"at.name": {"$contains": "place 1"}}, {"percent": {"$gte": 66}}],
        "rank": {"$gte": 0.01},
    },
    "1 fact by its number": {"at.number": 77},
    "50 % by a time of its own": {"@eventTime": {"$lt": ROWS // 2}},
}


def facts(corpus: Corpus) -> list[dict[str, Any]]:
    """Return facts of which each value of `percent` is in 1 %, and `rank` is spread evenly over 0 to 1."""
    found = []
    for number, text in enumerate(corpus.facts()):
        cities = [*CITIES[1 + number % 3 :], *(["Oslo"] if number % 5 else [])]
        metadata = {
            "percent": number % 100,
            "rank": number * 7_919 % corpus.rows / corpus.rows,
            "at": {"cities": cities, "name": f"place {number % 1_000}", "number": number},
        }
        found.append({"text": text, "metadata": metadata, "event_time": number * ROWS // corpus.rows})
    return found


def milliseconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def measure(memory: Memory, queries: Sequence[str], report: Report) -> None:
    plain = timed(memory.recall, queries).mean / 1000
    report.say(f"Recall without a filter: {plain:.3f} ms in the mean over {len(queries)} queries.\n")
    report.say("| filter | facts | first, ms | after a write, ms | again, ms | again ÷ without |")
    report.say("| --- | --- | --- | --- | --- | --- |")
    for what, asked in FILTERS.items():

        def narrowed(query: str, asked: dict[str, Any] = asked) -> Any:
            return memory.recall(query, filter=asked)

        first = milliseconds(lambda narrowed=narrowed: narrowed(queries[0]))
        after = []
        for number in range(WRITES):
            memory.remember(f"one more {what} {number}", metadata={"rank": 2, "percent": 200})
            after.append(milliseconds(lambda narrowed=narrowed: narrowed(queries[0])))
        again = timed(narrowed, queries, 2).mean / 1000
        relation = ratio(narrowed, memory.recall, queries)
        total = memory.list(filter=asked, limit=1).total
        decided = statistics.median(after)
        report.say(f"| {what} | {total:,} | {first:.1f} | {decided:.1f} | {again:.3f} | {relation:.2f} |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--out", type=Path)
    told = parser.parse_args(arguments)
    report = Report()
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "store", durability="normal") as store,
    ):
        report.say("# Filters\n\nThe command: `python -m bench.filters`\n\n```text")
        report.say(describe(Path(folder)) + "\n```\n")
        report.say(f"{told.rows:,} facts of 24 words in the mean, each with metadata of five values.\n")
        corpus = Corpus(told.rows)
        stored = facts(corpus)
        for at in range(0, len(stored), 1_000):
            store.memory().remember_many(stored[at : at + 1_000])
        measure(store.memory(), corpus.queries(told.queries), report)
    if told.out is not None:
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
