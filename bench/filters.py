"""Time filtered recall beside recall that is not filtered, cold and warm, in one run.

    python -m bench.filters                          100,000 facts
    python -m bench.filters --rows 20000
    python -m bench.filters --out bench/results/filters.md

Each filter matches 1, 10 or 80 in a hundred facts: by equality at the top, by a range, by a path into objects and
arrays, by a negation, and by a time of the fact. "first" is the first filtered recall of a store just opened, which
reads all metadata where the filter needs more than equality; "cold" is a recall after a write, which decides the
filter anew; "warm" is one whose filter was decided since the last write. All three find ten facts as text to fact.
The ratios are to the same queries without a filter, interleaved.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report, ratio, timed
from perdure import Memory, Store

ROWS = 100_000
QUERIES = 100
COLD_RUNS = 20
SHARES = (1, 10, 80)  # in a hundred
DAY = 86_400_000
NOW = 1_750_000_000_000


class Times(NamedTuple):
    """Of one filter. `first` and `cold` in ms, warm in µs a query; `over` is the median of warm ÷ unfiltered."""

    matched: int
    first: float
    cold: float
    warm: float
    over: float


def metadata_of(number: int) -> dict[str, Any]:
    """Return metadata by which filters choose any share: `share` runs through 0 to 99."""
    share = (number * 37) % 100
    return {
        "share": share,
        "one": share < 1,
        "ten": share < 10,
        "eighty": share < 80,
        "deep": {"list": [share, f"part {share}"]},
    }


def filters(share: int) -> dict[str, dict[str, Any]]:
    """Return filters that match so many in a hundred, by what they ask for."""
    name = {1: "one", 10: "ten", 80: "eighty"}[share]
    return {
        "equality": {name: True},
        "range": {"share": {"$lt": share}},
        "path": {"deep.list[0]": {"$lt": share}},
        "not": {"$not": {"share": {"$gte": share}}},
        "time": {"@eventTime": {"$lt": NOW + share * DAY}},
    }


def fill(memory: Memory, facts: Sequence[str]) -> None:
    for at in range(0, len(facts), 500):
        memory.remember_many(
            [
                {"text": text, "metadata": metadata_of(n), "event_time": NOW + (n * 37) % 100 * DAY}
                for n, text in enumerate(facts[at : at + 500], at)
            ]
        )


def measure(path: Path, asked: dict[str, Any], queries: Sequence[str]) -> Times:
    """Time one filter on a store of its own opening."""
    with Store.open(path) as store:
        memory = store.memory()
        memory.recall(queries[0])
        first = _elapsed_ms(memory, queries[0], asked)
        cold = []
        for query in queries[:COLD_RUNS]:
            memory.record_use([memory.list(limit=1).items[0].id])
            cold.append(_elapsed_ms(memory, query, asked))

        def filtered(query: str) -> Any:
            return memory.recall(query, filter=asked)

        warm = timed(filtered, queries, 3).p50
        over = ratio(filtered, memory.recall, queries)
        return Times(memory.list(filter=asked, limit=1).total, first, statistics.median(cold), warm, over)


def _elapsed_ms(memory: Memory, query: str, asked: dict[str, Any]) -> float:
    start = time.perf_counter()
    memory.recall(query, filter=asked)
    return (time.perf_counter() - start) * 1_000


def run(rows: int, report: Report) -> None:
    corpus = Corpus(rows)
    facts, queries = corpus.facts(), corpus.queries(QUERIES)
    report.say(f"\n## {rows:,} facts\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        path = Path(folder) / "store"
        with Store.open(path, durability="normal") as store:
            fill(store.memory(), facts)
        with Store.open(path) as store:
            plain = timed(store.memory().recall, queries, 3).p50
        report.say(f"- without a filter: {plain:.1f} µs in the median\n")
        report.say("| filter | matches | first, ms | cold, ms | warm, µs | warm ÷ unfiltered |")
        report.say("| --- | --- | --- | --- | --- | --- |")
        for share in SHARES:
            for name, asked in filters(share).items():
                told = measure(path, asked, queries)
                report.say(
                    f"| {name}, {share} % | {told.matched:,} | {told.first:.1f} | {told.cold:.2f} "
                    f"| {told.warm:.1f} | {told.over:.2f} |"
                )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args(arguments)
    report = Report()
    report.say("# Filtered recall\n")
    report.say(f"`python -m bench.filters {' '.join(sys.argv[1:] if arguments is None else arguments)}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
    run(told.rows, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
