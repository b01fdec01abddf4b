"""Laws of writing: a retry changes nothing, a batch is whole or absent, a key answers once."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import MemoryConfig, Store
from perdure.errors import Blocked, Conflict, InvalidRequest, NotFound, Unavailable
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch, Head
from properties import strategies
from properties.memory_run import CONFIGS, SECRET, Space, everything, listed, millis, recalled, shown
from properties.strategies import IDS, NOW, Call, Drawn, scripts

configs = st.sampled_from(CONFIGS)
thorough = settings(max_examples=examples(24), deadline=None)
DAY = 86_400_000


@st.composite
def tellings(draw: Any, **options: Any) -> dict[str, Any]:
    return strategies.a_telling(Drawn(draw), **options)


# Retries


def repeatable(call: Call) -> bool:
    """Reasserting stores anew every time, as it says; so does any call whose target was told by words."""
    name, told = call
    facts = told.get("facts", [told])
    return not any(fact.get("reassert") for fact in facts) and not (name == "correct" and "id" not in told)


@given(configs, scripts())
@thorough
def test_making_every_call_twice_ends_where_making_it_once_ends(config, script):
    once, twice = Space(config), Space(config)
    for call in filter(repeatable, script):
        reply = once.run(call)
        assert twice.run(call) == reply
        if call[0] != "advance":
            twice.run(call)
            assert everything(twice.memory) == everything(once.memory)


@given(configs, tellings())
@thorough
def test_a_retry_answers_existing_with_the_first_ingest_time_and_stores_nothing(config, told):
    assume(not told.get("reassert") and "supersedes" not in told)
    space = Space(config)
    first = space.run(("remember", told))
    assume(not isinstance(first, str))
    space.clock.advance(5)
    before = everything(space.memory)
    again = space.memory.remember(**told)
    assert (again.id, again.outcome, again.created) == (first.id, "existing", False)
    assert again.ingest_time == first.ingest_time
    assert everything(space.memory) == before


def test_a_retry_succeeds_after_the_fact_that_it_superseded_was_forgotten():
    memory = Space().memory
    memory.remember("alpha", id="a")
    told = {"text": "beta", "id": "b", "supersedes": ["a"]}
    memory.remember(**told)
    memory.forget(ids=["a"])
    assert memory.remember(**told).outcome == "existing"


def test_what_was_forgotten_is_created_anew_when_it_is_told_again():
    space = Space()
    first = space.memory.remember("alpha")
    space.memory.forget(ids=[first.id])
    space.clock.advance(5)
    again = space.memory.remember("alpha")
    assert (again.id, again.outcome, millis(again.ingest_time)) == (first.id, "created", NOW + 5)


def test_telling_again_what_is_no_longer_current_says_so_and_reasserting_stores_it():
    space = Space(MemoryConfig(supersession="latest-by-subject"))
    memory, clock = space.memory, space.clock
    paris = memory.remember("lives in Paris", subject="home")
    clock.advance(1)
    memory.remember("lives in Berlin", subject="home")
    clock.advance(1)
    again = memory.remember("lives in Paris", subject="home")
    assert (again.id, again.outcome, again.status) == (paris.id, "existing", "superseded")
    assert "reassert" in again.reason
    anew = memory.remember("lives in Paris", subject="home", reassert=True)
    assert (anew.outcome, anew.status) == ("created", "current")
    assert anew.id != paris.id
    assert [fact.text for fact in listed(memory, status="current")] == ["lives in Paris"]


@given(tellings(ids=(None,)), st.randoms(use_true_random=False))
@thorough
def test_a_derived_id_ignores_the_order_of_keys_entities_and_links_and_what_is_empty(told, random):
    assume("reassert" not in told)
    metadata = {"b": {"x": 1, "y": [1, 2]}, "a": None, "c": 2.0}
    entities = ["Ann", "Bob", "Čapek"]

    def shuffled(values: Any) -> list[Any]:
        values = list(values)
        random.shuffle(values)
        return values

    one, other = Space(), Space()
    for space in (one, other):
        for id_ in IDS:
            space.memory.remember(f"held {id_}", id=id_)
    first = one.run(("remember", told | {"metadata": metadata, "entities": entities}))
    assume(not isinstance(first, str))
    turned = told | {
        "metadata": dict(shuffled(metadata.items())) | {"c": 2},
        "entities": [*shuffled(entities), "Bob"],
        "supersedes": shuffled(told.get("supersedes", [])) * 2,
    }
    empty = {name: None for name in ("subject", "valid_to", "event_time", "source") if name not in told}
    assert other.memory.remember(**turned, **empty).id == first.id
    assert one.memory.remember(**turned, **empty).outcome == "existing"


def test_absent_null_and_empty_fields_give_one_derived_id():
    memory = Space().memory
    first = memory.remember("alpha")
    nothing = {"subject": None, "entities": [], "metadata": {}, "supersedes": [], "tags": [], "source": {}}
    assert memory.remember("alpha", **nothing).id == first.id
    assert len(listed(memory)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"text": "Alpha"},
        {"text": "alpha "},
        {"subject": "s"},
        {"entities": ["Ann"]},
        {"metadata": {"a": 1}},
        {"metadata": {"a": True}},
        {"metadata": {"a": "1"}},
        {"metadata": {"a": None}},
        {"event_time": 1},
        {"valid_from": 1},
        {"valid_to": 1},
        {"source": {"uri": "x"}},
    ],
    ids=str,
)
def test_any_other_payload_has_another_derived_id_and_conflicts_under_the_same_id(change):
    memory = Space().memory
    plain = memory.remember("alpha")
    assert memory.remember(**{"text": "alpha", **change}).id != plain.id
    memory.remember("alpha", id="a")
    with pytest.raises(Conflict):
        memory.remember(**{"text": "alpha", "id": "a", **change})


@pytest.mark.parametrize(
    "change", [{"tags": ["red"]}, {"kind": "semantic"}, {"importance": 0.5}, {"pinned": True}]
)
def test_annotations_are_no_part_of_a_derived_id_so_that_others_are_a_visible_conflict(change):
    memory = Space().memory
    memory.remember("alpha")
    with pytest.raises(Conflict):
        memory.remember("alpha", **change)


def test_correcting_is_not_what_superseding_with_the_same_text_is():
    memory = Space().memory
    memory.remember("alpha", id="a")
    superseding = memory.remember("beta", supersedes=["a"])
    corrected = memory.correct("beta", id="a")
    assert corrected.outcome == "created"
    assert corrected.id != superseding.id
    assert memory.correct("beta", id="a").outcome == "existing"


def test_a_correction_under_a_taken_id_is_a_conflict_unless_it_repeats_itself():
    memory = Space().memory
    memory.remember("alpha", id="a")
    memory.correct("beta", id="a", new_id="b")
    assert memory.correct("beta", id="a", new_id="b").outcome == "existing"
    with pytest.raises(Conflict):
        memory.correct("beta", id="a", new_id="b", valid_from=5)
    with pytest.raises(Conflict):
        memory.correct("gamma", id="a", new_id="b")


# Batches


FAILING = (
    {"text": "alpha", "supersedes": ["nobody"]},
    {"text": "alpha", "valid_from": 2, "valid_to": 2},
    {"text": " "},
    {"text": "alpha", "colour": 1},
    {"text": "alpha", "supersedes": ["new"], "id": "new"},
    {"text": "alpha", "kind": "odd"},
)


@given(
    configs,
    scripts(max_size=10),
    st.lists(tellings(), max_size=4),
    st.lists(tellings(), max_size=4),
    st.sampled_from(FAILING),
)
@thorough
def test_a_batch_with_a_failing_member_stores_nothing_and_names_its_index(
    config, script, before, after, failing
):
    space = Space(config)
    space.run_all(call for call in script if not call[1].get("block"))  # all members but one are sound
    dropped = ("supersedes", "reassert", "valid_to")
    facts = [{name: fact[name] for name in fact if name not in dropped} for fact in (*before, *after)]
    facts = [fact | {"id": f"new {number}"} for number, fact in enumerate(facts)]
    held = everything(space.memory)
    with pytest.raises(InvalidRequest) as failed:
        space.memory.remember_many([*facts[: len(before)], failing, *facts[len(before) :]])
    assert failed.value.details["index"] == len(before)
    # Of a field of it, or of it as a whole.
    assert failed.value.message.startswith((f"facts[{len(before)}].", f"facts[{len(before)}]: "))
    assert everything(space.memory) == held


@pytest.mark.parametrize("policy", ["reject", "replace"])
@pytest.mark.parametrize("stored", [False, True])
def test_two_contents_under_one_id_in_a_batch_are_a_conflict(policy, stored):
    space = Space(MemoryConfig(on_id_conflict=policy))
    if stored:
        space.memory.remember("alpha", id="a")
    before = everything(space.memory)
    with pytest.raises(Conflict) as failed:
        space.memory.remember_many([{"text": "alpha", "id": "a"}, "beta", {"text": "gamma", "id": "a"}])
    assert failed.value.details["index"] == 2
    assert everything(space.memory) == before


def test_a_batch_of_one_names_the_index_too():
    with pytest.raises(InvalidRequest) as failed:
        Space().memory.remember_many([{"text": "alpha", "supersedes": ["nobody"]}])
    assert failed.value.details["index"] == 0
    assert failed.value.message.startswith("facts[0].")


def test_the_same_fact_twice_in_a_batch_is_stored_once():
    memory = Space().memory
    first, second = memory.remember_many([{"text": "alpha", "id": "a"}] * 2)
    assert (first.outcome, second.outcome) == ("created", "existing")
    assert len(listed(memory)) == 1


@given(
    st.lists(tellings(ids=("a", "b", "c", "d")), min_size=2, max_size=4, unique_by=lambda told: told["id"])
)
@thorough
def test_under_the_explicit_policy_every_order_of_a_batch_draws_the_same_links(facts):
    outcomes = set()
    for order in list(permutations(facts))[:8]:
        space = Space()
        reply = space.run(("remember_many", {"facts": list(order)}))
        links = sorted((fact.id, fact.supersedes, fact.superseded_by) for fact in listed(space.memory))
        outcomes.add(str(links) if not isinstance(reply, str) else reply)
    assert len(outcomes) == 1


def test_members_of_a_batch_share_one_ingest_time_and_arrive_in_list_order():
    memory = Space().memory
    memory.remember_many([{"text": "alpha", "id": id_, "metadata": {"id": id_}} for id_ in ("c", "a", "b")])
    facts = listed(memory)
    assert [fact.id for fact in facts] == ["c", "a", "b"]
    assert {millis(fact.ingest_time) for fact in facts} == {NOW}


def test_a_refused_call_leaves_nothing_behind():
    space = Space()
    memory = space.memory
    memory.remember("alpha", id="a", valid_from=5)
    before = everything(memory)
    for call in (
        ("remember", {"text": "beta", "id": "a"}),
        ("remember", {"text": "beta", "supersedes": ["x"]}),
        ("correct", {"new_text": "beta", "containing": "nothing"}),
        ("end", {"id": "a", "at": 5}),
        ("retract", {"id": "x"}),
        ("annotate", {"id": "a", "importance": 2}),
        ("forget", {"subject": "s", "all": True}),
    ):
        assert space.run(call) in ("conflict", "invalid_request", "not_found")
    assert everything(memory) == before


class BreakingLog:
    """A log that fails to append while `breaks` is set; everything else is the log's."""

    name = "breaking"

    def __init__(self, log: MemoryLog) -> None:
        self._log, self.breaks = log, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        if self.breaks:
            raise Unavailable("the disk is away")
        return self._log.append(space, expected, batch)


@given(configs, scripts(), st.randoms(use_true_random=False))
@thorough
def test_a_write_that_the_log_refuses_changes_nothing_and_the_next_one_works(config, script, random):
    log, whole = BreakingLog(MemoryLog(SECRET)), Space(config)
    broken = Space(config)
    broken.store = Store.open(log=log, clock=broken.clock)
    broken.memory = broken.store.memory(config=config)
    for call in script:
        if call[0] != "advance" and random.choice((True, False)):
            before = everything(broken.memory)
            log.breaks = True
            broken.run(call)
            log.breaks = False
            assert everything(broken.memory) == before
        assert shown_answer(broken.run(call)) == shown_answer(whole.run(call))
    assert everything(broken.memory) == everything(whole.memory)


# Idempotency keys

KEYED: list[tuple[Call, Call]] = [
    (("remember", {"text": "beta"}), ("remember", {"text": "gamma"})),
    (("remember", {"text": "beta", "reassert": True}), ("remember", {"text": "beta"})),
    (("remember_many", {"facts": ["beta", "gamma"]}), ("remember_many", {"facts": ["gamma", "beta"]})),
    (("correct", {"new_text": "beta", "id": "a"}), ("correct", {"new_text": "beta", "id": "b"})),
    (("end", {"id": "a", "at": 5}), ("end", {"id": "a", "at": 4})),
    (("retract", {"id": "a"}), ("retract", {"id": "b"})),
    (("annotate", {"id": "a", "tags": ["red"]}), ("annotate", {"id": "a", "tags": ["blue"]})),
    (("forget", {"ids": ["a"], "soft": True}), ("forget", {"ids": ["a"]})),
    (("restore", {"ids": ["h", "a"]}), ("restore", {"ids": ["h"]})),
    (("unblock", {"ids": ["blocked"]}), ("unblock", {"ids": ["a"]})),
]
by_name = pytest.mark.parametrize(("call", "other"), KEYED, ids=[str(call[0]) for call, _ in KEYED])


def with_key(call: Call, key: str = "key") -> Call:
    return call[0], {**call[1], "idempotency_key": key}


@pytest.fixture
def space() -> Space:
    """Facts a and b, and h, which is hidden."""
    space = Space()
    for id_ in ("a", "b", "h"):
        space.memory.remember(f"alpha {id_}", id=id_)
    space.memory.forget(ids=["h"], soft=True)
    space.memory.remember("never again", id="blocked")
    space.memory.forget(ids=["blocked"], block=True)
    space.clock.advance(1)
    return space


@by_name
def test_a_replay_gives_the_first_answer_and_writes_nothing(space, call, other):
    first = space.run(with_key(call))
    space.clock.advance(3)
    before = everything(space.memory)
    again = space.run(with_key(call))
    assert shown_answer(again) == shown_answer(first)
    assert everything(space.memory) == before


def shown_answer(reply: Any) -> Any:
    if hasattr(reply, "ingest_time") and not hasattr(reply, "outcome"):
        return shown(reply)
    return getattr(reply, "forgotten", reply)


@by_name
def test_another_request_under_a_used_key_is_a_conflict_and_changes_nothing(space, call, other):
    space.run(with_key(call))
    before = everything(space.memory)
    assert space.run(with_key(other)) == "conflict"
    assert everything(space.memory) == before


def test_a_key_belongs_to_one_operation(space):
    assert space.memory.remember("beta", idempotency_key="key").outcome == "created"
    assert space.memory.end("a", at=5, idempotency_key="key").status == "expired"


def test_a_failed_request_leaves_its_key_unused(space):
    memory = space.memory
    with pytest.raises(InvalidRequest):
        memory.remember("beta", supersedes=["nobody"], idempotency_key="key")
    with pytest.raises(Conflict):
        memory.remember("beta", id="a", idempotency_key="key")
    assert memory.remember("gamma", idempotency_key="key").outcome == "created"


def test_a_replay_keeps_the_first_status_and_ingest_time(space):
    memory, clock = space.memory, space.clock
    first = memory.remember("beta", id="n", idempotency_key="key")
    clock.advance(5)
    memory.remember("gamma", supersedes=["n"])
    assert memory.remember("beta", id="n", idempotency_key="key") == first
    assert memory.remember("beta", id="n").status == "superseded"


def test_after_its_fact_is_forgotten_a_replay_is_not_found_and_stores_nothing(space):
    memory = space.memory
    memory.remember_many(["beta", {"text": "gamma", "id": "g"}], idempotency_key="key")
    memory.forget(ids=["g"])
    before = recalled(memory)
    for facts in (["beta", {"text": "gamma", "id": "g"}], ["another"]):
        with pytest.raises(NotFound):
            memory.remember_many(facts, idempotency_key="key")
    assert recalled(memory) == before
    memory.remember_many([{"text": "gamma", "id": "g"}], idempotency_key="other key")
    assert memory.get("g") is not None


def test_a_key_is_remembered_for_receipt_days_and_free_afterwards():
    space = Space(MemoryConfig(receipt_days=2))
    first = space.memory.remember("alpha", reassert=True, idempotency_key="key")
    space.clock.advance(2 * DAY)
    assert space.memory.remember("alpha", reassert=True, idempotency_key="key") == first
    space.clock.advance(1)
    assert space.memory.remember("alpha", reassert=True, idempotency_key="key").id != first.id


@given(configs, scripts(max_size=14))
@thorough
def test_a_call_with_a_key_does_what_it_does_without(config, script):
    plain, keyed = Space(config), Space(config)
    for place, (name, told) in enumerate(script):
        if name == "advance":
            # A receipt is recorded too, so a clock that goes back shows how late the last one was.
            for space in (plain, keyed):
                space.clock.advance(max(0, told["milliseconds"]))
        else:
            answer = keyed.run(with_key((name, told), f"key {place}"))
            assert shown_answer(answer) == shown_answer(plain.run((name, told)))
    for at in (None, 3):
        assert listed(plain.memory, as_of=at) == listed(keyed.memory, as_of=at)


# Blocks


def test_blocked_content_is_refused_under_any_id_and_spelling_until_it_is_unblocked():
    memory = Space().memory
    memory.remember("Alpha  Beta", id="a")
    memory.forget(ids=["a"], block=True)
    for told in (
        {"text": "alpha beta"},
        {"text": "ＡＬＰＨＡ beta", "id": "z"},
        {"text": "other", "id": "a"},
    ):
        with pytest.raises(Blocked):
            memory.remember(**told)
    assert memory.unblock(texts=["ALPHA BETA"]) == 1
    assert memory.unblock(texts=["ALPHA BETA"]) == 0
    assert memory.remember("alpha beta").outcome == "created"
    assert memory.unblock(ids=["a"]) == 1
    assert memory.remember("other", id="a").outcome == "created"


def test_blocked_content_cannot_come_back_as_a_correction():
    memory = Space().memory
    memory.remember("alpha", id="a")
    memory.remember("beta", id="b")
    memory.forget(ids=["a"], block=True)
    with pytest.raises(Blocked):
        memory.correct("Alpha", id="b")
