"""Time export and import, beside telling the same facts; the copy is compared with its source byte for byte.

    python -m bench.transfer                          100,000 facts
    python -m bench.transfer --rows 1000 --rows 100000
    python -m bench.transfer --out bench/results/transfer.md

A store of facts that supersede one another by subject is filled, exported to a file, judged in a dry run, imported
into an empty store, imported again, and exported from there. All stores are durable files. Resident memory is what
the step adds at most to a process that has opened the store, so an import's holds the state of the new space.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.corpus import Corpus
from bench.machine import describe
from bench.recall import Report, fill_history
from bench.remember import resident_bytes

STEPS = ("fill", "export", "judge", "import", "again", "back")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, action="append", help="how many facts; 100,000 when left out")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument("--child", nargs=2, metavar=("STEP", "DIR"), help=argparse.SUPPRESS)
    told = parser.parse_args()
    sizes = told.rows or [100_000]
    if told.child:
        print(json.dumps(_step(told.child[0], Path(told.child[1]), sizes[0])))
        return
    report = Report()
    report.say("# Export and import\n")
    report.say(f"`python -m bench.transfer {' '.join(sys.argv[1:])}`".replace(" `", "`") + "\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        for rows in sizes:
            where = Path(folder) / str(rows)
            where.mkdir()
            _measure(where, rows, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _measure(folder: Path, rows: int, report: Report) -> None:
    found = {step: _child(step, folder, rows) for step in STEPS}
    names = {
        "fill": "remember, 100 a batch",
        "export": "export to a file",
        "judge": "dry run",
        "import": "import, strict",
        "again": "import again: all is there",
        "back": "export of the copy",
    }
    report.say(f"\n## {rows:,} facts of 24 words, each superseding one of its subject\n")
    report.say("| step | facts/s | seconds | memory added at most, MB |")
    report.say("| --- | --- | --- | --- |")
    for step in STEPS:
        seconds = found[step]["seconds"]
        memory = "" if step == "fill" else f"{found[step]['memory'] / 1e6:.0f}"
        report.say(f"| {names[step]} | {rows / seconds:,.0f} | {seconds:.2f} | {memory} |")
    first, second = ((folder / name).read_bytes().split(b"\n", 1) for name in ("there.jsonl", "back.jsonl"))
    same = "equal" if first[1] == second[1] else "NOT equal"
    size = (folder / "there.jsonl").stat().st_size
    report.say(
        f"\nThe file takes {size / rows:.0f} bytes a fact; the export of the copy is {same}, but for the header."
    )


def _child(step: str, folder: Path, rows: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.transfer", "--rows", str(rows), "--child", step, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _step(step: str, folder: Path, rows: int) -> dict[str, float]:
    from perdure import MemoryConfig, Store  # noqa: PLC0415 - the parent needs none of it

    facts = Corpus(rows).facts() if step == "fill" else []
    with Store.open(folder / ("source" if step in ("fill", "export") else "target")) as store:
        before = resident_bytes()
        start = time.perf_counter()
        if step == "fill":
            fill_history(store.memory(config=MemoryConfig(supersession="latest-by-subject")), facts)
        elif step == "export":
            store.export(folder / "there.jsonl")
        elif step == "back":
            store.export(folder / "back.jsonl")
        else:
            store.import_(folder / "there.jsonl", dry_run=step == "judge")
        return {"seconds": time.perf_counter() - start, "memory": _peak_bytes() - before}


def _peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resident_bytes()


if __name__ == "__main__":
    main()
