"""What erasing costs: forget, purge, the erasure of a person, verification.

    python -m bench.erasure                           at 1,000 and 100,000 facts
    python -m bench.erasure --rows 10000
    python -m bench.erasure --out bench/results/erasure.md

A forget alternates with a bare durable commit (SQLite, WAL, synchronous=FULL, the same text inserted into one
table), so that both meet the same disk. The purge is compared with a copy of the database file to the same disk,
synced. With a second process the store is open there, and was read before each forget.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report
from perdure import Store

SINGLES = 200
ROWS = (1_000, 100_000)
SPACES = 10  # persons whose facts the store holds
OTHER = """
import sys
from perdure import Store
with Store.open(sys.argv[1]) as store:
    memory = store.memory()
    for _ in sys.stdin:
        print(memory.list(limit=1).total, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="facts in the store; may be given again")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Forget, purge, erase, verify\n")
    report.say(f"`python -m bench.erasure {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        for rows in told.rows or ROWS:
            _measure(Path(folder, str(rows)), rows, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _measure(folder: Path, rows: int, report: Report) -> None:
    folder.mkdir()
    path = folder / "store"
    _fill(path, rows)
    report.say(f"\n## {rows:,} facts of 24 words, of {SPACES} persons and one more memory\n")
    report.say("| what | p50, ms | p95, ms | ÷ bare commit (p50) |\n| --- | --- | --- | --- |")
    with Store.open(path) as store:
        store.memory().recall("what no fact holds")
        _singles(store, folder, "forget of one fact", report, before=lambda: None)
        with _other_process(path) as read_there:
            _singles(store, folder, "the same, the store open in a second process", report, read_there)
        _purge(store, path, report)
        _erase(store, report)
        _verify(store, report)


def _fill(path: Path, rows: int) -> None:
    facts = Corpus(rows).facts()
    share = rows // (2 * SPACES)
    with Store.open(path) as store:
        for person in range(SPACES):
            store.memory(f"person {person}").remember_many(facts[person * share : (person + 1) * share])
        rest = facts[SPACES * share :]
        store.memory().remember_many([{"text": text, "id": f"f{n}"} for n, text in enumerate(rest)])


def _singles(store: Store, folder: Path, what: str, report: Report, before: Callable[[], object]) -> None:
    memory, texts = store.memory(), Corpus(SINGLES, seed=11).facts()
    for n, text in enumerate(texts):
        memory.remember(text, id=f"single {n}")
    bare = apsw.Connection(str(folder / "bare.db"))
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        bare.execute(f"PRAGMA {pragma}").fetchall()
    bare.execute("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, text BLOB)")
    ours, theirs = [], []
    for n, text in enumerate(texts):
        before()
        start = time.perf_counter()
        assert memory.forget(ids=[f"single {n}"]).pending is False
        middle = time.perf_counter()
        bare.execute("INSERT INTO t(text) VALUES(?)", (text.encode(),))
        ours.append(middle - start)
        theirs.append(time.perf_counter() - middle)
    bare.close()
    ours.sort()
    theirs.sort()
    p50, p95, commit = (
        ms * 1000 for ms in (ours[SINGLES // 2], ours[SINGLES * 19 // 20], theirs[SINGLES // 2])
    )
    report.say(f"| {what} | {p50:.2f} | {p95:.2f} | {p50 / commit:.1f} |")
    report.say(f"| bare commit | {commit:.2f} | {theirs[SINGLES * 19 // 20] * 1000:.2f} | 1 |")


@contextmanager
def _other_process(path: Path) -> Iterator[Callable[[], None]]:
    """A process that has the store open; what is yielded lets it read once."""
    child = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def read_there() -> None:
        child.stdin.write("read\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
        assert child.stdout.readline()  # type: ignore[union-attr]

    yield read_there
    child.stdin.close()
    child.wait()
    child.stdout.close()


def _purge(store: Store, path: Path, report: Report) -> None:
    database = next(path.glob("gen-*.db"))
    size = database.stat().st_size
    copying, purging = [], []
    for _ in range(3):
        purging.append(_seconds(store.purge))
        copying.append(_copy_seconds(size, path.parent / "copy"))
    took, copied = min(purging), min(copying)
    report.say(
        f"\n- purge of {size / 2**20:.1f} MiB: {took:.2f} s, the best of 3; writing as much in one file and syncing it "
        f"takes {copied:.3f} s: {took / copied:.1f} times that"
    )


def _copy_seconds(size: int, target: Path) -> float:
    """Time a copy of a file of this size, synced. The store's own file stays closed: to open it here would drop
    its locks."""
    source = target.with_name("source")
    source.write_bytes(os.urandom(1 << 16) * (size >> 16) + bytes(size & 0xFFFF))
    start = time.perf_counter()
    shutil.copyfile(source, target)
    descriptor = os.open(target, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    took = time.perf_counter() - start
    source.unlink()
    target.unlink()
    return took


def _erase(store: Store, report: Report) -> None:
    start = time.perf_counter()
    erased = store.erase("person 3")
    took = time.perf_counter() - start
    report.say(f"- erasure of a person with {erased.facts:,} facts, purge included: {took:.2f} s")
    certificate = erased.certificate
    assert certificate is not None
    report.say(
        f"- its certificate held against the store: {_seconds(lambda: store.check_certificate(certificate)):.2f} s"
    )


def _verify(store: Store, report: Report) -> None:
    for quick in (False, True):
        start = time.perf_counter()
        findings = store.verify(quick=quick)
        took = time.perf_counter() - start
        assert findings.ok, findings
        report.say(f"- {'quick ' if quick else ''}verification of the whole store: {took:.2f} s")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
