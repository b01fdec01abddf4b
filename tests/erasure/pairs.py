"""Pairs of stores: one holds secrets for a while and forgets them, the other never held any.

A history is a list of steps; each has a call for the first store and one for the second, either of which may be
missing. What a step keeps, both stores are told; what is secret, the first alone is told. Secrets weigh in the
same words, tags, times and documents as what is kept, but take no part in a decision about it: no kept fact
supersedes or corrects one, they fill no slot that a policy compares, and no kept call finds one by its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from perdure import ManualClock, MemoryConfig, PerdureError, Store
from properties import strategies
from properties.memory_run import CONFIGS, NOW, QUERY, everything, listed
from properties.strategies import IDS, ONE_IN, TEXTS, USUAL, Call, Chooser

SECRET = bytes(range(32))
WORD = "quokka"  # in every secret text and in no other
SECRET_IDS = ("S0", "S1", "S2", "S3", "S4")
DOCUMENT_IDS = ("doc 0", "doc 1", "doc 2")
SCOPES: tuple[dict[str, Any], ...] = (
    {"subject": "s"},
    {"entity": "Ann"},
    {"tags": ["red"]},
    {"kind": "semantic"},
    {"filter": {"team": 1}},
    {"pinned": True},
)


class Step(NamedTuple):
    """One step of a history: what the first store is called with, and what the second."""

    first: Call | None
    second: Call | None


class History(NamedTuple):
    """How both memories are configured, and what happens to them."""

    config: MemoryConfig
    steps: tuple[Step, ...]


def a_history(random: Chooser, size: int = 16) -> History:
    """Choose a history of `size` steps after its planting."""
    config = random.choice(CONFIGS)
    linked = random.choice(ONE_IN[3])  # then secrets supersede kept facts
    calls = [kept(call, random, linked=linked) for call in _planting(random)]
    steps = [Step(call, call) for call in calls]
    for _ in range(size):
        if random.choice((True, False)):
            steps.append(_secret_step(random, config, linked=linked))
        else:
            call = kept(_kept_call(random), random, linked=linked)
            steps.append(Step(call, call))
    place = random.choice(range(3))
    steps.insert(min(place, len(steps)), Step(secret(random, config, linked=False), None))
    return History(config, tuple(steps))


def _planting(random: Chooser) -> list[Call]:
    return [
        ("remember", strategies.a_telling(random) | {"id": id_, "supersedes": [], "reassert": False})
        for id_ in USUAL
        if random.choice((True, True, False))
    ]


def _kept_call(random: Chooser) -> Call:
    if random.choice(ONE_IN[6]):
        return _document_call(random, DOCUMENT_IDS, "")
    return strategies.a_call(random)


def kept(call: Call, random: Chooser, *, linked: bool) -> Call:
    """Return a call for both stores in a form that no secret decides about."""
    name, told = call[0], dict(call[1])
    if name == "advance":  # the passing of a secret is recorded, so a clock that went back would show it
        told["milliseconds"] = abs(told["milliseconds"])
    if name == "correct" and "id" not in told:  # words might find a secret as well
        told = {"new_text": told["new_text"], "id": random.choice(USUAL)}
    if name == "correct" and linked:
        for field in ("subject", "valid_from", "event_time", "valid_to"):
            told.pop(field, None)
    if name == "forget":
        if linked:
            told.pop("include_chain", None)
        if "ids" not in told:  # a block would outlive the secrets that the scope finds
            told.pop("block", None)
    if (
        not linked
        and name in ("remember", "remember_many", "annotate", "end", "put")
        and random.choice(ONE_IN[4])
    ):
        told["idempotency_key"] = random.choice(("key 0", "key 1", "key 2", "key 3"))
    return name, told


def _secret_step(random: Chooser, config: MemoryConfig, *, linked: bool) -> Step:
    if random.choice(ONE_IN[6]):
        # A secret in the place of what was there is, for whoever never held it, the end of what was there.
        id_ = random.choice(USUAL)
        told = {"text": f"{random.choice(TEXTS)} {WORD}", "id": id_}
        return Step(("replace and forget", told), ("forget", {"ids": [id_]}))
    return Step(secret(random, config, linked=linked), None)


def secret(random: Chooser, config: MemoryConfig, *, linked: bool) -> Call:
    """Choose a call about secrets alone."""
    id_ = random.choice(SECRET_IDS)
    kind = random.choice((
        *("remember",) * 6, "remember_many", "document", "correct", "end", "retract", "annotate", "hide",
        "restore", "forget", "forget",
    ))  # fmt: skip
    if kind == "document":
        return _document_call(random, SECRET_IDS, f" {WORD}")
    if kind == "remember":
        told = _secret_telling(random, config, id_, linked=linked)
        if random.choice(ONE_IN[4]):
            told["idempotency_key"] = f"secret {random.choice(range(3))}"
        return "remember", told
    if kind == "remember_many":
        ids = (id_, random.choice(SECRET_IDS))
        return kind, {"facts": [_secret_telling(random, config, one, linked=False) for one in ids]}
    if kind == "correct":
        return kind, {"id": id_, "new_text": _secret_text(random), "new_id": random.choice(SECRET_IDS)}
    if kind == "annotate":
        return kind, {"id": id_, **strategies.an_annotation(random)}
    if kind == "restore":
        return kind, {"ids": list(SECRET_IDS)}
    if kind in ("hide", "forget"):
        chain = not linked and random.choice((True, False))
        return "forget", {"ids": [id_], "soft": kind == "hide", "include_chain": chain}
    return kind, {"id": id_, "reason": WORD}


def _secret_text(random: Chooser) -> str:
    return f"{random.choice(TEXTS)} {WORD}"


def _secret_telling(random: Chooser, config: MemoryConfig, id_: str, *, linked: bool) -> dict[str, Any]:
    told = strategies.a_telling(random, ids=(id_,)) | {"text": _secret_text(random)}
    if config.supersession != "explicit":
        told["subject"] = random.choice(("secret", "other secret"))
    told["supersedes"] = [random.choice((*SECRET_IDS, *(USUAL if linked else ())))]
    return told if random.choice((True, False)) else told | {"supersedes": []}


def _document_call(random: Chooser, ids: tuple[str, ...], addition: str) -> Call:
    id_ = random.choice(ids)
    if random.choice(ONE_IN[4]):
        return "delete", {"id": id_}
    text = random.choice(TEXTS) + addition
    if random.choice(ONE_IN[4]):
        text = f"{text} " * 5_000  # of two units
    return "put", {"id": id_, "text": text, "metadata": random.choice(strategies.METADATA)}


class Side:
    """One store of a pair, its clock, and the ids that are to be forgotten in it."""

    def __init__(self, path: Path | str, config: MemoryConfig) -> None:
        self.clock = ManualClock(NOW)
        self.path, self.config = path, config
        self.open()

    def open(self) -> None:
        """Open the store, again after `store.close()`."""
        self.store = Store.open(self.path, clock=self.clock, secret=SECRET, durability="normal")
        self.memory = self.store.memory(config=self.config)
        self.documents = self.store.documents(config=self.config)

    def run(self, call: Call | None) -> Any:
        """Return the reply, or the code of the error."""
        if call is None:
            return None
        name, told = call
        if name == "advance":
            return self.clock.advance(told["milliseconds"])
        if name == "replace and forget":
            self.run(("remember", told))
            return self.run(("forget", {"ids": [told["id"]]}))
        try:
            return getattr(self.documents if name in ("put", "delete") else self.memory, name)(**told)
        except PerdureError as error:
            return error.code


class Pair:
    """Two stores that live through a history; afterwards the first has forgotten every secret."""

    def __init__(self, first: Path | str, second: Path | str, history: History) -> None:
        self.sides = Side(first, history.config), Side(second, history.config)
        self.secrets = 0  # how many secret calls the first store took
        self.calls = sum(step.second is not None for step in history.steps)
        self.compared = self.files = self.bytes = 0  # how much was compared so far
        for step in history.steps:
            reply = self.sides[0].run(step.first)
            self.secrets += step.second is None and not isinstance(reply, str)
            self.sides[1].run(step.second)
        self.sides[0].memory.forget(ids=SECRET_IDS)
        assert self.sides[0].memory.recall(WORD, history="all") == []

    def purge(self) -> None:
        """Purge both stores."""
        for side in self.sides:
            side.store.purge()

    def reopen(self) -> None:
        """Close both stores and open them again."""
        self.close()
        for side in self.sides:
            side.open()

    def differences(self, *, purged: bool) -> list[str]:
        """Return the names of the answers that differ; what only a purge makes equal is asked for if purged."""
        first, second = (dict(answers(side, purged=purged)) for side in self.sides)
        self.compared += len(second)
        return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]

    def differing_files(self) -> list[str]:
        """Return the names of the files of both closed, purged stores whose bytes differ."""
        first, second = (kept_bytes(Path(side.path)) for side in self.sides)
        self.files += len(second)
        self.bytes += sum(map(len, second.values()))
        return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]

    def close(self) -> None:
        for side in self.sides:
            side.store.close()


def answers(side: Side, *, purged: bool) -> Iterator[tuple[str, Any]]:
    """Yield all that the reads of a store show, by name: scores as bits, pages with all that is on them."""
    memory, documents = side.memory, side.documents
    changes, *others = everything(memory)
    yield from ((f"everything {place}", answer) for place, answer in enumerate(others))
    for as_of in (None, 2, 99, 102):
        for known_at in (None, 100, 103):
            times: dict[str, Any] = {"as_of": as_of, "known_at": known_at}
            for scope in SCOPES:
                hits = memory.recall(QUERY, k=1_000, history="all", **times, **scope)
                yield f"recall {times} {scope}", [(hit.id, hit.status, hit.score.hex()) for hit in hits]
                yield f"list {times} {scope}", listed(memory, **times, **scope)
    for order in ("ingest", "-event", "importance", "id"):
        yield f"pages {order}", _pages(memory, order)
    for id_ in IDS:
        yield f"history {id_}", memory.history(id_)
    for query in (QUERY, "alpha", WORD):
        hits = documents.search(query, k=1_000)
        yield f"documents {query}", [(hit.id, hit.unit, hit.score.hex()) for hit in hits]
    yield "documents", documents.list(limit=1_000).items
    yield "facts", side.store.stats().facts
    if purged:
        # Until then a memory that only ever held secrets keeps its name.
        yield "spaces", side.store.spaces()
        yield "changes", changes
        stats = side.store.stats()
        yield "stats", (stats.spaces, stats.records)


def _pages(memory: Any, order: str) -> list[Any]:
    pages, cursor = [], None
    while True:
        page = memory.list(order=order, limit=3, cursor=cursor)
        pages.append((page.items, page.total, page.has_more))
        cursor = page.cursor
        if cursor is None:
            return pages


def kept_bytes(path: Path) -> dict[str, bytes]:
    """Return the bytes of a closed store's files, by their names without the generation's number.

    Locks and caches are left out: they may differ between equal stores.
    """
    return {re.sub(r"\d+", "N", file.name, count=1): file.read_bytes() for file in sorted(path.glob("gen-*"))}
