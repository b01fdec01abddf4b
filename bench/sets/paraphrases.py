"""Questions in other words than their facts, among facts that share words and mean something else.

It is made for judging search by meaning and what re-ranks: words alone must fail on the first two categories and
win the third, which shows what a configuration gives up for what it gains.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from bench.sets.concepts import CONCEPTS, NAMED

Plain = dict[str, Any]

FRAMES = ("{}", "What is known about {}?", "Anything noted on {}?", "Find what was said of {}")
FILLERS = (
    "The parking permit is in the glove box",
    "Turn the valve clockwise to close it",
    "The minutes are filed under M",
    "Blue folders are for contracts",
    "The spare fuse is behind the panel",
    "Label every crate before it is stacked",
    "The north gate is painted each year",
    "A copy of the map hangs in the hall",
)
NAMES_EACH = 6  # facts of one wording; the question names one of them


def entries(half: str, repeats: int, seed: int = 20) -> Iterator[Plain]:
    """Yield the scenario: all facts, then the cases. No concept is in both halves.

    Args:
        half: `dev` or `test`.
        repeats: in how many of the frames each question is asked, at most 4; more only adds names and fillers.
    """
    draw = random.Random(f"{half} {seed}")
    facts: list[Plain] = []
    cases: list[Plain] = []
    for number, (fact, question, near) in enumerate(CONCEPTS):
        if number % 2 != (half == "test"):
            continue
        wanted, alike = f"concept-{number}", f"near-{number}"
        facts += [{"id": wanted, "text": fact}, {"id": alike, "text": near}]
        for frame in FRAMES[:repeats]:
            cases.append({"query": frame.format(question), "category": "paraphrase", "expect": [wanted]})
        whole = {"query": f"{question}: {_some_words(fact)}", "category": "paraphrase, one word in common"}
        cases.append({**whole, "expect": [wanted]})
    for wording, pair in enumerate(NAMED):
        for name in _names(draw, NAMES_EACH * max(1, repeats)):
            told = [f"name-{wording}-{name}-{form}" for form in range(2)]
            facts += [
                {"id": id_, "text": form.format(name=name)} for id_, form in zip(told, pair, strict=True)
            ]
            if draw.random() < 0.5:
                cases.append({"query": f"what about {name}", "category": "name", "expect": told})
    for number in range(repeats):
        for place, text in enumerate(FILLERS):
            facts.append({"id": f"filler-{number}-{place}", "text": f"{text} ({number + 1})"})
    draw.shuffle(facts)
    yield {"remember": facts}
    yield from cases


def _some_words(fact: str) -> str:
    return max(fact.split(), key=len)


def _names(draw: random.Random, count: int) -> list[str]:
    numbers = draw.sample(range(1_000, 9_999), count)
    return [f"{draw.choice('KLMRT')}{number}" for number in numbers]
