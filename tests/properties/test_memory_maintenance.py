"""Laws of maintenance: policies remove what they say, merge without loss, and a preview is what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Fact, MemoryConfig
from perdure.policies import Consolidation, ExpiredFor, FactSummary, MaxFacts, SupersededFor
from properties.memory_oracle import DAWN
from properties.memory_run import CONFIGS, Space, everything, listed, millis, shown
from properties.strategies import TEXTS, TIMES, scripts

configs = st.sampled_from(CONFIGS)
spans = st.sampled_from((0, 1, 3, 6, 90, 99, 200))
limits = st.integers(1, 8)
forgetting_policies = st.one_of(
    spans.map(ExpiredFor), spans.map(SupersededFor), limits.map(MaxFacts), st.just("keep-all")
)
thorough = settings(max_examples=examples(12), deadline=None)
ORDER = ("superseded", "expired", "current", "not-yet-valid")


def after(script: Any, config: MemoryConfig, **policies: Any) -> Space:
    """A space with a document beside its facts, after the script; nothing is blocked in it."""
    space = Space(config.replace(**policies))
    space.run_all((name, {key: told[key] for key in told if key != "block"}) for name, told in script)
    space.store.documents().put("a document", "alpha beta")
    return space


def now_of(space: Space) -> int:
    """The present: the clock, or the newest recorded moment."""
    times = [millis(change.at) for change in space.memory.changes(limit=1_000).items]
    return max(space.clock.now(), *(time for time in times if time is not None))


def closes_at(fact: Fact) -> int | None:
    ends = [DAWN if end.at is None else millis(end.at) for end in fact.ends]
    told = [*ends, *([] if fact.valid_to is None else [millis(fact.valid_to)])]
    return min(told, default=None)


# Forgetting


@given(configs, scripts(), spans)
@thorough
def test_expired_for_takes_exactly_what_closed_longer_ago(config, script, grace):
    space = after(script, config, forgetting=ExpiredFor(grace))
    facts, now = listed(space.memory), now_of(space)
    closed = [fact.id for fact in facts if (end := closes_at(fact)) is not None and end < now - grace]
    assert space.memory.apply_forgetting(dry_run=False).forgotten == tuple(sorted(closed))


@given(configs, scripts(), spans)
@thorough
def test_superseded_for_takes_exactly_what_was_superseded_already_so_long_ago(config, script, age):
    space = after(script, config, forgetting=SupersededFor(age))
    then = now_of(space) - age - 1
    old = [fact.id for fact in listed(space.memory, as_of=then) if fact.status == "superseded"]
    assert space.memory.apply_forgetting(dry_run=False).forgotten == tuple(sorted(old))


@given(configs, scripts(), limits)
@thorough
def test_max_facts_takes_the_surplus_from_the_least_alive_on(config, script, limit):
    space = after(script, config, forgetting=MaxFacts(limit))
    facts = listed(space.memory)  # in order of arrival, which sorting keeps where all else is equal
    leaving = sorted(facts, key=lambda fact: (ORDER.index(fact.status.value), millis(fact.ingest_time)))
    surplus = leaving[: max(0, len(facts) - limit)]
    done = space.memory.apply_forgetting(dry_run=False)
    assert done.forgotten == tuple(sorted(fact.id for fact in surplus))
    assert len(listed(space.memory)) == min(limit, len(facts))


@given(configs, scripts(), limits)
@thorough
def test_max_facts_makes_no_fact_current_that_was_not(config, script, limit):
    space = after(script, config, forgetting=MaxFacts(limit))
    before = {fact.id: fact.status for fact in listed(space.memory)}
    space.memory.apply_forgetting(dry_run=False)
    assert [fact.id for fact in listed(space.memory) if fact.status != before[fact.id]] == []


@given(configs, scripts())
@thorough
def test_keep_all_takes_nothing(config, script):
    space = after(script, config)
    before = everything(space.memory)
    assert space.memory.apply_forgetting(dry_run=False, include_chain=True).forgotten == ()
    assert everything(space.memory) == before


@given(configs, scripts(), forgetting_policies, st.booleans())
@thorough
def test_a_preview_changes_nothing_and_names_what_the_run_takes(config, script, policy, chain):
    space = after(script, config, forgetting=policy)
    before = everything(space.memory)
    preview = space.memory.apply_forgetting(include_chain=chain)
    assert preview.dry_run
    assert everything(space.memory) == before
    done = space.memory.apply_forgetting(include_chain=chain, dry_run=False)
    assert not done.dry_run
    assert done.forgotten == preview.forgotten


@given(configs, scripts(), forgetting_policies, st.booleans())
@thorough
def test_a_policy_removes_as_a_forget_of_the_same_ids_does(config, script, policy, chain):
    space, other = after(script, config, forgetting=policy), after(script, config)
    done = space.memory.apply_forgetting(include_chain=chain, dry_run=False)
    # Whose policy or caller it was is an event of its own kind, so that the chains of events differ.
    assert without_event(other.memory.forget(ids=done.forgotten)) == without_event(done)
    assert everything(space.memory) == everything(other.memory)


def without_event(done):
    certificate = msgspec.structs.replace(done.certificate, event=None, seal="")
    return msgspec.structs.replace(done, certificate=certificate)


@given(configs, scripts())
@thorough
def test_a_policy_is_shown_every_visible_fact_as_reads_show_it(config, script):
    told: list[FactSummary] = []

    class Looking:
        def select(self, facts: Sequence[FactSummary], now: int) -> Sequence[str]:
            told.extend(facts)
            assert now == now_of_space
            return ()

    space = after(script, config, forgetting=Looking())
    now_of_space = now_of(space)
    space.memory.apply_forgetting()
    facts = listed(space.memory)
    assert [one.number for one in told] == sorted({one.number for one in told})
    for one, fact in zip(told, facts, strict=True):
        seen = shown(fact)
        same = ("id", "text", "subject", "entities", "tags", "kind", "importance", "pinned", "event_time")
        for name in (*same, "valid_from", "ingest_time", "status"):
            assert getattr(one, name) == seen[name]
        assert one.metadata == fact.metadata
        closed = closes_at(fact)
        assert (one.valid_to is None) == (closed is None)
        if closed is not None:
            assert one.valid_to == closed or (closed == DAWN and one.valid_to < DAWN)
        assert one.linked or not (fact.supersedes or fact.superseded_by)
        assert (one.superseded_since is not None) == bool(fact.superseded_by)


# Consolidation


class Drawn:
    """Carries out drawn plans: each names facts by place, so that it fits whatever is there."""

    def __init__(self, plans: list[dict[str, Any]]) -> None:
        self._plans = plans

    def plan(self, facts: Sequence[FactSummary], now: int) -> Sequence[Consolidation]:
        if not facts:
            return ()
        made = []
        for told in self._plans:
            sources = tuple(facts[place % len(facts)].id for place in told["places"])
            rest = {name: value for name, value in told.items() if name != "places"}
            made.append(Consolidation(sources=sources, **rest))
        return made


@st.composite
def plans(draw: Any) -> dict[str, Any]:
    start = draw(st.sampled_from(TIMES))
    return {
        "text": draw(st.sampled_from(TEXTS)),
        "places": draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)),
        "subject": draw(st.sampled_from((None, "s"))),
        "event_time": draw(st.sampled_from(TIMES)),
        "valid_from": start,
        "valid_to": draw(st.sampled_from((None, None if start is None else start + 2))),
        "remove_sources": draw(st.booleans()),
    }


plan_lists = st.lists(plans(), max_size=3)


@given(configs, scripts(), plan_lists)
@thorough
def test_consolidating_adds_what_is_planned_over_its_sources_and_takes_nothing(config, script, drawn):
    space = after(script, config, consolidation=Drawn(drawn))
    before = listed(space.memory)
    done = space.memory.consolidate(dry_run=False)
    assert done.forgotten == ()
    known = {fact.id: fact for fact in listed(space.memory)}
    assert set(known) == {fact.id for fact in before} | set(done.created)
    for fact in before:  # the sources stay readable, as they were told
        told = ("text", "subject", "metadata", "valid_from", "valid_to", "ingest_time", "ends", "supersedes")
        assert [getattr(known[fact.id], name) for name in told] == [getattr(fact, name) for name in told]
        assert set(known[fact.id].superseded_by) - set(fact.superseded_by) <= set(done.created)
    for told in drawn if before else ():
        sources = {before[place % len(before)].id for place in told["places"]}
        assert any(
            (fact.text, fact.subject, millis(fact.event_time))
            == (told["text"], told["subject"], told["event_time"])
            and sources <= set(fact.supersedes)
            for fact in known.values()
        )


@given(configs, scripts(), plan_lists)
@thorough
def test_what_was_known_before_a_consolidation_stays_known(config, script, drawn):
    space = after(script, config, consolidation=Drawn(drawn))
    now = now_of(space)
    moments = (0, 4, 101, now)

    def known() -> list[Any]:
        return [
            [(fact.id, fact.status) for fact in listed(space.memory, as_of=at, known_at=now)]
            for at in moments
        ]

    before = known()
    space.clock.set(now + 1)
    space.memory.consolidate(dry_run=False)
    assert known() == before


@given(configs, scripts(), plan_lists, st.booleans())
@thorough
def test_a_preview_of_a_consolidation_changes_nothing_and_names_what_the_run_does(
    config, script, drawn, allowed
):
    space = after(script, config, consolidation=Drawn(drawn))
    before = everything(space.memory)
    preview = space.memory.consolidate(allow_destructive=allowed)
    assert everything(space.memory) == before
    done = space.memory.consolidate(dry_run=False, allow_destructive=allowed)
    assert (done.created, done.forgotten) == (preview.created, preview.forgotten)


@given(configs, scripts(), plan_lists, st.booleans())
@thorough
def test_sources_go_only_with_the_consent_of_the_plan_and_of_the_call(config, script, drawn, allowed):
    space = after(script, config, consolidation=Drawn(drawn))
    before = listed(space.memory)
    asked = [told for told in drawn if told["remove_sources"]]
    done = space.memory.consolidate(dry_run=False, allow_destructive=allowed)
    named = {before[place % len(before)].id for told in asked for place in told["places"] if before}
    assert done.forgotten == (tuple(sorted(named)) if allowed else ())
    assert {fact.id for fact in before} - {fact.id for fact in listed(space.memory)} == set(done.forgotten)


@given(configs, scripts(), plan_lists)
@thorough
def test_removing_sources_brings_back_nothing_that_they_had_replaced(config, script, drawn):
    removing = [told | {"remove_sources": True} for told in drawn]
    kept, removed = (after(script, config, consolidation=Drawn(one)) for one in (drawn, removing))
    kept.memory.consolidate(dry_run=False)
    gone = removed.memory.consolidate(dry_run=False, allow_destructive=True).forgotten
    far = 10_000
    statuses = {fact.id: fact.status for fact in listed(kept.memory, as_of=far) if fact.id not in gone}
    assert {fact.id: fact.status for fact in listed(removed.memory, as_of=far)} == statuses
