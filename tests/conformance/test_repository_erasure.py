"""What erases nodes that are seen as no fact, and what is known of a forgotten node."""

from __future__ import annotations

import pytest

from governed import BACKENDS, change, create, opened
from perdure import NotFound


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    with opened(tmp_path, request.param) as found:
        yield found


@pytest.mark.parametrize(
    "scope", [{"all": True}, {"containing": "quokka"}, {"subject": "topic"}, {"ids": ["c"]}], ids=str
)
def test_no_scope_of_the_memory_s_forget_but_that_of_its_session_reaches_a_candidate(store, scope):
    repository = store.repository("alice")
    repository.apply(change("k", create("c", "quokka claims", subject="topic")))
    store.memory("alice").forget(**scope)
    assert repository.get("c") is not None
    assert repository.forget(["c"]).forgotten == ("c",)
    assert repository.get("c") is None


def test_an_erasure_of_the_principal_takes_candidates_too(store):
    store.repository("alice").apply(change("k", create("c", "quokka claims")))
    store.erase("alice")
    assert store.repository("alice").get("c") is None


def test_a_change_set_of_a_forgotten_node_makes_it_again_after_a_purge_only(store):
    repository = store.repository("alice")
    told = change("k", create("c", "quokka claims"))
    repository.apply(told)
    repository.forget(["c"])
    with pytest.raises(NotFound):
        repository.apply(told)
    store.purge()
    assert [node.id for node in repository.apply(told).nodes] == ["c"]
