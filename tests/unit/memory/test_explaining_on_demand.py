"""Explanations cost nothing unless somebody asks for them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

import perdure
from perdure import ManualClock, MemoryConfig, Store

SOURCE = Path(perdure.__file__).parent
EXPLAINING = ("search/explain.py", "lexical/marking.py", "search/tracing.py", "model/hit.py")
CHAIN = ("temporal/links.py", "component")  # walks the history of a fact
ASKING = {
    "by words": {},
    "by both": {"embedding": [1.0, 0.5]},
    "by meaning": {"mode": "semantic", "embedding": [1.0, 0.5]},
    "with context": {"context": True},
    "filtered": {"filter": {"n": {"$gte": 1}}, "subject": "Alice"},
    "of the past": {"history": "all", "known_at": 3},
}


def calls_of(work):
    """Return how often each of the package's functions is called by the work: (file, function) to a count."""
    counts = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            counts[Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix(), frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counts


@pytest.fixture(scope="module", params=["score", "relevance"])
def memory(request):
    with Store.open(":memory:", clock=ManualClock(1)) as store:
        memory = store.memory(config=MemoryConfig(ranking=request.param, supersession="latest-by-subject"))
        for number in range(6):
            memory.remember(
                f"Alice lives in Berlin {number}",
                subject="Alice",
                valid_from=number,
                metadata={"n": number},
                embedding=[1.0, number / 10],
                source={"uri": "u", "position": number, "actor": "Bob"},
                tags=["home"],
            )
        yield memory


@pytest.mark.parametrize("asking", ASKING)
def test_a_plain_recall_does_no_work_of_explaining_and_an_explained_one_does(memory, asking):
    options = ASKING[asking]
    plain = calls_of(lambda: memory.recall("where does Alice live", **options))
    explained = calls_of(lambda: memory.recall("where does Alice live", explain=True, **options))
    assert plain
    assert {call: count for call, count in plain.items() if call[0] in EXPLAINING or call == CHAIN} == {}
    assert "search/explain.py" in {file for file, _ in explained}
    assert explained[CHAIN] >= 1


def test_hits_without_an_explanation_hold_none_and_are_the_same_otherwise(memory):
    plain = memory.recall("Alice", history="all")
    explained = memory.recall("Alice", history="all", explain=True)
    assert plain
    assert all(hit.explanation is None for hit in plain)
    assert [(hit.id, hit.score) for hit in plain] == [(hit.id, hit.score) for hit in explained]
