"""What a memory does with what its admission policy refuses: it stores nothing of it, and says so."""

from __future__ import annotations

import logging

import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig
from perdure.policies import Decision

SECRET = "her password is hunter2-xqz7731"
PLAIN = "Ana keeps the blue bicycle in the cellar"


@pytest.fixture
def strict(store):
    return store.memory(config=MemoryConfig(admission="standard"))


class NoTea:
    """Admits what does not speak of tea, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked = []

    def decide(self, text, tags):
        self.asked.append((text, tags))
        return Decision("tea" not in text, "no tea")


def test_by_default_everything_is_taken_in(memory):
    assert memory.remember(SECRET).outcome == "created"


def test_a_refused_fact_is_reported_and_not_stored(strict, store, caplog):
    with caplog.at_level(logging.DEBUG):
        reply = strict.remember(SECRET, id="x", idempotency_key="key")
    assert (reply.id, reply.outcome, reply.created, reply.status, reply.ingest_time) == (
        None, "refused", False, None, None,
    )  # fmt: skip
    assert reply.reason.startswith("sensitive:")
    assert strict.list().total == 0
    assert strict.changes().items == ()
    assert (list(store.spaces()), list(store.export_lines())[1:-1]) == ([], [])
    assert not [record for record in caplog.records if "hunter2" in record.getMessage()]


def test_a_refused_member_is_reported_in_its_place_and_the_others_are_stored(strict):
    replies = strict.remember_many(
        [PLAIN, SECRET, "hello there!", {"text": "Ben sings", "tags": ["b"]}], idempotency_key="key"
    )
    assert [reply.outcome for reply in replies] == ["created", "refused", "refused", "created"]
    assert strict.list().total == 2
    again = strict.remember_many(
        [PLAIN, SECRET, "hello there!", {"text": "Ben sings", "tags": ["b"]}], idempotency_key="key"
    )
    assert again == replies


def test_the_answer_to_a_batch_with_a_refused_member_survives_a_purge_and_a_move(strict, store, open_store):
    facts = [PLAIN, SECRET]
    replies = strict.remember_many(facts, idempotency_key="key")
    exported = b"".join(store.export_lines())
    store.purge()
    assert strict.remember_many(facts, idempotency_key="key") == replies
    assert store.verify().ok
    assert b"hunter2" not in exported


def test_a_member_that_supersedes_a_refused_one_is_stored_and_told_so(strict):
    replies = strict.remember_many([{"text": SECRET, "id": "x"}, {"text": PLAIN, "supersedes": ["x"]}])
    assert [reply.outcome for reply in replies] == ["refused", "created"]
    assert replies[1].supersedes == ()
    assert "refused" in replies[1].reason


def test_a_fact_that_is_stored_already_is_recognised_before_it_is_judged(store, strict):
    first = store.memory().remember(SECRET)
    reply = strict.remember(SECRET)
    assert (reply.outcome, reply.id) == ("existing", first.id)
    with pytest.raises(Conflict):
        strict.remember(SECRET, tags=["other"])


def test_a_refused_text_is_not_merged_either(store):
    memory = store.memory(config=MemoryConfig(admission="standard", dedup="merge-exact"))
    first = store.memory().remember(SECRET)
    assert (
        memory.remember(SECRET.upper().replace("HUNTER2-XQZ7731", "hunter2-xqz7731"), tags=["t"]).outcome
        == "refused"
    )
    assert memory.get(first.id).tags == ()


def test_a_refused_correction_leaves_the_mistake_as_it_is(strict):
    strict.remember(PLAIN, id="a")
    reply = strict.correct(SECRET, id="a", idempotency_key="key")
    assert (reply.outcome, reply.id) == ("refused", None)
    assert strict.get("a").status == "current"
    assert strict.correct("Ana sold it", id="a", idempotency_key="key").outcome == "created"


def test_an_object_of_ones_own_decides_by_text_and_tags(store):
    policy = NoTea()
    memory = store.memory(config=MemoryConfig(admission=policy))
    reply = memory.remember("Ana drinks tea", tags=["b", "a"])
    assert (reply.outcome, reply.reason) == ("refused", "no tea")
    assert memory.remember("Ana drinks milk").outcome == "created"
    assert policy.asked == [("Ana drinks tea", ("a", "b")), ("Ana drinks milk", ())]


def test_what_a_policy_raises_passes_through_and_nothing_is_stored(store):
    class Broken:
        def decide(self, text, tags):
            raise RuntimeError("broken")

    memory = store.memory(config=MemoryConfig(admission=Broken()))
    with pytest.raises(RuntimeError, match="broken"):
        memory.remember_many([PLAIN, "Ben sings"])
    assert memory.list().total == 0


def test_a_refused_text_is_not_shown_to_the_embedder(store):
    class Embedder:
        model = "counting 1"
        dimension = 2

        def __init__(self):
            self.texts = []

        query_task = None

        def embed_documents(self, texts):
            self.texts += texts
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text):
            return [1.0, 0.0]

    embedder = Embedder()
    memory = store.memory(config=MemoryConfig(admission="standard", embedder=embedder))
    memory.remember_many([PLAIN, SECRET])
    assert embedder.texts == [PLAIN]


def test_observers_do_not_hear_of_what_was_refused(store):
    heard = []

    class Notes:
        def remembered(self, fact):
            heard.append(fact.text)

        def forgotten(self, ids):
            heard.append(ids)

    memory = store.memory(config=MemoryConfig(admission="standard", observers=(Notes(),)))
    memory.remember_many([SECRET, PLAIN])
    memory.remember(SECRET)
    assert heard == [PLAIN]


def test_a_malformed_fact_is_an_error_before_it_is_judged(strict):
    with pytest.raises(InvalidRequest):
        strict.remember(SECRET, importance=7)
