"""A memory whose configuration names an embedder: what is stored, asked, embedded later, and embedded anew."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perdure import Memory, MemoryConfig
from perdure.base.text import counted
from perdure.embedders import HashingEmbedder, StaticEmbedder
from perdure.errors import Conflict, InvalidRequest, Unavailable
from perdure.model.replies import Embedded

STATIC = MemoryConfig(embedder="static")


class Moody:
    """An embedder that works until it is told to fail."""

    query_task = None

    def __init__(self, model="moody.v1", dimension=64):
        self.model, self.dimension, self.fails = model, dimension, False
        self._makes = HashingEmbedder(dimension)

    def embed_documents(self, texts):
        if self.fails:
            raise Unavailable("the endpoint is down")
        return self._makes.embed_documents(texts)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def told(memory):
    memory.remember("Ann adopted a puppy from the shelter", id="puppy")
    memory.remember("The quarterly report is due on Friday", id="report")
    return memory


@pytest.mark.parametrize("embedder", ["static", "hashing", HashingEmbedder(32), StaticEmbedder(), Moody()])
def test_a_fact_is_found_by_meaning_and_by_words(store, embedder):
    memory = told(store.memory(config=MemoryConfig(embedder=embedder)))
    for mode in ("semantic", "hybrid", None):
        hits = memory.recall("an adopted puppy", mode=mode)
        assert [hit.id for hit in hits] == ["puppy", "report"]
    assert [hit.id for hit in memory.recall("an adopted puppy", mode="lexical")] == ["puppy"]


def test_a_question_that_shares_no_word_with_its_fact_finds_it_by_the_table(store):
    memory = told(store.memory(config=STATIC))
    assert memory.recall("Does she have a dog?", mode="lexical") == []
    assert memory.recall("Does she have a dog?", k=1)[0].id == "puppy"


def test_a_configuration_read_from_json_embeds_as_one_made_in_code(store):
    by_json = MemoryConfig.from_json(json.dumps({"embedder": "static", "embeddingDimension": 256}))
    memory = told(store.memory(config=by_json))
    assert memory.recall("Does she have a dog?") == store.memory(config=STATIC).recall("Does she have a dog?")
    assert memory.capabilities().features.embedder_model == StaticEmbedder().model


def test_what_an_embedder_fails_on_is_stored_found_by_words_and_embedded_later(store):
    embedder = Moody()
    memory = store.memory(config=MemoryConfig(embedder=embedder))
    embedder.fails = True
    reply = memory.remember("Ann adopted a puppy", id="puppy")
    assert reply.outcome == "created"
    assert "embed_missing" in reply.reason
    assert memory.recall("puppy", mode="lexical")[0].id == "puppy"
    with pytest.raises(Unavailable):
        memory.embed_missing()
    embedder.fails = False
    assert memory.recall("puppy", mode="semantic") == []
    done = memory.embed_missing()
    assert (done.embedded, done.missing) == (1, 0)
    assert memory.recall("puppy", mode="semantic")[0].id == "puppy"
    assert memory.embed_missing().embedded == 0


def test_a_question_raises_what_its_embedder_raises(store):
    embedder = Moody()
    memory = told(store.memory(config=MemoryConfig(embedder=embedder)))
    embedder.fails = True
    with pytest.raises(Unavailable, match="down"):
        memory.recall("puppy")


def test_a_query_that_is_asked_again_needs_no_embedder(store):
    embedder = Moody()
    memory = told(store.memory(config=MemoryConfig(embedder=embedder)))
    before = memory.recall("puppy", mode="hybrid")
    embedder.fails = True
    assert memory.recall("puppy", mode="hybrid") == before
    with pytest.raises(Unavailable):
        memory.recall("report", mode="hybrid")


def test_facts_told_before_there_was_an_embedder_get_their_vectors_when_asked(store):
    told(store.memory())
    memory = store.memory(config=STATIC)
    assert memory.recall("Does she have a dog?") == []
    assert [memory.embed_missing(limit=1).missing, memory.embed_missing().missing] == [1, 0]
    assert memory.recall("Does she have a dog?", k=1)[0].id == "puppy"


def test_a_dry_run_counts_what_has_no_vector_and_embeds_nothing(store):
    told(store.memory())
    store.documents().put("guide", "A long way. " * 5_000)
    memory = store.memory(config=STATIC)
    memory.remember("The harbour was empty", id="harbour")
    units = memory.embed_missing(dry_run=True).missing - 2
    assert units > 1
    for asking in (memory, store.memory()):  # whoever only counts needs no embedder
        reply = asking.embed_missing(dry_run=True)
        assert (reply.embedded, reply.missing, reply.dry_run) == (0, 2 + units, True)
    assert store.stats().without_vector == 2 + units
    done = memory.embed_missing()
    assert (done.embedded, done.missing, done.dry_run) == (2 + units, 0, False)
    assert store.stats().without_vector == 0


@pytest.mark.parametrize("value", [1, "yes", 0.0])
def test_a_dry_run_is_true_or_false(store, value):
    with pytest.raises(InvalidRequest, match="dry_run"):
        store.memory(config=STATIC).embed_missing(dry_run=value)


def test_what_is_stored_without_a_vector_is_counted_in_all_memories_and_no_more_once_it_is_forgotten(store):
    assert store.stats().without_vector == 0
    told(store.memory())
    told(store.memory("bo"))
    assert store.stats().without_vector == 4
    store.memory().forget(ids=["puppy"])
    store.memory("bo").forget(ids=["puppy"], soft=True)
    assert store.stats().without_vector == 3


def test_a_fact_without_a_vector_is_left_out_for_that_reason(store):
    told(store.memory())
    memory = store.memory(config=STATIC)
    memory.remember("The harbour was empty", id="harbour")
    reasons = {
        mode: {one.id: one.reason for one in memory.trace("Does she have a dog?", mode=mode).rejected}
        for mode in ("hybrid", "semantic", "lexical")
    }
    assert reasons["hybrid"] == reasons["semantic"] == {"puppy": "no-vector", "report": "no-vector"}
    assert set(reasons["lexical"].values()) == {"no-match"}
    assert memory.explain("Does she have a dog?", "puppy").reason == "no-vector"
    assert memory.explain("an adopted puppy", "puppy").reason == "returned"  # by its words
    memory.embed_missing()
    assert memory.trace("Does she have a dog?").rejected == ()


def test_another_model_is_refused_until_everything_is_embedded_anew(store):
    told(store.memory(config=MemoryConfig(embedder=Moody("moody.v1"))))
    memory = store.memory(config=MemoryConfig(embedder=Moody("moody.v2")))
    with pytest.raises(InvalidRequest, match="reindex"):
        memory.recall("puppy")
    with pytest.raises(InvalidRequest, match="reindex"):
        memory.remember("Another fact")
    assert memory.reindex(embeddings=True).embedded == 2
    assert memory.recall("puppy", mode="semantic")[0].id == "puppy"


def test_a_vector_of_the_caller_is_kept_where_an_embedder_makes_the_others(store):
    memory = store.memory(config=MemoryConfig(embedder=Moody(dimension=8)))
    vector = np.eye(8, dtype=np.float32)[3]
    memory.remember("words that say nothing of it", id="given", embedding=vector)
    memory.remember("other words", id="made")
    assert memory.recall("", embedding=vector)[0].id == "given"
    memory.reindex(embeddings=True)
    assert memory.recall("", embedding=vector)[0].id == "given"


def test_a_vector_of_another_dimension_than_the_embedders_is_refused(store):
    memory = told(store.memory(config=STATIC))
    with pytest.raises(InvalidRequest) as caught:
        memory.remember("A fact", embedding=[1.0, 0.0])
    assert caught.value.field == "embedding"


def test_without_an_embedder_there_is_nothing_to_embed_with(store):
    memory = told(store.memory())
    for call in (memory.embed_missing, lambda: memory.reindex(embeddings=True)):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.field == "embedder"


def test_a_correction_of_the_embedding_alone_is_a_correction(store):
    memory = store.memory()
    memory.remember("The harbour is empty", id="a", embedding=[1.0, 0.0])
    assert memory.correct("The harbour is empty", id="a").outcome == "existing"
    assert memory.correct("The harbour is empty", id="a", embedding=[1.0, 0.0]).outcome == "existing"
    corrected = memory.correct("The harbour is empty", id="a", embedding=[0.0, 1.0])
    assert corrected.created
    assert [(hit.id, hit.score) for hit in memory.recall("", embedding=[0.0, 1.0])] == [(corrected.id, 1.0)]
    again = memory.correct("The harbour is empty", id="a", embedding=[0.0, 1.0])
    assert (again.outcome, again.id) == ("existing", corrected.id)
    with pytest.raises(Conflict):
        memory.correct("The harbour is empty", id="a", embedding=[1.0, 1.0])


def test_a_reindexing_that_is_refused_leaves_every_vector_where_it_was(store):
    memory = told(store.memory(config=STATIC))
    memory.remember("told", embedding=[1.0] * 256)
    other = store.memory(config=MemoryConfig(embedder=HashingEmbedder(dimension=64)))
    with pytest.raises(InvalidRequest, match="256"):
        other.reindex(embeddings=True)
    assert len(memory.recall("puppy", mode="semantic")) == 3


class Failing(Moody):
    """An embedder that fails on its n-th call, in a way of its own or with a wrong answer."""

    def __init__(self, at, answer):
        super().__init__("failing.v1")
        self.at, self.answer = at, answer

    def embed_documents(self, texts):
        self.at -= 1
        if self.at:
            return super().embed_documents(texts)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(len(texts))


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (KeyError("people's text"), KeyError),
        (Unavailable("the endpoint is down"), type(None)),
        (lambda count: np.ones((count, 3)), type(None)),
        (lambda count: np.full((count, 64), np.nan), type(None)),
        (lambda count: [["a"]] * count, type(None)),
    ],
)
def test_an_embedder_that_does_not_work_is_found_out_before_any_vector_is_dropped(store, answer, cause):
    memory = told(store.memory(config=STATIC))
    before = memory.recall("puppy", mode="semantic")
    bad = store.memory(config=MemoryConfig(embedder=Failing(1, answer)))
    with pytest.raises(Unavailable) as caught:
        bad.reindex(embeddings=True, b=0.1)
    assert isinstance(caught.value.__cause__, cause)
    assert "people's text" not in str(caught.value)
    assert memory.recall("puppy", mode="semantic") == before
    assert memory.embed_missing().missing == 0


def test_an_embedder_that_fails_later_leaves_what_embed_missing_completes(store):
    memory = told(store.memory(config=STATIC))
    flaky = store.memory(config=MemoryConfig(embedder=Failing(2, KeyError())))
    with pytest.raises(Unavailable, match="KeyError"):
        flaky.reindex(embeddings=True)
    assert flaky.recall("puppy", mode="semantic") == []
    assert [hit.id for hit in flaky.recall("puppy", mode="lexical")] == ["puppy"]
    assert flaky.embed_missing() == Embedded(2, 0)
    assert flaky.recall("puppy", mode="semantic", k=1)[0].id == "puppy"
    with pytest.raises(InvalidRequest, match="64"):
        memory.recall("puppy")


def test_an_empty_memory_is_reindexed_by_an_embedder_that_was_never_asked(store):
    memory = store.memory(config=MemoryConfig(embedder=Failing(1, KeyError())))
    assert memory.reindex(embeddings=True).embedded == 0


def test_given_vectors_alone_refuse_an_embedder_of_another_dimension_before_anything_is_done(store):
    store.memory().remember("told", embedding=[1.0, 0.0, 0.0])
    other = store.memory(config=MemoryConfig(embedder=HashingEmbedder(dimension=64)))
    for call in (lambda: other.reindex(embeddings=True), other.embed_missing):
        with pytest.raises(InvalidRequest, match="64"):
            call()


def test_another_model_is_refused_also_where_nothing_is_missing(store):
    told(store.memory(config=STATIC))
    with pytest.raises(InvalidRequest, match="static"):
        store.memory(config=MemoryConfig(embedder=HashingEmbedder(dimension=256))).embed_missing()


def test_a_given_vector_does_not_go_lost_by_merging(store):
    memory = store.memory(config=MemoryConfig(dedup="merge-exact"))
    first = memory.remember("The quick brown fox jumps over it")
    second = memory.remember("the quick brown fox jumps over it", embedding=[1.0, 0.0])
    assert (second.outcome, second.id != first.id) == ("created", True)
    assert [hit.id for hit in memory.recall("", embedding=[1.0, 0.0])] == [second.id]
    assert memory.remember("THE quick brown fox jumps over it", embedding=[1.0, 0.0]).outcome == "merged"


def test_weights_that_would_overflow_are_refused(store):
    memory = store.memory()
    memory.remember("alice", embedding=[1.0, 0.0])
    with pytest.raises(InvalidRequest, match=r"weights\.lexical"):
        memory.recall("alice", embedding=[1.0, 0.0], weights={"lexical": 1e308, "semantic": 1e308})


def test_a_wrong_fusion_is_named_before_the_mode_is_judged_and_the_mode_says_what_it_takes(store):
    memory = told(store.memory())
    with pytest.raises(InvalidRequest, match="fusion must be one of minmax, rrf, got 'max'"):
        memory.recall("puppy", fusion="max")
    with pytest.raises(InvalidRequest, match="embedder in the configuration or an embedding") as caught:
        memory.recall("puppy", fusion="rrf")
    assert caught.value.field == "fusion"


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"words": 1.0, "semantic": 0.5}, "no part 'words'"),
        ({"two words": 1.0}, "no part a text of 9 characters"),
        ({3: 1.0}, "no part int"),
        ((0.5, 0.5), "got tuple"),
        ({}, "got an empty one"),
    ],
)
def test_wrong_weights_are_told_by_the_name_of_what_is_wrong(store, weights, words):
    memory = told(store.memory(config=STATIC))
    with pytest.raises(InvalidRequest, match=words) as caught:
        memory.recall("puppy", weights=weights)
    assert caught.value.field == "weights"


@pytest.mark.parametrize("fusion", ["minmax", "rrf"])
def test_a_weight_that_is_left_out_is_as_usual(store, fusion):
    memory = told(store.memory(config=STATIC))
    usual = memory.recall("puppy", fusion=fusion, explain=True)[0].explanation.weights
    changed = memory.recall("puppy", fusion=fusion, weights={"lexical": 0.25}, explain=True)[
        0
    ].explanation.weights
    assert changed == {"lexical": 0.25, "semantic": usual["semantic"]}


@given(st.text(max_size=40))
def test_a_wrong_choice_is_shown_if_it_looks_like_a_name_and_by_its_length_otherwise(value):
    assume(value not in ("lexical", "semantic", "hybrid"))
    with Memory.open(":memory:") as memory, pytest.raises(InvalidRequest) as caught:
        memory.recall("puppy", mode=value)
    is_name = 1 <= len(value) <= 32 and re.fullmatch("[A-Za-z0-9_-]*", value) is not None
    told = f"{value!r}" if is_name else f"a text of {counted(len(value), 'character')}"
    assert str(caught.value) == f"mode must be one of lexical, semantic, hybrid, got {told}"
