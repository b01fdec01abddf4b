"""What is told of a conversation is kept to the byte, once, or refused before anything is written."""

from __future__ import annotations

import msgspec
import pytest

from governed import BACKENDS, opened
from perdure import MemoryConfig
from perdure.embedders import HashingEmbedder
from perdure.errors import Blocked, Conflict, InvalidRequest
from perdure.model.conversation import ConversationInput
from talks import ASSISTANT, START, USER, talk, turn


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def store(tmp_path, backend):
    with opened(tmp_path, backend) as store:
        yield store


@pytest.fixture
def conversation(store):
    return store.conversation("alice", "work")


def facts_kept(store):
    return store.memory("alice", "work#conversation").list(limit=1000).total


def test_what_was_said_comes_back_to_the_byte(store, backend, tmp_path, conversation):
    texts = [
        "  Two spaces,\ttabs\r\nand lines \u00e9 e\u0301 \U0001f600  ",
        "\u200b yes ",
        "x" * 3000 + " 終わり",
    ]
    said = ConversationInput(
        session_id="a/b #1",
        version="v 1",
        turns=(
            turn("first/..", USER, texts[0], "0001-01-01"),
            turn("second %2F", ASSISTANT, texts[1], "1960-02-29T23:59:59.999Z"),
            turn("third", USER, texts[2], START),
        ),
    )
    receipt = conversation.remember(said)
    assert (receipt.outcome, receipt.turns, receipt.chunks) == ("created", 3, 1 + 1 + 3)
    kept = conversation.get("a/b #1", "v 1")
    assert [one.text for one in kept.turns] == texts
    assert [(one.source_id, one.role, one.position) for one in kept.turns] == [
        ("first/..", USER, 0),
        ("second %2F", ASSISTANT, 1),
        ("third", USER, 2),
    ]
    assert [one.observation_time.year for one in kept.turns] == [1, 1960, 2024]
    assert kept.turns[1].observation_time.microsecond == 999_000
    assert len({one.uri for one in kept.turns}) == 3
    assert kept.gaps == ()
    if backend != "memory":
        store.close()
        with opened(tmp_path, backend) as again:
            assert again.conversation("alice", "work").get("a/b #1", "v 1") == kept


def test_the_same_again_stores_nothing(store, conversation):
    first = conversation.remember(talk(["one", "two"]))
    before = facts_kept(store)
    again = conversation.remember(talk(["one", "two"]))
    assert (again.outcome, again.recorded_at, again.chunks) == ("existing", first.recorded_at, 2)
    assert facts_kept(store) == before


@pytest.mark.parametrize(
    "other",
    [
        talk(["one", "two!"]),
        talk(["one"]),
        talk(["one", "two", "three"]),
        talk(["two", "one"]),
        talk(["one", "two"], roles="uu"),
        msgspec.structs.replace(
            talk(["one", "two"]), turns=(turn("t0", USER, "one"), turn("t1", ASSISTANT, "two", START + 1))
        ),
        msgspec.structs.replace(
            talk(["one", "two"]), turns=(turn("t0", USER, "one"), turn("x", ASSISTANT, "two", START + 60_000))
        ),
    ],
)
def test_a_version_does_not_change(store, conversation, other):
    conversation.remember(talk(["one", "two"]))
    before = conversation.get("s", "v1")
    with pytest.raises(Conflict) as refused:
        conversation.remember(other)
    assert (refused.value.kind, refused.value.field) == ("version", "version")
    assert conversation.get("s", "v1") == before
    assert facts_kept(store) == 2


def test_a_new_version_leaves_the_earlier_one_as_it_was(conversation):
    conversation.remember(talk(["one", "two"], version="v1"))
    conversation.remember(talk(["one", "two", "three"], version="v2"))
    assert [len(conversation.get("s", version).turns) for version in ("v1", "v2")] == [2, 3]
    context = conversation.recall("one")
    assert {(one.version, one.source_id) for one in context.sources} >= {("v1", "t0"), ("v2", "t0")}
    listed = conversation.list(session_id="s").items
    assert [(one.version, one.turns, one.gaps) for one in listed] == [("v1", 2, ()), ("v2", 3, ())]


def test_lists_go_on_after_a_cursor_in_order_of_arrival(conversation):
    for n in range(5):
        conversation.remember(talk(["hello"], session=f"s{n}"))
    first = conversation.list(limit=2)
    assert ([one.session_id for one in first.items], first.total, first.has_more) == (["s0", "s1"], 5, True)
    conversation.remember(talk(["hello"], session="late"))
    second = conversation.list(limit=2, cursor=first.cursor)
    third = conversation.list(limit=2, cursor=second.cursor)
    assert [one.session_id for one in (*second.items, *third.items)] == ["s2", "s3", "s4", "late"]
    assert third.cursor is None
    with pytest.raises(InvalidRequest):
        conversation.list(session_id="s0", cursor=first.cursor)


def test_conversations_of_other_spaces_are_not_there(store, conversation):
    conversation.remember(talk(["the secret word"]))
    for principal, scope in (("bob", "work"), ("alice", "home"), ("alice", None)):
        other = store.conversation(principal, scope)
        assert other.get("s", "v1") is None
        assert other.recall("secret word").sources == ()
    assert store.memory("alice", "work").recall("secret word") == []


def test_plain_recall_reads_conversations_through_spaces_alone(store, conversation):
    conversation.remember(talk(["the secret word"]))
    hits = store.memory("alice", "work").recall("secret word", spaces=["work#conversation"])
    assert [hit.text for hit in hits] == ["the secret word"]
    assert hits[0].fact.metadata == {"session": "s", "version": "v1", "position": 0, "role": "user"}
    assert hits[0].fact.event_time is None
    assert hits[0].fact.source.actor == "user"


def refused(conversation, told, field):
    with pytest.raises(InvalidRequest) as error:
        conversation.remember(told)
    assert error.value.field == field
    assert "wordless" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"session_id": "a\nb"}, "session_id"),
        ({"session_id": 7}, "session_id"),
        ({"version": "perdure:x"}, "version"),
        ({"turns": ()}, "turns"),
        ({"turns": "wordless"}, "turns"),
        ({"turns": ({"text": "wordless"},)}, "turns[0]"),
        ({"turns": (turn("a", USER, "wordless"), turn("a", ASSISTANT, "x"))}, "turns[1].source_id"),
        ({"turns": (turn("a", "system", "wordless"),)}, "turns[0].role"),
        ({"turns": (turn("a", USER, "x"), turn("b", USER, " \t\n"))}, "turns[1].text"),
        ({"turns": (turn("a", USER, "wordless\ud800"),)}, "turns[0].text"),
        ({"turns": (turn("a", USER, None),)}, "turns[0].text"),
        ({"turns": (turn("a", USER, "wordless", "yesterday"),)}, "turns[0].observation_time"),
        ({"turns": (turn("a", USER, "wordless", None),)}, "turns[0].observation_time"),
        ({"turns": (turn("", USER, "wordless"),)}, "turns[0].source_id"),
        ({"turns": (turn("a", USER, '"' * 31_000),)}, "turns[0]"),  # fits until it is escaped
        ({"turns": tuple(turn(f"{n}", USER, "w" * 59_000) for n in range(36))}, "turns"),  # 2 MiB
        ({"turns": tuple(turn(f"{n}", USER, "w") for n in range(2_048))}, "turns"),  # 4,097 records
        ({"turns": tuple(turn(f"{n}" * 60, USER, "w") for n in range(1_000))}, "turns"),  # the list of ids
    ],
)
def test_what_is_malformed_or_too_large_is_refused_before_anything_is_written(
    store, conversation, change, field
):
    refused(conversation, msgspec.structs.replace(talk(["wordless"]), **change), field)
    assert conversation.list().total == 0
    assert store.spaces() == []


def test_sizes_at_their_limits_are_taken(conversation):
    def told(size):
        return msgspec.structs.replace(talk(["x"], version=f"{size}"), turns=(turn("a", USER, "w" * size),))

    size = 61_440 - 200
    while True:  # the largest text whose turn fits
        try:
            conversation.remember(told(size))
            break
        except InvalidRequest:
            size -= 10
    assert conversation.get("s", f"{size}").turns[0].text == "w" * size
    many = msgspec.structs.replace(
        talk(["x"], version="many"), turns=tuple(turn(f"{n}", USER, "w") for n in range(2_047))
    )
    assert conversation.remember(many).chunks == 2_047


def test_vectors_come_from_the_embedder_and_entities_from_the_extractor(tmp_path):
    config = MemoryConfig(embedder=HashingEmbedder(dimension=64), extractor=lambda text: text.split()[:1])
    with opened(tmp_path, "memory") as store:
        conversation = store.conversation("p", config=config)
        receipt = conversation.remember(talk(["Oslo by train", "Bergen by ship"]))
        assert receipt.reason is None
        memory = store.memory("p", "#conversation", config=config)
        assert memory.embed_missing(dry_run=True).missing == 0
        assert [fact.entities for fact in memory.list().items] == [("Oslo",), ("Bergen",)]
        assert [hit.text for hit in memory.recall("train", mode="semantic", k=1)] == ["Oslo by train"]


class Failing(HashingEmbedder):
    def embed_documents(self, texts):
        raise OSError


def test_a_failing_embedder_loses_no_conversation(tmp_path):
    with opened(tmp_path, "memory") as store:
        conversation = store.conversation("p", config=MemoryConfig(embedder=Failing(dimension=64)))
        receipt = conversation.remember(talk(["Oslo by train"]))
        assert receipt.outcome == "created"
        assert "embed_missing" in receipt.reason


class ForFacts(HashingEmbedder):
    query_task = "fact"


def users_alone(text):
    return ()


users_alone.user_only = True


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (MemoryConfig(embedder=ForFacts(dimension=64)), "embedder"),
        (MemoryConfig(extractor=users_alone), "extractor"),
    ],
)
def test_instructions_for_users_only_are_refused_by_the_constructor(tmp_path, config, field):
    with opened(tmp_path, "memory") as store, pytest.raises(InvalidRequest) as refused:
        store.conversation("p", config=config)
    assert refused.value.field == field


def test_blocked_words_are_not_told_again(store, conversation):
    conversation.remember(talk(["an open word", "a closed word"]))
    memory = store.memory("alice", "work#conversation")
    memory.forget(containing="closed", block=True)
    with pytest.raises(Blocked) as refused:
        conversation.remember(talk(["an open word", "a closed word"], session="other"))
    assert refused.value.field == "turns[1].text"
    assert refused.value.message.startswith("turns[1]: the text was forgotten")
    assert conversation.get("other", "v1") is None


def test_chunks_may_not_be_changed_as_facts_are(store, conversation):
    conversation.remember(talk(["one"]))
    memory = store.memory("alice", "work#conversation")
    (fact,) = memory.list().items
    for change in (
        lambda: memory.end(fact.id),
        lambda: memory.annotate(fact.id, tags=["x"]),
        lambda: memory.forget(ids=[fact.id], soft=True),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.kind == "governed"
    with pytest.raises(InvalidRequest):
        memory.remember("two", id=fact.id)


def test_memories_say_that_there_are_conversations(store):
    assert store.memory("alice").capabilities().features.conversation is True
