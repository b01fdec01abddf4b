"""Write a small store with nodes and conversations, and what it answers: a store for later builds to read.

    python scripts/make_golden_governed_store.py BACKEND OUT

Run by hand, once for each backend and format, with the build of that format installed in an environment of its
own. OUT must not exist; it gets the folder `store` and `expected.json`, and belongs under `tests/golden/` as
`governed-FORMAT-BACKEND`. Stores that were kept are never written again: they stand for the files that people have.
"""

import json
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from governed import START, change, create
from governed_run import Governed, shown
from perdure import ManualClock, Store
from perdure.base.acting import acting


def main(backend, out):
    out.mkdir(parents=True)
    path, clock = out / "store", ManualClock(START)
    with Store.open(path, backend=backend, clock=clock) as store:
        space = Governed(store)
        space.repository.apply(change("kept by a purge", create("g", "gamma comes before a purge")))
        store.purge()
        with acting("the writer"):
            space.fill()
        now = clock.now()
    with Store.open(path, clock=ManualClock(now)) as store:
        told = {"now": now, "shown": json.loads(msgspec.json.encode(shown(Governed(store), tokens=True)))}
    expected = json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
    (out / "expected.json").write_text(expected, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
