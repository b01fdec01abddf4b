"""Forgetting a turn erases it whole, names the gap, and does not bring it back by any way."""

from __future__ import annotations

import pytest

from backends import IN_FILES
from erasure.scan import holders
from governed import BACKENDS, change, create_active, evidence, opened
from perdure.errors import Conflict, NotFound
from perdure.model.conversation import ConversationContextLimits, ConversationRecallOptions
from perdure.model.conversation_forms import turn_uri
from talks import found, left_out, names, talk

MARKER = "Qzfjordmarker7731"
TEXTS = [
    "plan a journey",
    "gladly",
    f"the word is {MARKER} " + "and more " * 300,
    "resonator",
    "and then",
    "hertz",
]
EXPANDED = ConversationRecallOptions(
    roles=("assistant",), k=1, expand=ConversationContextLimits(aggregation_only=False)
)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def store(tmp_path, backend):
    with opened(tmp_path, backend) as store:
        yield store


@pytest.fixture
def conversation(store):
    conversation = store.conversation("alice", "work")
    conversation.remember(talk(TEXTS))
    return conversation


def test_a_forgotten_turn_is_a_gap_and_the_others_stay(store, conversation):
    asked = conversation.forget("s", source_id="t2", dry_run=True)
    assert (asked.dry_run, asked.certificate) == (True, None)
    assert conversation.get("s", "v1").gaps == ()
    receipt = conversation.forget("s", source_id="t2")
    assert receipt.forgotten == asked.forgotten == (turn_uri("s", "v1", "t2"),)
    assert (receipt.certificate.facts, receipt.pending) == (3, False)
    kept = conversation.get("s", "v1")
    assert kept.gaps == (2,)
    assert [one.source_id for one in kept.turns] == ["t0", "t1", "t3", "t4", "t5"]
    assert conversation.list().items[0].gaps == (2,)
    assert conversation.recall(MARKER).sources == ()
    assert store.memory("alice", "work#conversation").list().total == 5
    assert store.check_certificate(receipt.certificate) == ()
    assert store.verify().findings == ()
    assert conversation.forget("s", source_id="t2").forgotten == ()


def test_what_rests_on_a_forgotten_turn_is_left_out_and_not_expanded(conversation):
    conversation.forget("s", source_id="t2")
    context = conversation.recall("resonator hertz")
    assert left_out(context)["t3"] == "incomplete"
    only = ConversationRecallOptions(roles=("assistant",), k=1)
    assert names(conversation.recall("hertz", only)) == ["t0", "t3", "t4", "t5"]
    assert not conversation.recall("hertz", only).verified
    with pytest.raises(NotFound) as failed:
        conversation.recall("hertz", EXPANDED)
    assert failed.value.details["position"] == 2


def test_a_gap_stands_for_what_it_may_have_been(conversation):
    only = ConversationRecallOptions(roles=("assistant",), k=1)
    assert conversation.recall("hertz", only).unresolved_premise_ids() == (
        turn_uri("s", "v1", "t1"),
        turn_uri("s", "v1", "t2"),
    )
    conversation.forget("s", source_id="t2")
    # Of a turn that is gone only the place is known, and whatever lay before it is not followed.
    assert conversation.recall("hertz", only).unresolved_premise_ids() == ("perdure:turn/s/v1#2",)
    conversation.forget("s", source_id="t0")
    assert set(left_out(conversation.recall("hertz resonator")).values()) == {"incomplete"}


def test_a_version_with_a_gap_is_not_told_again_but_one_that_is_gone_is(conversation):
    conversation.forget("s", source_id="t2")
    with pytest.raises(Conflict) as refused:
        conversation.remember(talk(TEXTS))
    assert refused.value.kind == "version"
    assert "forgotten" in str(refused.value)
    conversation.forget("s", version="v1")
    assert conversation.get("s", "v1") is None
    assert conversation.list().total == 0
    assert conversation.remember(talk(TEXTS)).outcome == "created"
    assert found(conversation.recall(MARKER))[0] == "t2"


def test_versions_are_forgotten_one_by_one_or_all(conversation):
    conversation.remember(talk(TEXTS, version="v2"))
    conversation.remember(talk(TEXTS, session="other"))
    assert len(conversation.forget("s", version="v2", source_id="t0").forgotten) == 1
    assert len(conversation.forget("s", source_id="t1").forgotten) == 2
    assert len(conversation.forget("s").forgotten) == 4 + 5
    assert [one.session_id for one in conversation.list().items] == ["other"]
    assert conversation.forget("nobody").forgotten == ()


def test_forgetting_one_piece_as_a_fact_takes_its_turn(store, conversation):
    memory = store.memory("alice", "work#conversation")
    memory.forget(containing=MARKER)
    assert conversation.get("s", "v1").gaps == (2,)
    assert memory.list().total == 5


@pytest.mark.parametrize("purge", [False, True])
def test_no_file_holds_what_was_forgotten(tmp_path, backend, store, conversation, purge):
    if backend not in IN_FILES:
        pytest.skip("no files")
    named = f"id-{MARKER}"
    conversation.remember(talk([MARKER, "b"], session=named, version=named))
    store.repository("alice", "work").apply(change("k1", create_active("n1", "calm")))
    assert holders(tmp_path, MARKER)
    receipt = conversation.forget("s", source_id="t2")
    conversation.forget(named, purge=purge)
    assert not receipt.pending
    assert holders(tmp_path, MARKER) == {}
    assert conversation.get("s", "v1").gaps == (2,)
    store.close()
    assert holders(tmp_path, MARKER) == {}
    with opened(tmp_path, backend) as again:
        kept = again.conversation("alice", "work").get("s", "v1")
        assert (kept.gaps, len(kept.turns)) == ((2,), 5)
        assert again.verify().findings == ()


def cited(store):
    repository, memory = store.repository("alice", "work"), store.memory("alice", "work")
    uri = turn_uri("s", "v1", "t2")
    quoting = evidence("q", "manual", quote=f"word is {MARKER}")
    quoting = type(quoting)(uri, "d", "manual", quoting.occurred_at, quote=quoting.quote)
    repository.apply(change("k1", create_active("n1", "a belief", evidence=[quoting])))
    repository.apply(change("k2", create_active("n2", "another belief")))
    memory.remember("a fact from a turn", id="f1", source={"uri": uri})
    memory.remember("a fact of its own", id="f2", source={"uri": turn_uri("s", "v1", "t1")})
    return repository, memory


def test_what_cites_a_forgotten_turn_is_named_and_stays(store, conversation):
    repository, memory = cited(store)
    for dry_run in (True, False):
        receipt = conversation.forget("s", source_id="t2", dry_run=dry_run)
        assert receipt.forgotten == (turn_uri("s", "v1", "t2"),)
        assert receipt.derived == ("f1", "n1")
    assert [(one.uri, one.quote) for one in repository.get("n1").evidence] == [
        (turn_uri("s", "v1", "t2"), None)
    ]
    assert memory.get("f1") is not None


def test_what_cites_a_forgotten_turn_goes_with_it_where_that_is_asked(tmp_path, backend, store, conversation):
    repository, memory = cited(store)
    gone = ("f1", "n1", turn_uri("s", "v1", "t2"))
    asked = conversation.forget("s", source_id="t2", include_derived=True, dry_run=True)
    assert (asked.forgotten, asked.derived) == (gone, ())
    assert repository.get("n1") is not None
    receipt = conversation.forget("s", source_id="t2", include_derived=True)
    assert (receipt.forgotten, receipt.derived) == (gone, ())
    assert receipt.certificate.facts == 3 + 2
    assert repository.get("n1") is None
    assert [fact.id for fact in memory.list().items if not fact.id.startswith("perdure:")] == ["f2"]
    assert repository.get("n2") is not None
    assert store.check_certificate(receipt.certificate) == ()
    if backend != "memory":
        assert holders(tmp_path, MARKER) == {}


def test_conversations_survive_a_purge(store, conversation):
    conversation.forget("s", source_id="t1")
    conversation.remember(talk(["late", "later"], session="other"))
    before = (
        conversation.get("s", "v1"),
        conversation.get("other", "v1"),
        conversation.recall("resonator hertz"),
    )
    store.purge()
    assert (conversation.get("s", "v1"), conversation.get("other", "v1")) == before[:2]
    assert conversation.recall("resonator hertz").anchors == before[2].anchors
    assert conversation.remember(talk(["late", "later"], session="other")).outcome == "existing"
    assert conversation.remember(talk(["new"], session="new")).outcome == "created"


def test_a_long_conversation_is_the_same_when_it_is_opened_again(tmp_path, backend, store, conversation):
    if backend == "memory":
        pytest.skip("nothing to open again")
    conversation.remember(talk([f"remark {n} on fjords" for n in range(700)], session="long"))
    conversation.forget("long", source_id="t3")
    answers = (conversation.get("long", "v1"), conversation.recall("remark 500"), conversation.list())
    store.close()  # keeps what makes the next opening fast
    with opened(tmp_path, backend) as again:
        reopened = again.conversation("alice", "work")
        assert (reopened.get("long", "v1"), reopened.recall("remark 500"), reopened.list()) == answers
        assert reopened.forget("long").forgotten
        assert reopened.get("long", "v1") is None
