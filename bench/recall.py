"""Time recall: text in, ten decoded facts out, on a store on disk, beside what users would pick instead.

    python -m bench.recall                            1,000 to 100,000 facts
    python -m bench.recall --rows 1000000             one size
    python -m bench.recall --out bench/results/recall.md

Prints, per size: mean, p50 and p95 of index search, document search and recall, of recall with explanations,
of recall on a store with a fifth superseded and a fifth expired over document search on that store, and of
SQLite FTS5, tantivy and bm25s on the same texts in the same run; ratios to the bars that we set ourselves; and
whether recall and document search gave the same ids with the same score bits for every query.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.corpus import Corpus
from bench.machine import describe
from bench.report import Report
from bench.rivals import RIVALS
from perdure import Memory, MemoryConfig, Store

SIZES = (1_000, 10_000, 100_000)
QUERIES = 400
PASSES = 5
SEARCH_BARS = {1_000: 15, 10_000: 20, 100_000: 60, 1_000_000: 400}
RECALL_BARS = {1_000: 45, 10_000: 55, 100_000: 100, 1_000_000: 450}
DAY = 86_400_000
NOW = 1_750_000_000_000


class Timing(NamedTuple):
    """Microseconds a query: the pass with the least mean."""

    mean: float
    p50: float
    p95: float


def timed(work: Callable[[str], Any], queries: Sequence[str], passes: int = PASSES) -> Timing:
    best = Timing(float("inf"), 0.0, 0.0)
    gc.collect()
    for _ in range(passes):
        times = []
        for query in queries:
            start = time.perf_counter_ns()
            work(query)
            times.append((time.perf_counter_ns() - start) / 1000)
        mean = statistics.fmean(times)
        if mean < best.mean:
            times.sort()
            best = Timing(mean, times[len(times) // 2], times[int(len(times) * 0.95)])
    return best


def ratio(work: Callable[[str], Any], base: Callable[[str], Any], queries: Sequence[str]) -> float:
    """Return the median over the queries of work ÷ base, each the least of interleaved runs."""
    ratios = []
    for query in queries:
        times: list[list[int]] = [[], []]
        for _ in range(PASSES):
            for side, one in zip(times, (work, base), strict=True):
                start = time.perf_counter_ns()
                one(query)
                side.append(time.perf_counter_ns() - start)
        ratios.append(min(times[0]) / min(times[1]))
    return statistics.median(ratios)


def fill(memory: Memory, facts: Sequence[str]) -> float:
    """Remember the texts in batches of 100; return facts per second."""
    start = time.perf_counter()
    for at in range(0, len(facts), 100):
        memory.remember_many(facts[at : at + 100])
    return len(facts) / (time.perf_counter() - start)


def fill_history(memory: Memory, facts: Sequence[str]) -> None:
    """A fifth of the facts is superseded by another fifth, a fifth is expired, two fifths are plain."""
    for at in range(0, len(facts), 100):
        batch: list[dict[str, Any]] = []
        for number, text in enumerate(facts[at : at + 100], at):
            fact: dict[str, Any] = {"text": text}
            if number % 5 in (0, 1):
                fact |= {"subject": f"s{number // 5}", "valid_from": NOW - (100 - number % 5) * DAY}
            elif number % 5 == 2:
                fact |= {"valid_from": NOW - 50 * DAY, "valid_to": NOW - DAY}
            batch.append(fact)
        memory.remember_many(batch)


class Timings(Report):
    """A report with rows of times."""

    def row(self, what: str, timing: Timing, bar: float | None = None) -> None:
        judged = "" if bar is None else f"{bar:g} | {'met' if timing.mean <= bar else 'missed'}"
        judged = judged or " | "
        self.say(f"| {what} | {timing.mean:.1f} | {timing.p50:.1f} | {timing.p95:.1f} | {judged} |")


def measure(rows: int, report: Timings, *, rivals: bool) -> None:
    corpus = Corpus(rows)
    facts, queries = corpus.facts(), corpus.queries(QUERIES)
    report.say(f"\n## {rows:,} facts\n")
    report.say("| µs a query | mean | p50 | p95 | bar (mean) | |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        recall_mean = _measure_plain(Path(folder), facts, queries, report)
        if rivals:
            _measure_rivals(Path(folder), facts, queries, recall_mean, report)
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        _measure_history(Path(folder), facts, queries, report)


def _measure_plain(folder: Path, facts: Sequence[str], queries: Sequence[str], report: Timings) -> float:
    with Store.open(folder / "plain") as store:
        memory, documents = store.memory(), store.documents()
        rate = fill(memory, facts)
        different = sum(not _same(memory, documents, query) for query in queries)
        state = memory._space.read(lambda state, _: state)
        index, profile = state.index, state.profile
        searched = timed(lambda query: index.search(profile.query_terms(query), 10), queries)
        report.row("index search, text in, row numbers out", searched, SEARCH_BARS.get(len(facts)))
        document = timed(documents.search, queries)
        report.row("document search, text in, 10 documents out", document)
        recalled = timed(memory.recall, queries)
        report.row("recall, text in, 10 facts out", recalled, RECALL_BARS.get(len(facts)))
        explained = timed(lambda query: memory.recall(query, explain=True), queries)
        report.row("recall with explanations", explained)
        over = ratio(memory.recall, documents.search, queries)
        more = ratio(lambda query: memory.recall(query, explain=True), memory.recall, queries)
    report.say()
    report.say(
        f"- recall ÷ document search: {over:.2f} (bar 1.05); different results on {different} of {len(queries)} queries"
    )
    report.say(f"- explain ÷ recall: {more:.2f} (bar 3)")
    report.say(f"- remembered in batches of 100: {rate:,.0f} facts/s (bar 20,000)")
    return recalled.mean


def _same(memory: Memory, documents: Any, query: str) -> bool:
    def bits(hits: Sequence[Any]) -> list[tuple[str, bytes]]:
        return [(hit.id, struct.pack("<d", hit.score)) for hit in hits]

    return bits(memory.recall(query)) == bits(documents.search(query))


def _measure_history(folder: Path, facts: Sequence[str], queries: Sequence[str], report: Timings) -> None:
    config = MemoryConfig(supersession="latest-by-subject")
    with Store.open(folder / "history") as store:
        memory, documents = store.memory(config=config), store.documents(config=config)
        fill_history(memory, facts)
        over = ratio(memory.recall, documents.search, queries)
        recalled = timed(memory.recall, queries)
    report.say(
        f"- a fifth superseded, a fifth expired: recall ÷ document search on the same store {over:.2f} (bar 1.25); "
        f"recall {recalled.mean:.1f} µs in the mean"
    )


def _measure_rivals(
    folder: Path, facts: Sequence[str], queries: Sequence[str], recall_mean: float, report: Timings
) -> None:
    report.say()
    report.say(
        "| beside it | mean µs | p50 | p95 | ÷ recall | queries |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, (build, rows_max) in RIVALS.items():
        if len(facts) > rows_max:
            report.say(f"| {name} | not run at this size | | | | |")
            continue
        try:
            search = build(facts, folder)
        except ImportError:
            report.say(f"| {name} | not installed: pip install '.[bench]' | | | | |")
            continue
        # The slow ones answer fewer queries, so that a run ends.
        count = 20 if name == "SQLite FTS5" and len(facts) >= 100_000 else len(queries)
        found = timed(search, queries[:count], passes=2)
        report.say(
            f"| {name} | {found.mean:.1f} | {found.p50:.1f} | {found.p95:.1f} | {found.mean / recall_mean:.1f} | {count} |"
        )
        gc.collect()
    report.say()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="a size; may be given several times")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Timings()
    report.say("# Recall\n")
    report.say(f"`python -m bench.recall {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
    for rows in told.rows or SIZES:
        measure(rows, report, rivals=not told.no_rivals)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
