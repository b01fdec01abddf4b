"""The memory of the server's processes over time while the data stays the same: reads, and repeated tellings.

    python -m bench.steady                                     2 minutes, 2 workers, 1,000 facts
    python -m bench.steady --seconds 3600 --facts 10000 --out bench/results/steady.md

Under `python -m bench.server --mixed` memory grows with the facts that are told. Here what is told is there already,
so whatever still grows after the first part is kept for no reason. Of each process, at ten moments: the bytes that
are resident and not shared with files (RssAnon).
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from pathlib import Path

from bench.report import Report
from bench.server import Mixed, family, fill, free_port, head, perdure_command, serving

MOMENTS = 10
CONNECTIONS = 8


class Steady(Mixed):
    """Recalls, reads and tellings of what the store holds already."""

    def __init__(self, port: int, texts: list[str]) -> None:
        super().__init__(port)
        self.texts = texts
        self.told = 0

    def run(self, thread: int) -> None:
        source = random.Random(thread)
        while not self.stop.is_set():
            number = source.randrange(len(self.texts))
            try:
                for op, body in (
                    ("remember", {"id": f"steady-{number}", "text": self.texts[number]}),
                    ("recall", {"query": self.texts[number], "k": 10}),
                    ("get", {"id": f"steady-{number}"}),
                    ("list", {"limit": 20}),
                ):
                    status, _ = self._post(op, body)
                    self.refused += status != 200
                    self.told += op == "remember" and status == 200
                    self.reads += op != "remember" and status == 200
            except (OSError, ValueError):
                self.broken += 1


def anonymous_bytes(pid: int) -> int:
    """Return what a process holds of memory that is its own."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def watch(report: Report, folder: Path, seconds: float, facts: int, workers: int) -> None:
    head(report, "Steady load: the same facts told and asked again and again", folder)
    store, port = folder / "store", free_port()
    fill(store, facts)
    seen: list[tuple[float, dict[int, int]]] = []
    with serving(perdure_command(store, port, workers), port, folder / "log") as process:
        load = Steady(port, [f"steady fact {number} about the town {number % 7}" for number in range(200)])
        for number, text in enumerate(load.texts):
            load._post("remember", {"id": f"steady-{number}", "text": text})
        threads = [threading.Thread(target=load.run, args=(number,)) for number in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for moment in range(MOMENTS + 1):
            time.sleep(max(0.0, began + moment * seconds / MOMENTS - time.monotonic()))
            sizes = {pid: anonymous_bytes(pid) for pid in family(process.pid)}
            seen.append((time.monotonic() - began, sizes))
        load.stop.set()
        for thread in threads:
            thread.join()
    report.say(
        f"{seconds:g} s, {workers} workers, {CONNECTIONS} connections at once, {facts} facts beside them."
    )
    report.say()
    report.say(f"* tellings of what was there: {load.told:,}; reads: {load.reads:,}")
    report.say(f"* refused with an error: {load.refused}; connections that broke: {load.broken}")
    report.say()
    pids = list(seen[0][1])
    report.say("| seconds | " + " | ".join(f"process {place + 1}, KiB" for place in range(len(pids))) + " |")
    report.say("| --: |" + " --: |" * len(pids))
    for at, sizes in seen:
        report.say(f"| {at:.0f} | " + " | ".join(f"{sizes.get(pid, 0) >> 10:,}" for pid in pids) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--facts", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        watch(report, Path(name), told.seconds, told.facts, told.workers)
    if told.out:
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
