"""Laws of merging: nothing that was noted goes lost, a retry changes nothing, and a purge keeps it all."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Memory, MemoryConfig
from perdure.policies import Prune
from perdure.policies.uniting import united_importance, united_kind, united_metadata, united_tags
from properties.memory_run import CONFIGS, Space, everything, listed, millis
from properties.strategies import METADATA, TAGS, scripts

usual = settings(max_examples=examples(16), deadline=None)
DAY_MS = 86_400_000
TEXTS = (
    "alpha beta gamma delta one",
    "Alpha  Beta gamma DELTA one",
    "alpha beta gamma delta one.",
    "alpha beta gamma delta two",
    "ALPHA BETA GAMMA DELTA TWO ",
)
tellings = st.fixed_dictionaries(
    {
        "text": st.sampled_from(TEXTS),
        "tags": st.sampled_from(TAGS),
        "importance": st.sampled_from((None, 0.25, 1.0)),
        "kind": st.sampled_from((None, "semantic", "episodic", "working")),
        "pinned": st.booleans(),
        "metadata": st.sampled_from((*METADATA, {"tools": "a,b"}, {"tools": "b, c"}, {"tools": ["d"]})),
    }
)
scripts_of_tellings = st.lists(tellings, min_size=1, max_size=8)
merging = st.sampled_from([config.replace(dedup="merge-exact") for config in CONFIGS])


def told(config: MemoryConfig, facts: list[dict[str, Any]], times: int = 1) -> Space:
    space = Space(config)
    for fact in facts:
        for _ in range(times):
            space.memory.remember(**fact)
        space.clock.advance(milliseconds=1)
    return space


def form(text: str) -> str:
    return " ".join(text.split()).lower()


@given(merging, scripts_of_tellings)
@usual
def test_all_that_was_noted_of_a_text_is_noted_of_the_one_fact_that_says_it(config, facts):
    stored = {form(fact.text): fact for fact in listed(told(config, facts).memory)}
    assert set(stored) == {form(fact["text"]) for fact in facts}
    for said, fact in stored.items():
        alike = [one for one in facts if form(one["text"]) == said]
        assert fact.text == alike[0]["text"]
        assert set(fact.tags) == {tag for one in alike for tag in one["tags"]}
        assert fact.importance == max(
            (i for one in alike if (i := one["importance"]) is not None), default=None
        )
        assert fact.pinned == any(one["pinned"] for one in alike)
        for one in alike:
            blank = {key for key, value in (one["metadata"] or {}).items() if value is None}
            assert set(one["metadata"] or {}) - blank <= set(fact.metadata)


@given(merging, scripts_of_tellings, st.booleans())
@usual
def test_telling_everything_twice_is_the_same_as_telling_it_once(config, facts, at_once):
    if at_once:
        one, other = told(config, facts), told(config, facts, times=2)
        assert everything(one.memory) == everything(other.memory)
    else:
        space = told(config, facts)
        before = everything(space.memory)
        for fact in facts:
            space.memory.remember(**fact)
        assert everything(space.memory) == before


@given(merging, scripts_of_tellings)
@usual
def test_a_purge_and_a_check_find_what_was_merged_as_it_was(config, facts):
    space = told(config, facts)
    before = listed(space.memory)
    space.store.purge()
    assert listed(space.memory) == before
    assert space.store.verify().ok
    for fact in facts:
        space.memory.remember(**fact)
    assert listed(space.memory) == before


@given(merging, scripts_of_tellings, st.data())
@usual
def test_merging_by_hand_unites_as_merging_of_tellings_does_and_keeps_one(config, facts, data):
    space = told(config, [fact | {"id": f"fact {n}"} for n, fact in enumerate(facts)])
    ids = [fact.id for fact in listed(space.memory)]
    keep = data.draw(st.sampled_from(ids))
    assume(len(ids) > 1)
    others = data.draw(st.lists(st.sampled_from([id_ for id_ in ids if id_ != keep]), min_size=1))
    preview = space.memory.merge(keep, others, dry_run=True)
    done = space.memory.merge(keep, others)
    assert (preview.merged, preview.tags, preview.metadata) == (done.merged, done.tags, done.metadata)
    assert done.merged == tuple(sorted(set(others)))
    current = {fact.id for fact in listed(space.memory, status="current")}
    assert current == set(ids) - set(others)
    fact = space.memory.get(keep)
    assert fact is not None
    assert fact.merged is not None
    assert fact.merged.count == len(set(others))
    before = everything(space.memory)
    space.memory.merge(keep, others)
    assert everything(space.memory) == before


noted = st.sampled_from((None, "semantic", "procedural", "working", "episodic"))
values = (
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.sampled_from(("", " ", "a", "a, b", "b,c"))
    | st.lists(st.sampled_from("abc"))
)
metadata = st.dictionaries(st.sampled_from(("tools", "aliases", "x", "y")), values)


@given(metadata, metadata)
def test_metadata_that_is_kept_is_never_lost_and_uniting_again_changes_nothing(kept, other):
    united = united_metadata(kept, other)
    assert united_metadata(united, other) == united
    assert united_metadata(kept, kept) == kept or any(isinstance(value, str) for value in kept.values())
    for key, value in kept.items():
        if key not in ("tools", "aliases") and value not in (None, "", " ", []):
            assert (united[key], type(united[key])) == (value, type(value))
        if isinstance(value, list) and isinstance(other.get(key), list) and key in ("tools", "aliases"):
            assert set(united[key]) == set(value) | set(other[key])


@given(st.lists(noted), st.lists(st.none() | st.floats(0, 1)), st.lists(st.lists(st.sampled_from("abc"))))
def test_united_annotations_hold_each_and_forget_order_where_there_is_none(kinds, importances, tags):
    assert (
        united_tags(tags)
        == united_tags(reversed(tags))
        == tuple(sorted({tag for told in tags for tag in told}))
    )
    assert united_importance(importances) == united_importance(reversed(importances))
    assert (united_kind(kinds) is None) == (set(kinds) <= {None})


# Pruning


@given(
    st.sampled_from(CONFIGS),
    scripts(),
    st.sampled_from((0.0, 0.4, 1.0)),
    st.integers(0, 5),
    st.integers(0, 3),
)
@usual
def test_pruning_takes_what_is_old_and_unimportant_then_the_least_relevant(config, script, least, most, days):
    space = Space(config.replace(forgetting=Prune(max_age_days=days, min_importance=least, max_facts=most)))
    unseen = ("block", "soft")
    space.run_all((name, {key: told[key] for key in told if key not in unseen}) for name, told in script)
    for fact in listed(space.memory)[:2]:
        for turn in range(3):
            space.memory.record_use([fact.id], f"turn {turn}")
    space.clock.advance(milliseconds=2 * DAY_MS)
    expected = _pruned(space.memory, space.clock.now(), least, most, days)
    preview = space.memory.apply_forgetting()
    assert set(preview.forgotten) == expected
    before = {fact.id: fact.status for fact in listed(space.memory)}
    assert space.memory.apply_forgetting(dry_run=False).forgotten == preview.forgotten
    assert {fact.id: fact.status for fact in listed(space.memory)} == {
        id_: status for id_, status in before.items() if id_ not in expected
    }


def _pruned(memory: Memory, now: int, least: float, most: int, days: int) -> set[str]:
    """The same by brute force, where no fact is hidden: a link to such a one shows in no read."""

    def age(fact: Any) -> int:
        moment = fact.event_time or fact.valid_from or fact.ingest_time
        return max(0, now - (millis(moment) or 0))

    def weight(fact: Any) -> float:
        return 0.5 if fact.importance is None else float(fact.importance)

    facts = listed(memory)
    loose = [
        fact for fact in facts if not (fact.pinned or fact.uses >= 3 or fact.supersedes or fact.superseded_by)
    ]
    old = {fact.id for fact in loose if weight(fact) < least and age(fact) > days * DAY_MS}
    rest = [fact for fact in loose if fact.id not in old]
    rest.sort(key=lambda fact: 0.7 * weight(fact) + 0.3 * math.exp(-(age(fact) / DAY_MS / 30)))
    surplus = len(facts) - len(old) - most if most else 0
    return old | {fact.id for fact in rest[: max(0, surplus)]}
