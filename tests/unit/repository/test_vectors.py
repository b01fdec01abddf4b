"""What is active has a vector, where there is an embedder; nothing else of a node is embedded."""

import pytest

from governed import activate, change, create, create_active, moment, opened, revise
from perdure import MemoryConfig
from perdure.embedders.hashing import HashingEmbedder
from perdure.errors import Unavailable
from perdure.repository_errors import RevisionConflict


class Counting:
    """Embeds by hashing, and notes what; or fails."""

    def __init__(self):
        self.seen, self.fails = [], False
        self._hashing = HashingEmbedder()
        self.model, self.dimension = self._hashing.model, self._hashing.dimension
        self.embed_query = self._hashing.embed_query

    def embed_documents(self, texts):
        if self.fails:
            raise Unavailable("down")
        self.seen += texts
        return self._hashing.embed_documents(texts)


@pytest.fixture
def embedder():
    return Counting()


@pytest.fixture
def store(embedder):
    with opened(None, "memory", config=MemoryConfig(embedder=embedder)) as store:
        yield store


def test_only_what_becomes_active_is_embedded(store, embedder):
    repository = store.repository("alice")
    repository.apply(change("k", create("n", "about rivers")))
    assert embedder.seen == []
    repository.apply(change("ok", activate("n", 1)))
    repository.apply(
        change("two", create_active("a", "one"), revise("a", 1, "about lakes"), create("b", "x"))
    )
    assert embedder.seen == ["about rivers", "about lakes"]
    hits = store.memory("alice").recall("about rivers", mode="semantic")
    assert [hit.text for hit in hits] == ["about rivers", "about lakes"]


def test_a_repeated_change_set_is_not_embedded_again(store, embedder):
    told = change("k", create_active("n", "about rivers"))
    first = store.repository("alice").apply(told)
    assert store.repository("alice").apply(told) == first
    assert embedder.seen == ["about rivers"]


def test_a_change_set_that_cannot_be_is_not_embedded(store, embedder):
    store.repository("alice").apply(change("k", create("n")))
    with pytest.raises(RevisionConflict):
        store.repository("alice").apply(change("bad", create_active("m"), activate("n", 2)))
    assert embedder.seen == []


def test_an_embedder_that_fails_takes_no_change_set_with_it(store, embedder):
    embedder.fails = True
    node = store.repository("alice").apply(change("k", create_active("n", "about rivers"))).nodes[0]
    assert node.created_at.timestamp() * 1000 == moment(0)
    embedder.fails = False
    assert store.memory("alice").embed_missing().embedded == 1
