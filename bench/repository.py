"""Time a repository: a change set beside a remember of the same text, queries, and snapshots.

    python -m bench.repository                        10,000 and 100,000 nodes
    python -m bench.repository --nodes 1000
    python -m bench.repository --out bench/results/repository.md

Single change sets (one node, created as a candidate or as active, or activated) alternate with single remembers of
texts of the same kind, so that both meet the same disk. Each transaction is durable.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.corpus import Corpus
from bench.machine import describe
from bench.report import Report
from perdure import Store
from perdure.repository import Activate, ChangeSet, Create, Evidence, NodeDraft, Repository, SnapshotRequest

SINGLES = 300
SET_MAX = 128
QUERIES = 100
BYTES_MAX = 268_435_456
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="how many; may be told several times")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    report = Report()
    report.say("# Repository\n")
    report.say(f"`python -m bench.repository {' '.join(sys.argv[1:])}`\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        _singles(Path(folder) / "singles", report)
        for count in told.nodes or (10_000, 100_000):
            _filled(Path(folder) / str(count), count, report)
    if told.out:
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")


def _evidence(number: int, kind: str = "session_turn") -> Evidence:
    return Evidence(f"chat/{kind}/{number}", f"sha256:{number:064x}", kind, NOW)


def _created(number: int, text: str, *, active: bool) -> Create:
    kind = "manual" if active else "session_turn"
    status = "active" if active else "candidate"
    draft = NodeDraft(
        id=f"node-{number}", kind="semantic", content=text, status=status, evidence=(_evidence(number, kind),)
    )
    return Create(draft=draft)


def _timed(work: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start


def _singles(folder: Path, report: Report) -> None:
    texts = Corpus(SINGLES * 3).facts()
    times: dict[str, list[int]] = {}
    with Store.open(folder) as store:
        memory, repository = store.memory(), store.repository()

        def note(name: str, work: Callable[[], object]) -> None:
            times.setdefault(name, []).append(_timed(work))

        for number in range(SINGLES):
            remembered, proposed, active = texts[3 * number : 3 * number + 3]
            note("remember", lambda text=remembered: memory.remember(text))
            candidate = ChangeSet(f"a{number}", NOW, (_created(2 * number, proposed, active=False),))
            note("change set: create a candidate", lambda changes=candidate: repository.apply(changes))
            decision = Activate(
                node_id=f"node-{2 * number}", expected_revision=1, evidence=(_evidence(number, "manual"),)
            )
            activation = ChangeSet(f"b{number}", NOW, (decision,))
            note("change set: activate it", lambda changes=activation: repository.apply(changes))
            other = ChangeSet(f"c{number}", NOW, (_created(2 * number + 1, active, active=True),))
            note("change set: create as active", lambda changes=other: repository.apply(changes))
            note("change set: told again", lambda changes=other: repository.apply(changes))
    usual = sorted(times["remember"])[SINGLES // 2]
    report.say(f"\n## One durable write, median of {SINGLES}\n")
    report.say("| | µs | ÷ remember |\n| --- | ---: | ---: |")
    for name, told in times.items():
        median = sorted(told)[SINGLES // 2]
        report.say(f"| {name} | {median / 1_000:.0f} | {median / usual:.2f} |")


def _filled(folder: Path, count: int, report: Report) -> None:
    texts = Corpus(count).facts()
    report.say(f"\n## {count:,} active nodes\n")
    report.say("| | |\n| --- | ---: |")
    with Store.open(folder) as store:
        repository = store.repository()
        taken = _timed(lambda: _fill(repository, texts))
        report.say(f"| creating, {SET_MAX} a change set | {count / taken * 1e9:,.0f} nodes/s |")
    with Store.open(folder / "facts") as other:
        taken_facts = _timed(lambda: _remember(other, texts))
        report.say(
            f"| remembering the same texts, {SET_MAX} a batch | {count / taken_facts * 1e9:,.0f} facts/s |"
        )
        report.say(f"| creating ÷ remembering, time | {taken / taken_facts:.2f} |")
    with Store.open(folder) as store:
        repository = store.repository()
        report.say(
            f"| opening, until the first answer | {_timed(lambda: repository.get('node-0')) / 1e9:.2f} s |"
        )
        request = SnapshotRequest(max_nodes=count, max_bytes=BYTES_MAX)
        found = [repository.snapshot(request)]
        snapshot = _timed(lambda: found.append(repository.snapshot(request)))
        verified = _timed(lambda: found[0].verify(request))
        assert found[0] == found[1]
        report.say(
            f"| snapshot of {len(found[0].nodes):,} nodes, {found[0].byte_count:,} bytes | {snapshot / 1e9:.2f} s |"
        )
        report.say(f"| verifying it | {verified / 1e9:.2f} s |")
        report.say(f"| change token | {_timed(repository.change_token) / 1e3:.0f} µs |")
        _queries(repository, store, count, report)


def _fill(repository: Repository, texts: list[str]) -> None:
    for start in range(0, len(texts), SET_MAX):
        operations = [
            _created(number, text, active=True)
            for number, text in enumerate(texts[start : start + SET_MAX], start)
        ]
        repository.apply(ChangeSet(f"fill-{start}", NOW, tuple(operations)))


def _remember(store: Store, texts: list[str]) -> None:
    memory = store.memory()
    for start in range(0, len(texts), SET_MAX):
        memory.remember_many(texts[start : start + SET_MAX])


def _queries(repository: Repository, store: Store, count: int, report: Report) -> None:
    memory, queries = store.memory(), Corpus(count).queries(QUERIES)
    times: tuple[list[int], list[int]] = ([], [])
    for query in queries:
        times[0].append(_timed(lambda asked=query: repository.query(asked, limit=10)))
        times[1].append(_timed(lambda asked=query: memory.recall(asked, k=10)))
    ours, recall = (sorted(side)[len(queries) // 2] for side in times)
    report.say(f"| query of ten, median of {len(queries)} | {ours / 1e3:,.0f} µs |")
    report.say(f"| recall of ten in the same space | {recall / 1e3:,.0f} µs |")
    report.say(f"| query ÷ recall | {ours / recall:.1f} |")


if __name__ == "__main__":
    main()
