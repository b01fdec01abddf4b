"""Quotes of conversation turns, on every log: in the turn, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from governed import BACKENDS, change, corroborate, create_active, evidence, moment, opened
from perdure import Busy, MemoryConfig
from perdure.errors import InvalidRequest
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import Evidence
from perdure.repository_errors import QuoteNotFound
from talks import talk

SAID = "I moved to Berlin — last week 🎉, and I like it."
URI = "perdure:turn/monday%2Fmorning/1/turn%201"


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    with opened(tmp_path, request.param) as store:
        turn = ConversationTurn(source_id="turn 1", role="user", text=SAID, observation_time=moment(0))
        told = ConversationInput(session_id="monday/morning", version="1", turns=(turn,))
        store.conversation("alice", "work").remember(told)
        yield store


@pytest.fixture
def repository(store):
    return store.repository("alice", "work")


def quoting(quote, start=None, uri=URI):
    return Evidence(uri, f"digest of {quote}", "manual", moment(0), quote, start)


def test_a_quote_that_is_in_its_turn_is_taken(repository):
    node = repository.apply(change("k", create_active("n", evidence=[quoting("moved to Berlin")]))).nodes[0]
    assert node.evidence[0].quote == "moved to Berlin"


def test_a_place_is_counted_in_code_points(repository):
    start = SAID.index("and I")
    proof = quoting("and I like it", start)
    node = repository.apply(change("k", create_active("n", evidence=[proof]))).nodes[0]
    assert (node.evidence[0].start, node.evidence[0].end) == (start, start + 13)
    with pytest.raises(QuoteNotFound, match=f"at {start + 1}"):
        repository.apply(change("l", corroborate("n", 1, quoting("and I like", start + 1))))


@pytest.mark.parametrize(
    "uri",
    [
        URI,
        "perdure:turn/tuesday/1/turn%201",
        "perdure:turn/monday%2Fmorning/2/turn%201",
        "perdure:turn/monday%2Fmorning/1/turn%202",
    ],
)
def test_a_quote_that_nobody_said_is_refused(repository, uri):
    quote = "moved to Paris" if uri == URI else "moved to Berlin"
    with pytest.raises(QuoteNotFound) as caught:
        repository.apply(change("k", create_active("n", evidence=[quoting(quote, uri=uri)])))
    assert (caught.value.uri, caught.value.details["kind"]) == (uri, "quote_not_found")
    assert isinstance(caught.value, InvalidRequest)
    assert quote not in str(caught.value)
    assert repository.get("n") is None


@pytest.mark.parametrize("quote", ["moved to Berlin", None, "never said"])
@pytest.mark.parametrize(
    "uri",
    [
        "perdure:turn/monday%2fmorning/1/turn%201",
        "perdure:turn/%6Donday%2Fmorning/1/turn%201",
        "perdure:turn/monday%2Fmorning/%31/turn%201",
        "perdure:turn/monday%2Fmorning/1/turn 1",
        "perdure:turn/monday%2Fmorning/1/turn%201#0",
        "perdure:turn/monday/morning/1/turn%201",
        "perdure:turn/monday%2Fmorning/1/%FF",
        "perdure:turn/monday%2Fmorning/1/",
        "perdure:turn/",
        "PERDURE:turn/monday%2Fmorning/1/turn%201",
        "perdure:Turn/monday%2Fmorning/1/turn%201",
        " perdure:turn/monday%2Fmorning/1/turn%201",
        "\u200bperdure:turn/monday%2Fmorning/1/turn%201",
        "\uff50erdure:turn/monday%2Fmorning/1/turn%201",
        "per\u00addure:turn/monday%2Fmorning/1/turn%201",
        "perdure:elsewhere",
    ],
)
def test_a_turn_is_cited_in_one_spelling_alone(store, repository, uri, quote):
    proof = Evidence(uri, "d", "manual", moment(0), quote)
    with pytest.raises(InvalidRequest, match="uri") as caught:
        repository.apply(change("k", create_active("n", evidence=[proof])))
    assert caught.value.field == "operations[0].draft.evidence[0].uri"
    assert "monday" not in caught.value.message
    assert repository.get("n") is None
    with pytest.raises(InvalidRequest) as caught:
        store.memory("alice", "work").remember("a fact", source={"uri": uri, "quote": quote})
    assert caught.value.field == "source.uri"
    assert store.memory("alice", "work").list().total == 0


@pytest.mark.parametrize(
    "uri",
    [
        "perdure:node/n one@3",
        "perdure:session/day%201/0",
        "perdure:decision",
        "perdure://facts/mem-1",
        "perdure",
        "perdure.md",
        "see perdure:turn/",
        "https://example.org/perdure:turn/x",
    ],
)
def test_what_else_a_store_gives_out_and_what_is_none_of_it_may_be_cited(store, repository, uri):
    proof = Evidence(uri, "d", "manual", moment(0), "some words")
    node = repository.apply(change("k", create_active("n", evidence=[proof]))).nodes[0]
    assert node.evidence[0].uri == uri
    fact = store.memory("alice", "work").remember("a fact", source={"uri": uri})
    assert store.memory("alice", "work").get(fact.id).source.uri == uri


def test_a_turn_of_another_space_is_no_source(store):
    with pytest.raises(QuoteNotFound):
        store.repository("alice", "home").apply(change("k", create_active("n", evidence=[quoting("Berlin")])))


def test_a_turn_may_be_named_without_a_quote_and_a_quote_may_be_of_something_else(repository):
    bare = Evidence("perdure:turn/elsewhere/1/x", "d", "manual", moment(0))
    repository.apply(change("k", create_active("n", evidence=[bare, evidence("doc", quote="anything")])))


def test_a_repeated_change_set_is_answered_after_its_turn_was_forgotten(store, repository):
    told = change("k", create_active("n", evidence=[quoting("Berlin")]))
    first = repository.apply(told)
    store.memory("alice", "work#conversation").forget(all=True)
    (again,), (node,) = repository.apply(told).nodes, first.nodes
    assert (again.id, again.revision, again.fact) == (node.id, node.revision, node.fact)
    assert [one.quote for one in again.evidence] == [None]
    with pytest.raises(QuoteNotFound):
        repository.apply(change("l", corroborate("n", 1, quoting("moved"))))


def test_an_explanation_and_a_fact_give_the_quote(store, repository):
    repository.apply(
        change("k", create_active("n", "Alice lives in Berlin", evidence=[quoting("Berlin", 11)]))
    )
    memory = store.memory("alice", "work")
    (hit,) = memory.recall("Alice", explain=True)
    (shown,) = hit.explanation.node.evidence
    assert (shown.uri, shown.quote, shown.start, shown.end) == (URI, "Berlin", 11, 17)
    assert (hit.fact.source.uri, hit.fact.source.quote, hit.fact.source.start) == (URI, "Berlin", 11)


class Meanwhile:
    """An embedder during whose first call something else happens."""

    model, dimension, fingerprint = "meanwhile", 2, "meanwhile"

    def __init__(self):
        self.happening = None

    def embed_documents(self, texts):
        happening, self.happening = self.happening, None
        if happening is not None:
            happening()
        return np.ones((len(texts), 2), dtype=np.float32)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("purges", [False, True])
def test_a_turn_that_is_forgotten_while_a_change_set_that_quotes_it_is_made_ready_is_not_quoted(
    tmp_path, backend, purges
):
    embedder = Meanwhile()
    with opened(tmp_path, backend, config=MemoryConfig(embedder=embedder)) as store:
        turns = [
            ConversationTurn(source_id=name, role="user", text=SAID, observation_time=moment(0))
            for name in ("turn 1", "turn 2")
        ]
        talks, repository = store.conversation("alice", "work"), store.repository("alice", "work")
        talks.remember(ConversationInput(session_id="monday/morning", version="1", turns=tuple(turns)))
        told = change("k", create_active("n", evidence=[quoting("Berlin")]))
        embedder.happening = lambda: talks.forget("monday/morning", source_id="turn 1", purge=purges)
        with pytest.raises(QuoteNotFound):
            repository.apply(told)
        assert repository.get("n") is None
        other = quoting("Berlin", uri=URI.replace("201", "202"))
        embedder.happening = lambda: talks.remember(talk(["more"], session="tuesday"))
        assert repository.apply(change("l", create_active("m", evidence=[other]))).nodes[0].id == "m"


def test_turns_that_are_forgotten_again_and_again_make_a_change_set_wait_no_longer_than_its_turn(store):
    """Other turns go before each try of a change set: it is busy in the end, and nothing of it is stored."""
    talks = store.conversation("alice", "work")
    embedder = Meanwhile()
    config = MemoryConfig(embedder=embedder)
    repository = store.repository("alice", "work", config=config)

    def forget_another():
        talks.remember(talk(["more"], session="other"))
        talks.forget("other")
        embedder.happening = forget_another

    embedder.happening = forget_another
    with pytest.raises(Busy):
        repository.apply(change("k", create_active("n", evidence=[quoting("Berlin")])))
    assert repository.get("n") is None
    embedder.happening = None
    assert repository.apply(change("k", create_active("n", evidence=[quoting("Berlin")]))).nodes
