"""How much of a question's evidence a recall of conversations brings back, beside plain recalls of the same turns.

    python -m bench.conversation CONVERSATIONS.zip
    python -m bench.conversation CONVERSATIONS.zip --embedder perdure.embedders.static:StaticEmbedder

LoCoMo conversations (see bench/locomo.py): each session is a session here, its turns in order; the speaker who comes
first in a conversation is the user, the other the assistant, and a turn's text is what `perdure import` makes of it. Each
conversation is a principal of its own, and a question is asked verbatim.

    lexical      Memory.recall of the same turns as facts, by words
    hybrid       the same by words and meaning (--embedder)
    in context   Memory.recall(context=True) of the same, with both
    anchors      the turns that ConversationMemory.recall finds, in their order: R@10 is of the first ten
    sources      all turns that it brings, with what the anchors rest on: the share of the evidence among them
    as many turns as …   the share that Memory.recall(context=True) finds with as many results as that answer has turns

Percent, categories 1 to 4, averaged over questions. The last lines are milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.locomo import ADVERSARIAL, CATEGORIES, Conversation, conversations, turn_id
from bench.machine import describe
from bench.quality import _made
from perdure import MemoryConfig, Store
from perdure.conversation.conversation import ConversationMemory
from perdure.model.conversation import (
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
    ConversationTurn,
)

K = 10
WIDE = ConversationContextLimits(aggregation_only=False)
Rows = dict[str, dict[int, list[float]]]


def inputs(conversation: Conversation) -> list[ConversationInput]:
    """Return a conversation's sessions; a turn's source id is its own."""
    sessions: dict[Any, list[ConversationTurn]] = defaultdict(list)
    user = conversation.facts[0].source.actor
    for fact in conversation.facts:
        role = "user" if fact.source.actor == user else "assistant"
        sessions[fact.metadata["session"]].append(
            ConversationTurn(
                source_id=turn_id(fact), role=role, text=fact.text, observation_time=fact.event_time
            )
        )
    return [
        ConversationInput(session_id=f"session {name}", version="v1", turns=tuple(turns))
        for name, turns in sessions.items()
    ]


def plain_facts(conversation: Conversation) -> list[Any]:
    """Return the same turns as facts: in the same sources, by user or assistant, without times of their own."""
    user = conversation.facts[0].source.actor
    return [
        msgspec.structs.replace(
            fact,
            event_time=None,
            source=msgspec.structs.replace(
                fact.source, actor="user" if fact.source.actor == user else "assistant"
            ),
        )
        for fact in conversation.facts
    ]


def of_sources(context: Any) -> list[str]:
    return [source.source_id for source in context.sources]


def of_anchors(context: Any) -> list[str]:
    named = {source.uri: source.source_id for source in context.sources}
    return [named[anchor.source] for anchor in context.anchors]


class Run:
    """Figures of one pass over all questions."""

    def __init__(self) -> None:
        self.shares: Rows = defaultdict(lambda: defaultdict(list))
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self.sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.dropped = 0

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        found = work()
        self.milliseconds[name].append(1000 * (time.perf_counter() - start))
        return found

    def note(self, name: str, question: Any, turns: Iterable[str]) -> None:
        share = len(question.evidence.intersection(turns)) / len(question.evidence)
        self.shares[name][question.category].append(share)


def measure(told: Sequence[Conversation], embedder: Any) -> Run:
    run, config = Run(), MemoryConfig() if embedder is None else MemoryConfig(embedder=embedder)
    with Store.open(":memory:", config=config) as store:
        for conversation in told:
            plain = store.memory(conversation.name)
            plain.remember_many(plain_facts(conversation))
            talks = store.conversation(conversation.name)
            for one in inputs(conversation):
                run.timed("remember a session", partial(talks.remember, one))
            talks.recall("a first question")
            for question in conversation.questions:
                if question.category != ADVERSARIAL:
                    _ask(run, plain, talks, question, hybrid=embedder is not None)
    return run


def _ask(run: Run, plain: Any, talks: ConversationMemory, question: Any, *, hybrid: bool) -> None:
    ways: dict[str, dict[str, Any]] = {"lexical": {"mode": "lexical"}}
    ways["lexical in context"] = {"mode": "lexical", "context": True}
    if hybrid:
        ways["hybrid"] = {}
        ways["hybrid in context"] = {"context": True}
    for name, options in ways.items():
        hits = run.timed(name, lambda options=options: plain.recall(question.text, k=K, **options))
        run.note(f"{name}, R@10", question, [turn_id(hit.fact) for hit in hits])
    context = run.timed("conversation recall", lambda: talks.recall(question.text))
    run.dropped += len(context.dropped)
    run.note("anchors, R@10", question, of_anchors(context)[:K])
    run.note("all anchors (up to 20)", question, of_anchors(context))
    half = talks.recall(question.text, ConversationRecallOptions(k=K // 2))
    run.note("sources of the first 10 anchors", question, of_sources(half))
    run.note("sources", question, of_sources(context))
    wide = run.timed("expansion", lambda: talks.expand(context, WIDE))
    run.note("sources, expanded without the gate", question, of_sources(wide))
    for name, one in (("ten anchors", half), ("usual", context), ("expanded", wide)):
        run.sizes[name].append((len(one.sources), one.byte_count))
        hits = plain.recall(question.text, k=max(1, len(one.sources)), context=True)
        run.note(
            f"as many turns as {name}, recalled in context", question, [turn_id(hit.fact) for hit in hits]
        )


def report(run: Run, told: Sequence[Conversation]) -> list[str]:
    turns, asked = sum(len(one.facts) for one in told), len(run.milliseconds["lexical"])
    categories = [one for one in CATEGORIES if one != ADVERSARIAL]
    lines = [
        describe(Path.cwd()),
        f"\n{len(told)} conversations, {turns:,} turns, {asked:,} questions\n",
        f"| what | 1-4 | {' | '.join(f'{one} {CATEGORIES[one]}' for one in categories)} |",
        f"|{' --- |' * (2 + len(categories))}",
    ]
    for name, rows in run.shares.items():
        every = [share for one in categories for share in rows[one]]
        cells = [every, *(rows[one] for one in categories)]
        lines.append(f"| {name} | {' | '.join(f'{100 * statistics.fmean(cell):.1f}' for cell in cells)} |")
    lines += ["\n| answer | turns, mean | bytes, mean |", "| --- | --- | --- |"]
    for name, sizes in run.sizes.items():
        means = [statistics.fmean(column) for column in zip(*sizes, strict=True)]
        lines.append(f"| {name} | {means[0]:.1f} | {means[1]:,.0f} |")
    lines.append(f"\n{run.dropped / asked:.2f} found turns a question were dropped for want of room.")
    lines += ["\n| operation | ms p50 | ms p95 |", "| --- | --- | --- |"]
    for name, times in run.milliseconds.items():
        cuts = statistics.quantiles(times, n=20)
        lines.append(f"| {name} | {cuts[9]:.2f} | {cuts[18]:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an archive of LoCoMo conversations")
    parser.add_argument("--embedder", help="module:Name of an embedder that needs no arguments")
    given = parser.parse_args()
    told = list(conversations(given.file))
    lines = report(measure(told, _made(given.embedder)), told)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
