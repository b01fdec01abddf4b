"""The first things that anybody does with a memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure import Memory, MemoryConfig, NotFound
from scenarios.stores import ids, texts

QUESTION = "where does Alice live"


@pytest.fixture(params=["ephemeral", "directory"])
def path(request, tmp_path):
    return ":memory:" if request.param == "ephemeral" else tmp_path / "memory"


def test_the_first_example_of_the_interface_holds(path):
    config = MemoryConfig(supersession="latest-by-subject")
    with Memory.open(path, config=config) as memory:
        paris = memory.remember("Alice lives in Paris", subject="alice/city", valid_from=datetime(2020, 1, 1))
        berlin = memory.remember(
            "Alice lives in Berlin", subject="alice/city", valid_from=datetime(2025, 1, 1)
        )
        assert (paris.outcome, berlin.outcome) == ("created", "created")
        assert berlin.supersedes == (paris.id,)

        assert texts(memory.recall(QUESTION)) == ["Alice lives in Berlin"]
        assert texts(memory.recall(QUESTION, as_of=datetime(2021, 6, 1))) == ["Alice lives in Paris"]
        assert memory.recall(QUESTION, as_of=datetime(2019, 1, 1)) == []

        why = memory.explain(QUESTION, paris.id)
        assert (why.reason, why.status) == ("not-current", "superseded")
        assert [(link.id, link.relation) for link in why.chain] == [
            (paris.id, "self"),
            (berlin.id, "superseded-by"),
        ]

        gone = memory.forget(subject="alice/city")
        assert set(gone.forgotten) == {paris.id, berlin.id}
        assert memory.recall(QUESTION, history="all") == []
        with pytest.raises(NotFound):
            memory.explain(QUESTION, paris.id)


def test_naming_the_replaced_id_needs_no_policy_and_no_subject_on_the_new_fact(path):
    with Memory.open(path) as memory:
        memory.remember(
            "Alice lives in Paris", id="home-1", subject="alice/city", valid_from=datetime(2020, 1, 1)
        )
        reply = memory.remember(
            "Alice lives in Berlin", id="home-2", valid_from=datetime(2025, 1, 1), supersedes=["home-1"]
        )
        assert reply.supersedes == ("home-1",)

        assert ids(memory.recall(QUESTION)) == ["home-2"]
        assert ids(memory.recall(QUESTION, as_of=datetime(2020, 9, 1, tzinfo=UTC))) == ["home-1"]
        assert memory.explain(QUESTION, "home-1").reason == "not-current"

        # The new fact was told without a subject, so forgetting the subject is no business of its.
        assert memory.forget(subject="alice/city").forgotten == ("home-1",)
        assert memory.get("home-1") is None
        assert ids(memory.recall(QUESTION)) == ["home-2"]
        survivor = memory.get("home-2")
        assert survivor is not None
        assert survivor.supersedes == ()


def test_a_memory_in_a_directory_is_there_when_it_is_opened_again(tmp_path):
    with Memory.open(tmp_path / "memory") as memory:
        first = memory.remember("Alice lives in Paris", metadata={"from": 1})
    with Memory.open(tmp_path / "memory") as memory:
        assert ids(memory.recall(QUESTION)) == [first.id]
        again = memory.remember("Alice lives in Paris", metadata={"from": 1.0})
        assert (again.outcome, again.id, again.ingest_time) == ("existing", first.id, first.ingest_time)
