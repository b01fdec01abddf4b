"""What the audit costs: writes and reads beside it, catching up, the first forget and later ones, a page of events.

python -m bench.audit                             at 100,000 facts
python -m bench.audit --rows 10000
python -m bench.audit --out bench/results/audit.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report
from perdure import Store

ROWS = 100_000
SINGLES = 200
BATCH = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="facts in the store")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# The audit\n")
    report.say(f"`python -m bench.audit {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        report.say(f"\n## {told.rows:,} facts of 24 words in one memory\n")
        report.say("| what | with the audit, ms | audit=off, ms |\n| --- | --- | --- |")
        _compare(Path(folder), told.rows, report)
        _audit(Path(folder) / "on", told.rows, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _compare(folder: Path, rows: int, report: Report) -> None:
    """Writes and reads, in turns, on a store with an audit and on one without."""
    facts, texts = Corpus(rows).facts(), Corpus(SINGLES, seed=11).facts()
    stores = [Store.open(folder / level, audit=level) for level in ("on", "off")]  # type: ignore[arg-type]
    for store in stores:
        for start in range(0, rows, BATCH):
            batch = facts[start : start + BATCH]
            store.memory().remember_many(
                [{"text": text, "id": f"f{start + n}"} for n, text in enumerate(batch)]
            )
        store.memory().recall("what no fact holds")
    calls: dict[str, Callable[[Store, int], object]] = {
        "remember, p50": lambda store, n: store.memory().remember(texts[n], id=f"single {n}"),
        "recall, p50": lambda store, n: store.memory().recall(texts[n]),
    }
    for what, call in calls.items():
        took: list[list[float]] = [[], []]
        for n in range(SINGLES):
            for place, store in enumerate(stores):
                took[place].append(_timed(lambda store=store, n=n, call=call: call(store, n)))  # type: ignore[misc]
        report.say(f"| {what} | {_p50(took[0]):.3f} | {_p50(took[1]):.3f} |")
    followed = stores[0].log.head(1).seq
    took_first = _timed(lambda: stores[0].memory().forget(ids=["f0"])) * 1000
    plain_first = _timed(lambda: stores[1].memory().forget(ids=["f0"])) * 1000
    report.say(f"| first forget, which follows {followed:,} records | {took_first:.0f} | {plain_first:.1f} |")
    took = [[], []]
    for n in range(SINGLES):
        for place, store in enumerate(stores):
            took[place].append(_timed(lambda store=store, n=n: store.memory().forget(ids=[f"single {n}"])))  # type: ignore[misc]
    report.say(f"| later forgets, p50 | {_p50(took[0]):.2f} | {_p50(took[1]):.2f} |")
    for store in stores:
        store.close()


def _audit(path: Path, rows: int, report: Report) -> None:
    with Store.open(path) as store:
        memory = store.memory()
        memory.recall("what no fact holds")
        report.say(f"| first page of 50 events after an opening | {_timed(memory.events) * 1000:.1f} | |")
        later = [_timed(memory.events) for _ in range(20)]
        report.say(f"| later pages, p50 | {_p50(later):.1f} | |")
        of_one = _timed(lambda: memory.events(id="f7")) * 1000
        report.say(f"| events of one id, of all | {of_one:.0f} | |")
        report.say(f"| verify_events | {_timed(store.verify_events) * 1000:.0f} | |")
        took = _timed(lambda: [*store.export_events()]) * 1000
        report.say(f"| export_events | {took:.0f} | |")
    size = sum(file.stat().st_size for file in (path / "audit").iterdir())
    report.say(f"\nThe audit takes {size / 1e6:.1f} MB on disk, {size / rows:.0f} bytes a fact.")


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _p50(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2] * 1000


if __name__ == "__main__":
    main()
