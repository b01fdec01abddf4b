"""A governed space takes in what its repository admits, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backends import fresh
from perdure import Conflict, InvalidRequest, ManualClock, MemoryConfig, Store
from perdure.repository import ChangeSet, Create, Evidence, NodeDraft, SetStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOVERNED = MemoryConfig(governed=True)


@pytest.fixture
def store():
    with fresh(clock=ManualClock(NOW), config=GOVERNED) as opened:
        yield opened


def admit(store, text="Deploys happen on Fridays"):
    evidence = Evidence("ticket/1", "d", "manual", NOW)
    draft = NodeDraft(id="n", kind="semantic", content=text, status="active", evidence=(evidence,))
    store.repository().apply(ChangeSet("k", NOW, (Create(draft=draft),)))


@pytest.mark.parametrize(
    "tell",
    [
        lambda store: store.memory().remember("anything"),
        lambda store: store.memory().remember_many(["anything"]),
        lambda store: store.memory().correct("anything else", containing="Deploys"),
        lambda store: store.documents().put("d", "anything"),
    ],
    ids=["remember", "remember_many", "correct", "put"],
)
def test_plain_tellings_are_refused_and_store_nothing(store, tell):
    admit(store)
    before = store.stats().records
    with pytest.raises(Conflict) as refused:
        tell(store)
    assert refused.value.kind == "governed"
    assert store.stats().records == before
    assert [hit.text for hit in store.memory().recall("Deploys anything")] == ["Deploys happen on Fridays"]


def test_a_store_that_keeps_the_setting_governs_every_handle(tmp_path):
    with Store.open(tmp_path / "store", config=GOVERNED, save_config=True):
        pass
    with Store.open(tmp_path / "store") as store, pytest.raises(Conflict):
        store.memory().remember("anything")


def test_conversations_and_sessions_of_a_governed_space_take_what_is_said(store):
    session = store.session("talk")
    session.add_turn("user", "I live in Paris")
    assert session.handover(store.conversation()).conversation.outcome == "created"


def test_the_settings_come_from_json_and_go_back_to_it():
    config = MemoryConfig.from_json({"governed": True, "decisionKinds": ["manual", "tool_result", "manual"]})
    assert (config.governed, config.decision_kinds) == (True, ("tool_result", "manual"))
    assert MemoryConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    "wrong",
    [{"governed": 1}, {"decision_kinds": ()}, {"decision_kinds": "manual"}, {"decision_kinds": ["x"]}],
)
def test_a_wrong_setting_is_named(wrong):
    with pytest.raises(InvalidRequest) as refused:
        MemoryConfig(**wrong)
    assert refused.value.field == next(iter(wrong))


@pytest.mark.parametrize("status", ["active", "tombstoned"])
def test_no_claim_comes_back_as_a_document_whatever_its_status(status):
    with Store.open(":memory:", clock=ManualClock(NOW)) as store:
        documents = store.documents()
        documents.put("note", "a zorp is a kind of bird", metadata={"kind": "bird"})
        admit(store, "a zorp is a kind of fish")
        if status != "active":
            because = [Evidence("x", "d", "manual", NOW)]
            gone = SetStatus(node_id="n", expected_revision=1, status=status, evidence=because)
            store.repository().apply(ChangeSet("gone", NOW, (gone,)))
        assert [hit.id for hit in documents.search("zorp")] == ["note"]
        assert [hit.id for hit in documents.search("zorp", filter={"kind": "bird"})] == ["note"]
        page = documents.list()
        assert ([one.id for one in page.items], page.total) == (["note"], 1)
