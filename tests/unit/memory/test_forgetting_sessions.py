"""What a forget of all that a session brought takes: facts by their source, and nodes by their evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governed import activate, change, create, evidence, revise
from perdure import Blocked, Conflict, InvalidRequest, ManualClock, Store
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.conversation_forms import turn_uri
from perdure.model.node import Evidence

NOW = 1_760_000_000_000
NAMES = ("monday", "mon", "mon/day", "mon%2Fday", "Monday", "m%", "é")


@pytest.fixture
def store():
    with Store.open(":memory:", clock=ManualClock(NOW)) as opened:
        yield opened


def said(session: str, turn: str = "t0") -> Evidence:
    return Evidence(turn_uri(session, "1", turn), f"digest of {turn}", "session_turn", NOW)


def tell(memory, id_, session, **more):
    memory.remember(f"the text of {id_}", id=id_, source={"uri": turn_uri(session, "1", "t0")}, **more)


def ids(memory):
    return [fact.id for fact in memory.list(order="id").items]


def test_facts_whose_source_is_a_turn_of_the_session_go_hidden_ones_too(store):
    memory = store.memory("ada")
    tell(memory, "a", "monday")
    tell(memory, "b", "tuesday")
    tell(memory, "c", "monday")
    memory.remember("told by nobody", id="d")
    memory.remember("from a kept session", id="e", source={"uri": "perdure:session/monday/4"})
    memory.forget(ids=["c"], soft=True)
    assert memory.forget(session="monday").forgotten == ("a", "c", "e")
    assert ids(memory) == ["b", "d"]
    assert memory.list(hidden=True).items == ()


def test_nodes_with_evidence_from_a_turn_go_with_all_revisions_candidates_too(store):
    memory, repository = store.memory("ada"), store.repository("ada")
    repository.apply(
        change("one", create("waits", evidence=[said("monday")]), create("nine"), create("other"))
    )
    repository.apply(change("two", activate("nine", 1, evidence("desk"), said("monday", "t3"))))
    seen = repository.get("nine").fact
    dry = memory.forget(session="monday", dry_run=True)
    assert dry.forgotten == (seen, "perdure:node/waits@1")
    assert repository.get("waits") is not None
    assert memory.forget(session="monday").forgotten == dry.forgotten
    assert (repository.get("waits"), repository.get("nine")) == (None, None)
    assert repository.get("other") is not None
    assert memory.forget(session="monday").forgotten == ()


def test_the_certificate_counts_a_candidate_and_none_of_its_words_is_left(tmp_path):
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        store.repository("ada").apply(
            change("one", create("waits", "the canary sings", evidence=[said("monday")]))
        )
        gone = store.memory("ada").forget(session="monday")
        assert gone.certificate is not None
        assert store.check_certificate(gone.certificate) == ()
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(b"canary" in path.read_bytes() for path in files)


def test_the_turns_of_the_session_stay(store):
    conversations = store.conversation("ada")
    turn = ConversationTurn(source_id="t0", role="user", text="It opens at nine", observation_time=NOW)
    conversations.remember(ConversationInput(session_id="monday", version="1", turns=(turn,)))
    tell(store.memory("ada"), "a", "monday")
    assert store.memory("ada").forget(session="monday").forgotten == ("a",)
    assert [turn.text for turn in conversations.get("monday", "1").turns] == ["It opens at nine"]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("told_too", [False, True])
def test_softly_a_session_that_brought_a_node_is_refused_whole_a_candidate_too(store, dry_run, told_too):
    memory, repository = store.memory("ada"), store.repository("ada")
    if told_too:
        tell(memory, "a", "monday")
    repository.apply(change("one", create("waits", evidence=[said("monday")])))
    for _ in ("a candidate", "an active node"):
        with pytest.raises(Conflict) as refused:
            memory.forget(session="monday", soft=True, dry_run=dry_run)
        told = refused.value
        assert (told.kind, told.field, told.details["node"]) == ("governed", "soft", "waits")
        assert ids(memory)[: int(told_too)] == ["a"][: int(told_too)]
        if repository.get("waits").status == "candidate":
            repository.apply(change("two", activate("waits", 1)))


def test_softly_facts_of_a_session_without_nodes_are_hidden(store):
    memory = store.memory("ada")
    tell(memory, "a", "monday")
    store.repository("ada").apply(change("one", create("other", evidence=[said("tuesday")])))
    assert memory.forget(session="monday", soft=True).forgotten == ("a",)


@pytest.mark.parametrize("purge", [False, True])
def test_with_a_block_no_text_of_a_node_of_the_session_comes_back(store, purge):
    memory, repository = store.memory("ada"), store.repository("ada")
    candidate = change("one", create("waits", "It opens at nine", evidence=[said("monday")]))
    repository.apply(candidate)
    repository.apply(change("two", create("nine", "It shuts at one", evidence=[said("monday")])))
    repository.apply(change("three", revise("nine", 1, "It shuts at two"), activate("nine", 2)))
    memory.forget(session="monday", block=True, purge=purge)
    for text in ("It opens at nine", "it opens  at NINE", "It shuts at one", "It shuts at two"):
        with pytest.raises(Blocked):
            memory.remember(text)
        with pytest.raises(Blocked):
            repository.apply(change("again", create("new", text)))
    with pytest.raises(Blocked):
        repository.apply(change("again", create("waits", "other words")))
    assert memory.unblock(ids=["perdure:node/waits@1"], texts=["It opens at nine"]) == 2
    repository.apply(change("again", candidate.operations[0]))
    assert repository.get("waits") is not None


def test_without_a_block_and_with_a_forget_of_the_repository_nothing_is_blocked(store):
    memory, repository = store.memory("ada"), store.repository("ada")
    for number in range(3):
        repository.apply(change(f"{number}", create("waits", "It opens at nine", evidence=[said("monday")])))
        if number:
            repository.forget(["waits"])
        else:
            memory.forget(session="monday")
    assert memory.remember("It opens at nine").outcome == "created"


def test_a_dry_run_with_a_block_blocks_nothing(store):
    memory, repository = store.memory("ada"), store.repository("ada")
    repository.apply(change("one", create("waits", "It opens at nine", evidence=[said("monday")])))
    memory.forget(session="monday", block=True, dry_run=True)
    assert memory.remember("It opens at nine").outcome == "created"


def test_candidates_that_cite_blocked_turns_are_blocked_where_they_go_along(store):
    conversations, repository = store.conversation("ada"), store.repository("ada")
    turn = ConversationTurn(source_id="t0", role="user", text="It opens at nine", observation_time=NOW)
    conversations.remember(ConversationInput(session_id="monday", version="1", turns=(turn,)))
    repository.apply(change("one", create("waits", "Shops open at nine", evidence=[said("monday")])))
    turns = store.memory("ada", "#conversation")
    found = [fact.id for fact in turns.list().items]
    assert len(found) == 1
    turns.forget(ids=found, block=True, include_derived=True)
    assert repository.get("waits") is None
    with pytest.raises(Blocked):
        conversations.remember(ConversationInput(session_id="monday", version="1", turns=(turn,)))
    with pytest.raises(Blocked):
        store.memory("ada").remember("Shops open at nine")


def test_a_repeated_key_forgets_what_came_since_no_more_than_any_scope_does(store):
    memory = store.memory("ada")
    tell(memory, "a", "monday")
    assert memory.forget(session="monday", idempotency_key="k").forgotten == ("a",)
    tell(memory, "b", "monday")
    assert memory.forget(session="monday", idempotency_key="k").certificate is None
    assert ids(memory) == ["b"]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300])
def test_what_is_no_name_of_a_session_is_refused(store, name):
    with pytest.raises(InvalidRequest) as refused:
        store.memory("ada").forget(session=name)
    assert refused.value.field == "session"


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6), st.sampled_from(NAMES))
def test_only_what_the_session_of_exactly_this_name_brought_goes(sessions, named):
    with Store.open(":memory:", clock=ManualClock(NOW)) as store:
        memory = store.memory()
        for place, session in enumerate(sessions):
            tell(memory, f"{place}", session)
        wanted = tuple(f"{place}" for place, session in enumerate(sessions) if session == named)
        assert memory.forget(session=named).forgotten == wanted
