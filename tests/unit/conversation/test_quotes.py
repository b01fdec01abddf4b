"""What nodes quote of a turn goes with the turn, from every revision, every read and every file."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from backends import IN_FILES
from erasure.killing import kill_at, steps_of
from erasure.places import open_store
from erasure.scan import holders
from governed import BACKENDS, START, activate, change, corroborate, create, create_active, opened
from perdure.model.conversation_forms import turn_uri
from perdure.model.node import AccessEvent, Evidence
from perdure.repository_errors import QuoteNotFound
from talks import talk

MARKER = "Qzfjordmarker7731"
SAID = f"we met at {MARKER} and walked"
GONE, KEPT = turn_uri("s", "v1", "t0"), turn_uri("s", "v1", "t1")
FACT = "perdure:node/n@1"
KILLS = 8
FORGET = "store.conversation('alice', 'work').forget('s', source_id='t0')"


def quoting(uri: str, quote: str, kind: str = "manual") -> Evidence:
    return Evidence(uri, f"digest of {uri}", kind, START, quote)


def fill(store: Any) -> None:
    """Tell two turns, an active node that quotes both in turn, and a candidate that quotes the first."""
    store.conversation("alice", "work").remember(talk([SAID, "then it rained"]))
    repository = store.repository("alice", "work")
    proof = quoting(GONE, f"at {MARKER}")
    repository.apply(change("k1", create_active("n", "a walk", evidence=[proof])))
    waiting = create("c", "a plan", evidence=[quoting(GONE, MARKER, "user_statement")])
    repository.apply(change("k2", waiting))
    repository.apply(change("k3", corroborate("n", 1, quoting(KEPT, "it rained"))))
    event = AccessEvent("e1", "n", 1, START, "prompt", "bot")
    repository.record_use(event)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def store(tmp_path, backend):
    with opened(tmp_path, backend) as store:
        fill(store)
        yield store


@pytest.fixture
def conversation(store):
    return store.conversation("alice", "work")


@pytest.fixture
def repository(store):
    return store.repository("alice", "work")


def quotes(node: Any) -> list[tuple[str, str | None, int | None]]:
    return [(one.uri, one.quote, one.start) for one in node.evidence]


def test_every_revision_loses_the_quote_and_keeps_what_vouched_for_it(store, conversation, repository):
    before = [*repository.revisions("n").items, *repository.revisions("c").items]
    conversation.forget("s", source_id="t0")
    after = [*repository.revisions("n").items, *repository.revisions("c").items]
    assert [quotes(node) for node in after] == [
        [(GONE, None, None)],
        [(GONE, None, None), (KEPT, "it rained", None)],
        [(GONE, None, None)],
    ]
    for old, new in zip(before, after, strict=True):
        assert (new.revision, new.content, new.updated_at) == (old.revision, old.content, old.updated_at)
        first = new.evidence[0]
        assert (first.digest, first.kind, first.occurred_at) == (
            old.evidence[0].digest,
            old.evidence[0].kind,
            old.evidence[0].occurred_at,
        )
    assert repository.usage("n").uses == 1
    assert [event.node_revision for event in repository.access_events("n").items] == [1]
    assert [hit.node.id for hit in repository.query(evidence_uri=GONE).items] == ["n"]


def test_what_recalls_and_explanations_show_has_no_quote_either(store, conversation):
    memory = store.memory("alice", "work")
    assert memory.get(FACT).source.quote == f"at {MARKER}"
    conversation.forget("s", source_id="t0")
    for _ in range(2):
        (hit,) = memory.recall("walk", explain=True)
        assert [one.quote for one in hit.explanation.node.evidence] == [None, "it rained"]
        assert (hit.fact.source.uri, hit.fact.source.quote, hit.explanation.source.quote) == (
            GONE,
            None,
            None,
        )
        assert (memory.get(FACT).source.uri, memory.get(FACT).source.quote) == (GONE, None)
        store.purge()


def test_a_node_can_be_worked_with_as_before(store, conversation, repository):
    conversation.forget("s", source_id="t0")
    repository.apply(change("k4", activate("c", 1), corroborate("n", 2)))
    with pytest.raises(QuoteNotFound):
        repository.apply(change("k5", corroborate("n", 3, quoting(GONE, MARKER))))
    assert [node.revision for node in repository.revisions("n").items] == [1, 2, 3]
    conversation.forget("s", source_id="t1")
    assert [one.quote for one in repository.get("n").evidence] == [None, None, None]
    assert store.verify().findings == ()
    repository.forget(["n", "c"])
    assert store.verify().findings == ()
    assert repository.query(statuses=["active", "candidate"]).items == ()


def test_a_dry_run_names_the_nodes_and_takes_nothing(conversation, repository):
    token = repository.change_token()
    assert conversation.forget("s", source_id="t0", dry_run=True).derived == ("c", "n")
    assert repository.change_token() == token
    assert repository.get("n").evidence[0].quote == f"at {MARKER}"
    assert conversation.forget("s", source_id="t0").derived == ("c", "n")


def test_the_erasure_of_quotes_is_a_step_that_names_the_nodes_to_read_again(conversation, repository):
    token = repository.change_token()
    conversation.forget("s", source_id="t0")
    assert repository.change_token().sequence == token.sequence + 1
    (step,) = repository.changes(token).items
    named = tuple((id_, repository.get(id_).revision) for id_ in ("c", "n"))
    assert (step.kind, step.nodes, step.forgotten) == ("erased", named, 0)
    repository.forget(["c"])
    assert [step.nodes for step in repository.changes(token).items] == [named[1:], ()]
    assert [step.forgotten for step in repository.changes(token).items] == [0, 1]
    conversation.forget("s", source_id="t0")
    assert repository.change_token().sequence == token.sequence + 2


def test_a_forget_that_nothing_quotes_is_no_step(conversation, repository):
    token = repository.change_token()
    conversation.remember(talk(["quite another talk"], session="other"))
    conversation.forget("other")
    assert repository.change_token() == token


def test_the_audit_tells_of_no_revision_that_nobody_made(store, conversation):
    before = store.events(type="revised").items
    conversation.forget("s", source_id="t0")
    assert len(before) == 3
    assert store.events(type="revised").items == before
    assert store.verify_events() == ()


def test_a_certificate_counts_the_records_and_finds_nothing(store, conversation):
    receipt = conversation.forget("s", source_id="t0")
    # The turn, its piece, and three revisions that hold the quote.
    assert (receipt.certificate.facts, receipt.certificate.records) == (1, 5)
    assert store.check_certificate(receipt.certificate) == ()


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("purge", [False, True])
def test_no_file_holds_the_quote(tmp_path, backend, store, conversation, derived, purge):
    if backend not in IN_FILES:
        pytest.skip("no files")
    memory = store.memory("alice", "work")
    for number in range(1_100):  # so that the state is kept in a cache
        memory.remember(f"filler {number}")
    store.close()
    with opened(tmp_path, backend) as again:
        assert holders(tmp_path, MARKER)
        again.memory("alice", "work").recall("walk")
        receipt = again.conversation("alice", "work").forget(
            "s", source_id="t0", include_derived=derived, purge=purge
        )
        assert not receipt.pending
        assert holders(tmp_path, MARKER) == {}
        node = again.repository("alice", "work").get("n")
        assert (node is None) == derived
        assert again.verify().findings == ()
    assert holders(tmp_path, MARKER) == {}
    with opened(tmp_path, backend) as last:
        assert last.repository("alice", "work").get("n") == node
        assert last.verify().findings == ()


def test_an_export_has_no_quote_and_brings_back_the_rest(tmp_path, store, conversation, repository):
    conversation.forget("s", source_id="t0")
    lines = list(store.export_lines())
    assert MARKER.encode() not in b"".join(lines)
    with opened(None, "memory") as other:
        assert other.import_(lines).problems == ()
        again = other.repository("alice", "work")
        for node in ("n", "c"):
            assert again.revisions(node).items == repository.revisions(node).items
        assert other.import_(lines).created == 0


def test_whoever_is_killed_in_between_is_finished_by_the_same_call(tmp_path):
    path = tmp_path / "store"
    with open_store(path) as store:
        fill(store)
    plan = tmp_path / "counted"
    shutil.copytree(path, plan)
    count = steps_of(plan, FORGET)
    between = 0  # killed after the quotes were erased, before the turn was
    for kill in range(1, KILLS + 1):
        here = tmp_path / f"killed {kill}"
        shutil.copytree(path, here)
        kill_at(here, FORGET, max(1, count * kill // (KILLS + 1)))
        with open_store(here) as store:
            assert store.verify().findings == ()
            repository, conversation = store.repository("alice", "work"), store.conversation("alice", "work")
            has_gap, has_quote = conversation.get("s", "v1").gaps, repository.get("n").evidence[0].quote
            assert not (has_gap and has_quote)
            between += not (has_gap or has_quote)
            conversation.forget("s", source_id="t0")
            assert conversation.get("s", "v1").gaps == (0,)
            assert [one.quote for one in repository.get("n").evidence] == [None, "it rained"]
            assert holders(here, MARKER) == {}
            assert store.verify().findings == ()
    assert between
