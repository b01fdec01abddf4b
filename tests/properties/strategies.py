"""Random writes to a memory, small enough that ids, texts and times meet again and again.

A call is a pair of a method's name and its arguments. One generator serves Hypothesis and a seeded
`random.Random`: it asks for nothing but choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Call = tuple[str, dict[str, Any]]

NOW = 100  # where clocks start, in ms
IDS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
USUAL = IDS[:5]  # spoken of most often, so that calls meet facts that are there
TEXTS = (
    "alpha",
    "alpha beta",
    "alpha beta gamma",
    "Alpha  BETA",
    "alpha gamma delta",
    "alpha alpha epsilon",
    "beta delta",
    "gamma gamma alpha beta",
    "epsilon",
)
SUBJECTS = (None, "s", "s", "s", "s", "o")
TIMES = (None, None, 1, 2, 3, 5, 8, 98, 101, 104, 110)
TAGS = ((), (), ("red",), ("red", "blue"), ("blue",))
KINDS = (None, None, "semantic", "episodic")
METADATA = (
    None,
    None,
    {"team": 1},
    {"team": 1.0, "x": None},
    {"team": "1"},
    {"deep": {"b": [1, True], "a": 0}},
)
SCOPES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("subject", ("s", "o", "none")),
    ("entity", ("Ann", "Bob")),
    ("ingested_before", (NOW, 103, 107, 1_000)),
    ("event_before", (2, 5, 101)),
    ("matching", ({"team": 1}, {"x": None}, {"deep": {"a": 0, "b": [1, True]}}, {"team": True})),
    ("tag", ("red", "blue")),
    ("text", ("alpha beta", " alpha   gamma delta ")),
    ("containing", ("BETA", "delta", "alpha")),
    ("kind", ("semantic", "working")),
    ("all", (True,)),
)
ONE_IN = {n: (True,) + (False,) * (n - 1) for n in (2, 3, 4, 6, 12)}


class Chooser(Protocol):
    """Draws one member; `random.Random` is one."""

    def choice(self, seq: Sequence[T], /) -> T: ...


class Drawn:
    """Lets Hypothesis choose."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def choice(self, seq: Sequence[T], /) -> T:
        return self._draw(st.sampled_from(seq))  # type: ignore[no-any-return]


def a_telling(random: Chooser, *, ids: Sequence[str | None] = (*IDS, None, None)) -> dict[str, Any]:
    """The fields of a fact, sometimes with an interval that is empty or a link to nothing."""
    told: dict[str, Any] = {
        "text": random.choice(TEXTS),
        "id": random.choice(ids),
        "subject": random.choice(SUBJECTS),
        "valid_from": random.choice(TIMES),
        "event_time": random.choice(TIMES),
    }
    if random.choice(ONE_IN[4]):
        told["valid_to"] = random.choice((2, 8, 104, 110))
    if random.choice(ONE_IN[2]):
        told["supersedes"] = [random.choice(USUAL) for _ in range(random.choice((1, 1, 2)))]
    if random.choice(ONE_IN[4]):
        told["entities"] = random.choice((["Ann"], ["Bob", "Ann"], ["Ann", "Bob", "Ann"]))
        told["metadata"] = random.choice(METADATA)
    if random.choice(ONE_IN[4]):
        told |= an_annotation(random)
    if told["id"] is None and random.choice(ONE_IN[3]):
        told["reassert"] = True
    return {name: value for name, value in told.items() if value is not None}


def an_annotation(random: Chooser) -> dict[str, Any]:
    return {
        "tags": list(random.choice(TAGS)),
        "kind": random.choice(KINDS),
        "importance": random.choice((None, 0.25, 1.0)),
        "pinned": random.choice((False, False, True)),
    }


def remember(random: Chooser) -> Call:
    return "remember", a_telling(random)


def remember_many(random: Chooser) -> Call:
    return "remember_many", {"facts": [a_telling(random) for _ in range(random.choice((1, 2, 2, 3)))]}


def an_id(random: Chooser) -> str:
    return random.choice((*IDS, *USUAL, *USUAL))


def correct(random: Chooser) -> Call:
    told: dict[str, Any] = {"new_text": random.choice(TEXTS)}
    name = random.choice(("id", "id", "id", "text", "containing"))
    told[name] = an_id(random) if name == "id" else random.choice(("alpha beta", "gamma", "epsilon"))
    if random.choice(ONE_IN[2]):
        told["new_id"] = random.choice(IDS)
    if random.choice(ONE_IN[4]):
        field = random.choice(("subject", "valid_from", "event_time", "valid_to"))
        told[field] = random.choice(("s", "o")) if field == "subject" else random.choice(TIMES)
    if random.choice(ONE_IN[6]):
        told["metadata"] = random.choice(METADATA)
        told["tags"] = list(random.choice(TAGS))
    return "correct", told


def end(random: Chooser) -> Call:
    return "end", {
        "id": an_id(random),
        "at": random.choice(TIMES),
        "reason": random.choice((None, "sold")),
    }


def retract(random: Chooser) -> Call:
    return "retract", {"id": an_id(random)}


def annotate(random: Chooser) -> Call:
    changes = an_annotation(random)
    if random.choice(ONE_IN[2]):
        changes = {"metadata": random.choice(METADATA)}
    return "annotate", {"id": an_id(random), **changes}


def forget(random: Chooser) -> Call:
    if not random.choice(ONE_IN[6]):
        scope: dict[str, Any] = {"ids": [an_id(random) for _ in range(random.choice((0, 1, 1, 1, 2)))]}
    else:
        name, values = random.choice(SCOPES)
        scope = {name: random.choice(values)}
    flags = {"include_chain": 6, "dry_run": 6, "soft": 2, "block": 12}
    return "forget", scope | {name: True for name, odds in flags.items() if random.choice(ONE_IN[odds])}


def restore(random: Chooser) -> Call:
    return "restore", {"ids": [an_id(random) for _ in range(random.choice((1, 2, 4)))]}


def unblock(random: Chooser) -> Call:
    return "unblock", {
        "ids": [random.choice(IDS), random.choice(IDS)],
        "texts": [random.choice(TEXTS), random.choice(TEXTS), "never told"],
    }


def advance(random: Chooser) -> Call:
    """The clock moves, sometimes backwards as the clock of another machine may."""
    return "advance", {"milliseconds": random.choice((0, 1, 1, 2, 3, -2))}


WRITES = (remember, remember_many, correct, end, retract, annotate, forget, restore, unblock)
OFTEN = (*(remember,) * 8, *(correct,) * 2, *(forget,) * 2, *(advance,) * 3, *WRITES)


def a_call(random: Chooser) -> Call:
    return random.choice(OFTEN)(random)


@st.composite
def calls(draw: Any, kind: Callable[[Chooser], Call] = a_call) -> Call:
    return kind(Drawn(draw))


def planting(random: Chooser) -> list[Call]:
    """Facts under the usual ids to begin with, so that later calls find something to act on."""
    facts = [
        {
            **a_telling(random),
            "id": id_,
            "subject": random.choice(("s", "s", "o")),
            "supersedes": [],
            "reassert": False,
        }
        for id_ in USUAL
        if random.choice((True, True, True, False))
    ]
    return [("remember", fact) for fact in facts]


@st.composite
def scripts(draw: Any, *, max_size: int = 20) -> list[Call]:
    return planting(Drawn(draw)) + draw(st.lists(calls(), min_size=4, max_size=max_size))
