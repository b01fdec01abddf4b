"""Late interaction: does it pay to order the best candidates again by the likeness of single words?

    python -m bench.rerank CONVERSATIONS.zip --model FOLDER --cache FOLDER
    python -m bench.rerank CONVERSATIONS.zip --model FOLDER --out bench/results/rerank.md

Recall by words (in context, on conversations), by words and the static table, and by words and MiniLM's sentence
vectors; each as it is, and with its first 50 ordered again by MaxSim (see bench/late_interaction.py). Two kinds of
vectors of word pieces: those that the model gives in context, and those of its table alone. On LoCoMo conversations
(categories 1 to 4) and on our own sets: `paraphrases`, and `multilingual` to see what an English model harms. The
dev halves only. Milliseconds are those of re-ordering alone, the texts' vectors being kept.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.late_interaction import MiniLM, Reranker, TokenVectors
from bench.locomo import ADVERSARIAL, DEPTH, conversations
from bench.machine import describe
from bench.own_sets import scenario
from bench.quality import Row, Told, gain, mean
from perdure import Hit, Memory, NewFact
from perdure.embedders.static import StaticEmbedder
from perdure.evaluation.metrics import score
from perdure.evaluation.scenario import Step

LOCOMO = "LoCoMo"
SETS = (LOCOMO, "paraphrases", "multilingual")
TOPS = (50, 100)
SHOWN = ("R@5", "R@10", "nDCG@10", "MRR")


class Asked(NamedTuple):
    """A question of any set: its text, group, the ids that answer it, and the options of recall it comes with."""

    text: str
    category: int
    wanted: frozenset[str]
    options: Mapping[str, Any]


class Set(NamedTuple):
    """Facts by principal, and the questions to each; `options` go with every recall."""

    name: str
    facts: Mapping[str, Sequence[NewFact]]
    questions: Mapping[str, Sequence[Asked]]
    options: Mapping[str, Any]


def locomo(path: Path) -> Set:
    told = list(conversations(path))
    questions = {
        one.name: [
            Asked(q.text, q.category, frozenset(f"{one.name}/{turn}" for turn in q.evidence), {})
            for q in one.questions
            if q.category != ADVERSARIAL
        ]
        for one in told
    }
    return Set(LOCOMO, {one.name: one.facts for one in told}, questions, {"context": True})


def own_set(name: str) -> Set:
    """Return the dev half of a set of ours; categories are numbered as they appear, from 1."""
    told = scenario(name, "dev")
    facts = [fact for entry in told.entries if isinstance(entry, Step) for fact in entry.facts]
    cases = [case for case in told.cases if case.expect]
    numbers = {group: place for place, group in enumerate(dict.fromkeys(c.category for c in cases), 1)}
    asked = [Asked(c.query, numbers[c.category], frozenset(c.expect or ()), dict(c.options)) for c in cases]
    return Set(name, {name: facts}, {name: asked}, {})


class Way(NamedTuple):
    """A recall: its name, and the embedder that its memory has (None: words alone)."""

    name: str
    embedder: Any


def answers(told: Set, way: Way, rerankers: Mapping[str, Reranker]) -> dict[str, list[Row]]:
    """Return the rows of a recall as it is (`as it is`), and re-ordered by each of the rerankers."""
    found: dict[str, list[Row]] = {"as it is": [], **{name: [] for name in rerankers}}
    store = Told(way.embedder)
    for principal, facts in told.facts.items():
        memory = store.memory(principal, facts)
        for reranker in rerankers.values():
            reranker.learn(fact.text for fact in facts)
        for question in told.questions[principal]:
            hits = recalled(memory, question, {**told.options, **store.options(question.text)})
            candidates = [(hit.id, hit.fact.text, hit.score) for hit in hits]
            found["as it is"].append(row(question, [hit.id for hit in hits], 0.0))
            for name, reranker in rerankers.items():
                start = time.perf_counter()
                ordered = reranker.order(question.text, candidates)
                found[name].append(row(question, ordered, 1000 * (time.perf_counter() - start)))
    return found


def recalled(memory: Memory, question: Asked, options: Mapping[str, Any]) -> list[Hit]:
    """Return the candidates: enough for the deepest re-ordering, whatever k the question comes with."""
    told: dict[str, Any] = {**options, **question.options, "k": max(DEPTH, *TOPS)}
    return memory.recall(question.text, **told)


def row(question: Asked, ranked: Sequence[str], milliseconds: float) -> Row:
    general = score(ranked, sorted(question.wanted))
    return Row(question.category, {name: general[name] for name in SHOWN}, milliseconds)


def lines_of(told: Set, ways: Sequence[Way], rerankers: Mapping[str, Reranker]) -> list[str]:
    """Return the table of one set: each way as it is and re-ordered, with what the re-ordering gained."""
    head = ["recall", "order", *SHOWN, "R@10 gained by re-ordering", "nDCG@10 gained", "ms p50", "ms p95"]
    lines = [f"\n## {told.name}\n", f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    for way in ways:
        found = answers(told, way, rerankers)
        plain = found.pop("as it is")
        lines.append(_line(way.name, "as it is", plain, ("", "", "", "")))
        for name, rows in found.items():
            cuts = statistics.quantiles((one.milliseconds for one in rows), n=20)
            gained = (str(gain(plain, rows, metric)) for metric in ("R@10", "nDCG@10"))
            lines.append(_line(way.name, name, rows, (*gained, f"{cuts[9]:.1f}", f"{cuts[18]:.1f}")))
        print(f"{told.name}: {way.name} is done", file=sys.stderr, flush=True)
    return lines


def _line(way: str, order: str, rows: Sequence[Row], rest: Sequence[str]) -> str:
    shown = (f"{mean(rows, metric):.1f}" for metric in SHOWN)
    return f"| {way} | {order} | {' | '.join([*shown, *rest])} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an archive of conversations")
    parser.add_argument(
        "--model", type=Path, required=True, help="a folder with the files of all-MiniLM-L6-v2"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="which to run; all by default")
    parser.add_argument(
        "--cache", type=Path, help="a folder to keep the texts' vectors in; they tell the texts"
    )
    parser.add_argument("--out", type=Path, help="write the report here too")
    given = parser.parse_args()
    model = MiniLM(given.model)
    context = TokenVectors("in context", model.in_context)
    rerankers = {f"in context, first {top}": Reranker(context, top=top) for top in TOPS}
    rerankers |= {
        f"table alone, first {TOPS[0]}": Reranker(TokenVectors("table alone", model.alone), top=TOPS[0])
    }
    deepest = rerankers[f"in context, first {TOPS[-1]}"]
    for reranker in rerankers.values():
        if reranker.vectors is context:
            reranker.share(deepest)
    kept = None if given.cache is None else given.cache / "pieces.npz"
    if kept is not None:
        deepest.load(kept)
    ways = (
        Way("words", None),
        Way("words and static table", StaticEmbedder()),
        Way("words and MiniLM", model),
    )
    lines = ["# Re-ranking by late interaction\n", describe(Path.cwd())]
    for name in given.sets:
        told = locomo(given.file) if name == LOCOMO else own_set(name)
        lines += lines_of(told, ways, rerankers)
    lines.append(
        f"\nThe vectors in context take {deepest.bytes_per_text():,.0f} bytes a text, as half floats."
    )
    if kept is not None:
        deepest.save(kept)
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
