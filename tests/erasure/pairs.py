"""Pairs of stores: one holds secrets for a while and forgets them, the other never held any.

A history is a list of steps; each has a call for the first store and one for the second, either of which may be
missing. What a step keeps, both stores are told; what is secret, the first alone is told. Secrets weigh in the
same words, tags, times, directions and documents as what is kept, but take no part in a decision about it: no kept
fact supersedes or corrects one, they fill no slot that a policy compares, and no kept call finds one by its words.
All vectors have one length, so that none is refused for a secret's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from erasure.governed_pairs import (
    GOVERNED,
    WORD,
    a_governed_call,
    forget_governed_secrets,
    governed_answers,
    planting,
    run_governed,
)
from erasure.scan import Hits, found
from perdure import ManualClock, MemoryConfig, PerdureError, Store
from perdure.embedders import HashingEmbedder
from properties import strategies
from properties.memory_run import CONFIGS, NOW, QUERY, everything, listed
from properties.strategies import IDS, ONE_IN, TEXTS, USUAL, Call, Chooser

SECRET = bytes(range(32))
DIMENSION = 8
EMBEDDER = HashingEmbedder(DIMENSION)
# Few, so that they meet again and tie; none is of unit length.
VECTORS = tuple([float(n * k % 7 - 2.5) for k in range(1, DIMENSION + 1)] for n in range(1, 6))
SECRET_IDS = ("S0", "S1", "S2", "S3", "S4")
DOCUMENT_IDS = ("doc 0", "doc 1", "doc 2")
TELLING = frozenset({"remember", "remember_many", "annotate", "end", "retract", "put", "delete", "advance"})
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
    is_governed: bool = False  # then there are nodes, conversations and sessions as well


def a_history(random: Chooser, size: int = 16) -> History:
    """Choose a history of `size` steps after its planting."""
    config = random.choice(CONFIGS)
    if random.choice(ONE_IN[2]):
        config = replace(config, embedder=EMBEDDER)
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


def a_governed_history(random: Chooser, size: int = 16) -> History:
    """Choose a history of which every other step is about nodes, conversations or sessions.

    What is kept of the others only tells and notes: what finds facts by what they are might find those of secret nodes,
    which refuse to be hidden.
    """
    config = random.choice(CONFIGS)
    steps = [Step(call, call) for call in planting()]
    for _ in range(size):
        is_secret = random.choice((True, False))
        if random.choice((True, True, False)):
            call = a_governed_call(random, is_secret=is_secret)
        elif is_secret:
            call = secret(random, config, linked=False)
        else:
            call = kept(_kept_call(random), random, linked=False)
            if call[0] not in TELLING:
                continue
        steps.append(Step(call, None if is_secret else call))
    return History(config, tuple(steps), is_governed=True)


def _planting(random: Chooser) -> list[Call]:
    fixed = {"supersedes": [], "reassert": False}
    return [
        with_vectors(("remember", strategies.a_telling(random) | {"id": id_} | fixed), random)
        for id_ in USUAL
        if random.choice((True, True, False))
    ]


def _kept_call(random: Chooser) -> Call:
    if random.choice(ONE_IN[6]):
        return _document_call(random, DOCUMENT_IDS, "")
    if random.choice(ONE_IN[12]):
        return random.choice(
            (("embed_missing", {}), ("reindex", {"embeddings": True}), ("reindex", {"b": 0.5}))
        )
    return with_vectors(strategies.a_call(random), random)


def with_vectors(call: Call, random: Chooser) -> Call:
    """Return the call with a vector for every other text."""
    name, told = call
    if name == "remember_many":
        return name, {"facts": [with_vectors(("remember", fact), random)[1] for fact in told["facts"]]}
    if name in ("remember", "correct") and random.choice(ONE_IN[2]):
        return name, told | {"embedding": random.choice(VECTORS)}
    return call


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
        told = {"text": f"{random.choice(TEXTS)} {WORD}", "id": id_, "embedding": random.choice(VECTORS)}
        return Step(("replace and forget", told), ("forget", {"ids": [id_]}))
    return Step(secret(random, config, linked=linked), None)


def secret(random: Chooser, config: MemoryConfig, *, linked: bool) -> Call:
    """Choose a call about secrets alone."""
    return with_vectors(_secret(random, config, linked=linked), random)


def _secret(random: Chooser, config: MemoryConfig, *, linked: bool) -> Call:
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
    text, units = random.choice(TEXTS) + addition, 1
    if random.choice(ONE_IN[4]):
        text, units = "filler " * 5_000 + text, 2
    told = {"id": id_, "text": text, "metadata": random.choice(strategies.METADATA)}
    if random.choice(ONE_IN[2]):
        told["embedding"] = [random.choice(VECTORS) for _ in range(units)]
    return "put", told


class Side:
    """One store of a pair, its clock, and the ids that are to be forgotten in it."""

    def __init__(self, path: Path | str, config: MemoryConfig, backend: str | None = None) -> None:
        self.clock = ManualClock(NOW)
        self.path, self.config, self.backend = path, config, backend
        self.open()

    def open(self) -> None:
        """Open the store, again after `store.close()`."""
        how = {} if self.backend is None else {"backend": self.backend}
        self.store = Store.open(self.path, clock=self.clock, secret=SECRET, durability="normal", **how)
        self.memory = self.store.memory(config=self.config)
        self.documents = self.store.documents(config=self.config)

    def run(self, call: Call | None) -> Any:
        """Return the reply, or the code of the error."""
        if call is None:
            return None
        name, told = call
        if name == "advance":
            return self.clock.advance(told["milliseconds"])
        if name in GOVERNED:
            return run_governed(self.store, call)
        if name == "replace and forget":
            self.run(("remember", told))
            return self.run(("forget", {"ids": [told["id"]]}))
        try:
            return getattr(self.documents if name in ("put", "delete") else self.memory, name)(**told)
        except PerdureError as error:
            return error.code


class Pair:
    """Two stores that live through a history; afterwards the first has forgotten every secret."""

    def __init__(
        self, first: Path | str, second: Path | str, history: History, backend: str | None = None
    ) -> None:
        self.is_governed = history.is_governed
        self.sides = Side(first, history.config, backend), Side(second, history.config, backend)
        self.secrets = 0  # how many secret calls the first store took
        self.calls = sum(step.second is not None for step in history.steps)
        self.compared = self.files = self.bytes = 0  # how much was compared so far
        for step in history.steps:
            reply = self.sides[0].run(step.first)
            self.secrets += step.second is None and not isinstance(reply, str)
            self.sides[1].run(step.second)
        self.sides[0].memory.forget(ids=SECRET_IDS)
        if history.is_governed:
            forget_governed_secrets(self.sides[0].store)
        assert self.sides[0].memory.recall(WORD, history="all", mode="lexical") == []

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
        first, second = (dict(self._answers(side, purged=purged)) for side in self.sides)
        self.compared += len(second)
        return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]

    def _answers(self, side: Side, *, purged: bool) -> Iterator[tuple[str, Any]]:
        yield from answers(side, purged=purged)
        if self.is_governed:
            yield from governed_answers(side.store, purged=purged)
            # Who did what when is the audit's to keep, of the forgotten too: as digests, which no scan finds.
            yield "what is wrong with the audit", side.store.verify_events()

    def traces(self) -> Hits:
        """Return which files of the first store, its audit's too, hold the word of the secrets."""
        forms = {
            "text": WORD.encode(),
            "UTF-16": WORD.encode("utf-16-le"),
            "hex": WORD.encode().hex().encode(),
        }
        return found(Path(self.sides[0].path), forms)

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
    yield from _answers_by_meaning(side)
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


def _answers_by_meaning(side: Side) -> Iterator[tuple[str, Any]]:
    memory, documents = side.memory, side.documents
    for place, vector in enumerate((VECTORS[0], [1.0] * DIMENSION)):
        for name, how in WAYS.items():
            told = {**how, "embedding": vector}
            for times in ({}, {"as_of": 2, "known_at": 103}):
                hits = memory.recall(QUERY, k=1_000, history="all", explain=not times, **told, **times)
                yield (
                    f"{name} {place} {times}",
                    [(h.id, h.status, h.score.hex(), h.explanation) for h in hits],
                )
            few = memory.recall(QUERY, k=2, **told)
            yield f"{name} {place} of two", [(hit.id, hit.score.hex()) for hit in few]
            for scope in SCOPES[place::2]:
                hits = memory.recall(QUERY, k=1_000, **told, **scope)
                yield f"{name} {place} {scope}", [(hit.id, hit.score.hex()) for hit in hits]
            found = documents.search(QUERY, k=1_000, **{key: told[key] for key in told if key != "context"})
            yield f"{name} {place} documents", [(hit.id, hit.unit, hit.score.hex()) for hit in found]
        ids = (fact.id for fact in memory.list(limit=1_000).items)
        yield f"explained {place}", [memory.explain("alpha", id_, embedding=vector) for id_ in ids]
    yield "vectors", documents.index.vectors()
    names = [document.id for document in documents.list(limit=1_000).items]
    yield "vector", [_numbers(documents, id_, unit) for id_ in names for unit in (0, 1)]
    yield "capabilities", memory.capabilities()


WAYS: dict[str, dict[str, Any]] = {
    "semantic": {"mode": "semantic"},
    "hybrid": {},
    "by ranks": {"fusion": "rrf"},
    "weighed in context": {"weights": {"lexical": 0.3, "semantic": 0.7}, "context": True},
}


def _numbers(documents: Any, id_: str, unit: int) -> list[float] | None:
    vector = documents.index.vector(id_, unit)
    return None if vector is None else vector.tolist()


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

    Locks, caches and what names the generation are left out: they may differ between equal stores.
    """
    files = sorted((*path.glob("gen-*"), *path.glob("journal-*")))
    return {re.sub(r"\d+", "N", file.name, count=1): file.read_bytes() for file in files}
