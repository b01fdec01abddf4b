"""Time the lexical kernel and its NumPy twin side by side.

    python bench/kernel.py                     1,000 to 100,000 rows
    python bench/kernel.py --rows 1000000      one size

Synthetic facts: lengths are normal(24, 7) clipped to 5..60, words follow Zipf's law with exponent 1.07 over
50,000 pseudo-words. Queries have 3 to 8 terms; three of four take the words of one fact, the others follow
the same law. k is 10. Searches: mean and 95th percentile per query of the best of several passes over all of
them. Changes: medians.
"""

from __future__ import annotations

import argparse
import gc
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from perdure.lexical import reference
from perdure.lexical.index import LexicalIndex, kernel_name, load_index, new_index
from perdure.lexical.search_options import SearchOptions

SIZES = (1_000, 10_000, 100_000)
WORDS = 50_000
ZIPF = 1.07
QUERIES = 400
K = 10
PASSES = 9
NOW, PAST, NEVER = 500, 100, 2**62
BARS_US = {1_000: 5, 10_000: 13, 100_000: 55, 1_000_000: 370}


class Corpus:
    """Facts and queries from one seed."""

    def __init__(self, rows: int, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, WORDS + 1) ** ZIPF
        self._cumulative = np.cumsum(weights) / weights.sum()
        self._names = [f"w{number:05d}" for number in range(WORDS)]
        self._lengths = np.clip(self._random.normal(24, 7, rows).round().astype(int), 5, 60)
        self._stops = np.cumsum(self._lengths)
        self._tokens = self._draw(int(self._stops[-1])).astype(np.int32)

    def _draw(self, count: int) -> np.ndarray:
        return np.minimum(np.searchsorted(self._cumulative, self._random.random(count)), WORDS - 1)

    def fact(self, row: int) -> list[str]:
        tokens = self._tokens[self._stops[row] - self._lengths[row] : self._stops[row]]
        return [self._names[token] for token in tokens.tolist()]

    def facts(self) -> Iterator[list[str]]:
        return (self.fact(row) for row in range(len(self._lengths)))

    def queries(self, count: int = QUERIES) -> list[list[str]]:
        return [self._query() for _ in range(count)]

    def _query(self) -> list[str]:
        size = int(self._random.integers(3, 9))
        if self._random.random() < 0.75:
            words = sorted(set(self.fact(int(self._random.integers(len(self._lengths))))))
            return [str(word) for word in self._random.permutation(words)[:size]]
        return [self._names[token] for token in self._draw(size).tolist()]


@dataclass(frozen=True)
class Timing:
    """Microseconds per query, the best of several passes."""

    mean: float
    p95: float

    def __str__(self) -> str:
        return f"{self.mean:9.1f} us mean {self.p95:9.1f} us p95"


def time_searches(
    index: LexicalIndex | reference.Index, queries: list[list[str]], options: SearchOptions
) -> Timing:
    """Take the best pass over all queries: other work shares the cores."""
    clock = time.perf_counter_ns
    took = np.zeros((PASSES, len(queries)))
    gc.disable()
    for one in took:
        for place, terms in enumerate(queries):
            start = clock()
            index.search(terms, K, **options)
            one[place] = clock() - start
    gc.enable()
    best = took[took.mean(axis=1).argmin()] / 1000
    return Timing(mean=float(best.mean()), p95=float(np.quantile(best, 0.95)))


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def time_changes(index: LexicalIndex, corpus: Corpus) -> tuple[float, float]:
    """Return microseconds per add (a quiet median), and what a search pays for coming after an add."""
    facts = [corpus.fact(row) for row in range(1000)]
    query = corpus.queries(1)[0]
    add = np.median([seconds(partial(index.add, terms)) for terms in facts])
    alone = np.median([seconds(lambda: index.search(query, K)) for _ in facts])
    after = []
    for terms in facts:
        index.add(terms)
        after.append(seconds(lambda: index.search(query, K)))
    return float(add) * 1e6, float(np.median(after) - alone) * 1e6


def history(rows: int) -> SearchOptions:
    """Mark a fifth of the rows superseded and another fifth expired before the instant asked for."""
    fate = np.random.default_rng(11).random(rows)
    valid_from = np.zeros(rows, dtype=np.int64)
    valid_to = np.where(fate < 0.2, PAST, NEVER).astype(np.int64)
    superseded_from = np.where(fate > 0.8, PAST, NEVER).astype(np.int64)
    return {"times": (valid_from, valid_to, superseded_from), "at": NOW}


def measure(rows: int, *, with_twin: bool) -> None:
    corpus = Corpus(rows)
    index = new_index()
    build = seconds(lambda: [index.add(terms) for terms in corpus.facts()])
    queries = corpus.queries()
    plain = time_searches(index, queries, {})
    timed = time_searches(index, queries, history(rows))
    blob = index.dump()
    load = seconds(lambda: load_index(blob))
    memory = index.memory_bytes() / rows
    work = sum(index.search(terms, K)[2] for terms in queries) / len(queries)
    add, visible = time_changes(index, corpus)
    print(f"{rows:,} rows ({kernel_name()})")
    print(f"  search            {plain}   bar {BARS_US.get(rows, '-')} us")
    print(f"  search with times {timed}   {timed.mean / plain.mean:.2f}x")
    if with_twin:
        twin = time_searches(reference.load(blob), queries, {})
        print(f"  NumPy twin        {twin}   {twin.mean / plain.mean:.1f}x")
    print(f"  work              {work:.0f} postings and rows a query")
    print(f"  add               {add:.1f} us; the search after it takes {visible:.1f} us more than alone")
    print(f"  memory            {memory:.0f} bytes a row, snapshot {len(blob) / rows:.0f}")
    print(f"  build             {build:.2f} s, load {load:.3f} s\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--no-twin", action="store_true", help="leave the NumPy twin out")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    for rows in options.rows:
        measure(rows, with_twin=not options.no_twin)


if __name__ == "__main__":
    main()
