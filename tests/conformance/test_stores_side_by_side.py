"""One history, told to a store of every backend: every reply is equal bit for bit, scores and cursors included."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from backends import open_at
from effort import examples
from governed import START
from governed_run import Governed
from governed_run import shown as governed_view
from perdure import ManualClock, Memory, MemoryConfig, PerdureError, Store
from properties.memory_run import CONFIGS, QUERY, SECRET, everything, random_script
from properties.strategies import IDS, NOW, Call

BACKENDS = ("sqlite", "memory", "postgres")
TEXTS = ("alpha gamma. " * 40, "beta delta epsilon", "", "gamma " * 3_000)
VECTORS = ([1.0, 0.0, 0.5], [0.25, -1.0, 0.0], [0.0, 0.125, 1.0])


class Stores:
    """A store of each backend, all with one secret, and clocks that tell the same."""

    def __init__(self, directory: Path, now: int, config: MemoryConfig | None = None) -> None:
        self._directory, self._config = directory, config
        self._clocks = {name: ManualClock(now) for name in BACKENDS}
        self.stores: dict[str, Store] = {}
        for name in BACKENDS:
            self._open(name)

    def _open(self, name: str) -> None:
        how = {"durability": "normal", "clock": self._clocks[name], "secret": SECRET, "config": self._config}
        self.stores[name] = open_at(self._directory / name, name, **how)

    def reopen(self) -> None:
        """Open those anew that outlive it."""
        for name in BACKENDS[:1] + BACKENDS[2:]:
            self.stores[name].close()
            self._open(name)

    def close(self) -> None:
        for store in self.stores.values():
            store.close()

    def each(self, work: Any) -> Any:
        """Have the work done on every store; return the reply that all of them gave, or the code of the error."""
        replies = {name: self._reply(store, work) for name, store in self.stores.items()}
        shown = {name: msgspec.to_builtins(reply) for name, reply in replies.items()}
        for name in BACKENDS[1:]:
            assert shown[name] == shown[BACKENDS[0]], name
        return replies[BACKENDS[0]]

    @staticmethod
    def _reply(store: Store, work: Any) -> Any:
        try:
            return _without_backend(work(store))
        except PerdureError as error:
            return error.code, error.message


def _without_backend(reply: Any) -> Any:
    # What was done to be rid of it differs between backends, and so does the certificate that says it.
    if getattr(reply, "certificate", None) is not None:
        certificate = reply.certificate
        return msgspec.structs.replace(reply, certificate=None), certificate.facts, certificate.records
    return reply


def run(call: Call) -> Any:
    name, told = call
    if name == "advance":
        return lambda store: store.clock.advance(told["milliseconds"])
    return lambda store: getattr(store.memory(), name)(**told)


def pages(memory: Memory, size: int, **how: Any) -> list[Any]:
    """All pages of a list, with their cursors."""
    found, cursor = [], None
    while True:
        page = memory.list(limit=size, cursor=cursor, **how)
        found.append(page)
        cursor = page.cursor
        if cursor is None:
            return found


def read(store: Store) -> list[Any]:
    """All that a store shows, in every view of time."""
    memory = store.memory()
    found = everything(memory, as_ofs=(None, 3, 150), known_ats=(None, 102))
    found += pages(memory, 3) + pages(memory, 2, hidden=True)
    found += [memory.changes(limit=3), memory.recall(QUERY, embedding=VECTORS[2], explain=True)]
    documents = store.documents()
    found += [documents.list(limit=1_000), documents.search("alpha gamma", k=50)]
    found += [documents.get(id_) for id_ in IDS]
    return found


def a_document(random: Random) -> Any:
    id_, text = random.choice(IDS), random.choice(TEXTS)
    if random.random() < 0.3:
        return lambda store: store.documents().delete(id_)
    return lambda store: store.documents().put(id_, text, metadata={"n": len(text)})


def an_embedded_fact(random: Random) -> Any:
    id_, vector = f"v{random.randrange(4)}", random.choice(VECTORS)
    return lambda store: store.memory().remember(
        f"alpha of {id_} {vector[0]}", id=id_, embedding=vector, idempotency_key=f"{id_} {vector}"
    )


def an_operation(random: Random) -> Any:
    kind = random.random()
    if kind < 0.1:
        return lambda store: store.purge()
    if kind < 0.15:
        return lambda store: store.memory().reindex()
    if kind < 0.25:
        return lambda store: store.memory("someone").remember("beta of another", id="other")
    if kind < 0.3:
        return lambda store: store.erase("someone")
    return a_document(random) if kind < 0.7 else an_embedded_fact(random)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_memory_answers_alike_on_every_backend(tmp_path, seed):
    random = Random(seed)
    stores = Stores(tmp_path, NOW, CONFIGS[seed % len(CONFIGS)])
    try:
        for call in random_script(seed, 40):
            stores.each(run(call))
            if random.random() < 0.4:
                stores.each(an_operation(random))
            if random.random() < 0.1:
                stores.reopen()
        assert len(stores.each(read)) > 20
        stores.reopen()
        stores.each(read)
        stores.each(lambda store: store.purge())
        stores.each(read)
        stores.each(lambda store: store.verify().findings)
    finally:
        stores.close()


@pytest.mark.parametrize("seed", range(examples(3)))
def test_governed_knowledge_and_conversations_answer_alike_on_every_backend(tmp_path, seed):
    stores = Stores(tmp_path, START)
    try:
        spaces = {name: Governed(store) for name, store in stores.stores.items()}
        for part in range(3):
            for space in spaces.values():
                space.live(Random(f"{seed} {part}"), 15)
            views = {name: governed_view(space, tokens=True) for name, space in spaces.items()}
            for name in BACKENDS[1:]:
                assert views[name] == views[BACKENDS[0]]
            if part == 1:
                stores.each(lambda store: store.purge())
    finally:
        stores.close()


def test_an_export_is_the_same_from_every_backend(tmp_path):
    stores = Stores(tmp_path, NOW)
    try:
        for call in random_script(7, 30):
            stores.each(run(call))
        stores.each(a_document(Random(2)))
        lines = stores.each(lambda store: b"".join(store.export_lines()).split(b"\n", 1)[1].decode())
        assert lines.count("\n") > 10
    finally:
        stores.close()
