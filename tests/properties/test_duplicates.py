"""Laws of collapsing duplicates: nothing that is said changes at any instant, and once is enough."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Memory, MemoryConfig
from properties.memory_run import CONFIGS, Space, everything, listed, millis
from properties.strategies import METADATA, TAGS, TEXTS, Call, Chooser, Drawn, a_telling, correct, forget

thorough = settings(max_examples=examples(24), deadline=None)
configs = st.sampled_from([config.replace(consolidation="collapse-duplicates") for config in CONFIGS])
SAME = ("alpha beta", " alpha   beta", "alpha\tbeta ", "alpha  beta", TEXTS[2])
IDS = tuple(f"fact {n}" for n in range(8))


def a_duplicate(random: Chooser) -> Call:
    told: dict[str, Any] = {
        "text": random.choice(SAME),
        "id": random.choice(IDS),
        "subject": random.choice((None, None, "s")),
        "event_time": random.choice((None, None, None, 3, 8, 104)),
        "tags": list(random.choice(TAGS)),
        "metadata": random.choice(METADATA),
        "entities": random.choice(((), (), ["Ann"], ["Bob"])),
        "pinned": random.choice((False, False, True)),
    }
    if random.choice((True, False, False)):
        told["valid_from"] = random.choice((1, 3, 98))
        told["valid_to"] = random.choice((None, 110))
    return "remember", told


def a_successor(random: Chooser) -> Call:
    """A fact that takes the place of some, now or later."""
    told = {"text": random.choice((*SAME, "beta delta")), "id": random.choice(IDS), "subject": None}
    told["valid_from"] = random.choice((None, 104, 110, 120))
    told["supersedes"] = random.choice((IDS[:1], IDS[1:2], IDS[:2], IDS[:3], IDS[1:3]))
    return "remember", told


@st.composite
def histories(draw: Any) -> list[Call]:
    random = Drawn(draw)
    usual = (a_duplicate, a_duplicate, a_duplicate, a_successor)
    others = (*usual, *usual, an_end, a_telling_of_the_rest, correct, forget)
    script = [("remember", a_duplicate(random)[1] | {"id": id_}) for id_ in IDS[:3]]
    for _ in range(draw(st.integers(0, 8))):
        script.append(random.choice(others)(random))
        script.append(("advance", {"milliseconds": random.choice((0, 0, 1, 4))}))
    return script


def an_end(random: Chooser) -> Call:
    return "end", {"id": random.choice(IDS), "at": random.choice((None, 110, 112))}


def a_telling_of_the_rest(random: Chooser) -> Call:
    return "remember", a_telling(random)


def after(script: list[Call], config: MemoryConfig) -> Space:
    space = Space(config)
    space.run_all((name, {key: told[key] for key in told if key != "block"}) for name, told in script)
    return space


def said(memory: Memory, as_of: int) -> set[tuple[str | None, str]]:
    facts = listed(memory, as_of=as_of, status="current")
    return {(fact.subject, " ".join(fact.text.split())) for fact in facts}


INSTANTS = (*range(-2, 12), *range(96, 150), 10_000)


@given(configs, histories())
@thorough
def test_the_same_is_said_at_every_instant_before_and_after(config, script):
    space = after(script, config)
    before = [said(space.memory, at) for at in INSTANTS]
    space.memory.consolidate(dry_run=False)
    assert [said(space.memory, at) for at in INSTANTS] == before


@given(configs, histories())
@thorough
def test_a_second_run_plans_nothing(config, script):
    space = after(script, config)
    space.memory.consolidate(dry_run=False)
    shown = everything(space.memory)
    assert space.memory.consolidate(dry_run=False).created == ()
    assert everything(space.memory) == shown


@given(configs, histories())
@thorough
def test_no_two_current_facts_that_are_not_joined_say_the_same_afterwards(config, script):
    space = after(script, config)
    space.memory.consolidate(dry_run=False)
    facts = listed(space.memory, status="current")
    for one in facts:
        chain = {fact.id for fact in space.memory.history(one.id)}
        for other in facts:
            if other.id not in chain:
                assert closing(space.memory, one) != closing(space.memory, other)


def closing(memory: Memory, fact: Any) -> Any:
    ends = [millis(end.at) for end in fact.ends]
    closes = [*ends, *([] if fact.valid_to is None else [millis(fact.valid_to)])]
    return fact.subject, " ".join(fact.text.split()), fact.valid_from, min(closes, default=None)


@given(configs, histories(), st.booleans())
@thorough
def test_the_sources_stay_readable_whatever_the_call_allows(config, script, allowed):
    space = after(script, config)
    before = listed(space.memory)
    done = space.memory.consolidate(dry_run=False, allow_destructive=allowed)
    assert done.forgotten == ()
    known = {fact.id: fact for fact in listed(space.memory)}
    for fact in before:
        assert (known[fact.id].text, known[fact.id].metadata) == (fact.text, fact.metadata)
    for id_ in done.created:
        merged = known[id_]
        sources = [known[source] for source in merged.supersedes]
        assert len(sources) > 1
        assert set(merged.tags) == {tag for source in sources for tag in source.tags}
        assert set(merged.entities) == {entity for source in sources for entity in source.entities}
        assert merged.pinned == any(source.pinned for source in sources)


@given(configs, histories())
@thorough
def test_forgetting_the_merged_fact_brings_the_sources_back(config, script):
    space = after(script, config)
    before = {fact.id: fact.status for fact in listed(space.memory, as_of=9_000)}
    done = space.memory.consolidate(dry_run=False)
    space.memory.forget(ids=done.created)
    assert {fact.id: fact.status for fact in listed(space.memory, as_of=9_000)} == before
