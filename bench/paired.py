"""The paired-store experiment: is a store that has forgotten one that never knew?

    python -m bench.paired                            500 pairs of stores
    python -m bench.paired --histories 2000 --seed 9
    python -m bench.paired --out bench/results/paired.md

Two stores with one secret and one clock live through the same random history; the first is told secrets as well,
at random places, and forgets them. Every other text has a vector that its caller gave, and half of the histories have
an embedder, are embedded later and anew. Every fourth pair are journals, and every other one are told change sets,
accesses, conversations, turns of sessions and what an extractor proposes of them too. Every answer of both is compared: at once, after both are purged, and after both
are opened again; then every byte of their files but the number of the generation. No file of the first, its audit's
neither, may hold the word that is in every secret. tests/erasure/pairs.py says which
histories there are and what is asked. Ends with 1 where anything differs. Needs the packages of the extra `test`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from bench.machine import describe
from bench.recall import Report

TESTS = Path(__file__).resolve().parents[1] / "tests"
SHOWN_MAX = 20
STAGES = ("at once", "after a purge", "after opening again", "bytes of files", "the word of the secrets")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first history; each takes the next one")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    told = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    report, counts = Report(), Counter[str]()
    report.say("# Paired stores: one that forgot, one that never knew\n")
    report.say(f"`python -m bench.paired {' '.join(sys.argv[1:])}`\n")
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
        start = time.perf_counter()
        for seed in range(told.seed, told.seed + told.histories):
            where = Path(folder, str(seed))
            where.mkdir()
            found += [f"history {seed}, {what}" for what in _compare(seed, where, counts)]
            shutil.rmtree(where)
        _tell(report, told.histories, counts, found, time.perf_counter() - start)
    if told.out:
        told.out.parent.mkdir(parents=True, exist_ok=True)
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    return int(bool(found))


def _compare(seed: int, folder: Path, counts: Counter[str]) -> list[str]:
    """Run one pair of stores; return what differs."""
    from erasure.pairs import (  # noqa: PLC0415 - the tests' folder was put on the path just now
        Pair,
        a_governed_history,
        a_history,
    )

    backend = "sqlite" if seed % 4 else "journal"
    chosen = a_governed_history if seed % 8 >= 4 else a_history  # so that both are journals as well
    pair = Pair(folder / "first", folder / "second", chosen(Random(seed)), backend)
    counts[backend] += 1
    counts["governed"] += pair.is_governed
    found = [f"{STAGES[0]}: {name}" for name in pair.differences(purged=False)]
    counts["told apart"] += _unlike_before_a_purge(pair)
    pair.purge()
    found += [f"{STAGES[1]}: {name}" for name in pair.differences(purged=True)]
    pair.reopen()
    found += [f"{STAGES[2]}: {name}" for name in pair.differences(purged=True)]
    pair.close()
    before = pair.files, pair.bytes
    found += [f"{STAGES[3]}: {name}" for name in pair.differing_files()]
    found += [f"{STAGES[4]}: {name}" for name in pair.traces()]
    counts["files"] += pair.files - before[0]
    counts["bytes"] += pair.bytes - before[1]
    counts["answers"] += pair.compared
    counts["secret calls"] += pair.secrets
    counts["calls"] += pair.calls
    return found


def _unlike_before_a_purge(pair: Any) -> bool:
    """Whether the files differ as long as nothing was purged: what would show that the comparison sees anything."""
    pair.close()
    unlike = bool(pair.differing_files())
    for side in pair.sides:
        side.open()
    return unlike


def _tell(report: Report, histories: int, counts: Counter[str], found: list[str], seconds: float) -> None:
    report.say(f"\n| what | count |\n| --- | --- |\n| pairs of stores | {histories:,} |")
    report.say(f"| of these journals | {counts['journal']:,} |")
    report.say(f"| of these with nodes, conversations and sessions too | {counts['governed']:,} |")
    report.say(f"| calls that both stores took | {counts['calls']:,} |")
    report.say(f"| calls with secrets that the first took as well | {counts['secret calls']:,} |")
    report.say(f"| pairs whose files differed before the purge, as they should | {counts['told apart']:,} |")
    report.say(
        f"| answers compared (score bits by words, by meaning and by both, ranks, pages, history, vectors, sizes) | {counts['answers']:,} |"
    )
    report.say(f"| files compared | {counts['files']:,} |")
    report.say(f"| bytes compared | {counts['bytes']:,} |")
    report.say(f"| **differences** | **{len(found)}** |")
    for line in found[:SHOWN_MAX]:
        report.say(f"\n- {line}")
    report.say(f"\nIt took {seconds:.0f} s.")
    report.say(
        "\nNot compared, since it may differ: the audit, which keeps that something was erased, the number of the generation, `store.lock`, `writer.lock`, caches, `journal.current`. Not in "
        "the histories: blocks that outlive what they name, facts whose links, versions or positions were decided by a "
        "secret, vectors of different lengths, change sets that quote what is forgotten, and the order in which memories came into being."
    )


if __name__ == "__main__":
    sys.exit(main())
