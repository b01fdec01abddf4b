"""Laws of forgetting: what is gone is gone from every read at once, and weighs in no score."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import MemoryConfig
from perdure.policies import Relevance
from properties import strategies
from properties.memory_run import CONFIGS, Space, everything, listed, statuses
from properties.strategies import IDS, TEXTS, Call, Drawn, scripts

CANARY = "quokka"
configs = st.sampled_from(CONFIGS)
queries = st.sampled_from(("alpha", "beta gamma", "delta alpha epsilon", "gamma"))
thorough = settings(max_examples=examples(24), deadline=None)


@st.composite
def forgettings(draw: Any) -> dict[str, Any]:
    return dict(strategies.forget(Drawn(draw))[1]) | {"dry_run": False}


def marked(script: list[Call]) -> list[Call]:
    """The script with the canary in every text that it tells."""

    def mark(told: dict[str, Any]) -> dict[str, Any]:
        texts = {name: f"{told[name]} {CANARY}" for name in ("text", "new_text") if name in told}
        return {
            **told,
            **texts,
            **({"facts": [mark(one) for one in told["facts"]]} if "facts" in told else {}),
        }

    return [
        (name, mark(told) if name in ("remember", "remember_many", "correct") else told)
        for name, told in script
    ]


def every_id(space: Space) -> dict[str, str]:
    facts = (*listed(space.memory), *listed(space.memory, hidden=True))
    return {fact.id: fact.text for fact in facts}


def shown_ids(space: Space, id_: str) -> set[str]:
    """Every id that any read shows, also under questions that name the id."""
    memory, documents = space.memory, space.store.documents()
    shown: set[str] = set()
    for as_of in (None, 0, 3):
        for known_at in (None, 101):
            times: dict[str, Any] = {"as_of": as_of, "known_at": known_at}
            facts = [*listed(memory, **times), *memory.history(id_, **times)]
            shown |= {one for fact in facts for one in (fact.id, *fact.supersedes, *fact.superseded_by)}
            for history in ("current", "historical", "all"):
                hits = memory.recall(CANARY, k=1_000, history=history, explain=True, **times)
                shown |= {hit.id for hit in hits}
                shown |= {link.id for hit in hits for link in hit.explanation.chain}
            if memory.get(id_, **times) is not None:
                shown.add(id_)
    shown |= {one for change in memory.changes(limit=1_000).items for one in change.ids}
    shown |= {hit.id for hit in documents.search(CANARY, k=1_000)}
    shown |= {document.id for document in documents.list(limit=1_000).items}
    if documents.has(id_) or documents.get(id_) is not None:
        shown.add(id_)
    if space.run(("explain", {"query": CANARY, "id": id_})) != "not_found":
        shown.add(id_)
    return shown


@given(configs, scripts(), forgettings())
@thorough
def test_a_forgotten_fact_is_absent_from_every_read_at_once(config, script, how):
    space = Space(config)
    space.run_all(marked(script))
    how = how | {"soft": False}
    for id_ in space.memory.forget(**how).forgotten:
        assert id_ not in shown_ids(space, id_)
        assert id_ not in every_id(space)


@given(configs, scripts(), forgettings())
@thorough
def test_a_hidden_fact_is_absent_from_every_read_but_the_one_that_lists_hidden_facts(config, script, how):
    space = Space(config)
    space.run_all(marked(script))
    hidden = space.memory.forget(**how | {"soft": True}).forgotten
    for id_ in hidden:
        # The feed tells a follower which facts were hidden.
        assert id_ not in shown_ids(space, id_) - {
            one
            for change in space.memory.changes(limit=1_000).items
            if change.kind == "hidden"
            for one in change.ids
        }
    assert set(hidden) <= {fact.id for fact in listed(space.memory, hidden=True)}


@given(configs, scripts(), forgettings())
@thorough
def test_a_forgotten_text_is_in_no_record_of_the_log(config, script, how):
    space = Space(config)
    space.run_all(marked(script))
    space.memory.forget(**how | {"soft": False})
    log = space.store.log
    entries = [entry for number in log.spaces() for entry in log.read(number, 0, log.head(number).seq)]
    held = [entry for entry in entries if entry.data is not None and CANARY.encode() in entry.data]
    assert len(held) == len(every_id(space))


@given(configs, scripts(), forgettings())
@thorough
def test_a_dry_run_changes_nothing_and_names_what_the_real_one_takes(config, script, how):
    space = Space(config)
    space.run_all(script)
    before = everything(space.memory)
    dry = space.memory.forget(**how | {"dry_run": True})
    assert dry.dry_run
    assert everything(space.memory) == before
    real = space.memory.forget(**how)
    assert not real.dry_run
    assert real.forgotten == dry.forgotten == tuple(sorted(set(dry.forgotten)))


@given(configs, scripts(), forgettings())
@thorough
def test_forgetting_twice_takes_nothing_more(config, script, how):
    space = Space(config)
    space.run_all(script)
    space.memory.forget(**how)
    before = everything(space.memory)
    assert space.memory.forget(**how).forgotten == ()
    assert everything(space.memory) == before


@given(configs, scripts(), st.sampled_from(IDS))
@thorough
def test_forgetting_with_its_chain_leaves_no_version(config, script, id_):
    space = Space(config)
    space.run_all(script)
    members = [fact.id for fact in space.memory.history(id_)]
    gone = space.memory.forget(ids=[id_], include_chain=True).forgotten
    assert set(members) <= set(gone)
    assert all(space.memory.get(member) is None for member in members)
    assert all(not set(gone) & {*fact.supersedes, *fact.superseded_by} for fact in listed(space.memory))


# Statistics


@given(configs, scripts(), queries)
@thorough
def test_scores_are_those_of_a_store_that_never_held_what_is_gone_or_hidden(config, script, query):
    space, fresh = Space(config), Space()
    space.run_all(script)
    for fact in listed(space.memory):
        fresh.memory.remember(fact.text, id=fact.id)
    found, expected = (one.store.documents().search(query, k=1_000) for one in (space, fresh))
    assert [(hit.id, hit.score.hex()) for hit in found] == [(hit.id, hit.score.hex()) for hit in expected]


@given(scripts(), queries)
@thorough
def test_relevance_too_weighs_as_a_store_that_never_held_what_is_gone(script, query):
    config = MemoryConfig(ranking=Relevance())
    space, fresh = Space(config), Space(config)
    space.run_all(script)
    for fact in listed(space.memory):
        fresh.clock.set(fact.ingest_time)
        annotations = {"tags": fact.tags, "kind": fact.kind, "importance": fact.importance}
        times = {"event_time": fact.event_time or fact.valid_from}
        fresh.memory.remember(fact.text, id=fact.id, **annotations, **times)
    fresh.clock.set(10_000)
    asked: dict[str, Any] = {"k": 1_000, "history": "all", "as_of": 10_000}
    found, expected = (one.memory.recall(f"{query} red semantic", **asked) for one in (space, fresh))
    assert [(hit.id, hit.score.hex()) for hit in found] == [(hit.id, hit.score.hex()) for hit in expected]


@given(configs, scripts(), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), queries)
@thorough
def test_passing_guests_leave_no_trace_in_what_is_recalled(config, script, guests, query):
    space, untouched = Space(config), Space(config)
    for place, (name, told) in enumerate(script):
        # A guest's passing is recorded too, so a clock that goes back would show how late that was.
        call = (name, {"milliseconds": abs(told["milliseconds"])} if name == "advance" else told)
        if place == len(script) // 2:
            for number, text in enumerate(guests):
                space.memory.remember(
                    f"{text} guest", id=f"guest {number}", metadata={"guest": True}, tags=["guest"]
                )
            space.memory.forget(tag="guest", soft=True)
            space.memory.restore(["guest 0"])
            assert len(space.memory.forget(matching={"guest": True}).forgotten) == len(guests)
        untouched.run(call)
        space.run(call)
    for history in ("current", "historical", "all"):
        options: dict[str, Any] = {"history": history, "k": 1_000}
        assert space.memory.recall(query, **options) == untouched.memory.recall(query, **options)
    assert listed(space.memory) == listed(untouched.memory)


# Hiding


@given(configs, scripts(), forgettings())
@thorough
def test_restoring_brings_back_every_hidden_fact_as_it_was_told(config, script, how):
    space = Space(config)
    space.run_all(script)
    before = {fact.id: fact for fact in listed(space.memory)}
    hidden = space.memory.forget(**how | {"soft": True}).forgotten
    assert space.memory.restore(hidden) == hidden
    after = {fact.id: fact for fact in listed(space.memory)}
    assert after.keys() == before.keys()
    assert [fact.id for fact in after.values()] == [fact.id for fact in before.values()]
    for id_, fact in after.items():
        was = before[id_]
        assert (fact.text, fact.metadata, fact.ends, fact.tags, fact.ingest_time) == (
            was.text,
            was.metadata,
            was.ends,
            was.tags,
            was.ingest_time,
        )
        assert set(was.supersedes) <= set(fact.supersedes)
        assert set(was.superseded_by) <= set(fact.superseded_by)
    assert space.memory.restore(hidden) == ()


def unlinked(call: Call) -> Call:
    name, told = call
    facts = [{**one, "supersedes": []} for one in told.get("facts", ())]
    return name, {
        **told,
        **({"supersedes": []} if name == "remember" else {}),
        **({"facts": facts} if facts else {}),
    }


@given(scripts(), st.sampled_from(IDS))
@thorough
def test_hiding_and_restoring_a_fact_of_a_slot_leaves_every_status_as_it_was(script, id_):
    space = Space(CONFIGS[3])
    # Told links may run against the order of time, and the links that bridge a hidden fact stay.
    space.run_all(call for call in map(unlinked, script) if call[0] != "correct")
    instants = (0, 2, 4, 8, 99, 105, 200)
    before = [{fact.id: fact.status for fact in listed(space.memory, as_of=at)} for at in instants]
    hidden = space.memory.forget(ids=[id_], soft=True).forgotten
    space.memory.restore(hidden)
    assert [{fact.id: fact.status for fact in listed(space.memory, as_of=at)} for at in instants] == before


@given(scripts(), st.sampled_from(IDS))
@thorough
def test_hiding_and_restoring_revives_nothing(script, id_):
    space = Space(CONFIGS[3])
    space.run_all(script)
    instants = (0, 2, 4, 8, 99, 105, 200)
    before = [set(statuses(space.memory, status="superseded", as_of=at)) for at in instants]
    space.memory.restore(space.memory.forget(ids=[id_], soft=True).forgotten)
    after = [set(statuses(space.memory, status="superseded", as_of=at)) for at in instants]
    assert all(was <= now for was, now in zip(before, after, strict=True))
