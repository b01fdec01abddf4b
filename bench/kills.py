"""Kill writers, forgetters, purgers and erasers at random points, and count what that lost or left.

    python -m bench.kills --kills 1000 --out bench/results/kills.md

Runs what tests/crash/test_kills.py runs, for longer: up to three processes at a time on one store, each killed with
SIGKILL while it works, and one more that has the store open all the while and goes on. What each process told before
it died says what must be there, what must be gone, and what may be either, whole.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from bench.machine import describe  # noqa: E402 - the driver lies with the tests
from bench.recall import Report  # noqa: E402
from crash import kills  # noqa: E402


def tell(summary: kills.Summary, report: Report) -> None:
    report.say("\n| what | how many |\n| --- | --- |")
    for kind, number in sorted(summary.kills.items()):
        report.say(f"| killed: {kind} | {number} |")
    for word, number in summary.moments.most_common():
        report.say(f"| killed after it had said `{word}` | {number} |")
    report.say(f"| batches acknowledged | {summary.batches} |")
    report.say(f"| forgets and erasures acknowledged | {summary.forgets} |")
    report.say(f"| of these answered `pending` | {summary.pending} |")
    report.say(f"| purges acknowledged | {summary.purges} |")
    report.say(f"| scans of every byte, while others went on and at the end | {summary.scans} |")
    report.say(
        "| acknowledged writes lost, half batches, markers found, wrong answers, failed calls, files left | "
        f"{len(summary.wrong)} |"
    )
    for wrong in summary.wrong[:20]:
        report.say(f"\n- {wrong}")
    report.say(f"\n{summary.line()}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Kills\n")
    report.say(f"`python -m bench.kills {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        summary = kills.run(Path(folder), told.kills, told.seed)
    tell(summary, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return 1 if summary.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
