"""What erases by anything but ids shows first what would go."""

from __future__ import annotations

import pytest

from perdure import ManualClock, MemoryConfig, Store
from perdure.contract.limits import HTTP
from perdure.dispatch import Bounds, Caller
from perdure.mcp.service import Service, Settings
from perdure.mcp.tokens import LIFE_MS
from perdure.model.namespace import Namespace
from perdure.policies import Consolidation, MaxFacts

NOW = 1_772_366_400_000
ADA = Namespace("ada", "")


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def store(clock):
    with Store.open(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def call(store):
    return calling(store)


def calling(store, space=ADA, config=None):
    service = Service(Settings("all"))
    caller = Caller(store, space, config, HTTP, "write", Bounds(space.principal, space.scope))

    def call(name: str, **arguments):
        result = service.call(name, arguments, caller)
        return result["structuredContent"]

    return call


def tell(call, *ids: str, **fields) -> None:
    for id_ in ids:
        call("remember", id=id_, text=f"fact {id_}", **fields)


def left(call) -> list[str]:
    return [fact["id"] for fact in call("list_facts")["items"]]


def test_ids_are_forgotten_at_once(call):
    tell(call, "a", "b")
    assert call("forget", ids=["a"])["forgotten"] == ["a"]
    assert left(call) == ["b"]


def test_anything_else_is_previewed_first_and_forgotten_with_the_token(call):
    tell(call, "a", "b", tags=["old"])
    tell(call, "c")
    shown = call("forget", tag="old")
    assert shown["dryRun"] is True
    assert shown["forgotten"] == ["a", "b"]
    assert shown["preview"]["count"] == 2
    assert [fact["text"] for fact in shown["preview"]["facts"]] == ["fact a", "fact b"]
    assert left(call) == ["a", "b", "c"]
    done = call("forget", tag="old", token=shown["preview"]["token"])
    assert done["dryRun"] is False
    assert done["forgotten"] == ["a", "b"]
    assert left(call) == ["c"]


SCOPES = [
    {"subject": "s"},
    {"entity": "e"},
    {"tag": "t"},
    {"text": "fact a"},
    {"containing": "fact"},
    {"kind": "episodic"},
    {"matching": {"m": 1}},
    {"filter": {"m": 1}},
    {"ingested_before": "2027-01-01"},
    {"event_before": "2027-01-01"},
    {"all": True},
]


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: next(iter(scope)))
def test_every_scope_but_ids_takes_two_calls(call, scope):
    tell(
        call,
        "a",
        subject="s",
        entities=["e"],
        tags=["t"],
        kind="episodic",
        metadata={"m": 1},
        event_time="2020-01-01",
    )
    shown = call("forget", **scope)
    assert left(call) == ["a"]
    assert call("forget", **scope, token=shown["preview"]["token"])["forgotten"] == ["a"]
    assert left(call) == []


def test_what_a_session_brought_is_shown_with_candidates_and_goes_with_them(call, store):
    turn = {"uri": "perdure:turn/monday/1/t0"}
    call("remember", id="a", text="fact a", source=turn)
    proof = {**turn, "digest": "d", "kind": "session_turn", "occurred_at": NOW}
    told = {"id": "waits", "kind": "semantic", "content": "It closes at one", "evidence": [proof]}
    made = [{"operation": "create", "draft": told}]
    call("apply_changes", idempotency_key="k", occurred_at=NOW, operations=made)
    shown = call("forget", session="monday")["preview"]
    assert [(one["text"], one["status"]) for one in shown["facts"]] == [
        ("fact a", "current"), ("It closes at one", "candidate"),
    ]  # fmt: skip
    assert left(call) == ["a"]
    assert len(call("forget", session="monday", token=shown["token"])["forgotten"]) == 2
    assert (left(call), call("get_node", id="waits")["node"]) == ([], None)


def test_a_changed_set_gives_a_new_preview(call):
    tell(call, "a", tags=["old"])
    token = call("forget", tag="old")["preview"]["token"]
    tell(call, "b", tags=["old"])
    again = call("forget", tag="old", token=token)
    assert again["dryRun"] is True
    assert "new preview" in again["preview"]["note"]
    assert left(call) == ["a", "b"]
    assert call("forget", tag="old", token=again["preview"]["token"])["forgotten"] == ["a", "b"]


def test_a_token_is_good_for_ten_minutes(call, clock):
    tell(call, "a", tags=["old"])
    shown = call("forget", tag="old")["preview"]
    assert shown["expiresAt"] == NOW + LIFE_MS
    clock.advance(LIFE_MS + 1)
    assert call("forget", tag="old", token=shown["token"])["dryRun"] is True
    assert left(call) == ["a"]


def test_a_token_is_good_once_also_when_the_same_is_told_again(call):
    tell(call, "a", tags=["old"])
    token = call("forget", tag="old")["preview"]["token"]
    assert call("forget", tag="old", token=token)["forgotten"] == ["a"]
    tell(call, "a", tags=["old"])
    assert call("forget", tag="old", token=token)["dryRun"] is True
    assert left(call) == ["a"]


@pytest.mark.parametrize("option", [{"soft": True}, {"block": True}, {"include_chain": True}])
def test_a_token_is_for_the_options_that_were_shown(call, option):
    tell(call, "a", tags=["old"])
    token = call("forget", tag="old")["preview"]["token"]
    assert call("forget", tag="old", token=token, **option)["dryRun"] is True
    assert left(call) == ["a"]


def test_a_token_of_one_space_is_none_of_another(store, call):
    other = calling(store, Namespace("bob", ""))
    tell(call, "a")
    tell(other, "a")
    token = other("forget", all=True)["preview"]["token"]
    assert call("forget", all=True, token=token)["dryRun"] is True
    assert left(call) == ["a"]


def test_forgetting_all_of_one_memory_leaves_every_other_one(store, call):
    other, home = calling(store, Namespace("bob", "")), calling(store, Namespace("ada", "home"))
    for one in (call, other, home):
        tell(one, "a")
    token = call("forget", all=True)["preview"]["token"]
    call("forget", all=True, token=token)
    assert (left(call), left(other), left(home)) == ([], ["a"], ["a"])


def test_the_chain_that_was_shown_goes_along(call):
    tell(call, "a", tags=["old"])
    tell(call, "b", supersedes=["a"])
    shown = call("forget", tag="old", include_chain=True)
    assert shown["forgotten"] == ["a", "b"]
    call("forget", tag="old", include_chain=True, token=shown["preview"]["token"])
    assert left(call) == []


def test_a_soft_forget_can_be_taken_back(call):
    tell(call, "a")
    token = call("forget", all="true", soft="true")["preview"]["token"]
    call("forget", all=True, soft=True, token=token)
    assert left(call) == []
    assert call("restore", ids="a") == {"restored": ["a"]}


def test_nothing_that_matches_needs_no_token(call):
    preview = call("forget", subject="nobody")["preview"]
    assert preview == {"count": 0, "facts": []}


@pytest.mark.parametrize(
    "arguments", [{}, {"subject": "a", "tag": "b"}, {"ids": ["a"], "all": True}, {"all": False}]
)
def test_exactly_one_scope_is_taken(call, arguments):
    tell(call, "a")
    assert call("forget", **arguments)["error"]["field"] == "scope"
    assert left(call) == ["a"]


def test_a_preview_tells_few_texts_and_all_ids(call):
    tell(call, *(f"f{n:03}" for n in range(120)))
    shown = call("forget", all=True)
    assert (shown["preview"]["count"], len(shown["forgotten"]), len(shown["preview"]["facts"])) == (
        120,
        120,
        20,
    )


def test_the_forgetting_policy_shows_first_what_it_lets_go(store):
    call = calling(store, config=MemoryConfig(forgetting=MaxFacts(1)))
    tell(call, "a", "b")
    assert call("apply_forgetting") == call("apply_forgetting", dry_run=True)
    assert "preview" not in call("apply_forgetting")
    shown = call("apply_forgetting", dry_run=False)
    (gone,) = shown["forgotten"]
    assert left(call) == ["a", "b"]
    assert call("apply_forgetting", dry_run="false", token=shown["preview"]["token"])["forgotten"] == [gone]
    assert left(call) == [one for one in ("a", "b") if one != gone]


class Uniting:
    """Plans one fact out of all, in place of its sources."""

    def plan(self, facts, now):
        return (Consolidation(text="all of it", sources=("a", "b"), remove_sources=True),)


def test_a_consolidation_that_erases_its_sources_shows_them_first(store):
    call = calling(store, config=MemoryConfig(consolidation=Uniting()))
    tell(call, "a", "b")
    asked = {"dry_run": False, "allow_destructive": True}
    shown = call("consolidate", **asked)
    assert shown["forgotten"] == ["a", "b"]
    assert left(call) == ["a", "b"]
    created = call("consolidate", **asked, token=shown["preview"]["token"])["created"]
    assert left(call) == created


def test_a_consolidation_that_keeps_its_sources_needs_no_token(store):
    call = calling(store, config=MemoryConfig(consolidation=Uniting()))
    tell(call, "a", "b")
    created = call("consolidate", dry_run=False)["created"]
    assert left(call) == ["a", "b", *created]


def tell_turns(call, version: str = "1") -> None:
    turns = [
        {"source_id": id_, "role": "user", "text": f"turn {id_}", "observation_time": "2024-05-31"}
        for id_ in ("a", "b")
    ]
    call("remember_conversation", session_id="s", version=version, turns=turns)


def kept_turns(call, version: str = "1") -> list[str]:
    kept = call("get_conversation", session_id="s", version=version)["conversation"]
    return [] if kept is None else [turn["text"] for turn in kept["turns"]]


def test_one_turn_that_is_named_whole_is_forgotten_at_once(call):
    tell_turns(call)
    call("forget_conversation", session_id="s", version="1", source_id="a")
    assert kept_turns(call) == ["turn b"]


@pytest.mark.parametrize("chosen", [{}, {"version": "1"}, {"source_id": "a"}])
def test_a_session_is_previewed_first_and_forgotten_with_the_token(call, chosen):
    tell_turns(call)
    shown = call("forget_conversation", session_id="s", **chosen)
    count = 1 if "source_id" in chosen else 2
    assert shown["preview"]["count"] == count
    assert [turn["text"] for turn in shown["preview"]["turns"]] == ["turn a", "turn b"][:count]
    assert kept_turns(call) == ["turn a", "turn b"]
    token = shown["preview"]["token"]
    done = call("forget_conversation", session_id="s", token=token, **chosen)
    assert done["dryRun"] is False
    assert kept_turns(call) == ["turn a", "turn b"][count:]


def test_a_token_of_a_session_fits_neither_more_turns_nor_a_second_time(call):
    tell_turns(call)
    token = call("forget_conversation", session_id="s")["preview"]["token"]
    tell_turns(call, "2")
    assert "note" in call("forget_conversation", session_id="s", token=token)["preview"]
    assert kept_turns(call, "2") == ["turn a", "turn b"]
    token = call("forget_conversation", session_id="s")["preview"]["token"]
    call("forget_conversation", session_id="s", token=token)
    tell_turns(call)
    tell_turns(call, "2")
    assert "note" in call("forget_conversation", session_id="s", token=token)["preview"]
    assert kept_turns(call) == ["turn a", "turn b"]
