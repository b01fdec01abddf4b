"""Time remember, beside a bare SQLite insert with the same durability; opening; memory of a process.

    python -m bench.remember                          100,000 facts
    python -m bench.remember --rows 1000000 --kind facts
    python -m bench.remember --out bench/results/remember.md

Single remembers alternate with bare inserts of the same text into one table (WAL, synchronous=FULL, one
transaction each), so that both meet the same disk. Each kind of store is filled, opened and measured in a
process of its own; resident memory is read from the system and counts what an empty process does not take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.corpus import Corpus
from bench.machine import describe, fsync_p50_ms
from bench.recall import Report, fill, fill_history

SINGLES = 400
MEMORY_BAR = 700
KINDS = ("documents", "facts", "history")
OPEN_BARS = {100_000: 0.3, 1_000_000: 2.5}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these stores")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "DIR"), help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.child:
        print(json.dumps(_CHILDREN[told.child[0]](Path(told.child[1]), told.rows)))
        return
    report = Report()
    report.say("# Remember, open, memory\n")
    report.say(f"`python -m bench.remember {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        _singles(Path(folder), report)
        _stores(Path(folder), told.rows, told.kind or KINDS, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _singles(folder: Path, report: Report) -> None:
    from perdure import Store  # noqa: PLC0415 - children measure an empty process first

    facts = Corpus(SINGLES * 2).facts()
    bare = apsw.Connection(str(folder / "bare.db"))
    bare.execute("PRAGMA journal_mode=WAL").fetchall()
    bare.execute("PRAGMA synchronous=FULL").fetchall()
    bare.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text BLOB)")
    times: tuple[list[int], list[int]] = ([], [])
    with Store.open(folder / "singles") as store:
        memory = store.memory()
        memory.remember_many(facts[:SINGLES])
        for text in facts[SINGLES:]:
            start = time.perf_counter_ns()
            memory.remember(text)
            middle = time.perf_counter_ns()
            bare.execute("INSERT INTO t(text) VALUES(?)", (text.encode(),))
            times[0].append(middle - start)
            times[1].append(time.perf_counter_ns() - middle)
    bare.close()
    ours, theirs = (sorted(side)[SINGLES // 2] / 1000 for side in times)
    slow_disk = fsync_p50_ms(folder) >= 1.0
    bar = (
        "bar 1.3"
        if slow_disk
        else f"{ours - theirs:.0f} µs above it, bar 250 µs as an fsync takes under 1 ms"
    )
    report.say(
        f"\n- single remember {ours:.0f} µs, bare insert {theirs:.0f} µs in the median: {ours / theirs:.2f} ({bar})"
    )


def _stores(folder: Path, rows: int, kinds: Sequence[str], report: Report) -> None:
    report.say(f"\n## {rows:,} facts of 24 words\n")
    report.say(
        "| store | facts/s in batches of 100, documents one by one | open from snapshot, s | without, s | memory, bytes a fact |"
    )
    report.say("| --- | --- | --- | --- | --- |")
    empty = _child("empty", folder, rows)["resident"]
    for kind in kinds:
        where = folder / kind
        filled = _child(f"fill-{kind}", where, rows)
        opened = _child("open", where, rows)
        for cache in where.glob("cache-*"):
            cache.unlink()
        slow = _child("open", where, rows)
        each = (opened["resident"] - empty) / rows
        bars = f" (bar {OPEN_BARS[rows]:g})" if rows in OPEN_BARS and kind == "facts" else ""
        memory_bar = f" (bar {MEMORY_BAR})" if kind == "facts" else ""
        report.say(
            f"| {kind} | {filled['rate']:,.0f} | {opened['seconds']:.3f}{bars} | {slow['seconds']:.2f} | "
            f"{each:.0f}{memory_bar} |"
        )
    report.say(
        f"\nAn empty process that has imported the package and its driver takes {empty / 2**20:.1f} MiB."
    )


def _child(what: str, folder: Path, rows: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.remember", "--rows", str(rows), "--child", what, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _empty(folder: Path, rows: int) -> dict[str, float]:
    from perdure import Store  # noqa: PLC0415

    with Store.open(folder / "empty") as store:
        memory = store.memory()
        memory.remember("one fact, so that every part is loaded")
        memory.recall("fact")
        return {"resident": resident_bytes()}


def _open(folder: Path, rows: int) -> dict[str, float]:
    from perdure import Store  # noqa: PLC0415

    start = time.perf_counter()
    with Store.open(folder) as store:
        memory = store.memory()
        memory.recall("what no fact holds")
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "resident": resident_bytes()}


def _fill(kind: str, folder: Path, rows: int) -> dict[str, float]:
    from perdure import MemoryConfig, Store  # noqa: PLC0415

    facts = Corpus(rows).facts()
    with Store.open(folder, durability="full") as store:
        start = time.perf_counter()
        if kind == "documents":
            _fill_documents(store.documents(), facts)
        elif kind == "history":
            fill_history(store.memory(config=MemoryConfig(supersession="latest-by-subject")), facts)
        else:
            fill(store.memory(), facts)
        return {"rate": rows / (time.perf_counter() - start)}


def _fill_documents(documents: object, facts: Sequence[str]) -> None:
    for number, text in enumerate(facts):
        documents.put(f"d{number}", text)  # type: ignore[attr-defined]


_CHILDREN = {
    "empty": _empty,
    "open": _open,
    "fill-documents": lambda folder, rows: _fill("documents", folder, rows),
    "fill-facts": lambda folder, rows: _fill("facts", folder, rows),
    "fill-history": lambda folder, rows: _fill("history", folder, rows),
}


def resident_bytes() -> int:
    """Return this process's resident set (Linux: from /proc, elsewhere the largest so far)."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # noqa: PLC0415 - not on every platform

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
