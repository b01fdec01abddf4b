"""Facts that change, end, turn out wrong or arrive late, and what holds at each moment by a rule of our own.

What a case expects is worked out here from the few rules that the documentation gives, by looking at every fact of
a story; no code of the package has a part in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Plain = dict[str, Any]

DAY = 86_400_000
BEGIN = 1_262_304_000_000  # 2010-01-01
CASES = 8  # of each story
DAWN = -(10**17)

CITIES = ("Paris", "Berlin", "Lyon", "Oslo", "Rome", "Lisbon", "Vienna", "Prague", "Dublin", "Turin")
FIRMS = ("Acme", "Globex", "Initech", "Umbrella", "Hooli", "Stark", "Wonka", "Tyrell")
DRINKS = ("coffee", "tea", "cocoa", "cider", "lemonade", "milk")
INSTRUMENTS = ("cello", "piano", "oboe", "harp", "banjo", "flute")


@dataclass
class Told:
    """A fact of a story as the rule sees it. Times are milliseconds."""

    id: str
    number: int
    told_at: int
    subject: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    effective: int = 0
    below: dict[str, int] = field(default_factory=dict)  # id of what it stands over -> from when on
    ends: list[tuple[int, int]] = field(default_factory=list)  # (at, told at)
    forgotten: bool = False


class Story:
    """What is told of one name, in steps, and what holds of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.facts: dict[str, Told] = {}
        self.steps: list[Plain] = []
        self.moments: set[int] = set()

    def remember(self, at: int, text: str, **fields: Any) -> str:
        """Tell a fact at a moment; `supersedes`, `subject` and the times are as a fact has them."""
        id_ = self._next_id()
        supersedes = fields.pop("supersedes", [])
        plain = {"id": id_, "text": f"{self.name} {text}", "entities": [self.name], **fields}
        if supersedes:
            plain["supersedes"] = supersedes
        self.steps.append({"clock": at, "remember": plain})
        begins = [fields.get("validFrom"), fields.get("eventTime"), at]
        effective = next(moment for moment in begins if moment is not None)
        told = Told(
            id_, len(self.facts), at, fields.get("subject"), fields.get("validFrom"), fields.get("validTo")
        )
        told.effective = effective
        told.below = dict.fromkeys(supersedes, effective)
        self.facts[id_] = told
        self.moments |= {m for m in (at, effective, fields.get("validTo")) if m is not None}
        return id_

    def correct(self, at: int, old: str, text: str) -> str:
        """Put a right fact in a wrong one's place, for the whole time of that one."""
        id_, wrong = self._next_id(), self.facts[old]
        arguments = {"id": old, "newText": f"{self.name} {text}", "newId": id_}
        self.steps.append({"clock": at, "correct": arguments})
        right = Told(
            id_, len(self.facts), at, wrong.subject, wrong.valid_from, wrong.valid_to, wrong.effective
        )
        right.ends = list(wrong.ends)
        right.below = dict(wrong.below)
        for other in self.facts.values():
            if old in other.below:
                other.below[id_] = other.below[old]
        right.below[old] = wrong.effective if wrong.valid_from is not None else DAWN
        self.facts[id_] = right
        self.moments.add(at)
        return id_

    def end(self, at: int, id_: str, when: int) -> None:
        self.steps.append({"clock": at, "end": {"id": id_, "at": when}})
        self.facts[id_].ends.append((when, at))
        self.moments |= {at, when}

    def retract(self, at: int, id_: str) -> None:
        self.steps.append({"clock": at, "retract": {"id": id_}})
        self.facts[id_].ends.append((DAWN, at))
        self.moments.add(at)

    def forget(self, at: int, id_: str) -> None:
        """Forget a fact. What it stood over is then below what stood over it."""
        self.steps.append({"clock": at, "forget": {"ids": [id_]}})
        gone = self.facts[id_]
        for upper in self.facts.values():
            if id_ in upper.below:
                del upper.below[id_]
                for lower in gone.below:
                    upper.below.setdefault(lower, upper.effective)
        gone.forgotten = True
        self.moments.add(at)

    def standing(self, as_of: int, known_at: int | None) -> dict[str, bool]:
        """Return the facts that are known then, and whether each holds."""
        known = [
            fact
            for fact in self.facts.values()
            if not fact.forgotten and (known_at is None or fact.told_at <= known_at)
        ]
        return {fact.id: self._holds(fact, known, as_of, known_at) for fact in known}

    @staticmethod
    def _holds(fact: Told, known: list[Told], as_of: int, known_at: int | None) -> bool:
        for other in known:
            if other.below.get(fact.id, as_of + 1) <= as_of:
                return False
            # Of one subject that holds which began last; of those that began together, the one told last.
            later = (other.effective, other.number) > (fact.effective, fact.number)
            if (
                fact.subject is not None
                and other.subject == fact.subject
                and later
                and other.effective <= as_of
            ):
                return False
        if fact.valid_from is not None and as_of < fact.valid_from:
            return False
        closes = [at for at, told_at in fact.ends if known_at is None or told_at <= known_at]
        closes += [] if fact.valid_to is None else [fact.valid_to]
        return all(as_of < close for close in closes)

    def _next_id(self) -> str:
        return f"{self.name.lower()}-{len(self.facts) + 1}"


Teller = Callable[[Story, random.Random, int], None]


def replacement(story: Story, draw: random.Random, start: int) -> None:
    at = start
    for city in draw.sample(CITIES, draw.randint(3, 4)):
        story.remember(at + _days(draw, 0, 9), f"lives in {city}", subject=f"{story.name}/city", validFrom=at)
        at += _days(draw, 90, 400)


def polarity(story: Story, draw: random.Random, start: int) -> None:
    drink, at, subject = draw.choice(DRINKS), start, f"{story.name}/taste"
    for says in ("likes {}", "no longer likes {}", "likes {} again"):
        story.remember(at + _days(draw, 0, 5), says.format(drink), subject=subject, validFrom=at)
        at += _days(draw, 60, 300)


def retraction(story: Story, draw: random.Random, start: int) -> None:
    first, second = draw.sample(FIRMS, 2)
    wrong = story.remember(start, f"works at {first}", validFrom=start - _days(draw, 30, 90))
    story.remember(start + DAY, f"works at {second}", validFrom=start - _days(draw, 5, 20))
    story.retract(start + _days(draw, 20, 60), wrong)


def partly(story: Story, draw: random.Random, start: int) -> None:
    """One telling says two things; later each of them is told by itself, and one of them has changed."""
    firm, (old, new), (left, played) = draw.choice(FIRMS), draw.sample(CITIES, 2), draw.sample(INSTRUMENTS, 2)
    both = story.remember(start, f"works at {firm} in {old}", validFrom=start)
    story.remember(start + DAY, f"plays the {played}", validFrom=start)
    story.remember(start + DAY, f"once played the {left}", validFrom=start, validTo=start + 40 * DAY)
    moved = start + _days(draw, 100, 300)
    for text in (f"works at {firm}", f"works in {new}"):
        story.remember(moved + 3 * DAY, text, validFrom=moved, supersedes=[both])


def bounded(story: Story, draw: random.Random, start: int) -> None:
    at = start
    for city in draw.sample(CITIES, 3):
        until = at + _days(draw, 10, 60)
        story.remember(at - _days(draw, 1, 30), f"is on a visit to {city}", validFrom=at, validTo=until)
        at = until + draw.choice((-5 * DAY, 0, 20 * DAY))  # overlapping, touching, apart


def correction(story: Story, draw: random.Random, start: int) -> None:
    wrong, right, other = draw.sample(CITIES, 3)
    subject = f"{story.name}/city"
    first = story.remember(start, f"lives in {wrong}", subject=subject, validFrom=start - 100 * DAY)
    if draw.random() < 0.5:  # the mistake is history already when it is corrected
        story.remember(start + 50 * DAY, f"lives in {other}", subject=subject, validFrom=start + 40 * DAY)
    second = story.correct(start + _days(draw, 60, 90), first, f"lives in {right}")
    if draw.random() < 0.5:
        story.correct(start + _days(draw, 100, 120), second, f"lives in the centre of {right}")


def undated_correction(story: Story, draw: random.Random, start: int) -> None:
    wrong, right, other = draw.sample(INSTRUMENTS, 3)
    first = story.remember(start, f"plays the {wrong}")
    story.remember(start + 2 * DAY, f"sells a {other}", eventTime=start - 30 * DAY)
    story.correct(start + _days(draw, 5, 50), first, f"plays the {right}")


def late_arrival(story: Story, draw: random.Random, start: int) -> None:
    first, between, last = draw.sample(CITIES, 3)
    subject = f"{story.name}/city"
    story.remember(start, f"lives in {first}", subject=subject, validFrom=start - 500 * DAY)
    story.remember(start + 10 * DAY, f"lives in {last}", subject=subject, validFrom=start)
    begun = start - _days(draw, 100, 400)
    story.remember(start + _days(draw, 50, 500), f"lives in {between}", subject=subject, validFrom=begun)


def out_of_order(story: Story, draw: random.Random, start: int) -> None:
    told = list(enumerate(draw.sample(CITIES, 4)))
    draw.shuffle(told)
    for place, (turn, city) in enumerate(told):
        begins = start + turn * 100 * DAY
        fields: Plain = {"subject": f"{story.name}/city", "validFrom": begins}
        if draw.random() < 0.3:
            fields["validTo"] = begins + 70 * DAY
        story.remember(start + (400 + 10 * place) * DAY, f"lives in {city}", **fields)


def same_sentence(story: Story, draw: random.Random, start: int) -> None:
    firm, at = draw.choice(FIRMS), start
    for _ in range(2):
        until = at + _days(draw, 50, 100)
        story.remember(at + _days(draw, 0, 20), f"works at {firm}", validFrom=at, validTo=until)
        at = until + _days(draw, 50, 100)


def branches(story: Story, draw: random.Random, start: int) -> None:
    old, *new = draw.sample(CITIES, 3)
    below = story.remember(start, f"has an office in {old}", validFrom=start)
    for city in new:
        begins = start + _days(draw, 30, 300)
        story.remember(start + 310 * DAY, f"has an office in {city}", validFrom=begins, supersedes=[below])


def ended(story: Story, draw: random.Random, start: int) -> None:
    firm, city = draw.choice(FIRMS), draw.choice(CITIES)
    job = story.remember(start, f"works at {firm}", validFrom=start)
    home = story.remember(start + DAY, f"lives in {city}", validFrom=start, validTo=start + 300 * DAY)
    told = start + _days(draw, 60, 90)
    story.end(told, job, told + draw.choice((-20 * DAY, 0, 30 * DAY)))
    story.end(told + DAY, home, start + 200 * DAY)


def events(story: Story, draw: random.Random, start: int) -> None:
    """An event opens no interval: until the next one takes effect, both are said."""
    at, subject = start, f"{story.name}/visit"
    for city in draw.sample(CITIES, 3):
        story.remember(at + _days(draw, 1, 9), f"was seen in {city}", subject=subject, eventTime=at)
        at += _days(draw, 30, 90)


def undated(story: Story, draw: random.Random, start: int) -> None:
    at = start
    for city in draw.sample(CITIES, 3):
        story.remember(at, f"lives in {city}", subject=f"{story.name}/city")
        at += _days(draw, 30, 90)


def forgotten(story: Story, draw: random.Random, start: int) -> None:
    """What is forgotten is seen by nobody, and what it stood between is joined."""
    at, ids = start, []
    for city in draw.sample(CITIES, 4):
        ids.append(story.remember(at, f"lives in {city}", subject=f"{story.name}/city", validFrom=at))
        at += _days(draw, 60, 100)
    for gone in draw.sample(ids, draw.randint(1, 2)):
        story.forget(at, gone)
        at += DAY


def forgotten_link(story: Story, draw: random.Random, start: int) -> None:
    first, middle, last = draw.sample(FIRMS, 3)
    a = story.remember(start, f"works at {first}", validFrom=start)
    b = story.remember(start + 50 * DAY, f"works at {middle}", validFrom=start + 50 * DAY, supersedes=[a])
    c = story.remember(start + 90 * DAY, f"works at {last}", validFrom=start + 90 * DAY, supersedes=[b])
    story.forget(start + 100 * DAY, draw.choice((b, c)))


TELLERS: dict[str, Teller] = {
    "replacement": replacement,
    "polarity": polarity,
    "retraction": retraction,
    "partial supersession": partly,
    "bounded validity": bounded,
    "correction": correction,
    "correction, undated": undated_correction,
    "late arrival": late_arrival,
    "out of order": out_of_order,
    "same sentence twice": same_sentence,
    "branches": branches,
    "ended": ended,
    "events": events,
    "undated": undated,
    "forgotten": forgotten,
    "forgotten, explicit": forgotten_link,
}


def entries(half: str, stories: int, seed: int = 20) -> Iterator[Plain]:
    """Yield the scenario: every step of every story in the order of the clock, then the cases.

    Args:
        half: `dev` or `test`; no story is in both.
        stories: how many of each kind.
    """
    told: list[tuple[str, Story, random.Random]] = []
    names = _names(random.Random(f"{half} names {seed}"), set("aei") if half == "dev" else set("ou"))
    for kind, teller in TELLERS.items():
        for number in range(stories):
            draw = random.Random(f"{half} {kind} {number} {seed}")
            story = Story(next(names))
            teller(story, draw, BEGIN + draw.randrange(3_000) * DAY)
            told.append((kind, story, draw))
    steps = [step for _, story, _ in told for step in story.steps]
    yield from sorted(steps, key=lambda step: step["clock"])
    now = max(step["clock"] for step in steps) + DAY
    yield {"clock": now}
    for kind, story, draw in told:
        yield from _cases(kind, story, draw, now)


def _cases(kind: str, story: Story, draw: random.Random, now: int) -> Iterator[Plain]:
    edges = sorted(story.moments)
    instants = sorted({edge + shift for edge in edges for shift in (-1, 0, 5 * DAY)})
    tellings: list[int | None] = [None, *sorted({step["clock"] for step in story.steps})]
    for number in range(CASES):
        as_of = None if number == 0 else draw.choice(instants)
        known_at = None if number < 2 else draw.choice(tellings)
        if known_at is not None:
            known_at -= draw.randrange(2)
        history = draw.choice(("current", "current", "current", "all", "historical"))
        standing = story.standing(now if as_of is None else as_of, known_at)
        wanted = [
            id_ for id_, holds in standing.items() if history == "all" or holds == (history == "current")
        ]
        options: Plain = {"asOf": as_of, "knownAt": known_at, "history": history, "k": 50}
        query = story.name
        if draw.random() < 0.5:
            options["entity"], query = story.name, f"What do we know of {story.name}?"
        yield {
            "query": query,
            "category": kind,
            "options": {name: value for name, value in options.items() if value is not None},
            "expect": wanted,
            "absent": [id_ for id_ in story.facts if id_ not in wanted],
        }


def _names(draw: random.Random, vowels: set[str]) -> Iterator[str]:
    """Yield distinct names of people that nobody has; the halves end in other letters."""
    seen = set()
    while True:
        syllables = ("".join((draw.choice("bdfgklmnprtvz"), draw.choice("aeiou"))) for _ in range(3))
        name = "".join(syllables).capitalize() + draw.choice("kmpt") + draw.choice(sorted(vowels))
        if name not in seen:
            seen.add(name)
            yield name


def _days(draw: random.Random, least: int, most: int) -> int:
    return draw.randint(least, most) * DAY
