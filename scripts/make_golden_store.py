"""Write a small store with the build that is installed, and what it answers: a store for later builds to read.

    python scripts/make_golden_store.py OUT

Run by hand, once for each format that a release writes, with the release's own build installed in an environment
of its own. OUT must not exist; it gets the folder `store` and `expected.json`, and belongs under `tests/golden/`.
Stores that were kept are never written again: they stand for the files that people have.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from golden.answers import DIMENSION, answers, open_at_now
from perdure import ManualClock, MemoryConfig, NewFact, Source, Store
from perdure.embedders import HashingEmbedder
from perdure.log.records import decode
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.space import Settings, Space

START = 1_700_000_000_000
MINUTE = 60_000
LONG = "The ledger of the kettle works, entry {}: one kettle, sold to the house by the lake.\n"


def tell(memory, clock):
    """Write facts, and what is said of them later, into a space."""
    memory.remember(
        "Ada lives in Turin",
        id="ada-1",
        subject="ada.home",
        entities=["Ada", "Turin"],
        metadata={"team": "a", "deep": {"n": 1.5}},
        event_time=1_580_000_000_000,
        valid_from=1_580_000_000_000,
        valid_to=1_780_000_000_000,
        tags=["home", "person"],
        kind="semantic",
        importance=0.75,
        pinned=True,
        source=Source(uri="talk:1", quote="I live in Turin", start=3, end=18, position=4, actor="Ada"),
        idempotency_key="first",
    )
    clock.advance(MINUTE)
    memory.remember(
        "Ada lives in Genoa",
        id="ada-2",
        subject="ada.home",
        valid_from=1_702_000_000_000,
        supersedes=["ada-1"],
    )
    clock.advance(MINUTE)
    told = memory.remember_many(
        [
            NewFact(text="The kettle is blue", id="kettle", tags=["kitchen"], entities=["kettle"]),
            NewFact(text="The teapot is in the kitchen", id="teapot"),
            NewFact(text="青い湯沸かしは台所にある", id="yuwakashi"),
            NewFact(text="The gas is off since May", id="closed"),
            NewFact(text="The moon is made of kettles", id="wrong"),
            NewFact(text="A cup stands beside the kettle"),  # its id is derived
        ]
    )
    clock.advance(MINUTE)
    memory.correct("The kettle is red", id="kettle", new_id="kettle-red", idempotency_key="correction")
    memory.end("closed", at=1_701_000_000_000, reason="The gas came back")
    memory.retract("wrong", reason="It is not")
    clock.advance(MINUTE)
    memory.annotate(
        "teapot", tags=["kitchen", "white"], kind="episodic", importance=0.25, metadata={"shelf": 2}
    )
    memory.annotate("ada-2", pinned=True)
    memory.end(told[-1].id)
    clock.advance(MINUTE)
    memory.remember("A cup stands beside the kettle", reassert=True)
    clock.advance(MINUTE)


def remove(memory, clock):
    """Forget, hide, restore, block and unblock."""
    memory.remember("A secret about the kettle", id="gone", subject="secret", idempotency_key="lost")
    memory.end("gone", at=1_705_000_000_000, reason="a secret reason")
    memory.remember("A blocked word about tea", id="blocked")
    memory.remember("An unblocked word about tea", id="unblocked")
    memory.forget(ids=["gone"])
    memory.forget(ids=["blocked"], block=True)
    memory.forget(ids=["unblocked"], block=True)
    memory.unblock(ids=["unblocked"], texts=["An unblocked word about tea"])
    clock.advance(MINUTE)
    memory.remember("The cat sleeps on the kettle", id="cat")
    memory.remember("The dog sleeps below the teapot", id="dog")
    memory.forget(ids=["cat"], soft=True)
    memory.forget(ids=["dog"], soft=True)
    memory.restore(["dog"])
    clock.advance(MINUTE)


def write_documents(documents, clock):
    documents.put("guide", "".join(LONG.format(number) for number in range(600)), metadata={"page": 1})
    clock.advance(MINUTE)
    documents.put("guide", "".join(LONG.format(number) for number in range(300)), metadata={"page": 2})
    documents.put("note", "Water the kettle plant")
    documents.delete("note")
    clock.advance(MINUTE)


def use(memory, clock):
    """Record uses, with a context and without one."""
    memory.record_use(["ada-2", "kettle", "yuwakashi"], "turn 1", idempotency_key="use")
    memory.record_use(["ada-2"])
    clock.advance(MINUTE)


def merge(store, clock):
    """Merge what is told again and what is named, and refuse what does not belong there."""
    memory = store.memory(config=MemoryConfig(dedup="merge-exact", admission="standard"))
    memory.remember("The samovar of the kettle works hums", id="samovar", tags=["kitchen"], importance=0.25)
    clock.advance(MINUTE)
    memory.remember(
        "The samovar of the kettle works hums", tags=["evening"], importance=0.5, metadata={"heard": True}
    )
    memory.remember_many(["ok thanks", "The samovar is from Tula"], idempotency_key="refused")
    memory.remember("A samovar hums in the evening", id="samovar-2")
    memory.merge("samovar", ["samovar-2"])
    clock.advance(MINUTE)


def give_vectors(store, clock):
    """Tell vectors of a caller's and of an embedder's, at once and later, of facts and of units, and forget some."""
    embedded = store.memory("ada", "maps", config=MemoryConfig(embedder=HashingEmbedder(DIMENSION)))
    given = store.memory("ada", "maps", config=MemoryConfig(on_id_conflict="replace"))
    embedded.remember("The harbour lies to the east of the kettle works", id="harbour")
    given.remember("The mill stands by the river", id="mill")  # embedded later
    clock.advance(MINUTE)
    for number, id_ in enumerate(("hill", "bridge", "gone", "hidden", "bridge")):
        vector = [float((number + 1) * place % 7 - 3) / 4 for place in range(1, DIMENSION + 1)]
        given.remember(f"The {id_} is on map {number}", id=id_, embedding=vector)
    given.correct("The hill is on map 9", id="hill", new_id="hill-2", embedding=[0.5] * DIMENSION)
    clock.advance(MINUTE)
    embedded.embed_missing()
    given.forget(ids=["gone"])
    given.forget(ids=["hidden"], soft=True)
    documents = store.documents("ada", "maps", config=embedded.config)
    documents.put("atlas", "".join(LONG.format(number) for number in range(300)))
    clock.advance(MINUTE)


def keep_snapshot(log, clock):
    """Keep a snapshot of the first space; a store this small keeps none by itself."""
    space = Space(log, Namespace("", ""), Settings("english.v1", 0.9, 0.4), clock)
    space.find_number = log.find_space
    cached = space.read(lambda state, _: snapshot.cached_state(state))
    log.put_cache(1, snapshot.NAME, cached)


def main(out):
    out.mkdir(parents=True)
    path, clock = out / "store", ManualClock(START)
    with Store.open(path, clock=clock) as store:
        memory = store.memory()
        tell(memory, clock)
        remove(memory, clock)
        write_documents(store.documents(), clock)
        use(memory, clock)
        merge(store, clock)
        give_vectors(store, clock)
        other = store.memory("ada", "work")
        other.remember("Ada keeps the ledger of the kettle works", id="ledger", idempotency_key="second")
        other.remember_many([f"Entry {number} names a kettle" for number in range(12)])
        memory.remember("The new kettle whistles", id="whistle")  # stays in the write-ahead log
        types = {
            type(decode(entry.data)).__name__
            for space in store.log.spaces()
            for entry in store.log.read(space, 0, 10_000)
            if entry.data is not None
        }
        keep_snapshot(store.log, clock)
    with open_at_now(path) as store:
        told = answers(store)
    expected = json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
    (out / "expected.json").write_text(expected, encoding="utf-8", newline="\n")
    print(f"live records of {len(types)} types: {', '.join(sorted(types))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
