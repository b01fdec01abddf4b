"""Write a small store that keeps its configuration, and what it answers: a store for later builds to read.

    python scripts/make_golden_configured_store.py BACKEND OUT

Run by hand, once for each backend and format, with the build of that format installed in an environment of its
own. OUT must not exist; it gets the folder `store` and `expected.json`, and belongs under `tests/golden/` as
`configured-FORMAT-BACKEND`. Stores that were kept are never written again: they stand for the files that people have.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from golden.answers import answers, open_at_now
from perdure import ManualClock, MemoryConfig, Store
from perdure.policies import ExponentialRecency

START = 1_700_000_000_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
FIRST = MemoryConfig(default_k=7)
KEPT = MemoryConfig(
    profile="unicode.v1",
    k1=1.25,
    b=0.5,
    supersession="latest-by-subject",
    recency=ExponentialRecency(half_life_ms=30 * DAY),
    dedup="merge-exact",
    admission="standard",
    default_k=3,
    receipt_days=7,
)


def tell(store, clock):
    """Write what reads otherwise under the usual configuration: supersession, merges, a refusal, BM25, decay."""
    memory = store.memory()
    memory.remember("Ada lives in Turin", id="turin", subject="ada.home", valid_from=START - 90 * DAY)
    clock.advance(MINUTE)
    memory.remember("Ada lives in Genoa", id="genoa", subject="ada.home", valid_from=START - 30 * DAY)
    clock.advance(MINUTE)
    memory.remember(
        "The blue kettle of the house whistles", id="kettle", tags=["kitchen"], idempotency_key="first"
    )
    clock.advance(MINUTE)
    memory.remember("The blue kettle of the house whistles", tags=["evening"])
    memory.remember_many(["ok thanks", "A cup stands beside the kettle", "The kettles of the works whistle"])
    memory.remember("A secret about the kettle", id="gone")
    memory.forget(ids=["gone"])
    store.documents().put("note", "Water the kettle plant", metadata={"page": 1})
    clock.advance(MINUTE)
    store.memory("ada", "work").remember("Ada keeps the ledger of the kettle works", id="ledger")


def main(backend, out):
    out.mkdir(parents=True)
    path, clock = out / "store", ManualClock(START)
    with Store.open(path, backend=backend, clock=clock, config=FIRST, save_config=True) as store:
        clock.advance(MINUTE)
        store.save_config(KEPT)
        clock.advance(MINUTE)
        tell(store, clock)
    with open_at_now(path) as store:
        told = {"config": json.loads(store.config.to_json()), **answers(store)}
    expected = json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
    (out / "expected.json").write_text(expected, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
