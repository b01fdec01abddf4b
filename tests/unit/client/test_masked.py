"""A client with a mask: the server sees other vectors, and gives the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import InvalidRequest, ManualClock, MemoryConfig
from perdure.client import Client
from perdure.server.app import create_app
from perdure.server.settings import Settings
from unit.client.waiting import WaitingClient

KEY = bytes(range(32))
BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])
numbers = st.floats(-100, 100, width=32)


def app(**config):
    told = Settings(":memory:", auth=False, config=MemoryConfig(**config))
    return create_app(told, clock=ManualClock(1_000))


def vectors(size):
    return st.lists(numbers, min_size=size, max_size=size).filter(lambda one: any(abs(n) > 1e-3 for n in one))


@settings(max_examples=10, deadline=None)
@given(st.lists(vectors(9), min_size=1, max_size=12), vectors(9))
def test_a_recall_gives_the_same_facts_in_the_same_order_with_the_same_scores_bit_for_bit(told, query):
    answers = []
    for mask in (None, KEY):
        with Client(app=app(), vector_mask=mask) as client:
            memory = client.memory("alice")
            memory.remember_many(
                [{"text": f"Fact {n}", "id": str(n), "embedding": v} for n, v in enumerate(told)]
            )
            answers.append(
                [
                    [(hit.id, hit.score.hex()) for hit in memory.recall("fact 1", embedding=query, mode=mode)]
                    for mode in ("semantic", "hybrid")
                ]
            )
    assert answers[0] == answers[1]


@BOTH
def test_what_the_server_keeps_is_masked_and_what_is_read_back_is_not(make):
    served = app()
    with make(app=served, vector_mask=KEY) as client:
        memory = client.memory("alice")
        memory.remember("The kettle is blue", embedding=[1.0] * 16)
        trace = memory.trace("kettle", embedding=[1.0] * 16)
        assert trace.options["embedding"] == [1.0] * 16
        memory.correct("The kettle is red", containing="kettle", embedding=[2.0] * 16)
        lines = b"".join(client.store.export_lines())
    with make(app=app()) as client:
        client.memory("alice").remember("The kettle is blue", embedding=[1.0] * 16)
        plain = b"".join(client.store.export_lines())
    kept = [line for line in lines.splitlines() if b'"vector"' in line]
    assert len(kept) == 2
    assert not set(kept) & set(plain.splitlines())


@BOTH
def test_documents_are_masked_as_facts_are(make):
    with make(app=app(), vector_mask=KEY) as client:
        documents, memory = client.documents("alice"), client.memory("alice")
        documents.put("one", "Descale the oven", embedding=[1.0, 2.0, 3.0])
        documents.put("two", "word " * 5_000, embedding=[[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
        found = documents.search("oven", embedding=[1.0, 2.0, 3.0], mode="semantic")
        assert found[0].id == "one"
        assert found[0].score == memory.recall("oven", embedding=[1.0, 2.0, 3.0], mode="semantic")[0].score
        assert memory.explain("oven", "one", embedding=[1, 2, 3]).semantic_score == pytest.approx(1.0)


@BOTH
@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_a_mode_of_vectors_needs_one(make, mode):
    with make(app=app(), vector_mask=KEY) as client:
        memory, documents = client.memory("alice"), client.documents("alice")
        for call in (memory.recall, memory.trace, documents.search):
            with pytest.raises(InvalidRequest) as refused:
                call("kettle", mode=mode)
            assert refused.value.field == "embedding"
        with pytest.raises(InvalidRequest):
            memory.explain("kettle", "nobody", mode=mode)


@BOTH
def test_a_server_that_embeds_texts_itself_is_refused_before_anything_is_sent(make):
    served = app(embedder="hashing")
    with make(app=served, vector_mask=KEY) as client:
        for call in (
            lambda: client.memory("alice").remember("The kettle is blue"),
            lambda: client.memory("alice").recall("kettle"),
            lambda: client.documents("alice").put("one", "Descale the oven"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                call()
            assert refused.value.field == "vector_mask"
        assert client.memory("alice").capabilities().features.embedder_model is not None
        assert client.store.spaces() == []


@BOTH
def test_plain_requests_are_refused_since_no_mask_would_reach_them(make):
    with make(app=app(), vector_mask=KEY) as client:
        with pytest.raises(InvalidRequest) as refused:
            client.memory("alice").call("recall", {"query": "kettle"})
        assert refused.value.field == "vector_mask"
