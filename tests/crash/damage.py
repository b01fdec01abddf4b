"""A store with a bit of everything, all that it answers, and ways to damage a copy of it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw

from perdure import ManualClock, Namespace, Store
from perdure.store import Memory

NOW = 1_700_000_000_000
NAMES = (Namespace(), Namespace("ada", "work"))
FORGOTTEN = ("f5", "f10", "f20", "n7")
KEY = b"k" * 32
PAGE = 4096
# How many facts a store holds: enough for pages of every kind.
FACTS = 60
READ_MAX = 150  # facts that are read one by one


def build(directory: Path, *, key: bytes | None = None) -> None:
    """Make the store: two spaces, its last records in the write-ahead log only."""
    clock = ManualClock(NOW)
    with Store.open(directory, clock=clock, key=key) as store:
        house, work = store.memory(), store.memory("ada", "work")
        for number in range(FACTS):
            clock.advance(1000)
            _tell(house, work, number)
        house.forget(ids=["f10", "f20"])
        house.forget(ids=["f5"], block=True)
        house.end("f30", reason="moved away")
        house.annotate("f31", tags=["seen"], importance=0.75)
        house.correct("the roof is red", id="f32")
        house.forget(ids=["f33"], soft=True)
        work.forget(ids=["n7"])
        store.documents("ada", "work").put("manual", "how to air the rooms. " * 400)
        assert store.log.scrub()
        for number in range(5):
            clock.advance(1000)
            work.remember(f"late note {number}", id=f"l{number}", idempotency_key=f"key-{number}")


def build_kept(directory: Path, *, key: bytes | None = None) -> None:
    """Make the store with one more space, large enough that its state is kept in a cache."""
    build(directory, key=key)
    with Store.open(directory, clock=ManualClock(NOW + 10**7), key=key) as store:
        stones = store.memory("stones")
        stones.remember_many([{"text": f"stone {number}", "id": f"s{number}"} for number in range(1000)])
    assert (directory / "cache-1.db").stat().st_size


def _tell(house: Memory, work: Memory, number: int) -> None:
    follows = number >= 7 and number % 7 < 3
    house.remember(
        f"fact {number} of the house " + "long " * (number % 40 * 20),
        id=f"f{number}",
        subject=f"subject {number % 7}",
        supersedes=[f"f{number - 7}"] if follows else None,
    )
    work.remember(f"note {number} by ada", id=f"n{number}", tags=["note"], metadata={"number": number})


def answers(
    directory: Path, *, key: bytes | None = None, secret: bytes | None = None
) -> dict[Namespace, Any]:
    """Return all that the reads of a store tell, space by space."""
    with Store.open(directory, clock=ManualClock(NOW + 10**8), key=key, secret=secret) as store:
        return {name: _told(store, name) for name in store.spaces()}


def _told(store: Store, name: Namespace) -> dict[str, Any]:
    memory = store.memory(name.principal, name.scope)
    facts = memory.list(limit=1000).items
    hits = [
        memory.recall(query, k=1000, history="all", explain=True)
        for query in ("fact house", "note ada", "rooms", "stone")
    ]
    return {
        "facts": {fact.id: fact for fact in facts},
        "got": [memory.get(fact.id) for fact in facts[:READ_MAX]],
        "hidden": memory.list(hidden=True, limit=1000).items,
        "hits": [(hit.id, hit.score.hex(), hit.status, hit.explanation) for found in hits for hit in found],
        "histories": {fact.id: memory.history(fact.id) for fact in facts[:READ_MAX]},
        "explained": [memory.explain("fact note", fact.id) for fact in facts[:10]],
        "documents": store.documents(name.principal, name.scope).list(limit=1000).items,
        "changes": memory.changes(limit=1000).items,
    }


def copy_of(store: Path, directory: Path) -> Path:
    """Copy a closed store as it is after a restart of the machine: without SQLite's shared memory."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(store, directory)
    for path in directory.glob("*-shm"):
        path.unlink()
    return directory


def hashes(directory: Path) -> dict[str, str]:
    """Return a hash of every file but SQLite's shared memory; an empty write-ahead log is as good as none."""
    return {
        path.name: hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(filter(Path.is_file, directory.iterdir()))
        if not path.name.endswith("-shm") and (path.stat().st_size or not path.name.endswith("-wal"))
    }


def change(directory: Path, sql: str, *bindings: Any, file: str = "gen-1.db") -> None:
    """Run a statement on a closed store's file that no store would run."""
    db = apsw.Connection(str(directory / file))
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.execute(sql, bindings)
    assert db.total_changes(), "the statement changed nothing"
    db.close()


@dataclass(frozen=True)
class Flip:
    """One bit of one file."""

    file: str
    position: int
    bit: int

    def make(self, directory: Path) -> None:
        path = directory / self.file
        data = bytearray(path.read_bytes())
        data[self.position] ^= 1 << self.bit
        path.write_bytes(data)


def flips(store: Path, seed: int) -> Iterator[Flip]:
    """Yield random flips without end: all files alike, every other one where a page keeps its structure."""
    chance = Random(seed)
    sizes = {
        path.name: path.stat().st_size
        for path in sorted(store.iterdir())
        if path.is_file() and not path.name.endswith("-shm")
    }
    files = [name for name, size in sizes.items() if size]
    while True:
        file = chance.choice(files)
        position = chance.randrange(sizes[file])
        if chance.random() < 0.5:
            position = min(position // PAGE * PAGE + chance.randrange(100), sizes[file] - 1)
        yield Flip(file, position, chance.randrange(8))
