"""What the fields of a request may name: only spaces within reach of its key, and no refusal tells which exist."""

from __future__ import annotations

import io
import json

import pytest

from perdure.base.clock import ManualClock
from perdure.contract.operations import OPERATIONS
from perdure.dispatch import BEYOND, Bounds, Caller
from perdure.errors import Forbidden, InvalidRequest
from perdure.model.namespace import Namespace
from perdure.server.access import Access, Told, place
from perdure.store import Store

TOLD = (("alice", "work"), ("alice", "home"), ("bob", "work"))


@pytest.fixture(scope="module")
def store():
    with Store.open(":memory:", clock=ManualClock(1_700_000_000_000)) as opened:
        for principal, scope in TOLD:
            opened.memory(principal, scope).remember(f"canary of {principal} at {scope}")
        yield opened


def key(principal=None, scope=None):
    return Access("default", principal, scope, "admin", "0" * 16)


def caller(store, access):
    allowed = place(access, Told(), default_principal=None if access.principal else "alice")
    return Caller(store, allowed.namespace, bounds=Bounds(access.principal, access.scope))


REQUIRED = {"recall": {"query": "canary"}}
ALICE, BOB, HOME = {"principal": "alice", "scope": "work"}, {"principal": "bob", "scope": "work"}, "home"
OF_ALICE, OF_WORK = key("alice"), key(scope="work")
BOTH = key("alice", "work")


@pytest.mark.parametrize(
    ("access", "operation", "request_", "within"),
    [
        (key(), "recall", {"spaces": [BOB, HOME]}, True),
        (OF_ALICE, "recall", {"spaces": [ALICE, HOME, "work", {"principal": "alice"}]}, True),
        (OF_ALICE, "recall", {"spaces": [ALICE, BOB]}, False),
        (OF_ALICE, "recall", {"spaces": [{"scope": "work"}]}, False),
        (OF_ALICE, "recall", {"spaces": [{}]}, False),
        (OF_ALICE, "recall", {"spaces": [{"principal": "ALICE"}]}, False),
        (OF_WORK, "recall", {"spaces": [ALICE, BOB]}, True),
        (OF_WORK, "recall", {"spaces": [HOME]}, False),
        (BOTH, "recall", {"spaces": [ALICE, "work"]}, True),
        (BOTH, "recall", {"spaces": ["home"]}, False),
        (BOTH, "recall", {"spaces": [""]}, False),
        (BOTH, "recall", {"spaces": None}, True),
        (OF_ALICE, "export", {"spaces": [ALICE]}, True),
        (OF_ALICE, "export", {}, True),
        (OF_ALICE, "export", {"spaces": [BOB]}, False),
        (BOTH, "export", {"spaces": [{"principal": "alice"}]}, False),
        (key(), "import", {}, True),
        (OF_ALICE, "import", {"into": ALICE}, True),
        (OF_ALICE, "import", {"into": ALICE, "spaces": [BOB]}, True),
        (OF_ALICE, "import", {"into": BOB}, False),
        (OF_ALICE, "import", {"into": BOB, "spaces": [ALICE]}, False),
        (key(), "erase", {"principal": "bob"}, True),
        (OF_ALICE, "erase", {"principal": "alice"}, True),
        (OF_ALICE, "erase", {"principal": "alice", "scope": "work"}, True),
        (OF_ALICE, "erase", {"principal": "bob"}, False),
        (BOTH, "erase", {"principal": "alice", "scope": "work"}, True),
        (BOTH, "erase", {"principal": "alice", "scope": None}, False),
        (BOTH, "erase", {"principal": "alice", "scope": "home"}, False),
        (OF_WORK, "erase", {"principal": "bob", "scope": "work"}, True),
        (OF_WORK, "erase", {"principal": "bob"}, False),
        (key(), "verify", {}, True),
        (key(), "purge", {}, True),
        (key(), "storeEvents", {}, True),
        (OF_ALICE, "storeEvents", {}, False),
        (OF_WORK, "storeEvents", {"id": "a"}, False),
        (BOTH, "storeEvents", {"type": "created"}, False),
        (OF_ALICE, "verify", {}, False),
        (OF_ALICE, "purge", {}, False),
        (OF_WORK, "verify", {}, False),
        (BOTH, "purge", {}, False),
        (OF_ALICE, "stats", {}, True),
        (OF_ALICE, "spaces", {}, True),
    ],
)
def test_a_request_names_only_spaces_within_reach_of_its_key(store, access, operation, request_, within):
    asked = {**REQUIRED.get(operation, {}), **request_}
    if within:
        caller(store, access).decoded(OPERATIONS[operation], asked)
        return
    with pytest.raises(Forbidden) as refused:
        caller(store, access).decoded(OPERATIONS[operation], asked)
    assert (refused.value.message, refused.value.field, refused.value.details) == (told_of(access), None, {})


def told_of(access):
    """Return what a refusal says, by the key alone."""
    told = [f"one {name}" for name in ("principal", "scope") if getattr(access, name) is not None]
    return f"{BEYOND}: it is for {' and '.join(told)} alone"


@pytest.mark.parametrize("spaces", [[BOB], [{"principal": "nobody", "scope": "x"}], ["home"], ["absent"]])
def test_a_space_that_exists_is_refused_as_one_that_does_not(store, spaces):
    with pytest.raises(Forbidden) as refused:
        caller(store, BOTH).call("recall", {"query": "canary", "spaces": spaces})
    assert (refused.value.message, refused.value.field, refused.value.details) == (told_of(BOTH), None, {})


@pytest.mark.parametrize(
    "spaces", ["x", 5, {"principal": "bob"}, [5], [None], [["bob"]], [{"Principal": "bob"}]]
)
def test_spaces_of_a_wrong_shape_are_refused_as_such(store, spaces):
    with pytest.raises(InvalidRequest):
        caller(store, OF_ALICE).call("recall", {"query": "canary", "spaces": spaces})


@pytest.mark.parametrize("request_", [{}, {"into": None}, {"spaces": [ALICE]}])
def test_an_import_with_a_key_for_a_part_must_say_into_which_space(store, request_):
    lines = list(store.export_lines())
    with pytest.raises(Forbidden):
        caller(store, OF_ALICE).import_lines(io.BytesIO(b"".join(lines)), request_)


def own(access):
    return [(p, s) for p, s in sorted(TOLD) if access.sees(Namespace(p, s))]


KEYS = [key(), OF_ALICE, OF_WORK, BOTH, key("carol"), key("bob", "home")]


@pytest.mark.parametrize("access", KEYS)
def test_listings_and_sizes_are_of_what_the_key_reaches(store, access):
    asking = caller(store, access)
    listed = asking.call("spaces", {})["spaces"]
    assert [(one["principal"], one["scope"]) for one in listed] == own(access)
    sizes = asking.call("stats", {})
    assert (sizes["spaces"], sizes["facts"]) == (len(own(access)), len(own(access)))


@pytest.mark.parametrize("access", KEYS[:4])
def test_an_export_is_of_what_the_key_reaches(store, access):
    lines = b"".join(caller(store, access).export_lines({})).decode()
    for principal, scope in TOLD:
        assert (f"canary of {principal} at {scope}" in lines) == ((principal, scope) in own(access))
        assert (json.dumps(principal) in lines) == any(name == principal for name, _ in own(access))


@pytest.mark.parametrize("access", KEYS[1:])
def test_sizes_tell_nothing_of_what_is_beyond_the_key(access):
    def sizes(more):
        with Store.open(":memory:") as opened:
            for principal, scope in (("alice", "work"), *more):
                opened.memory(principal, scope).remember(f"of {principal} at {scope}")
            return caller(opened, access).call("stats", {})

    assert sizes([]) == sizes([("dave", "play"), ("erin", "play")])


@pytest.mark.parametrize(
    ("scope", "within"),
    [
        ("work", True),
        ("work#conversation", True),
        ("work#sessions", True),
        ("work#other", False),
        ("work#conversation#conversation", False),
        ("home#conversation", False),
        ("#conversation", False),
    ],
)
def test_what_is_kept_beside_a_scope_is_where_the_scope_is(scope, within):
    assert Bounds("alice", "work").allow(Namespace("alice", scope)) is within
    assert Bounds(scope="work").allow(Namespace("bob", scope)) is within
    assert not Bounds("alice", "work").allow(Namespace("bob", scope))


def test_operations_beside_a_scope_need_no_other_key(store):
    turns = [{"sourceId": "t", "role": "user", "text": "canary of a talk", "observationTime": 0}]
    told = {"sessionId": "s", "version": "1", "turns": turns}
    inside = caller(store, BOTH)
    assert inside.call("rememberConversation", told)["outcome"] == "created"
    assert len(inside.call("recallConversation", {"query": "canary"})["context"]["sources"]) == 1
    other = caller(store, key("bob", "work"))
    assert other.call("recallConversation", {"query": "canary"})["context"]["sources"] == []
    assert other.call("conversations", {})["total"] == 0


@pytest.mark.parametrize(
    ("scope", "goes"),
    [("work", True), ("work#conversation", False)],
    ids=["of the facts", "of the turns alone"],
)
def test_a_key_that_ends_at_conversations_forgets_no_turn_whose_quotes_lie_beside(scope, goes):
    with Store.open(":memory:") as store:
        caller = Caller(store, Namespace("alice", "work#conversation"), bounds=Bounds("alice", scope))
        request = {"scope": {"kind": "all"}, "dryRun": True}
        if goes:
            assert caller.call("forget", request)["dryRun"]
        else:
            with pytest.raises(Forbidden):
                caller.call("forget", request)
