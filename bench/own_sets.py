"""Run our own sets with known answers: rows per category, and milliseconds per recall.

    python -m bench.own_sets                                   all sets, both halves
    python -m bench.own_sets updates --half dev --small        one of them, as the tests run it
    python -m bench.own_sets --compare-options '{"mode":"hybrid"}'
    python -m bench.own_sets --out bench/results/own-sets.md
    python -m bench.own_sets --write                           make the small form anew

Nothing may be chosen by a look at a test half: tune on `dev`, then report `test`. The set `updates` is a matter of
right and wrong, not of quality: the exit code is 1 where one of its answers is not exactly what it should be (as
long as no options of recall are given, which may ask for more than the words that are there).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from bench.machine import describe
from bench.sets import multilingual, paraphrases, updates
from perdure import MemoryConfig
from perdure.evaluation import Run, Scenario, Trial, compare, read_scenario, run
from perdure.evaluation.reading import recall_options
from perdure.evaluation.reporting import comparison_rows, run_rows

SMALL = Path(__file__).parent / "sets" / "small"
HALVES = ("dev", "test")
LATEST = "latest-by-subject"


class OwnSet(NamedTuple):
    """A generator, how many of everything its forms have, and whether newer facts of a subject replace older ones."""

    entries: Callable[[str, int], Iterator[dict[str, Any]]]
    small: int
    large: int
    latest: bool = False


SETS = {
    "multilingual": OwnSet(multilingual.entries, 1, 4),
    "updates": OwnSet(updates.entries, 1, 30, latest=True),
    "paraphrases": OwnSet(paraphrases.entries, 1, 4),
}


def lines(name: str, half: str, *, small: bool = False) -> bytes:
    """Return a set's half as JSON Lines; the same bytes on every call and machine."""
    own = SETS[name]
    told = own.entries(half, own.small if small else own.large)
    return b"".join(json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in told)


def scenario(name: str, half: str, *, small: bool = False) -> Scenario:
    return read_scenario(lines(name, half, small=small), f"{name}-{half}.jsonl")


def measured(name: str, half: str, trial: Trial, *, small: bool = False) -> Run:
    """Run one half of a set, with the supersession that the set is about and the time of each recall."""
    config = trial.config.replace(supersession=LATEST) if SETS[name].latest else trial.config
    return run([scenario(name, half, small=small)], replace(trial, config=config, timer=time.perf_counter_ns))


def table(headers: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table, the last column first."""
    turned = [[row[-1], *row[:-1]] for row in (headers, *rows)]
    return [f"| {' | '.join(row)} |" for row in (turned[0], ["---"] * len(headers), *turned[1:])]


def milliseconds(told: Run) -> str:
    times = sorted((answer.nanoseconds or 0) / 1e6 for answer in told.answers)
    at = int(len(times) * 0.95)
    return f"milliseconds per recall: mean {statistics.fmean(times):.3f}, p50 {times[len(times) // 2]:.3f}, p95 {times[at]:.3f}"


def main() -> int:
    given = _arguments()
    if given.write:
        _write()
        return 0
    first = Trial(_config(given.config), recall_options(json.loads(given.options)))
    second = None
    if given.compare_config or given.compare_options:
        options = first.options if given.compare_options is None else json.loads(given.compare_options)
        second = Trial(_config(given.compare_config or given.config), recall_options(options))
    told = [
        "# Our own sets",
        "",
        describe(Path.cwd()),
        "",
        f"command: python -m bench.own_sets {' '.join(sys.argv[1:])}",
    ]
    print("\n".join(told))
    right = True
    for name in given.sets or SETS:
        for half in HALVES if given.half == "both" else (given.half,):
            found = measured(name, half, first, small=given.small)
            if name == "updates" and not given.options.strip("{} "):  # by meaning, others may come back too
                right &= found.means()["exact"] == 1
            part = ["", f"## {name}, {half} half", "", *table(*run_rows(found)), "", milliseconds(found)]
            if second is not None:
                other = measured(name, half, second, small=given.small)
                part += [
                    "",
                    *table(*comparison_rows(compare(found, other))),
                    "",
                    f"second: {milliseconds(other)}",
                ]
            print("\n".join(part), flush=True)
            told += part
    if given.out:
        Path(given.out).write_text("\n".join(told) + "\n", encoding="utf-8")
    return 0 if right else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], metavar="SET", help=", ".join(SETS))
    parser.add_argument("--half", choices=("both", *HALVES), default="both")
    parser.add_argument("--small", action="store_true", help="the form that the tests run")
    parser.add_argument("--config", help="a MemoryConfig as JSON in a file")
    parser.add_argument("--options", default="{}", help="options of recall as JSON")
    parser.add_argument("--compare-config", help="of a second run")
    parser.add_argument("--compare-options", help="of a second run")
    parser.add_argument("--out", help="write the report here too")
    parser.add_argument("--write", action="store_true", help="write the small form into bench/sets/small")
    return parser.parse_args()


def _config(path: str | None) -> MemoryConfig:
    return MemoryConfig() if path is None else MemoryConfig.from_json(Path(path).read_bytes())


def _write() -> None:
    SMALL.mkdir(exist_ok=True)
    for name in SETS:
        for half in HALVES:
            (SMALL / f"{name}-{half}.jsonl").write_bytes(lines(name, half, small=True))


if __name__ == "__main__":
    sys.exit(main())
