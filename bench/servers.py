"""Several servers of one PostgreSQL, written to at random while it is cut off and killed, and every answer held to a model.

    python -m bench.servers --seconds 300 --out bench/results/servers.md

Runs what tests/processes/test_postgres.py runs, for longer: four server processes, eight writers, three tenants with two
memories each. A connection of the servers is cut with four chances in ten every 0.7 seconds. Once in half a minute the
database is killed with SIGKILL, and so is a server, in whose place another one starts. Each recall must be, to the last
bit of a score, that of a store built anew of one state between what was acknowledged before it began and what was asked
for before it ended.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from bench.machine import describe  # noqa: E402 - the run lies with the tests
from bench.report import Report  # noqa: E402
from processes import servers_run as servers  # noqa: E402

ROWS = {
    "remember": "facts remembered, each read back through another server",
    "supersede": "facts that superseded another, both read back",
    "forget": "facts forgotten, each looked for through another server",
    "purge": "purges acknowledged",
    "recall": "recalls, each equal to a store built anew",
    "refused": "calls answered 503, and asked again",
    "cut connections": "connections cut",
    "killed databases": "times the database was killed",
    "killed servers": "servers killed, and others put in their place",
    "hung up": "calls that a killed server left, and that were asked of others",
    "records": "records and numbers looked through at the end for a gap",
}


def tell(summary: servers.Summary, seconds: float, version: str, report: Report) -> None:
    report.say(
        f"PostgreSQL {version}; {servers.SERVERS} servers, {servers.WRITERS} writers, {seconds:.0f} seconds\n"
    )
    report.say("| what | how many |\n| --- | --- |")
    for name, told in ROWS.items():
        report.say(f"| {told} | {summary.counts[name]} |")
    report.say(
        f"| writes lost, double or back, gaps, wrong answers, failed calls, findings | {len(summary.problems)} |"
    )
    for problem in summary.problems[: servers.STORES_TALK]:
        report.say(f"\n- {problem}")
    report.say(f"\n{summary.line()}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Servers of one database\n")
    report.say(f"`python -m bench.servers {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder, servers.database() as server:
        report.say(describe(Path(folder)))
        version = server.execute("SHOW server_version")[0][0]
        summary = servers.run(Path(folder), server, told.seconds)
    tell(summary, told.seconds, version, report)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return 1 if summary.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
