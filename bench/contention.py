"""Many processes on one store: writers, readers and purges at once, beside the same writes and reads in plain SQLite.

    python -m bench.contention                                  8 writers x 1,000 facts, 4 readers, 20 purges
    python -m bench.contention --writers 4 --writes 200 --purges 5
    python -m bench.contention --out bench/results/contention.md

Each process is one of its own that opens the store, waits for the others, and begins with them. A writer remembers
one fact at a time, durably. A reader recalls and lists until the writers are done. The purges come whenever another
equal share of the facts is there. Plain SQLite is one table in WAL mode with synchronous=FULL and a busy timeout of
30 s, one BEGIN IMMEDIATE transaction a row; it has no purges, so Perdure is measured without any as well.

Prints the worst and the usual time of a write and of a read, how many failed, and how many writes were lost.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from bench.machine import describe
from bench.recall import Report
from perdure import PerdureError, Store

ROOT = Path(__file__).resolve().parent.parent
BUSY_MS = 30_000
POLL_S = 0.02


class Load(NamedTuple):
    """How many of each."""

    writers: int = 8
    writes: int = 1000  # of each writer
    readers: int = 4
    purges: int = 20


class Outcome(NamedTuple):
    """What a load came to. Times are in milliseconds, ascending."""

    writes: list[float]
    reads: list[float]
    purges: list[float]
    failures: list[str]
    lost: int
    seconds: float


# What the processes do: (folder, number, load) -> {"times": …, "failures": …}


def write(folder: Path, number: int, load: Load) -> dict[str, Any]:
    with Store.open(folder / "store") as store:
        memory = store.memory()
        memory.list(limit=1)
        _begin()
        return _timed(lambda n: memory.remember(text_of(number, n)), range(load.writes))


def read(folder: Path, number: int, load: Load) -> dict[str, Any]:
    with Store.open(folder / "store") as store:
        memory = store.memory()
        _begin()

        def ask(turn: int) -> None:
            if turn % 2:
                memory.recall(f"fact of writer {turn % load.writers}", k=10)
            else:
                memory.list(limit=10, order="-ingest")

        return _timed(ask, _until_done(folder))


def purge(folder: Path, number: int, load: Load) -> dict[str, Any]:
    with Store.open(folder / "store") as store:
        memory = store.memory()
        _begin()
        total = load.writers * load.writes

        def purge_when_due(turn: int) -> None:
            store.purge()

        def due() -> Iterator[int]:
            for turn in range(1, load.purges + 1):
                while memory.list(limit=1).total < turn * total // (load.purges + 1):
                    time.sleep(POLL_S)
                yield turn

        return _timed(purge_when_due, due())


def write_plain(folder: Path, number: int, load: Load) -> dict[str, Any]:
    db = _plain(folder)
    _begin()

    def insert(turn: int) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO fact(text) VALUES(?)", (text_of(number, turn),))
        db.execute("COMMIT")

    return _timed(insert, range(load.writes))


def read_plain(folder: Path, number: int, load: Load) -> dict[str, Any]:
    db = _plain(folder)
    _begin()
    newest = "SELECT text FROM fact ORDER BY id DESC LIMIT 10"
    return _timed(lambda _: list(db.execute(newest)), _until_done(folder))


ROLES = {role.__name__: role for role in (write, read, purge, write_plain, read_plain)}


def text_of(writer: int, number: int) -> str:
    return f"fact {number} of writer {writer}, told while others write, read and purge"


def _plain(folder: Path) -> apsw.Connection:
    db = apsw.Connection(str(folder / "plain.db"))
    db.set_busy_timeout(BUSY_MS)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON"):
        list(db.execute(f"PRAGMA {pragma}"))
    return db


def _begin() -> None:
    """Say that this process is ready and wait for the word."""
    print("ready", flush=True)
    sys.stdin.readline()


def _until_done(folder: Path) -> Iterator[int]:
    turn = 0
    while not (folder / "done").exists():
        yield turn
        turn += 1


def _timed(work: Callable[[int], object], turns: Iterator[int] | Sequence[int]) -> dict[str, Any]:
    times: list[float] = []
    failures: list[str] = []
    for turn in turns:
        start = time.perf_counter()
        try:
            work(turn)
        except (PerdureError, apsw.Error) as error:
            failures.append(f"{type(error).__name__}: {error}")
        times.append((time.perf_counter() - start) * 1000)
    return {"times": times, "failures": failures}


# The whole


def run(folder: Path, load: Load, *, plain: bool = False) -> Outcome:
    """Let the load work in the folder, which is empty, and return what it came to."""
    _prepare(folder, plain=plain)
    writers = _start("write_plain" if plain else "write", folder, load, load.writers)
    readers = _start("read_plain" if plain else "read", folder, load, load.readers)
    purgers = _start("purge", folder, load, 1 if load.purges and not plain else 0)
    children = writers + readers + purgers
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n"
        begun = time.perf_counter()
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        wrote = [_result(child) for child in writers]
        seconds = time.perf_counter() - begun
        purged = [_result(child) for child in purgers]
        (folder / "done").touch()
        read_ = [_result(child) for child in readers]
    finally:
        for child in children:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()
    failures = [failure for one in wrote + read_ + purged for failure in one["failures"]]
    return Outcome(
        _all(wrote), _all(read_), _all(purged), failures, _lost(folder, load, plain=plain), seconds
    )


def _prepare(folder: Path, *, plain: bool) -> None:
    if plain:
        db = _plain(folder)
        db.execute("CREATE TABLE fact(id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        db.close()
    else:
        Store.open(folder / "store").close()


def _start(role: str, folder: Path, load: Load, count: int) -> list[Any]:
    told = [str(number) for number in load]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "bench.contention", "--child", role, str(folder), str(number), *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(count)
    ]


def _result(child: Any) -> dict[str, Any]:
    line = child.stdout.readline()
    if not line:
        return {"times": [], "failures": ["a process ended without a result"]}
    result: dict[str, Any] = json.loads(line)
    return result


def _all(results: list[dict[str, Any]]) -> list[float]:
    return sorted(time_ for result in results for time_ in result["times"])


def _lost(folder: Path, load: Load, *, plain: bool) -> int:
    told = {text_of(writer, number) for writer in range(load.writers) for number in range(load.writes)}
    if plain:
        return len(told - {text for (text,) in _plain(folder).execute("SELECT text FROM fact")})
    with Store.open(folder / "store") as store:
        assert store.verify().ok
        memory, cursor = store.memory(), None
        while True:
            page = memory.list(limit=1000, cursor=cursor)
            told -= {fact.text for fact in page.items}
            cursor = page.cursor
            if cursor is None:
                return len(told)


def _row(name: str, outcome: Outcome) -> str:
    writes, reads = outcome.writes, outcome.reads
    middle, late = (writes[int(len(writes) * part)] for part in (0.5, 0.99))
    purges = f"{len(outcome.purges)}, {outcome.purges[-1]:.0f} ms at most" if outcome.purges else "none"
    return (
        f"| {name} | {len(writes) / outcome.seconds:.0f} | {middle:.1f} | {late:.1f} | {writes[-1]:.0f} | "
        f"{len(reads)} | {reads[-1]:.0f} | {purges} | {len(outcome.failures)} | {outcome.lost} |"
    )


def measure(load: Load, report: Report) -> bool:
    """Measure all three; return whether nothing failed and nothing was lost."""
    report.say(
        "\n| | writes/s | write p50, ms | p99 | worst | reads | worst, ms | purges | failed | lost |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    sound = True
    for name, chosen, plain in (
        ("Perdure", load, False),
        ("Perdure, no purges", load._replace(purges=0), False),
        ("plain SQLite", load._replace(purges=0), True),
    ):
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
            outcome = run(Path(folder), chosen, plain=plain)
        report.say(_row(name, outcome))
        for failure in outcome.failures[:5]:
            report.say(f"\n- {name}: {failure}")
        sound = sound and (plain or not (outcome.failures or outcome.lost))
    return sound


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        role, folder, number, *told = sys.argv[2:]
        print(json.dumps(ROLES[role](Path(folder), int(number), Load(*map(int, told)))))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in Load()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    load = Load(told.writers, told.writes, told.readers, told.purges)
    report = Report()
    report.say("# Contention\n")
    report.say(f"`python -m bench.contention {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
    report.say(
        f"\n{load.writers} writers x {load.writes:,} facts, {load.readers} readers, {load.purges} purges"
    )
    sound = measure(load, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
