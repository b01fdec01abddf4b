"""The audit outlives what it tells of, and holds none of it; the store beside it is that of one that never held it."""

from __future__ import annotations

import pytest

from erasure.pairs import kept_bytes
from erasure.scan import holders
from perdure import ManualClock, MemoryConfig, Store
from perdure.base.acting import acting

SECRET = bytes(range(32))
MARKER = "xqzmarkerwhale"
NOW = 1_800_000_000_000


def told_everything(memory, documents):
    """Put the marker into every field that holds a caller's words, and have each kind of change made of it."""
    memory.remember(
        f"{MARKER} text", id=f"{MARKER} id", subject=MARKER, entities=[MARKER], tags=[MARKER], kind="semantic",
        metadata={MARKER: MARKER}, source={"uri": MARKER, "quote": MARKER, "actor": MARKER},
        idempotency_key=MARKER,
    )  # fmt: skip
    memory.correct(f"{MARKER} corrected", id=f"{MARKER} id", new_id=f"{MARKER} new")
    memory.annotate(f"{MARKER} new", metadata={"a": MARKER})
    memory.record_use([f"{MARKER} new"], context_id=MARKER)
    memory.end(f"{MARKER} new", reason=MARKER)
    memory.retract(f"{MARKER} id", reason=MARKER)
    memory.forget(ids=[f"{MARKER} id"], soft=True)
    memory.restore([f"{MARKER} id"])
    documents.put(f"{MARKER} page", f"{MARKER} words", metadata={"a": MARKER})


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
@pytest.mark.parametrize("level", ["on", "full"])
def test_the_audit_holds_nothing_of_what_it_tells_of_and_the_store_is_as_if_it_never_was(
    tmp_path, backend, level
):
    for name in ("held", "never held"):
        place = tmp_path / name
        with Store.open(place, backend=backend, secret=SECRET, clock=ManualClock(NOW), audit=level) as store:
            store.memory("ada").remember("kept", id="kept")
            if name == "held":
                memory, documents = store.memory("ada"), store.documents("ada")
                with acting("operator"):
                    told_everything(memory, documents)
                    memory.recall(MARKER)
                    memory.trace(MARKER)
                    memory.events(limit=1)
                assert holders(place / "audit", MARKER) == {}  # while the facts are there
                memory.forget(ids=[f"{MARKER} id", f"{MARKER} new"], block=False)
                documents.delete(f"{MARKER} page")
                told_everything(store.memory(MARKER, MARKER), store.documents(MARKER, MARKER))
                store.erase(MARKER)
            store.purge()
            assert holders(place, MARKER) == {}
            assert store.verify_events() == ()
    assert kept_bytes(tmp_path / "held") == kept_bytes(tmp_path / "never held")
    counted = []
    for name in ("held", "never held"):
        with Store.open(tmp_path / name, backend=backend, secret=SECRET) as store:
            assert store.verify().ok
            assert MARKER.encode() not in b"".join(store.export_events())
            counted.append(store.events().total)
    assert counted[0] > counted[1] + 20


def test_an_audit_with_the_words_of_recalls_holds_them_and_is_trimmed_of_them(tmp_path):
    clock = ManualClock(NOW)
    with Store.open(tmp_path / "store", clock=clock, audit="full", audit_queries=True) as store:
        memory = store.memory(config=MemoryConfig())
        memory.recall(MARKER)
        assert holders(tmp_path / "store" / "audit", MARKER) != {}  # as was asked for
        clock.advance(1_000)
        assert store.trim_events(NOW + 1) == 1
        assert holders(tmp_path / "store", MARKER) == {}
