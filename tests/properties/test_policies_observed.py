"""Laws of all policies together: observers hear the difference that each call makes, and what is kept is what
the records say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Fact, ManualClock, MemoryConfig, PerdureError, Store
from perdure.policies import Prune
from properties.memory_run import listed
from properties.strategies import METADATA, NOW, TAGS, Call

TEXTS = (
    "alpha beta gamma delta one",
    "Alpha  Beta gamma DELTA one",
    "alpha beta gamma delta two",
    "my password is hunter2",
    "thank you",
)
IDS = ("a", "b", "c", "d")
ids = st.sampled_from(IDS)
facts = st.fixed_dictionaries(
    {
        "text": st.sampled_from(TEXTS),
        "id": st.sampled_from((*IDS, None, None)),
        "tags": st.sampled_from(TAGS),
        "metadata": st.sampled_from(METADATA),
        "importance": st.sampled_from((None, 0.1, 1.0)),
    }
)
flags = st.booleans()
calls: st.SearchStrategy[Call] = st.one_of(
    facts.map(lambda fact: ("remember", fact)),
    st.lists(facts, min_size=1, max_size=3).map(lambda told: ("remember_many", {"facts": told})),
    st.builds(lambda id_, text: ("correct", {"new_text": text, "id": id_}), ids, st.sampled_from(TEXTS)),
    st.builds(
        lambda keep, others, dry: ("merge", {"keep": keep, "ids": others, "dry_run": dry}),
        ids, st.lists(ids, min_size=1, max_size=2), flags,
    ),
    st.builds(
        lambda named, turn: ("record_use", {"ids": named, "context_id": turn}),
        st.lists(ids, max_size=2), st.sampled_from((None, "turn 1", "turn 2")),
    ),
    flags.map(lambda dry: ("consolidate", {"dry_run": dry})),
    flags.map(lambda dry: ("apply_forgetting", {"dry_run": dry})),
    st.builds(lambda id_, soft: ("forget", {"ids": [id_], "soft": soft}), ids, flags),
    st.builds(lambda id_: ("restore", {"ids": [id_]}), ids),
    st.builds(lambda id_: ("annotate", {"id": id_, "metadata": {"note": 1}}), ids),
)  # fmt: skip
CONFIG = MemoryConfig(
    admission="standard",
    dedup="merge-exact",
    consolidation="collapse-duplicates",
    forgetting=Prune(max_age_days=0, min_importance=0.5),
)


class Notes:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def remembered(self, fact: Fact) -> None:
        self.heard.append(("remembered", fact.id))

    def forgotten(self, ids: Sequence[str]) -> None:
        self.heard.append(("forgotten", tuple(ids)))


def run(memory: Any, clock: ManualClock, call: Call) -> Any:
    clock.advance(milliseconds=1)
    try:
        return getattr(memory, call[0])(**call[1])
    except PerdureError as error:
        return error.code


def held(memory: Any) -> set[str]:
    return {fact.id for fact in (*listed(memory), *listed(memory, hidden=True))}


@given(st.lists(calls, min_size=1, max_size=10))
@settings(max_examples=examples(24), deadline=None)
def test_observers_hear_of_each_fact_that_comes_or_goes_and_of_nothing_else(script):
    clock, notes = ManualClock(NOW), Notes()
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory(config=CONFIG.replace(observers=(notes,)))
        for call in script:
            before, notes.heard = held(memory), []
            hidden = {fact.id for fact in listed(memory, hidden=True)}
            run(memory, clock, call)
            after = held(memory)
            came = [id_ for kind, id_ in notes.heard if kind == "remembered"]
            went = [id_ for kind, named in notes.heard if kind == "forgotten" for id_ in named]
            assert sorted(came) == sorted(after - before)
            softly = {fact.id for fact in listed(memory, hidden=True)} - hidden
            assert set(went) == (before - after) | softly


@given(st.lists(calls, min_size=1, max_size=10), flags)
@settings(max_examples=examples(10), deadline=None)
def test_a_store_that_is_opened_again_or_purged_shows_what_it_showed(script, purged):
    clock = ManualClock(NOW)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with Store.open(path, clock=clock, durability="normal") as store:
            memory = store.memory(config=CONFIG)
            for call in script:
                run(memory, clock, call)
            used = [call for call in script if call[0] == "record_use" and call[1]["context_id"]]
            for call in used:
                run(memory, clock, call)
            before = listed(memory), listed(memory, hidden=True)
            assert store.verify().ok
            if purged:
                store.purge()
                assert (listed(memory), listed(memory, hidden=True)) == before
        with Store.open(path, clock=clock, durability="normal") as store:
            memory = store.memory(config=CONFIG)
            assert (listed(memory), listed(memory, hidden=True)) == before
            assert store.verify().ok
            assert {run(memory, clock, call) for call in used} <= {0}  # each context is known still
