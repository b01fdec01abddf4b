"""LongMemEval: are the sessions that hold the answer found, and do the two times hold on its conversations?

    python -m bench.longmemeval longmemeval_s.json
    python -m bench.longmemeval longmemeval_s.json --sample 50 --out bench/results/longmemeval.md

The file is yours to bring: a list of questions, each with its own haystack of dated sessions. Each question gets a
store of its own, in which every turn is a fact that holds from its session's date on; the question is asked verbatim
and nothing else of it is shown to the engine. Three things must hold on every question, or the exit code is 1:

    search      the default recall gives the ids and scores of a search of the same texts
    future      as of the question's date nothing comes back that is dated later
    before      as of the moment before the newest session with the answer, nothing of that session comes back

recall_any@k is 1 where one of the sessions with the answer is among the first k, recall_all@k where all are; sessions
are taken in the order in which their first turn comes back. Questions without an answer in their haystack (their id
ends in _abs) are not scored, as the set's own evaluation has it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench.machine import describe
from perdure import ManualClock, Memory, NewFact, Source, Store

DEPTH = 1_000  # turns asked for; ten sessions are among them however long they are
CUTS = (("recall_any", 5), ("recall_any", 10), ("recall_all", 5))
PIECE_WORDS = 3_000  # a turn may be longer than a fact
CHECKS = ("search", "future", "before")
SAMPLE_SMALL = 100  # questions; with fewer, ten points more or less mean nothing


class Outcome(NamedTuple):
    """One question: its scores by name (empty where it is not scored), the checks it failed, and what it took."""

    kind: str
    scores: dict[str, float]
    failed: tuple[str, ...]
    facts: int
    milliseconds: float


def read(path: Path) -> list[dict[str, Any]]:
    """Return the questions of a file. Raises SystemExit, naming the field, where it has another form."""
    told = json.loads(path.read_bytes())
    needed = ("question_id", "question_type", "question", "question_date", "answer_session_ids")
    needed += ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    for index, question in enumerate(told if isinstance(told, list) else [told]):
        missing = [name for name in needed if not isinstance(question, dict) or name not in question]
        if missing:
            raise SystemExit(f"question {index} has no {missing[0]}: this is no file of LongMemEval")
        if len({len(question[name]) for name in needed[5:]}) != 1:
            raise SystemExit(f"question {index} has not as many dates, ids and sessions")
    return told


def moment(told: str) -> datetime:
    """Return the moment of a date like `2023/05/20 (Sat) 02:21`."""
    day, *_, hour = told.split()
    return datetime.strptime(f"{day} {hour}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def turns(question: Mapping[str, Any]) -> Iterator[NewFact]:
    """Yield each turn of the haystack as a fact, long ones in pieces; blank ones give nothing."""
    told = zip(
        question["haystack_session_ids"],
        question["haystack_dates"],
        question["haystack_sessions"],
        strict=True,
    )
    for number, (session, date, turns_) in enumerate(told):
        for position, turn in enumerate(turns_):
            words = turn["content"].split(" ")
            for piece, start in enumerate(range(0, len(words), PIECE_WORDS)):
                text = " ".join(words[start : start + PIECE_WORDS])
                if text.strip():
                    yield NewFact(
                        text=text,
                        id=f"{number}/{position}/{piece}",
                        valid_from=moment(date),
                        metadata={"session": session},
                        source=Source(uri=session, position=position, actor=turn["role"]),
                    )


def ask(question: Mapping[str, Any]) -> Outcome:
    """Tell the haystack to a store, ask the question, check and score the answers."""
    asked_at = moment(question["question_date"])
    dates = [moment(date) for date in question["haystack_dates"]]
    clock = ManualClock(max([asked_at, *dates]))
    with Store.open(":memory:", clock=clock) as store:
        memory, facts = store.memory(), list(turns(question))
        memory.remember_many(facts)
        start = time.perf_counter()
        hits = memory.recall(question["question"], k=DEPTH)
        took = 1000 * (time.perf_counter() - start)
        found = store.documents().search(question["question"], k=DEPTH)
        failed = []
        if [(hit.id, hit.score) for hit in hits] != [(hit.id, hit.score) for hit in found]:
            failed.append("search")
        failed += _failed_times(memory, question, asked_at)
    ranked = list(dict.fromkeys(hit.fact.metadata["session"] for hit in hits))
    return Outcome(question["question_type"], _scores(question, ranked), tuple(failed), len(facts), took)


def _failed_times(memory: Memory, question: Mapping[str, Any], asked_at: datetime) -> Iterator[str]:
    then = memory.recall(question["question"], k=DEPTH, as_of=asked_at)
    if any(hit.fact.valid_from is None or hit.fact.valid_from > asked_at for hit in then):
        yield "future"
    held = zip(question["haystack_session_ids"], question["haystack_dates"], strict=True)
    evidence = [(moment(date), id_) for id_, date in held if id_ in question["answer_session_ids"]]
    if evidence:
        newest, _ = max(evidence)
        just_before = int(newest.timestamp() * 1000) - 1
        gone = {id_ for date, id_ in evidence if date == newest}
        earlier = memory.recall(question["question"], k=DEPTH, as_of=just_before)
        if any(hit.fact.metadata["session"] in gone and hit.fact.valid_from == newest for hit in earlier):
            yield "before"


def _scores(question: Mapping[str, Any], ranked: Sequence[str]) -> dict[str, float]:
    wanted = set(question["answer_session_ids"])
    if not wanted or question["question_id"].endswith("_abs"):
        return {}
    judge = {"recall_any": any, "recall_all": all}
    return {
        f"{name}@{k}": float(judge[name](session in ranked[:k] for session in wanted)) for name, k in CUTS
    }


def report(outcomes: Sequence[Outcome], *, sampled: bool) -> list[str]:
    """Return the lines of the result: scores by type, checks, cost, and what may be concluded."""
    names = [f"{name}@{k}" for name, k in CUTS]
    kinds = sorted({outcome.kind for outcome in outcomes})
    told = [f"| type | scored | {' | '.join(names)} |", f"| {' | '.join(['---'] * (2 + len(names)))} |"]
    for kind in (*kinds, None):
        rows = [o.scores for o in outcomes if o.scores and kind in (None, o.kind)]
        if rows:
            means = (f"{sum(row[name] for row in rows) / len(rows):.3f}" for name in names)
            told.append(f"| {kind or '(all)'} | {len(rows)} | {' | '.join(means)} |")
    failures = Counter(name for outcome in outcomes for name in outcome.failed)
    told += ["", *(f"check {name}: {failures[name]} of {len(outcomes)} questions failed" for name in CHECKS)]
    times = sorted(outcome.milliseconds for outcome in outcomes)
    told.append(
        f"milliseconds per recall of {DEPTH} turns: p50 {times[len(times) // 2]:.2f}, "
        f"p95 {times[int(len(times) * 0.95)]:.2f}; facts in all: {sum(o.facts for o in outcomes)}"
    )
    return [*told, "", *honesty(sum(bool(o.scores) for o in outcomes), sampled=sampled)]


def honesty(scored: int, *, sampled: bool) -> list[str]:
    """Return what the figures are and are not."""
    told = [
        "No id of a held-out part was read: questions are taken in the order of the file, whatever their ids.",
        "Answers and evidence were read after the recall and for scoring only.",
        "No value was tuned on this file; the configuration is the default one.",
    ]
    if sampled or scored < SAMPLE_SMALL:
        told.append(
            f"This is a sanity check on {scored} scored questions, not a result: so small a sample shows that it "
            "works, not how well."
        )
    return told


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--sample", type=int, help="only the first so many questions")
    parser.add_argument("--out", type=Path, help="write the report here too")
    given = parser.parse_args()
    questions = read(given.file)
    chosen = questions[: given.sample]
    outcomes = []
    for number, question in enumerate(chosen, 1):
        outcomes.append(ask(question))
        if sys.stderr.isatty():
            print(f"\r{number} of {len(chosen)}", end="", file=sys.stderr, flush=True)
    if not outcomes:
        raise SystemExit("there is no question to ask")
    command = f"command: python -m bench.longmemeval {' '.join(sys.argv[1:])}"
    lines = ["# LongMemEval", "", describe(Path.cwd()), "", command, ""]
    lines += report(outcomes, sampled=len(chosen) < len(questions))
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
