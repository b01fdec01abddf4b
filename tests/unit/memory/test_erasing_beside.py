"""Erasing a scope takes what is kept beside it; certificates know nodes and turns, also where no fact says the same."""

from __future__ import annotations

from random import Random

import pytest

from governed import change, create
from governed_run import SECRET, Governed
from perdure import Namespace
from perdure.model.namespace import BESIDE, CONVERSATION_SUFFIX
from perdure.sessions.keeping import SESSIONS_SUFFIX


def test_the_names_of_what_is_kept_beside_a_scope_are_known():
    assert set(BESIDE) == {CONVERSATION_SUFFIX, SESSIONS_SUFFIX}


def test_erasing_a_scope_takes_its_conversations_and_sessions_and_no_other_scope():
    space = Governed().fill()
    store = space.store
    for scope in ("work#sessions", "work#other", "work two", "workshop#conversation"):
        store.memory("alice", scope).remember("something")
    store.memory("bob", "work#conversation").remember("something")
    told = store.erase("alice", "work", dry_run=True)
    assert store.erase("alice", "work").spaces == told.spaces
    assert told.spaces == tuple(
        Namespace("alice", f"work{end}") for end in ("", "#conversation", "#sessions")
    )
    assert store.spaces() == [
        Namespace("alice", "work two"),
        Namespace("alice", "work#other"),
        Namespace("alice", "workshop#conversation"),
        Namespace("bob", "work#conversation"),
    ]


@pytest.mark.parametrize("how", ["forget", "erase"])
def test_a_candidate_that_is_told_again_contradicts_the_certificate(how):
    space = Governed()
    space.repository.apply(change("k", create("n", "only a candidate")))
    if how == "forget":
        certificate = space.repository.forget(["n"]).certificate
    else:
        certificate = space.store.erase("alice", "work").certificate
    assert space.store.check_certificate(certificate) == ()
    again = Governed(space.store)
    again.repository.apply(change("k2", create("n", "something else")))
    (finding,) = space.store.check_certificate(certificate)
    assert "has an id of the certificate: it was told again" in finding.message
    again.repository.forget(["n"])
    again.repository.apply(change("k3", create("m", "only a candidate")))
    (finding,) = space.store.check_certificate(certificate)
    assert "has a text of the certificate, under another id" in finding.message


def test_a_turn_that_is_told_again_contradicts_the_certificate():
    space = Governed()
    random = Random(3)
    while not space.conversation.list().items:
        space.step(random, "tell")
    (entry,) = space.conversation.list().items
    told = space.conversation.get(entry.session_id, entry.version)
    certificate = space.conversation.forget(entry.session_id).certificate
    assert space.store.check_certificate(certificate) == ()
    space.store.memory("alice", "work#conversation").remember(told.turns[0].text)
    assert "has a text of the certificate" in space.store.check_certificate(certificate)[0].message
    assert SECRET not in repr(certificate).encode()
