"""Qualify the partitioned vector index: exact, and fast enough, in memory and in a file.

    python -m bench.vectors --qualify                              prints JSON; exits 1 where it does not qualify
    python -m bench.vectors --qualify --out bench/results/vector-index.json

25,000 records of 384 numbers, the 20 nearest, 20 searches to warm up and 100 that are timed. Record i of the one-hot
set is the unit vector of dimension i mod 384 and the query is number 17: 66 records tie at 1, and the first 20 by id
must be found. Random sets are held to a ranking in float64. "filtered" asks for a label that a tenth of the records
has. Beside "writer" another partition of 100 records is replaced twenty times a second, by a thread of the same
process for an index in memory, by another process for one in a file. p95 is by nearest rank; the bar that fails is
30 ms, and whether our own of 3 ms is met is told; "processorP50Ms" is the processor's time of the searching thread,
which other work on the machine disturbs less. "ofMemorySpeed" is the time that NumPy needs to read as many bytes
as are scanned, over the median search, of the search of all records without a writer.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from perdure.vectors import PartitionedVectorIndex, VectorDescriptor, VectorRecord, VectorSearchRequest
from perdure.vectors.coding import kernel_name

ROWS, DIMENSION, K = 25_000, 384, 20
WARM_UP, SEARCHES = 20, 100
HOT = 17
BUDGET_MS, OWN_BAR_MS = 30.0, 3.0
PAUSE_S = 0.05
WRITER_ROWS = 100
DESCRIPTOR = VectorDescriptor(dimension=DIMENSION, max_bytes=128 << 20)
EVERY = "every"  # a label that a tenth of the records has


def one_hot() -> tuple[Any, Any]:
    eye = np.eye(DIMENSION, dtype=np.float32)
    return eye[np.arange(ROWS) % DIMENSION], np.repeat(eye[HOT][np.newaxis], WARM_UP + SEARCHES, axis=0)


def random_set() -> tuple[Any, Any]:
    rng = np.random.default_rng(ROWS)
    vectors = rng.standard_normal((ROWS, DIMENSION), dtype=np.float32)
    return vectors, rng.standard_normal((WARM_UP + SEARCHES, DIMENSION), dtype=np.float32)


SETS = {"oneHot": one_hot, "random": random_set}


def records(vectors: Any) -> list[VectorRecord]:
    return [
        VectorRecord(id=f"{row:05}", embedding=vector, labels={EVERY: str(row % 10)})
        for row, vector in enumerate(vectors)
    ]


def replace_again_and_again(index: PartitionedVectorIndex, ended: threading.Event) -> None:
    rows = records(np.random.default_rng(2).standard_normal((WRITER_ROWS, DIMENSION), dtype=np.float32))
    while not ended.wait(PAUSE_S):
        index.replace_partition("other", rows)


def write_on(path: str) -> None:
    """Replace the other partition of an index in a file until this process is ended."""
    with PartitionedVectorIndex.open(path, DESCRIPTOR) as index:
        print("writing", flush=True)
        replace_again_and_again(index, threading.Event())


@contextmanager
def writer(index: PartitionedVectorIndex, path: Path | None) -> Iterator[None]:
    """Change another partition all the while."""
    ended = threading.Event()
    if path is None:
        thread = threading.Thread(target=replace_again_and_again, args=(index, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        return
    command = [sys.executable, "-c", f"from bench.vector_index import write_on; write_on({str(path)!r})"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.terminate()


def right_places(vectors: Any, query: Any, filtered: bool) -> list[int]:
    """Return the rows that must be found, by a ranking in float64; ties by row."""
    wide = vectors.astype(np.float64)
    scores = (wide @ query.astype(np.float64)) / np.sqrt((wide * wide).sum(axis=1))
    scores = np.round(scores / np.linalg.norm(query.astype(np.float64)), 12)
    rows = np.flatnonzero(np.arange(len(vectors)) % 10 == 3) if filtered else np.arange(len(vectors))
    return rows[np.lexsort((rows, -scores[rows]))[:K]].tolist()


def measure(
    index: PartitionedVectorIndex, name: str, vectors: Any, queries: Any, filtered: bool
) -> dict[str, Any]:
    """Time the searches and check each of them."""
    searched = ROWS // 10 if filtered else ROWS
    labels = {EVERY: "3"} if filtered else {}
    times, spent, exact = [], [], True
    for number, query in enumerate(queries):
        request = VectorSearchRequest(embedding=query, limit=K, partitions=["main"], labels=labels)
        start, begun = time.perf_counter(), time.thread_time()
        result = index.search(request)
        if number >= WARM_UP:
            times.append((time.perf_counter() - start) * 1000)
            spent.append((time.thread_time() - begun) * 1000)
        exact = exact and (len(result.hits), result.searched_records) == (K, searched)
        if name == "oneHot":
            exact = exact and all(abs(hit.score - 1) <= 1e-6 for hit in result.hits[: 6 if filtered else K])
        if number % 10 == 0:
            exact = exact and [int(hit.id) for hit in result.hits] == right_places(vectors, query, filtered)
    times.sort()
    spent.sort()
    p95 = times[math.ceil(0.95 * len(times)) - 1]
    return {
        "p50Ms": round(times[len(times) // 2], 3),
        "p95Ms": round(p95, 3),
        "maxMs": round(times[-1], 3),
        "processorP50Ms": round(spent[len(spent) // 2], 3),
        "budgetP95Ms": BUDGET_MS,
        "ownBarMet": p95 <= OWN_BAR_MS,
        "exact": exact,
        "passed": exact and p95 <= BUDGET_MS,
    }


def measured(name: str, backend: str, folder: Path) -> Iterator[dict[str, Any]]:
    vectors, queries = SETS[name]()
    path = None if backend == "memory" else folder / f"{name}.vectors"
    rows = records(vectors)
    start = time.perf_counter()
    index = (
        PartitionedVectorIndex.in_memory(DESCRIPTOR)
        if path is None
        else PartitionedVectorIndex.open(path, DESCRIPTOR)
    )
    with index:
        status = index.replace_partition("main", rows)
        build = round((time.perf_counter() - start) * 1000, 1)
        for writes in (False, True):
            for filtered in (False, True):
                told = {"set": name, "backend": backend, "filtered": filtered, "writer": writes}
                with writer(index, path) if writes else _nobody():
                    found = measure(index, name, vectors, queries, filtered)
                yield {**told, "buildMs": build, "accountedBytes": status.byte_count, **found}
        cleared = index.clear()
        assert (cleared.record_count, cleared.byte_count) == (0, 0)


@contextmanager
def _nobody() -> Iterator[None]:
    yield


def reading_ms() -> float:
    """Return the median time in which NumPy reads as many bytes as a scan of all records does."""
    codes = np.random.default_rng(1).integers(0, 2**60, ROWS * DIMENSION // 8)
    times = []
    for _ in range(SEARCHES):
        start = time.perf_counter()
        codes.max()
        times.append((time.perf_counter() - start) * 1000)
    return sorted(times)[SEARCHES // 2]


def evidence() -> dict[str, Any]:
    """Measure everything."""
    read = reading_ms()
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        found = [
            one
            for backend in ("memory", "sqlite")
            for name in SETS
            for one in measured(name, backend, Path(folder))
        ]
    plain = next(one for one in found if one["set"] == "random" and not one["filtered"] and not one["writer"])
    return {
        "schemaVersion": 1,
        "profile": "partitioned-vector-search-v1",
        "build": {"python": platform.python_version(), "numpy": np.__version__, "kernel": kernel_name()},
        "machine": {
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "processors": os.cpu_count(),
            "loadWhenStarted": round(os.getloadavg()[0], 1),
        },
        "parameters": {
            "records": ROWS,
            "dimension": DIMENSION,
            "metric": DESCRIPTOR.metric,
            "maxBytes": DESCRIPTOR.max_bytes,
            "limit": K,
            "warmUp": WARM_UP,
            "searches": SEARCHES,
            "ownBarP95Ms": OWN_BAR_MS,
        },
        "readingMs": round(read, 3),
        "ofMemorySpeed": round(read / plain["p50Ms"], 3),
        "measurements": found,
        "passed": all(one["passed"] for one in found),
    }


def qualify(out: Path | None) -> int:
    """Print the evidence; return the exit code."""
    found = evidence()
    text = json.dumps(found, indent=2)
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")
    return 0 if found["passed"] else 1
