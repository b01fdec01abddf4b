"""Are scores what their parts make, and are absences explained? `python -m bench.explain [--facts 10000] [--seed 0]`

Random spaces live through random histories, and random questions are put to them: by words, by meaning, by both, with
context, ranked by relevance too, as of some moment, as known at another, for what held during an interval, with scopes,
filters, floors and small limits. Of every fact that is not hidden the explanation, the trace and the recall are held to an oracle that works
from the rules alone (tests/properties/recall_oracle.py), and each score, bit for bit, to what its parts combine to.
Ends with 1 at the first difference. Needs the packages of the extra `test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.machine import describe
from bench.recall import Report

TESTS = Path(__file__).resolve().parents[1] / "tests"
QUESTIONS = 8


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--facts",
        type=int,
        default=10_000,
        help="how many with a score to judge, and how many without; counted anew a question",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first space; each takes the next one")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    report = Report()
    report.say("# Explanations held to an oracle\n")
    report.say(f"`python -m bench.explain {' '.join(sys.argv[1:])}`\n")
    report.say(describe(Path(tempfile.gettempdir())))
    start = time.perf_counter()
    counts, spaces, wrong = _judge(told.seed, told.facts)
    _tell(report, counts, spaces, time.perf_counter() - start)
    if wrong is not None:
        report.say(f"\nThe space of seed {wrong} answers something else than the oracle.")
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return int(wrong is not None)


def _judge(seed: int, facts: int) -> tuple[Counter[str], int, int | None]:
    """Return the counts, how many spaces were asked, and the seed that the oracle contradicts."""
    from properties.recall_trial import Trial  # noqa: PLC0415 - the tests' folder was put on the path just now

    counts: Counter[str] = Counter()
    spaces = 0
    while min(counts["scores"], counts["facts"] - counts["scores"]) < facts:
        trial = Trial(seed + spaces)
        try:
            for _ in range(QUESTIONS):
                trial.ask()
        except AssertionError:
            return counts + trial.counts, spaces, seed + spaces
        counts += trial.counts
        spaces += 1
    return counts, spaces, None


def _tell(report: Report, counts: Counter[str], spaces: int, seconds: float) -> None:
    report.say(f"\n{counts['facts']:,} facts judged in {spaces:,} spaces, {seconds:.0f} s.")
    report.say(
        f"{counts['scores']:,} scores equal what their parts make, bit for bit; the others have none.\n"
    )
    report.say("| reason | facts |")
    report.say("| --- | ---: |")
    for reason, count in sorted(counts.items()):
        if reason not in ("facts", "scores"):
            report.say(f"| {reason} | {count:,} |")


if __name__ == "__main__":
    sys.exit(main())
