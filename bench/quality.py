"""How much of a question's evidence comes back, and what each step of retrieval gives: LoCoMo conversations.

    python -m bench.quality CONVERSATIONS.zip
    python -m bench.quality CONVERSATIONS.zip --embedder perdure.embedders.static:StaticEmbedder
    python -m bench.quality CONVERSATIONS.zip --model FOLDER --cache FOLDER    MiniLM, and re-ranking by its words
    python -m bench.quality CONVERSATIONS.zip --min context:R@10=77            ends with 1 where it is less
    python -m bench.quality CONVERSATIONS.zip --sensitivity                    other weights than the defaults instead

Facts are as `perdure import` makes them (see bench/locomo.py); each conversation is a principal of its own, and a
question is asked verbatim. The steps, each on top of the ones before:

    reference   plain BM25 beside the product: `speaker: text`, lower-cased words, no stems, k1 1.2, b 0.75
    analysis    recall with its defaults: english.v1, k1 0.9, b 0.4, and the date and the picture in the text
    neighbours  the words of the turns around count too, less (Context with neighbours alone)
    actor       and turns of the speaker whom the question names count more
    context     and turns of the time that it names: recall(context=True)
    hybrid      the same fused with the vectors of --embedder
    minilm      the same fused with the sentence vectors of --model
    reranked    the first 50 of `context` ordered again by the likeness of single words (--model)

R@k: the share of a question's evidence among the first k turns. nDCG@10: gain 1 a turn of the evidence. MRR: over
the first 50. s-hit@k: whether a session with evidence is among the first k sessions, in the order in which they
come back. All in percent, averaged over questions. Questions whose evidence names no turn are left out. `1-4` are
all categories but the adversarial one.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench.late_interaction import MiniLM, Reranker, TokenVectors
from bench.locomo import ADVERSARIAL, CATEGORIES, DEPTH, KS, Conversation, conversations, turn_id
from bench.machine import describe
from perdure import Memory, NewFact, Store
from perdure.evaluation.metrics import score
from perdure.model.context import Context
from perdure.search import context as context_search
from perdure.search import fusion

METRICS = (*(f"R@{k}" for k in KS), "nDCG@10", "MRR", "s-hit@1", "s-hit@5")
SESSION_KS = (1, 5)
ROUNDS, SEED = 10_000, 0
REFERENCE_K1, REFERENCE_B = 1.2, 0.75  # the textbook's

BASE = dict.fromkeys(("hybrid", "minilm", "reranked"), "context")  # these are not on top of each other

Ask = Callable[[str], list[str]]
"""From a question to at most DEPTH ids of turns, best first."""


class Step(NamedTuple):
    """One way to answer. `prepare` takes a conversation in and returns how to ask it."""

    key: str
    prepare: Callable[[Conversation], Ask]


class Row(NamedTuple):
    """One question: its category, its metrics (0 to 1) and the milliseconds that its answer took."""

    category: int
    scores: dict[str, float]
    milliseconds: float


def measured(step: Step, told: Sequence[Conversation]) -> list[Row]:
    """Ask every question of every conversation; the first of each once before, untimed."""
    rows = []
    for conversation in told:
        ask = step.prepare(conversation)
        session_of = {turn_id(fact): fact.metadata["session"] for fact in conversation.facts if fact.metadata}
        for warm_up in conversation.questions[:1]:
            ask(warm_up.text)
        for question in conversation.questions:
            start = time.perf_counter()
            ranked = ask(question.text)
            took = 1000 * (time.perf_counter() - start)
            rows.append(Row(question.category, scores(ranked, question.evidence, session_of), took))
    return rows


def scores(
    ranked: Sequence[str], evidence: frozenset[str], session_of: Mapping[str, Any]
) -> dict[str, float]:
    """Return the metrics of one answer, in the order of METRICS."""
    found = {f"R@{k}": len(evidence.intersection(ranked[:k])) / len(evidence) for k in KS}
    general = score(ranked, sorted(evidence))
    found |= {name: general[name] for name in ("nDCG@10", "MRR")}
    sessions = list(dict.fromkeys(session_of[turn] for turn in ranked))
    wanted = {session_of[turn] for turn in evidence}
    return found | {f"s-hit@{k}": float(not wanted.isdisjoint(sessions[:k])) for k in SESSION_KS}


class Reference:
    """Plain BM25 over one conversation, as anybody would write it: what the product is measured against."""

    def __init__(self, conversation: Conversation) -> None:
        words = [Counter(_words(fact.text)) for fact in conversation.facts]
        self._ids = [turn_id(fact) for fact in conversation.facts]
        lengths = [sum(counts.values()) for counts in words]
        average = sum(lengths) / max(1, len(lengths))
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, (counts, length) in enumerate(zip(words, lengths, strict=True)):
            norm = REFERENCE_K1 * (1 - REFERENCE_B + REFERENCE_B * length / average)
            for word, count in counts.items():
                postings[word].append((place, count / (count + norm)))
        self._postings = postings

    def ask(self, question: str) -> list[str]:
        totals = [0.0] * len(self._ids)
        for word in _words(question):
            found = self._postings.get(word, [])
            idf = math.log(1 + (len(self._ids) - len(found) + 0.5) / (len(found) + 0.5))
            for place, share in found:
                totals[place] += idf * share
        order = sorted(range(len(totals)), key=lambda place: (-totals[place], place))
        return [self._ids[place] for place in order[:DEPTH] if totals[place] > 0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class Told:
    """An ephemeral store that the conversations are told to, each when it is first asked for.

    Vectors are given by hand, not by a configuration: an embedder that fails then ends the run, while a memory
    would go on with words alone.
    """

    def __init__(self, embedder: Any = None) -> None:
        self._store, self._embedder = Store.open(":memory:"), embedder
        self._known: set[str] = set()

    def memory(self, principal: str, facts: Sequence[NewFact]) -> Memory:
        """Return the memory of a principal, told these facts when it is first asked for."""
        memory = self._store.memory(principal=principal)
        if principal not in self._known:
            memory.remember_many(with_vectors(facts, self._embedder))
            self._known.add(principal)
        return memory

    def options(self, question: str) -> dict[str, Any]:
        """Return the option of recall that brings the question's vector; none where there is none."""
        vector = None if self._embedder is None else self._embedder.embed_query(question)
        return {} if vector is None or not vector.any() else {"embedding": vector.tolist()}

    def step(self, key: str, **options: Any) -> Step:
        """Return recall with these options as a step."""

        def prepare(conversation: Conversation) -> Ask:
            memory = self.memory(conversation.name, conversation.facts)

            def ask(question: str) -> list[str]:
                hits = memory.recall(question, k=DEPTH, **self.options(question), **options)
                return [turn_id(hit.fact) for hit in hits]

            return ask

        return Step(key, prepare)

    def reranked(self, key: str, reranker: Reranker, **options: Any) -> Step:
        """Return recall whose best candidates are ordered again."""

        def prepare(conversation: Conversation) -> Ask:
            memory = self.memory(conversation.name, conversation.facts)
            reranker.learn(fact.text for fact in conversation.facts)

            def ask(question: str) -> list[str]:
                hits = memory.recall(question, k=DEPTH, **self.options(question), **options)
                candidates = [(turn_id(hit.fact), hit.fact.text, hit.score) for hit in hits]
                return reranker.order(question, candidates)

            return ask

        return Step(key, prepare)


def with_vectors(facts: Sequence[NewFact], embedder: Any) -> list[NewFact]:
    """Return the facts with their vectors; as they are without an embedder, or where it has nothing to say."""
    if embedder is None:
        return list(facts)
    vectors = embedder.embed_documents([fact.text for fact in facts])
    pairs = zip(facts, vectors, strict=True)
    return [
        msgspec.structs.replace(fact, embedding=row.tolist()) if row.any() else fact for fact, row in pairs
    ]


def steps(path: Path, embedder: Any, model: MiniLM | None, kept: Path | None) -> Iterator[Step]:
    """Yield the steps that can be measured with what there is, in their order."""
    bare = {one.name: one for one in conversations(path, frozenset({"date", "blip_caption", "query"}))}
    yield Step("reference", lambda conversation: Reference(bare[conversation.name]).ask)
    plain = Told()
    yield plain.step("analysis")
    yield plain.step("neighbours", context=Context(actor=1.0, period=1.0))
    yield plain.step("actor", context=Context(period=1.0))
    yield plain.step("context", context=True)
    if embedder is not None:
        yield Told(embedder).step("hybrid", context=True)
    if model is not None:
        yield Told(model).step("minilm", context=True)
        reranker = Reranker(TokenVectors("in context", model.in_context))
        if kept is not None:
            reranker.load(kept)
        yield plain.reranked("reranked", reranker, context=True)
        if kept is not None:
            reranker.save(kept)


def variants(embedder: Any) -> Iterator[Step]:
    """Yield recall in context with one weight at a time beside its default, to see what it hangs on."""
    plain = Told()
    yield plain.step("defaults", context=True)
    for weights in ((0.4, 0.2), (0.6, 0.3), (0.7, 0.35), (0.5, 0.4), (0.5, 0.25, 0.12)):
        yield plain.step(f"neighbours {', '.join(map(str, weights))}", context=Context(neighbours=weights))
    for actor in (1.1, 1.5, 2.0):
        yield plain.step(f"actor {actor}", context=Context(actor=actor))
    for period in (1.25, 2.0, 3.0):
        yield plain.step(f"period {period}", context=Context(period=period))
    for days in (0, 7, 90):
        with _set(context_search, "PERIOD_TAIL_DAYS", days):
            yield plain.step(f"period until {days} days later", context=True)
    if embedder is not None:
        vectors = Told(embedder)
        for semantic in (0.2, 0.3, 0.4, 0.5):
            weights_ = {"lexical": round(1 - semantic, 1), "semantic": semantic}
            yield vectors.step(f"semantic {semantic}", context=True, weights=weights_)
        yield vectors.step("reciprocal ranks", context=True, fusion="rrf")
        equal = {"lexical": 1.0, "semantic": 1.0}
        yield vectors.step("reciprocal ranks, equal weights", context=True, fusion="rrf", weights=equal)
        with _set(fusion, "RRF_K", 60):
            yield vectors.step("reciprocal ranks from 60", context=True, fusion="rrf")
            yield vectors.step(
                "reciprocal ranks from 60, equal weights", context=True, fusion="rrf", weights=equal
            )


@contextmanager
def _set(module: ModuleType, constant: str, value: int) -> Iterator[None]:
    """Give a constant that no option reaches another value for a while."""
    before = getattr(module, constant)
    setattr(module, constant, value)
    try:
        yield
    finally:
        setattr(module, constant, before)


def scored(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of categories 1 to 4."""
    return [row for row in rows if row.category != ADVERSARIAL]


def mean(rows: Sequence[Row], metric: str) -> float:
    """Return a metric's mean in percent; nan where there are no rows."""
    return 100 * math.fsum(row.scores[metric] for row in rows) / len(rows) if rows else math.nan


class Gain(NamedTuple):
    """Points in percent, second minus first, and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def gain(first: Sequence[Row], second: Sequence[Row], metric: str) -> Gain:
    """Return what the second way gained over the first on the same questions: a paired bootstrap, seeded."""
    pairs = zip(first, second, strict=True)
    differences = np.array([100 * (b.scores[metric] - a.scores[metric]) for a, b in pairs])
    drawn = np.random.default_rng(SEED).integers(len(differences), size=(ROUNDS, len(differences)))
    means = differences[drawn].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Gain(float(differences.mean()), float(low), float(high))


def step_table(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return a line per step: the metrics over categories 1 to 4, R@10 of each category, and the cost."""
    head = ["step", *METRICS, *(f"R@10 of {category}" for category in CATEGORIES), "all", "ms p50", "ms p95"]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    for key, rows in found.items():
        times = sorted(row.milliseconds for row in rows)
        cells = [mean(scored(rows), metric) for metric in METRICS]
        cells += [mean([row for row in rows if row.category == one], "R@10") for one in CATEGORIES]
        shown = [f"{cell:.1f}" for cell in (*cells, mean(rows, "R@10"))]
        shown += [f"{times[len(times) // 2]:.2f}", f"{times[int(len(times) * 0.95)]:.2f}"]
        lines.append(f"| {' | '.join([key, *shown])} |")
    return lines


def category_table(rows: Sequence[Row]) -> list[str]:
    """Return a line per category, then 1 to 4 and all."""
    groups = {
        f"{one} {name}": [row for row in rows if row.category == one] for one, name in CATEGORIES.items()
    }
    groups |= {"1-4": scored(rows), "all": list(rows)}
    lines = [f"| questions | n | {' | '.join(METRICS)} |", f"| {' | '.join(['---'] * (2 + len(METRICS)))} |"]
    for name, group in groups.items():
        if group:
            shown = (f"{mean(group, metric):.1f}" for metric in METRICS)
            lines.append(f"| {name} | {len(group)} | {' | '.join(shown)} |")
    return lines


def gain_table(found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return a line per step: what it gained over the first and over the one that it is on top of (1 to 4)."""
    first, *rest = found
    lines = [f"| step | on top of | R@10 over {first} | R@10 over that | nDCG@10 over that |"]
    lines.append(f"| {' | '.join(['---'] * 5)} |")
    for before, key in zip(found, rest, strict=False):
        base = BASE.get(key, before) if first == "reference" else first
        start, earlier, now = (scored(found[name]) for name in (first, base, key))
        told = (gain(start, now, "R@10"), gain(earlier, now, "R@10"), gain(earlier, now, "nDCG@10"))
        lines.append(f"| {key} | {base} | {' | '.join(map(str, told))} |")
    return lines


class Gate(NamedTuple):
    """A bar: a metric over categories 1 to 4 that a step (None: the last) must reach, in percent."""

    step: str | None
    metric: str
    least: float


def read_gate(told: str) -> Gate:
    """Return the bar that `[STEP:]METRIC=VALUE` says. Raises ArgumentTypeError for any other form."""
    match = re.fullmatch(r"(?:(?P<step>\w+):)?(?P<metric>[^=:]+)=(?P<least>\d+(?:\.\d+)?)", told)
    if match is None or match["metric"] not in METRICS:
        raise argparse.ArgumentTypeError(
            f"{told!r} must be [STEP:]METRIC=VALUE; metrics: {', '.join(METRICS)}"
        )
    return Gate(match["step"], match["metric"], float(match["least"]))


def missed(found: Mapping[str, Sequence[Row]], gates: Sequence[Gate]) -> list[str]:
    """Return a line for each bar that is not reached, a step that was not measured included."""
    lines = []
    for gate in gates:
        key = gate.step or list(found)[-1]
        if key not in found:
            lines.append(f"{key} was not measured; measured: {', '.join(found)}")
            continue
        reached = mean(scored(found[key]), gate.metric)
        if not reached >= gate.least:
            lines.append(f"{key}: {gate.metric} is {reached:.1f}, less than {gate.least:g}")
    return lines


def main() -> int:
    given = _arguments()
    told = list(conversations(given.file))
    model = None if given.model is None else MiniLM(given.model)
    kept = None if given.cache is None else given.cache / "pieces.npz"
    found: dict[str, list[Row]] = {}
    embedder = _made(given.embedder)
    chosen = variants(embedder) if given.sensitivity else steps(given.file, embedder, model, kept)
    for step in chosen:
        found[step.key] = measured(step, told)
        print(f"{step.key}: R@10 {mean(scored(found[step.key]), 'R@10'):.1f}", file=sys.stderr, flush=True)
    lines = report(told, found)
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    failed = missed(found, given.min)
    print("".join(f"\nTOO LOW  {line}" for line in failed), file=sys.stderr)
    return int(bool(failed))


def report(told: Sequence[Conversation], found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the lines of the result file: of the steps, or of the variants of the defaults."""
    turns, asked = sum(len(one.facts) for one in told), sum(len(one.questions) for one in told)
    lines = [
        "# Evidence recall on LoCoMo conversations\n",
        describe(Path.cwd()),
        f"\n{len(told)} conversations ({', '.join(one.name for one in told)}), {turns:,} turns, {asked:,} questions\n",
        "Categories 1 to 4 unless a column says otherwise; percent.\n",
        *step_table(found),
        f"\nGains: points, with 95 % intervals of a paired bootstrap ({ROUNDS:,} rounds, seed {SEED}).\n",
        *gain_table(found),
    ]
    for key in dict.fromkeys(key for key in ("context", list(found)[-1]) if "context" in found):
        lines += [f"\n## {key}\n", *category_table(found[key])]
    return lines


def _made(told: str | None) -> Any:
    """Return the embedder that `module:Name` makes."""
    if told is None:
        return None
    module, _, name = told.partition(":")
    return getattr(import_module(module), name)()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an archive of conversations")
    parser.add_argument("--embedder", help="module:Name of an embedder that needs no arguments")
    parser.add_argument("--model", type=Path, help="a folder with the files of all-MiniLM-L6-v2")
    parser.add_argument(
        "--cache", type=Path, help="a folder to keep the texts' vectors in; they tell the texts"
    )
    parser.add_argument("--min", type=read_gate, action="append", default=[], help="[STEP:]METRIC=VALUE")
    parser.add_argument("--sensitivity", action="store_true", help="other weights instead of the steps")
    parser.add_argument("--out", type=Path, help="write the report here too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
