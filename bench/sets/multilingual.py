"""Fifteen languages, emoji, and identifiers, each among facts that nearly match.

Search by words is not search across languages: each question is asked in the language of its fact. What is tried is
whether words of every script are found, also as people type them, and whether near misses stay behind.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from typing import Any

from bench.sets.languages import LANGUAGES, Language, Word

Plain = dict[str, Any]
Pair = tuple[
    str, list[str]
]  # what is asked, and texts: first the one that is meant, then those that nearly are

NEAR = 4


def version(draw: random.Random) -> Pair:
    a, b, c = draw.sample(range(2, 40), 3)
    near = [(a, b, c + 40), (b, a, c), (a, c, b), (a + 40, b, c)]
    product = draw.choice(("server", "client", "driver"))
    return f"release {a}.{b}.{c}", [
        f"The {product} runs release {x}.{y}.{z}" for x, y, z in ((a, b, c), *near)
    ]


def uuid(draw: random.Random) -> Pair:
    id_ = _uuid(draw)
    near = [_uuid(draw, keep=id_[: draw.randrange(4, 24)]) for _ in range(NEAR)]
    return id_.upper(), [f"Request {one} failed with a time-out" for one in (id_, *near)]


def mail(draw: random.Random) -> Pair:
    name, other = draw.sample(("ann", "lee", "kim", "max", "eva", "tom", "ida"), 2)
    firm, another = draw.sample(("acme", "globex", "hooli", "stark"), 2)
    told = [(name, other, firm, "com"), (other, name, firm, "com"), (name, other, another, "com")]
    told += [(name, other, firm, "org"), (name, other + "s", firm, "com")]
    texts = [f"Write to {a}.{b}@{c}.{d} about the invoice" for a, b, c, d in told]
    return f"{name}.{other}@{firm}.com", texts


def path(draw: random.Random) -> Pair:
    a, b, c, d = draw.sample(("log", "cache", "spool", "backup", "queue", "mail", "data"), 4)
    told = [
        f"/var/{a}/{b}/{c}.txt",
        f"/var/{b}/{a}/{c}.txt",
        f"/var/{a}/{b}/{d}.txt",
        f"/opt/{a}/{b}/{c}.txt",
    ]
    texts = [f"The disk is full because of {one}" for one in (*told, f"/var/{a}/{b}/{c}.gz")]
    return told[0], texts


def phone(draw: random.Random) -> Pair:
    digits = [_digits(draw, 6) for _ in range(NEAR + 1)]
    area = draw.choice(("30", "40", "89"))
    texts = [f"The plumber's number is +49 {area} {one[:3]} {one[3:]}" for one in digits]
    return f"+49 {area} {digits[0][:3]} {digits[0][3:]}", texts


def amount(draw: random.Random) -> Pair:
    numbers = draw.sample(range(1_000_000, 9_999_999), NEAR + 1)
    return str(numbers[0]), [f"The budget for the year is {number:,} euros" for number in numbers]


def date(draw: random.Random) -> Pair:
    day, month = draw.sample(range(1, 13), 2)
    year = draw.randrange(1990, 2030)
    told = [(year, month, day), (year, day, month), (year + 1, month, day), (year, month, day + 13)]
    return f"{year}-{month:02}-{day:02}", [
        f"The contract was signed on {y}-{m:02}-{d:02}" for y, m, d in told
    ]


def symbol(draw: random.Random) -> Pair:
    names = ["C++", "C#", "F#", ".NET", "C"]
    draw.shuffle(names)
    part = draw.choice(("parser", "scheduler", "renderer", "compiler"))
    return f"Which {part} is written in {names[0]}?", [f"The {part} is written in {name}" for name in names]


def snake(draw: random.Random) -> Pair:
    a, b, c, d = draw.sample(("max", "retry", "count", "delay", "queue", "batch", "limit", "worker"), 4)
    told = [f"{a}_{b}_{c}", f"{a}_{b}_{d}", f"{b}_{a}_{c}", f"{a}_{c}_{d}", f"{d}_{b}_{c}"]
    return told[0], [f"Set {one} in the settings of the service" for one in told]


def snake_parts(draw: random.Random) -> Pair:
    query, (meant, near, _, *others) = snake(draw)  # without the one that has the same parts
    return query.replace("_", " "), [meant, near, *others]


def camel(draw: random.Random) -> Pair:
    told = _camels(draw)
    return told[0].lower(), [f"The crash is in {one} as the trace shows" for one in told]


def camel_parts(draw: random.Random) -> Pair:
    told = _camels(draw)
    query = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in told[0])
    return query, [f"The crash is in {one} as the trace shows" for one in told]


def address(draw: random.Random) -> Pair:
    a, b = draw.sample(range(20, 250), 2)
    told = [f"10.0.{a}.{b}", f"10.0.{b}.{a}", f"10.1.{a}.{b}", f"10.0.{a}.{b + 1}", f"10.0.{a + 1}.{b}"]
    return told[0], [f"The printer answers at {one} on the office network" for one in told]


def code(draw: random.Random) -> Pair:
    prefix, other = draw.sample(("ERR", "NET", "SYS", "APP"), 2)
    first, *rest = draw.sample(range(1000, 9999), NEAR)
    texts = [f"{prefix}-{number} means that the licence is over" for number in (first, *rest)]
    return f"{prefix}-{first}", [*texts, f"{other}-{first} means that the licence is over"]


def hyphen(draw: random.Random) -> Pair:
    a, b, c = draw.sample(("left", "right", "double", "single", "short", "long"), 3)
    told = [f"{a}-handed", f"{b}-handed", f"{a}-sided", f"{c}-handed"]
    return f"{a} handed", [f"A {one} tool is in the drawer" for one in told]


def unit(draw: random.Random) -> Pair:
    number = draw.randrange(2, 90)
    told = [f"{number} GB/s", f"{number} MB/s", f"{number + 1} GB/s", f"{number} GB"]
    return told[0], [f"The link was measured at {one} at night" for one in told]


KINDS: dict[str, Callable[[random.Random], Pair]] = {
    "version": version,
    "UUID": uuid,
    "e-mail": mail,
    "path": path,
    "phone": phone,
    "amount": amount,
    "date": date,
    "symbol": symbol,
    "snake case": snake,
    "snake case, by parts": snake_parts,
    "camel case": camel,
    "camel case, by parts": camel_parts,
    "address": address,
    "code": code,
    "hyphen": hyphen,
    "unit": unit,
}


def entries(half: str, repeats: int, seed: int = 20) -> Iterator[Plain]:
    """Yield the scenario: all facts, then the cases.

    Args:
        half: `dev` or `test`. Things and places meet in one of the two only, and identifiers are drawn anew.
        repeats: how many shelves each thing and place has, and how many of each kind of identifier there are.
    """
    cases: list[Plain] = []
    for name, language in LANGUAGES.items():
        yield from _language(name, language, half, repeats, cases)
    for kind, make in KINDS.items():
        for number in range(repeats):
            draw = random.Random(f"{half} {kind} {number} {seed}")
            query, texts = make(draw)
            ids = [f"{kind}-{number}-{place}" for place in range(len(texts))]
            told = [
                {"id": id_, "text": text, "subject": f"{kind}-{number}"}
                for id_, text in zip(ids, texts, strict=True)
            ]
            draw.shuffle(told)
            yield {"remember": told}
            # Facts of another repeat may say the very same, so each is asked among its own.
            options = {"subject": f"{kind}-{number}", "k": 10}
            cases.append(
                {"query": query, "category": f"identifier: {kind}", "options": options, "expect": ids[:1]}
            )
    yield from cases


def _language(name: str, language: Language, half: str, repeats: int, cases: list[Plain]) -> Iterator[Plain]:
    """Tell every thing at every place: each fact has others beside it that share one of the two."""
    facts: list[Plain] = []
    for i, thing in enumerate(language.things):
        for j, place in enumerate(language.places):
            ids = [f"{name}-{i}-{j}-{shelf}" for shelf in range(1, repeats + 1)]
            for shelf, id_ in enumerate(ids, 1):
                text = language.fact.format(thing=_written(thing), place=_written(place), number=shelf)
                facts.append({"id": id_, "text": text, "tags": [name]})
            if (i + j) % 2 == (half == "test"):
                cases.append(_case(name, language.question, (_written(thing), _written(place)), ids))
                if not isinstance(thing, str) or not isinstance(place, str):
                    respelt = f"{name}, respelt"
                    cases.append(_case(respelt, language.question, (_typed(thing), _typed(place)), ids))
                other = dict(language.inflected).get(_written(thing))
                if other is not None:
                    cases.append(
                        _case(f"{name}, inflected", language.question, (other, _written(place)), ids)
                    )
    yield {"remember": facts}


def _case(category: str, question: str, words: tuple[str, str], ids: list[str]) -> Plain:
    query = question.format(thing=words[0], place=words[1])
    return {"query": query, "category": category, "options": {"k": max(10, len(ids))}, "expect": ids}


def _written(word: Word) -> str:
    return word if isinstance(word, str) else word[0]


def _typed(word: Word) -> str:
    return word if isinstance(word, str) else word[1]


def _camels(draw: random.Random) -> list[str]:
    a, b, c, d = draw.sample(("Parse", "Http", "Header", "Cookie", "Body", "Stream", "Token", "Frame"), 4)
    told = [a + b + c, a + b + d, d + b + c, a + d + c, b + d + a]
    return [one[0].lower() + one[1:] for one in told]


def _uuid(draw: random.Random, keep: str = "") -> str:
    digits = "".join(draw.choice("0123456789abcdef") for _ in range(32))
    whole = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return keep + whole[len(keep) :]


def _digits(draw: random.Random, count: int) -> str:
    return "".join(draw.choice(string.digits) for _ in range(count))
