"""Time an encrypted store beside a plain one: remember in batches and alone, recall, forget, open.

    python -m bench.encryption                        10,000 facts
    python -m bench.encryption --rows 100000
    python -m bench.encryption --out bench/results/encryption.md

Both stores get the same facts and the same questions in turn, so that both meet the same disk and the same
machine. Times are medians, ratios are encrypted ÷ plain of those medians; for recall the ratio is the median over
the queries of the least times. The key is 32 bytes; what a passphrase adds to an opening is told beside it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report, ratio, timed
from perdure import Store

KEY = bytes(range(32))
BATCH = 100
SINGLES = 200
FORGETS = 30
OPENINGS = 7
QUERIES = 200
KEYS = (None, KEY)

Pair = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Encrypted beside plain\n")
    report.say(f"`python -m bench.encryption {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        report.say(f"\n{told.rows:,} facts of 24 words\n")
        report.say("| what | plain | encrypted | encrypted ÷ plain |")
        report.say("| --- | --- | --- | --- |")
        _measure(Path(folder), told.rows, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _measure(folder: Path, rows: int, report: Report) -> None:
    places = [folder / "plain", folder / "encrypted"]
    corpus = Corpus(rows + SINGLES)
    facts, queries = corpus.facts(), corpus.queries(QUERIES)
    stores = [Store.open(place, key=key) for place, key in zip(places, KEYS, strict=True)]
    memories = [store.memory() for store in stores]
    batches = [facts[start : start + BATCH] for start in range(0, rows, BATCH)]
    _say(report, "remember, a batch of 100, ms", _in_turn(memories, batches, lambda m, b: m.remember_many(b)))
    _say(report, "remember, one fact, ms", _in_turn(memories, facts[rows:], lambda m, text: m.remember(text)))
    plain, encrypted = memories
    times = [timed(lambda query, m=memory: m.recall(query, k=10), queries).p50 for memory in memories]
    fair = ratio(lambda q: encrypted.recall(q, k=10), lambda q: plain.recall(q, k=10), queries)
    report.say(f"| recall of 10, p50, µs | {times[0]:.1f} | {times[1]:.1f} | {fair:.2f} |")
    ids = [item.id for item in plain.list(limit=FORGETS).items]
    _say(report, "forget, one fact, ms", _in_turn(memories, ids, lambda m, id_: m.forget(ids=[id_])))
    for store in stores:
        store.close()
    sizes = [sum(path.stat().st_size for path in place.iterdir()) / 1e6 for place in places]
    report.say(
        f"| size of the closed store, MB | {sizes[0]:.2f} | {sizes[1]:.2f} | {sizes[1] / sizes[0]:.2f} |"
    )
    _openings(places, queries[0], report)


def _openings(places: Sequence[Path], query: str, report: Report) -> None:
    for title, prepare in (("from a snapshot", lambda: None), ("without one", lambda: _drop(places))):
        times: list[list[float]] = [[], []]
        for _ in range(OPENINGS):
            prepare()
            for side, place, key in zip(times, places, KEYS, strict=True):
                start = time.perf_counter()
                store = Store.open(place, key=key)
                store.memory().recall(query)
                side.append((time.perf_counter() - start) * 1000)
                store.close()
        _say(report, f"open {title} and recall once, ms", _medians(times))
    with Store.open(places[1], key=KEY) as store:
        start = time.perf_counter()
        store.rekey("a passphrase")
        changing = time.perf_counter() - start
    start = time.perf_counter()
    Store.open(places[1], key="a passphrase").close()
    opening = time.perf_counter() - start
    report.say(f"| change the key to a passphrase, ms | | {changing * 1000:.0f} | |")
    report.say(f"| open with a passphrase, ms | | {opening * 1000:.0f} | |")


def _drop(places: Sequence[Path]) -> None:
    for place in places:
        for cache in place.glob("cache-*"):
            cache.unlink()


def _in_turn(memories: Sequence[Any], items: Sequence[Any], work: Callable[[Any, Any], Any]) -> Pair:
    times: list[list[float]] = [[], []]
    for item in items:
        for side, memory in zip(times, memories, strict=True):
            start = time.perf_counter()
            work(memory, item)
            side.append((time.perf_counter() - start) * 1000)
    return _medians(times)


def _medians(times: Sequence[Sequence[float]]) -> Pair:
    return statistics.median(times[0]), statistics.median(times[1])


def _say(report: Report, what: str, pair: Pair) -> None:
    report.say(f"| {what} | {pair[0]:.3f} | {pair[1]:.3f} | {pair[1] / pair[0]:.2f} |")


if __name__ == "__main__":
    main()
