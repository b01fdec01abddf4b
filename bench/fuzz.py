"""Coverage-guided fuzzing of what reads text and bytes from outside.

    python -m bench.fuzz filters -max_total_time=60     one target, with options of libFuzzer
    python -m bench.fuzz --seconds 120 --out FILE       every target, with a report

Needs the package atheris, which is no dependency: its wheels are for Linux and Python 3.11 to 3.13. Ends at the first
failure and writes the input beside; `-runs=100000` or `-max_total_time=60` bound a target. A seeded form of the same
laws runs with the tests, in tests/fuzz.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.report import Report

NAMES = ("analysis", "records", "governed", "configuration", "json", "lines", "filters")
DONE = re.compile(r"Done (\d+) runs in (\d+) second")


def fuzz(name: str, options: list[str]) -> None:
    """Fuzz one target; does not return."""
    atheris: Any = import_module("atheris")
    # Only what is imported here counts as covered; the libraries beside would take minutes to instrument.
    with atheris.instrument_imports(include=["perdure"]):
        targets = import_module("bench.fuzz_targets").TARGETS
    atheris.Setup([sys.argv[0], *options], targets[name])
    atheris.Fuzz()


def report(seconds: int, out: Path) -> int:
    """Fuzz every target for so long, in a process of its own, and write down what came of it."""
    told, failed = Report(), 0
    told.say(f"# Fuzzing\n\n`python -m bench.fuzz --seconds {seconds} --out FILE`, with atheris\n")
    told.say("```text\n" + describe(Path(tempfile.gettempdir())) + "\n```\n")
    told.say("| target | executions | seconds | failures |\n| --- | ---: | ---: | ---: |")
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "bench.fuzz", name, f"-max_total_time={seconds}"]
            ran = subprocess.run(
                [*command, f"-artifact_prefix={out.parent}/fuzz-{name}-", folder],
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        done = DONE.search(ran.stderr)
        runs, took = (f"{int(done[1]):,}", done[2]) if done else ("?", "?")
        told.say(f"| {name} | {runs} | {took} | {int(ran.returncode != 0)} |")
        if ran.returncode:
            failed += 1
            print(ran.stderr[-3_000:], file=sys.stderr)
    out.write_text("\n".join(told.lines) + "\n", encoding="utf-8")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "target", nargs="?", choices=NAMES, help="what to fuzz; options of libFuzzer may follow"
    )
    parser.add_argument("--seconds", type=int, default=120, help="how long to fuzz each target for a report")
    parser.add_argument("--out", type=Path, help="fuzz every target, and write the report to this file")
    told, options = parser.parse_known_args()
    if told.out is not None:
        return report(told.seconds, told.out)
    if told.target is None:
        parser.error(f"name a target: {', '.join(NAMES)}; or --out FILE for all of them")
    fuzz(told.target, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
