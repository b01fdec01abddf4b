"""Turns that are forgotten as the facts that they are found as: what quotes and cites them goes as with the turns."""

from __future__ import annotations

import pytest

from erasure.scan import holders
from governed import BACKENDS, START, change, create_active, opened
from perdure import Conflict, InvalidRequest, MemoryConfig, NewFact
from perdure.model.conversation_forms import chunk_id, turn_uri
from perdure.model.node import Evidence
from talks import talk

MARKER = "Qzfjordmarker7731"
GONE, KEPT = turn_uri("s", "v1", "t0"), turn_uri("s", "v1", "t1")
CHUNK = chunk_id(GONE, 0)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def store(tmp_path, backend):
    """Return a store in which a node quotes two turns, and a fact names the first as its source."""
    with opened(tmp_path, backend) as store:
        store.conversation("alice", "work").remember(talk([f"we met at {MARKER}", "then it rained"]))
        proofs = [
            Evidence(GONE, "d0", "manual", START, MARKER),
            Evidence(KEPT, "d1", "manual", START, "it rained"),
        ]
        store.repository("alice", "work").apply(change("k1", create_active("n", "a walk", evidence=proofs)))
        store.memory("alice", "work").remember("a fact from a turn", id="f", source={"uri": GONE})
        yield store


@pytest.fixture
def chunks(store):
    return store.memory("alice", "work#conversation")


def quotes(store):
    return [one.quote for one in store.repository("alice", "work").get("n").evidence]


SCOPES = [
    {"ids": [CHUNK]},
    {"containing": MARKER},
    {"filter": {"position": 0}},
    {"ids": [CHUNK], "purge": True},
    {"ids": [CHUNK], "block": True},
    {"ids": [CHUNK], "include_chain": True},
    {"ids": [CHUNK], "idempotency_key": "k"},
]


@pytest.mark.parametrize("scope", SCOPES, ids="-".join)
def test_quotes_go_with_the_pieces_of_their_turn_and_what_cites_it_is_named(
    tmp_path, backend, store, chunks, scope
):
    receipt = chunks.forget(**scope)
    assert (receipt.forgotten, receipt.derived) == ((CHUNK,), ("f", "n"))
    assert quotes(store) == [None, "it rained"]
    assert store.conversation("alice", "work").get("s", "v1").gaps == (0,)
    assert store.verify().findings == ()
    assert store.check_certificate(receipt.certificate) == ()
    if backend != "memory":
        assert holders(tmp_path, MARKER) == {}


def test_all_that_cites_the_turn_goes_along_where_that_is_asked(tmp_path, backend, store, chunks):
    receipt = chunks.forget(ids=[CHUNK], include_derived=True)
    assert (receipt.forgotten, receipt.derived) == (("f", "n", CHUNK), ())
    assert store.repository("alice", "work").get("n") is None
    assert store.memory("alice", "work").list().total == 0
    assert chunks.list().total == 1
    if backend != "memory":
        assert holders(tmp_path, MARKER) == {}


@pytest.mark.parametrize("include_derived", [False, True])
def test_a_dry_run_tells_what_the_forget_does_and_changes_nothing(store, chunks, include_derived):
    asked = {"containing": MARKER, "include_derived": include_derived}
    token = store.repository("alice", "work").change_token()
    told = chunks.forget(dry_run=True, **asked)
    assert (chunks.list().total, quotes(store)) == (2, [MARKER, "it rained"])
    assert store.repository("alice", "work").change_token() == token
    done = chunks.forget(**asked)
    assert (told.forgotten, told.derived) == (done.forgotten, done.derived)


def test_all_turns_at_once_take_all_quotes(store, chunks):
    assert chunks.forget(all=True).derived == ("f", "n")
    assert quotes(store) == [None, None]


def test_a_retry_under_a_key_erases_nothing_that_was_told_since(store, chunks):
    chunks.forget(ids=[CHUNK], idempotency_key="k")
    with pytest.raises(Conflict):
        chunks.forget(ids=[chunk_id(KEPT, 0)], idempotency_key="k")
    assert quotes(store) == [None, "it rained"]
    again = chunks.forget(ids=[CHUNK], idempotency_key="k")
    assert (again.forgotten, again.derived) == ((), ())
    assert quotes(store) == [None, "it rained"]


def test_a_plain_fact_among_the_conversations_takes_no_quotes(store, chunks):
    chunks.remember("a remark", id="remark")
    assert chunks.forget(ids=["remark"]).derived == ()
    assert quotes(store) == [MARKER, "it rained"]


def test_a_turn_cannot_be_hidden(store, chunks):
    with pytest.raises(Conflict) as caught:
        chunks.forget(ids=[CHUNK], soft=True)
    assert caught.value.details["kind"] == "governed"
    assert quotes(store) == [MARKER, "it rained"]


class Everything:
    """Names every fact that it is shown, and the pieces of turns besides."""

    def select(self, facts, now):
        return [*(fact.id for fact in facts), CHUNK, chunk_id(KEPT, 0)]


def test_no_policy_no_document_and_no_telling_takes_a_turn(store):
    config = MemoryConfig(forgetting=Everything(), on_id_conflict="replace")
    memory = store.memory("alice", "work#conversation", config=config)
    memory.remember("a remark", id="remark")
    assert memory.apply_forgetting(dry_run=False, include_derived=True, include_chain=True).forgotten == (
        "remark",
    )
    with pytest.raises(InvalidRequest):
        store.documents("alice", "work#conversation").delete(CHUNK)
    with pytest.raises(InvalidRequest):
        memory.remember_many([NewFact(text="other words", id=CHUNK)])
    assert store.conversation("alice", "work").get("s", "v1").gaps == ()
    assert quotes(store) == [MARKER, "it rained"]


def test_erasing_the_conversations_alone_takes_what_is_quoted_of_them(tmp_path, backend, store):
    told = store.erase("alice", "work#conversation", dry_run=True)
    assert quotes(store) == [MARKER, "it rained"]
    erased = store.erase("alice", "work#conversation")
    assert (erased.spaces, erased.facts) == (told.spaces, told.facts)
    assert quotes(store) == [None, None]
    assert store.verify().findings == ()
    assert store.check_certificate(erased.certificate) == ()
    if backend != "memory":
        assert holders(tmp_path, MARKER) == {}
