"""What the pages on evidence, conversations, sessions and the audit promise across the parts of a store."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from governed import START, activate, change, create, create_active, set_status, successor, supersession
from perdure import AsyncStore, ManualClock, MemoryConfig, Store
from perdure.base.acting import acting
from perdure.model.conversation import ConversationInput, ConversationRecallOptions, ConversationTurn
from perdure.policies import MaxFacts, Prune, StandardAdmission
from perdure.repository_errors import InvalidTransition

HOUR = 3_600_000
SOME = 16  # expired turns are erased so many at a time


@pytest.fixture
def clock():
    return ManualClock(START + HOUR)


@pytest.fixture
def store(clock):
    with Store.open(":memory:", clock=clock) as opened:
        yield opened


def told(version: str, *texts: str) -> ConversationInput:
    turns = tuple(
        ConversationTurn(source_id=f"t{place}", role="user", text=text, observation_time=START)
        for place, text in enumerate(texts)
    )
    return ConversationInput(session_id="monday", version=version, turns=turns)


def test_a_conversation_is_kept_whole_whatever_admission_says_of_facts(store):
    config = MemoryConfig(admission=StandardAdmission())
    secret = "my password is hunter2"
    assert store.memory("ada", config=config).remember(secret).outcome == "refused"
    conversation = store.conversation("ada", config=config)
    assert conversation.remember(told("1", secret)).outcome == "created"
    assert conversation.get("monday", "1").turns[0].text == secret


def test_all_versions_of_a_session_are_searched(store):
    conversation = store.conversation("ada")
    conversation.remember(told("1", "the vault opens at nine"))
    conversation.remember(told("2", "the vault opens at ten"))
    found = conversation.recall("when does the vault open", ConversationRecallOptions(roles=("user",)))
    assert {source.version for source in found.sources} == {"1", "2"}


def test_conversations_move_no_score_of_facts(store):
    memory = store.memory("ada")
    memory.remember("the vault opens at nine", id="nine")
    memory.remember("the door is blue", id="blue")
    before = [(hit.id, hit.score) for hit in memory.recall("when does the vault open")]
    store.conversation("ada").remember(told("1", *(f"the vault opens, turn {n}" for n in range(20))))
    assert [(hit.id, hit.score) for hit in memory.recall("when does the vault open")] == before


@pytest.mark.parametrize("policy", [MaxFacts(1), Prune(max_facts=1)])
def test_no_forgetting_policy_touches_what_a_node_is_seen_as(store, clock, policy):
    store.repository("ada").apply(change("one", *(create_active(name) for name in ("a", "b", "c"))))
    memory = store.memory("ada", config=MemoryConfig(forgetting=policy))
    clock.advance(HOUR)
    memory.remember("a plain fact", id="plain")
    memory.remember("another plain fact", id="other")
    assert memory.apply_forgetting(dry_run=False).forgotten
    left = [fact.id for fact in memory.list().items]
    assert [id_ for id_ in left if id_.startswith("perdure:node/")] == [
        f"perdure:node/{name}@1" for name in ("a", "b", "c")
    ]


def test_what_a_forgotten_node_superseded_stays_superseded(store):
    repository, memory = store.repository("ada"), store.memory("ada")
    repository.apply(change("one", create_active("ten", "the vault opens at ten")))
    repository.apply(
        change("two", *supersession("ten", 1, successor("nine", "ten", "the vault opens at nine")))
    )
    assert [hit.text for hit in memory.recall("vault")] == ["the vault opens at nine"]
    repository.forget(["nine"])
    assert memory.recall("vault") == []
    assert repository.get("ten").status == "superseded"


def test_what_ended_comes_back_by_no_decision(store):
    repository = store.repository("ada")
    repository.apply(change("one", create("blue")))
    repository.apply(change("two", set_status("blue", 1, "tombstoned")))
    for step in (activate("blue", 2), set_status("blue", 2, "superseded")):
        with pytest.raises(InvalidTransition):
            repository.apply(change("three", step))
    assert repository.get("blue").status == "tombstoned"


def test_who_acts_in_one_thread_acts_in_no_other(store):
    memory = store.memory("ada")
    other = threading.Thread(target=lambda: memory.remember("told beside"))
    with acting("crawler"):
        memory.remember("told within")
        other.start()
        other.join()
    assert [event.actor for event in memory.events().items] == ["crawler", None]


def test_who_acts_in_one_task_acts_in_no_other(clock):
    async def tell(memory, name):
        with acting(name):
            await asyncio.sleep(0)
            await memory.remember(f"told by {name}")

    async def run():
        async with await AsyncStore.open(":memory:", clock=clock) as store:
            memory = await store.memory("ada")
            await asyncio.gather(*(tell(memory, name) for name in ("one", "two", "three")))
            facts = {fact.id: fact.text for fact in (await memory.list()).items}
            return {(facts[event.fact_id], event.actor) for event in (await memory.events()).items}

    assert asyncio.run(run()) == {(f"told by {name}", name) for name in ("one", "two", "three")}


def test_turns_that_expired_are_erased_along_with_new_ones_and_exports_have_the_rest(tmp_path, clock):
    with Store.open(tmp_path / "store", clock=clock) as store:
        session = store.session("breakfast", "ada", ttl=timedelta(hours=1))
        for place in range(SOME):
            session.add_turn("user", f"the canary sings {place}")
        clock.advance(2 * HOUR)
        session.add_turn("user", "the sparrow sings")
        lines = b"".join(store.export_lines())
    assert b"sparrow" in lines
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(b"canary" in path.read_bytes() for path in files)
