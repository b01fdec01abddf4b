"""Time the exact vector search beside faiss, usearch and NumPy, and beside what the memory can deliver.

    python -m bench.vectors                          25,000 and 100,000 vectors of 384 numbers
    python -m bench.vectors --full                   a million as well
    python -m bench.vectors --out bench/results/vectors.md
    python -m bench.vectors --qualify                the partitioned index instead: see bench.vector_index

Vectors lie around centres, fifty to a centre and as far from it as the centres are from the origin; a query is
a stored vector moved as far again. The k is 20, and every one searches with one thread. "alone" is one search
after another, as in a process that does nothing else; "in turn" lets all of them answer one query before the next,
so that a slow moment of the machine meets them all, and each finds the caches full of what the others read.

"of the memory's speed" is the time that NumPy needs to read the codes once, the greatest of them as 64-bit
numbers, over the time of the search: in the median, and of the least times, which other work on the machine
disturbs least. Prints the bars that we set ourselves, filtered searches, and the one-hot vectors of the
qualification, with their 66 exact ties.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import vector_index
from bench.machine import describe
from bench.report import Report
from perdure.vectors import coding
from perdure.vectors.exact import ExactIndex

DIMENSION = 384
K = 20
QUERIES = 200
WARM_UP = 10
BARS_MS = {25_000: 1.2, 100_000: 4.0, 1_000_000: 40.0}
SHARE_BAR = 0.8
FILTERED = (0.01, 0.10, 0.80)

Search = Callable[[Any], Any]


class Timing(NamedTuple):
    """Milliseconds a query."""

    least: float
    p50: float
    p95: float


def clustered(rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return vectors and queries."""
    centres = rng.standard_normal((max(1, rows // 50), DIMENSION), dtype=np.float32)
    vectors = centres[rng.integers(len(centres), size=rows)]
    vectors += rng.standard_normal((rows, DIMENSION), dtype=np.float32)
    queries = vectors[rng.integers(rows, size=QUERIES)]
    return vectors, queries + rng.standard_normal(queries.shape, dtype=np.float32)


def in_turn(searches: dict[str, Search], queries: Any) -> dict[str, Timing]:
    """Time every search on every query, one after the other."""
    times: dict[str, list[float]] = {name: [] for name in searches}
    for number, query in enumerate([*queries[:WARM_UP], *queries]):
        for name, search in searches.items():
            start = time.perf_counter()
            search(query)
            if number >= WARM_UP:
                times[name].append((time.perf_counter() - start) * 1000)
    return {name: Timing(*np.percentile(each, [0, 50, 95])) for name, each in times.items()}


def numpy_product(vectors: Any) -> Search:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def search(query: Any) -> list[int]:
        scores = units @ (query / np.linalg.norm(query))
        best = np.argpartition(-scores, K)[:K]
        return best[np.argsort(-scores[best])].tolist()

    return search


def faiss_flat(vectors: Any) -> Search:
    import faiss  # noqa: PLC0415 - optional

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def search(query: Any) -> list[int]:
        return index.search((query / np.linalg.norm(query))[np.newaxis], K)[1][0].tolist()

    return search


def usearch_exact(vectors: Any) -> Search:
    from usearch import index as library  # noqa: PLC0415 - optional

    def search(query: Any) -> list[int]:
        found = library.search(vectors, query, K, library.MetricKind.Cos, exact=True, threads=1)
        return found.keys.tolist()

    return search


RIVALS = {
    "NumPy product, float32": numpy_product,
    "faiss flat": faiss_flat,
    "usearch exact": usearch_exact,
}


def reader(rows: int) -> Search:
    """Return what reads as many bytes as the codes of the rows take."""
    codes = np.random.default_rng(1).integers(0, 2**60, rows * DIMENSION // 8)
    return lambda _: codes.max()


def measure(rows: int, report: Report) -> None:
    rng = np.random.default_rng(rows)
    vectors, queries = clustered(rows, rng)
    index = ExactIndex(DIMENSION)
    start = time.perf_counter()
    index.put_many(range(rows), vectors)
    loaded = rows / (time.perf_counter() - start)
    report.say(f"\n## {rows:,} vectors\n")
    _beside_rivals(index, vectors, queries, report)
    _filtered(index, queries, report)
    report.say(
        f"\n- loaded at {loaded:,.0f} vectors/s; {index.memory_bytes() / rows:,.0f} bytes a vector with free room, "
        f"of which the float32 numbers are {4 * DIMENSION:,}"
    )
    start = time.perf_counter()
    for row in range(500):
        index.put(row, vectors[row])
    report.say(f"- one put: {(time.perf_counter() - start) / 500 * 1e6:.0f} µs in the mean")


def _beside_rivals(index: ExactIndex, vectors: Any, queries: Any, report: Report) -> None:
    rows = len(vectors)
    ours, reading = f"perdure ({coding.kernel_name()} scan)", "reading the codes"
    searches: dict[str, Search] = {ours: lambda query: index.search(query, K)[0], reading: reader(rows)}
    alone = {name: in_turn({name: search}, queries)[name] for name, search in searches.items()}
    missing = []
    for name, build in RIVALS.items():
        try:
            searches[name] = build(vectors)
        except ImportError:
            missing.append(name)
    agree = {
        name: sum(len(set(searches[ours](query)) & set(search(query))) for query in queries[:50]) / 50 / K
        for name, search in searches.items()
        if name in RIVALS
    }
    found = in_turn(searches, queries)
    report.say("| ms a query | least | p50 | p95 | ÷ perdure (p50) | same rows as perdure |")
    report.say("| --- | --- | --- | --- | --- | --- |")
    for kind, timings in (("alone", alone), ("in turn", found)):
        for name, timing in timings.items():
            same = f"{agree[name]:.3f}" if name in agree else ""
            report.say(
                f"| {name}, {kind} | {timing.least:.2f} | {timing.p50:.2f} | {timing.p95:.2f} "
                f"| {timing.p50 / timings[ours].p50:.2f} | {same} |"
            )
    for name in missing:
        report.say(f"| {name} | not installed: pip install '.[bench]' | | | | |")
    bar, p95 = BARS_MS.get(rows, float("nan")), alone[ours].p95
    report.say(f"\n- alone, p95 {p95:.2f} ms, bar {bar:g} ms: {'met' if p95 <= bar else 'missed'}")
    for kind, timings in (("alone", alone), ("in turn", found)):
        base, read = timings[ours], timings[reading]
        report.say(
            f"- {kind}, {read.p50 / base.p50:.0%} of the memory's speed in the median, {read.least / base.least:.0%} "
            f"of the least times (bar {SHARE_BAR:.0%}, at 100,000); one thread reads "
            f"{rows * DIMENSION / read.least / 1e6:.1f} GB/s"
        )


def _filtered(index: ExactIndex, queries: Any, report: Report) -> None:
    rng = np.random.default_rng(7)
    report.say("\n| eligible | by mask, p50 / p95 ms | by rows, p50 / p95 ms |\n| --- | --- | --- |")
    for share in FILTERED:
        flags = rng.random(index.count) < share
        mask, rows = flags.tobytes(), np.flatnonzero(flags).astype(np.int32)
        found = in_turn(
            {
                "mask": lambda query, mask=mask: index.search(query, K, mask=mask),
                "rows": lambda query, rows=rows: index.search(query, K, rows=rows),
            },
            queries[:100],
        )
        cells = " | ".join(f"{timing.p50:.2f} / {timing.p95:.2f}" for timing in found.values())
        report.say(f"| {share:.0%} | {cells} |")


def qualify(report: Report) -> None:
    """Search 25,000 one-hot vectors, of which 66 tie at 1."""
    rows = 25_000
    index = ExactIndex(DIMENSION)
    index.put_many(range(rows), np.eye(DIMENSION, dtype=np.float32)[np.arange(rows) % DIMENSION])
    query = np.eye(DIMENSION, dtype=np.float32)[17]
    found = in_turn({"one-hot": lambda one: index.search(one, K)}, [query] * 100)["one-hot"]
    numbers, scores = index.search(query, K)
    right = numbers == list(range(17, 17 + K * DIMENSION, DIMENSION)) and scores == [1.0] * K
    report.say("\n## 25,000 one-hot vectors\n")
    report.say(
        f"- p50 {found.p50:.2f}, p95 {found.p95:.2f} ms; the first 20 of the 66 ties, all scored 1.0: {right}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="a size; may be given several times")
    parser.add_argument("--full", action="store_true", help="a million vectors as well")
    parser.add_argument("--qualify", action="store_true", help="qualify the partitioned index, in JSON")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    if told.qualify:
        sys.exit(vector_index.qualify(told.out))
    report = Report()
    report.say("# Vectors\n")
    report.say(f"`python -m bench.vectors {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
    report.say(f"rivals: {', '.join(_versions('faiss-cpu', 'usearch'))}; one thread each")
    for rows in told.rows or [size for size in BARS_MS if told.full or size < 1_000_000]:
        measure(rows, report)
    qualify(report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _versions(*names: str) -> list[str]:
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return found


if __name__ == "__main__":
    main()
