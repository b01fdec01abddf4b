"""What applying a forgetting policy and consolidating do, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from perdure import Blocked, Conflict, Consolidated, InvalidRequest, Memory, MemoryConfig, NotFound, Store
from perdure.policies import Consolidation, ExpiredFor, FactSummary, MaxFacts, SupersededFor
from scenarios.stores import DAY_MS, NOW_MS, ids
from unit.memory.refusals import MARKER, refused, seen

Facts = Sequence[FactSummary]


class Choosing:
    """A forgetting policy that does what a function does, and keeps what it was shown."""

    def __init__(self, choose: Callable[[Facts], Any], *, reads_content: bool = True) -> None:
        self._choose, self.reads_content = choose, reads_content
        self.shown: list[FactSummary] = []
        self.now: int | None = None

    def select(self, facts: Facts, now: int) -> Any:
        self.shown, self.now = list(facts), now
        return self._choose(facts)


class Planning:
    """A consolidation policy that does what a function does."""

    def __init__(self, make: Callable[[Facts], Any]) -> None:
        self._make = make

    def plan(self, facts: Facts, now: int) -> Any:
        return self._make(facts)


class Notes:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def remembered(self, fact: Any) -> None:
        self.heard.append(fact.id)

    def forgotten(self, gone: Sequence[str]) -> None:
        self.heard.append(tuple(gone))


def forgetting(store: Store, policy: Any, **options: Any) -> Memory:
    return store.memory(config=MemoryConfig(forgetting=policy, **options))


def consolidating(store: Store, make: Callable[[Facts], Any], **options: Any) -> Memory:
    return store.memory(config=MemoryConfig(consolidation=Planning(make), **options))


def merging(*sources: str, text: str = "merged", **told: Any) -> Callable[[Facts], list[Consolidation]]:
    return lambda facts: [Consolidation(text=text, sources=sources, **told)]


def tell(memory: Memory, *names: str) -> None:
    for name in names:
        memory.remember(f"fact {name}", id=name)


def statuses(memory: Memory, **options: Any) -> dict[str, str]:
    return {fact.id: fact.status.value for fact in memory.list(**options).items}


# Forgetting


def test_without_a_policy_nothing_is_forgotten(memory):
    tell(memory, "a")
    memory.end("a", at=0)
    assert memory.apply_forgetting(dry_run=False).forgotten == ()
    assert statuses(memory) == {"a": "expired"}


def test_the_default_is_a_preview(store):
    memory = forgetting(store, MaxFacts(1))
    tell(memory, "a", "b", "c")
    before = seen(memory)
    preview = memory.apply_forgetting()
    assert (preview.forgotten, preview.dry_run) == (("a", "b"), True)
    assert seen(memory) == before


def test_a_run_removes_what_its_preview_named_and_a_second_run_nothing(store):
    memory = forgetting(store, MaxFacts(1))
    tell(memory, "a", "b", "c")
    done = memory.apply_forgetting(dry_run=False)
    assert (done.forgotten, done.dry_run, done.pending) == (("a", "b"), False, False)
    assert statuses(memory) == {"c": "current"}
    assert memory.apply_forgetting(dry_run=False).forgotten == ()


def test_what_ended_goes_once_more_than_the_grace_has_passed(store, clock):
    memory = forgetting(store, ExpiredFor(DAY_MS))
    memory.remember("a trip", id="trip", valid_to=NOW_MS)
    memory.remember("a home", id="home")
    clock.advance(DAY_MS)
    assert memory.apply_forgetting(dry_run=False).forgotten == ()
    clock.advance(1)
    assert memory.apply_forgetting(dry_run=False).forgotten == ("trip",)


def test_a_retracted_fact_goes_at_once(store):
    memory = forgetting(store, ExpiredFor(1000 * DAY_MS))
    tell(memory, "a")
    memory.retract("a")
    assert memory.apply_forgetting(dry_run=False).forgotten == ("a",)


def test_a_superseded_fact_goes_and_its_successor_keeps_the_place_over_older_ones(store, clock):
    memory = forgetting(store, Choosing(lambda facts: [f.id for f in facts if f.id == "b"]))
    memory.remember("first", id="a", valid_from=1)
    memory.remember("second", id="b", valid_from=2, supersedes=["a"])
    memory.remember("third", id="c", valid_from=3, supersedes=["b"])
    memory.apply_forgetting(dry_run=False)
    assert memory.get("c").supersedes == ("a",)
    assert statuses(memory) == {"a": "superseded", "c": "current"}


def test_superseded_for_counts_from_when_the_successor_took_effect(store, clock):
    memory = forgetting(store, SupersededFor(DAY_MS))
    memory.remember("old", id="a")
    memory.remember("new", id="b", valid_from=NOW_MS - DAY_MS, supersedes=["a"])
    assert memory.apply_forgetting(dry_run=False).forgotten == ()
    clock.advance(1)
    assert memory.apply_forgetting(dry_run=False).forgotten == ("a",)


def test_with_the_chain_no_version_survives(store):
    memory = forgetting(store, Choosing(lambda facts: ["a"]))
    tell(memory, "a", "other")
    memory.remember("newer", id="b", supersedes=["a"])
    assert memory.apply_forgetting(include_chain=True).forgotten == ("a", "b")
    assert memory.apply_forgetting(include_chain=True, dry_run=False).forgotten == ("a", "b")
    assert statuses(memory) == {"other": "current"}


def test_unknown_and_repeated_ids_are_ignored_and_what_was_not_shown_stays(store):
    policy = Choosing(lambda facts: ["a", "nobody", "a", "hidden", "text"])
    memory = forgetting(store, policy)
    tell(memory, "a", "hidden")
    memory.forget(ids=["hidden"], soft=True)
    store.documents().put("text", "a document")
    assert memory.apply_forgetting(dry_run=False).forgotten == ("a",)
    assert [fact.id for fact in policy.shown] == ["a"]
    assert memory.restore(["hidden"]) == ("hidden",)
    assert store.documents().has("text")


def test_a_cap_counts_neither_documents_nor_hidden_facts(store):
    memory = forgetting(store, MaxFacts(1))
    tell(memory, "a", "hidden")
    memory.forget(ids=["hidden"], soft=True)
    store.documents().put("text", "a document")
    assert memory.apply_forgetting().forgotten == ()


def test_a_policy_sees_a_fact_as_it_stands_now(store, clock):
    policy = Choosing(lambda facts: [])
    memory = forgetting(store, policy)
    memory.remember(
        "Ann has a cat",
        id="a",
        subject="s",
        entities=["Ann"],
        metadata={"n": 1},
        tags=["t"],
        event_time=3,
        valid_from=2,
        valid_to=NOW_MS + 9,
    )
    memory.remember("Ann has a dog", id="b", valid_from=NOW_MS + 5, supersedes=["a"])
    memory.annotate("a", tags=["u"], kind="semantic", importance=0.5, pinned=True, metadata={"n": 2})
    memory.end("a", at=NOW_MS + 7)
    clock.advance(5)
    memory.apply_forgetting()
    first, second = policy.shown
    assert policy.now == NOW_MS + 5
    assert (first.id, first.text, first.subject, first.entities) == ("a", "Ann has a cat", "s", ("Ann",))
    assert (first.metadata, first.tags, first.kind) == ({"n": 2}, ("u",), "semantic")
    assert (first.importance, first.pinned, first.uses) == (0.5, True, 0)
    assert (first.ingest_time, first.event_time, first.valid_from) == (NOW_MS, 3, 2)
    assert (first.valid_to, first.superseded_since) == (NOW_MS + 7, NOW_MS + 5)
    assert (first.status.value, second.status.value) == ("superseded", "current")
    assert (first.linked, second.linked, first.number < second.number) == (True, True, True)
    assert (second.valid_to, second.superseded_since, second.event_time) == (None, None, None)


def test_a_policy_that_reads_no_content_is_shown_none_but_the_ids(store):
    policy = Choosing(lambda facts: ["a"], reads_content=False)
    memory = forgetting(store, policy)
    memory.remember("Ann has a cat", id="a", subject="s", entities=["Ann"], metadata={"n": 1})
    assert memory.apply_forgetting(dry_run=False).forgotten == ("a",)
    (shown,) = policy.shown
    assert (shown.id, shown.subject, shown.text, shown.entities, shown.metadata) == ("a", "s", None, (), {})


def test_what_a_policy_does_to_the_metadata_it_was_shown_stays_with_it(store):
    memory = forgetting(store, Choosing(lambda facts: facts[0].metadata.clear() or []))
    memory.remember("fact", id="a", metadata={"n": 1})
    memory.apply_forgetting(dry_run=False)
    assert memory.get("a").metadata == {"n": 1}


@pytest.mark.parametrize("answer", [None, 5, "a", b"a", {"a": 1}, [5], [None], ["a", ("a",)]], ids=repr)
def test_a_policy_that_returns_no_list_of_ids_is_refused_and_nothing_goes(store, answer):
    memory = forgetting(store, Choosing(lambda facts: answer))
    tell(memory, "a")
    for dry_run in (True, False):
        refused(memory, lambda dry_run=dry_run: memory.apply_forgetting(dry_run=dry_run), "forgetting")


def test_any_collection_of_ids_will_do(store):
    for answer in (("a",), {"a"}, iter(["a"])):
        memory = forgetting(store, Choosing(lambda facts, answer=answer: answer))
        tell(memory, "a")
        assert memory.apply_forgetting(dry_run=False).forgotten == ("a",)


def test_what_a_policy_raises_reaches_the_caller_and_nothing_goes(store):
    def fail(facts: Facts) -> Any:
        raise ZeroDivisionError

    for memory, call in (
        (forgetting(store, Choosing(fail)), "apply_forgetting"),
        (consolidating(store, fail), "consolidate"),
    ):
        tell(memory, "a")
        before = seen(memory)
        with pytest.raises(ZeroDivisionError):
            getattr(memory, call)(dry_run=False)
        assert seen(memory) == before
        memory.forget(all=True)


def test_a_policy_may_not_call_the_memory_that_asks_it(store):
    memory = forgetting(store, Choosing(lambda facts: memory.get("a")))
    tell(memory, "a")
    with pytest.raises(InvalidRequest, match="policies decide from what they are given"):
        memory.apply_forgetting(dry_run=False)
    assert ids(memory.list().items) == ["a"]


@pytest.mark.parametrize("call", ["apply_forgetting", "consolidate"])
def test_flags_are_true_or_false(memory, call):
    tell(memory, "a")
    other = {"apply_forgetting": "include_chain", "consolidate": "allow_destructive"}[call]
    for name in ("dry_run", other):
        for value in (1, 0, "true"):
            refused(memory, lambda name=name, value=value: getattr(memory, call)(**{name: value}), name)
    refused(memory, lambda: getattr(memory, call)(idempotency_key=""), "idempotency_key")


def test_a_flag_that_is_none_makes_no_run_real(store):
    memory = store.memory(
        config=MemoryConfig(forgetting=MaxFacts(1), consolidation=Planning(merging("a", remove_sources=True)))
    )
    tell(memory, "a", "b")
    before = seen(memory)
    with suppress(InvalidRequest):  # refused, or taken as the default: either way a preview at most
        memory.apply_forgetting(dry_run=None)
    with suppress(InvalidRequest):
        memory.consolidate(dry_run=None, allow_destructive=True)
    assert seen(memory) == before


def test_a_forgotten_text_leaves_every_file(open_store, tmp_path, backend):
    store = open_store()
    memory = forgetting(store, MaxFacts(1))
    memory.remember(f"{MARKER} one", id="a")
    tell(memory, "b")
    memory.apply_forgetting(dry_run=False)
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert bool(files) == (backend != "memory")
    assert [path for path in files if MARKER.encode() in path.read_bytes()] == []


def test_a_retried_key_forgets_nothing_more(store):
    memory = forgetting(store, MaxFacts(1))
    tell(memory, "a", "b")
    assert memory.apply_forgetting(dry_run=False, idempotency_key="k").forgotten == ("a",)
    tell(memory, "c")
    assert memory.apply_forgetting(dry_run=False, idempotency_key="k").forgotten == ()
    assert statuses(memory) == {"b": "current", "c": "current"}
    with pytest.raises(Conflict):
        memory.apply_forgetting(dry_run=False, include_chain=True, idempotency_key="k")


def test_observers_hear_of_real_runs_only(store):
    notes = Notes()
    memory = forgetting(store, MaxFacts(1), observers=(notes,))
    tell(memory, "b", "a", "c")
    notes.heard.clear()
    memory.apply_forgetting()
    memory.apply_forgetting(dry_run=False, idempotency_key="k")
    memory.apply_forgetting(dry_run=False, idempotency_key="k")
    memory.apply_forgetting(dry_run=False)
    assert notes.heard == [("a", "b")]


# Consolidation


def test_without_a_policy_nothing_is_consolidated(memory):
    tell(memory, "a")
    assert memory.consolidate(dry_run=False) == Consolidated((), (), False)


def test_consolidating_is_a_preview_by_default(store):
    memory = consolidating(store, merging("a", "b"))
    tell(memory, "a", "b")
    before = seen(memory)
    preview = memory.consolidate()
    assert seen(memory) == before
    assert preview.dry_run
    assert memory.consolidate(dry_run=False) == Consolidated(preview.created, (), False)


def test_a_merged_fact_takes_the_place_of_its_sources_which_stay_as_history(store, clock):
    memory = consolidating(store, merging("a", "b", subject="s", entities=("Ann",), metadata={"n": 1}))
    tell(memory, "a", "b", "c")
    clock.advance(10)
    (created,) = memory.consolidate(dry_run=False).created
    fact = memory.get(created)
    assert (fact.text, fact.subject, fact.entities, fact.metadata) == ("merged", "s", ("Ann",), {"n": 1})
    assert (fact.supersedes, fact.status.value) == (("a", "b"), "current")
    assert statuses(memory) == {"a": "superseded", "b": "superseded", "c": "current", created: "current"}
    assert statuses(memory, known_at=NOW_MS) == {"a": "current", "b": "current", "c": "current"}
    assert [fact.text for fact in memory.history("a")] == ["fact a", "fact b", "merged"]
    assert set(ids(memory.recall("fact merged"))) == {"c", created}


def test_a_merged_fact_supersedes_from_where_it_takes_effect(store):
    memory = consolidating(store, merging("a", valid_from=NOW_MS + 5, valid_to=NOW_MS + 9))
    tell(memory, "a")
    (created,) = memory.consolidate(dry_run=False).created
    assert statuses(memory) == {"a": "current", created: "not-yet-valid"}
    assert statuses(memory, as_of=NOW_MS + 5) == {"a": "superseded", created: "current"}
    assert statuses(memory, as_of=NOW_MS + 9) == {"a": "superseded", created: "expired"}


def test_no_supersession_policy_is_asked_about_a_merged_fact(store):
    memory = consolidating(store, merging("a", subject="s"), supersession="latest-by-subject")
    tell(memory, "a")
    memory.remember("in the slot", id="slot", subject="s")
    (created,) = memory.consolidate(dry_run=False).created
    assert memory.get(created).supersedes == ("a",)
    assert memory.get("slot").status.value == "current"
    memory.remember("told later", id="later", subject="s")
    assert memory.get(created).superseded_by == ("later",)


def test_the_extractor_reads_a_merged_text(store):
    memory = consolidating(
        store, merging("a", text="Ann and Ben"), extractor=lambda text: text.split(" and ")
    )
    memory.remember("x", id="a")
    (created,) = memory.consolidate(dry_run=False).created
    assert memory.get(created).entities == ("Ann", "Ben")


def test_a_plan_that_was_carried_out_is_not_carried_out_again(store):
    memory = consolidating(store, merging("a", "b"))
    tell(memory, "a", "b")
    (created,) = memory.consolidate(dry_run=False).created
    before = seen(memory)
    assert memory.consolidate() == Consolidated((), (), True)
    assert memory.consolidate(dry_run=False) == Consolidated((), (), False)
    assert seen(memory) == before
    memory.forget(ids=[created])
    assert memory.consolidate(dry_run=False).created == (created,)


def test_two_members_of_one_content_are_one_fact(store):
    twice = [
        Consolidation(text="merged", sources=("a", "b")),
        Consolidation(text="merged", sources=("b", "a", "b")),
    ]
    memory = consolidating(store, lambda facts: twice)
    tell(memory, "a", "b")
    assert len(memory.consolidate(dry_run=False).created) == 1


def test_a_source_told_anew_under_its_id_is_merged_anew(store):
    memory = consolidating(store, merging("a", "b"))
    tell(memory, "a", "b")
    (first,) = memory.consolidate(dry_run=False).created
    memory.forget(ids=["a"])
    tell(memory, "a")
    assert memory.get("a").status.value == "current"
    (second,) = memory.consolidate(dry_run=False).created
    assert second != first
    assert memory.get(second).supersedes == ("a", "b")


def test_a_merged_fact_that_was_hidden_is_not_made_again_and_its_sources_stay(store):
    memory = consolidating(store, merging("a", "b", remove_sources=True))
    tell(memory, "a", "b")
    (created,) = memory.consolidate(dry_run=False).created
    memory.forget(ids=[created], soft=True)
    assert memory.consolidate(dry_run=False, allow_destructive=True) == Consolidated((), (), False)
    assert statuses(memory) == {"a": "current", "b": "current"}


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("allowed", [True, False])
def test_sources_go_only_if_the_plan_asks_and_the_call_allows_it(store, asked, allowed):
    memory = consolidating(store, merging("b", "a", remove_sources=asked))
    tell(memory, "a", "b")
    gone = ("a", "b") if asked and allowed else ()
    assert memory.consolidate(allow_destructive=allowed).forgotten == gone
    done = memory.consolidate(dry_run=False, allow_destructive=allowed)
    assert done.forgotten == gone
    assert set(ids(memory.list().items)) == {"a", "b", *done.created} - set(gone)
    assert memory.get(done.created[0]).supersedes == (() if gone else ("a", "b"))


def test_consent_given_later_removes_the_sources_of_the_fact_that_stands(store):
    memory = consolidating(
        store, lambda facts: merging("a", remove_sources=True)(facts) if facts[0].id == "a" else []
    )
    tell(memory, "a")
    (created,) = memory.consolidate(dry_run=False).created
    assert memory.consolidate(dry_run=False, allow_destructive=True) == Consolidated((), ("a",), False)
    assert statuses(memory) == {created: "current"}
    assert memory.consolidate(dry_run=False, allow_destructive=True) == Consolidated((), (), False)


def test_what_a_removed_source_had_replaced_stays_replaced(store):
    memory = consolidating(store, merging("b", remove_sources=True))
    tell(memory, "a")
    memory.remember("newer", id="b", supersedes=["a"])
    (created,) = memory.consolidate(dry_run=False, allow_destructive=True).created
    assert memory.get(created).supersedes == ("a",)
    assert statuses(memory) == {"a": "superseded", created: "current"}


def test_removed_sources_leave_every_file_and_a_store_opened_again_answers_the_same(
    open_store, tmp_path, backend
):
    store = open_store()
    memory = consolidating(store, merging("a", "b", remove_sources=True))
    memory.remember(f"{MARKER} one", id="a")
    memory.remember(f"{MARKER} two", id="b")
    tell(memory, "c")
    memory.consolidate(dry_run=False, allow_destructive=True)
    before = seen(memory)
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert bool(files) == (backend != "memory")
    assert [path for path in files if MARKER.encode() in path.read_bytes()] == []
    if backend != "memory":
        assert seen(open_store().memory()) == before


MALFORMED = {
    "no list": (None, "consolidation"),
    "a text": ("a", "consolidation"),
    "an object": ({}, "consolidation"),
    "a member of another type": ([MARKER], "consolidation"),
    "no text": ([Consolidation(text=None, sources=("a",))], "text"),
    "a blank text": ([Consolidation(text=" ", sources=("a",))], "text"),
    "no sources": ([Consolidation(text="x", sources=())], "sources"),
    "sources as a text": ([Consolidation(text="x", sources="a")], "sources"),
    "sources of another type": ([Consolidation(text="x", sources=5)], "sources"),
    "a source that is no id": ([Consolidation(text="x", sources=("a", ["a"]))], "sources"),
    "an unknown source": ([Consolidation(text="x", sources=("a", MARKER))], "sources"),
    "a hidden source": ([Consolidation(text="x", sources=("hidden",))], "sources"),
    "a document as a source": ([Consolidation(text="x", sources=("text",))], "sources"),
    "an empty subject": ([Consolidation(text="x", sources=("a",), subject="")], "subject"),
    "entities as a text": ([Consolidation(text="x", sources=("a",), entities=MARKER)], "entities"),
    "metadata that is no object": ([Consolidation(text="x", sources=("a",), metadata=[])], "metadata"),
    "a time that is none": ([Consolidation(text="x", sources=("a",), event_time=True)], "event_time"),
    "an empty interval": ([Consolidation(text="x", sources=("a",), valid_from=5, valid_to=5)], "valid_to"),
    "a flag that is none": ([Consolidation(text="x", sources=("a",), remove_sources=1)], "remove_sources"),
}


@pytest.mark.parametrize(("plan", "field"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_plan_names_its_field_and_changes_nothing(store, plan, field):
    good = Consolidation(text="good", sources=("a",))
    members = [good, *plan] if isinstance(plan, list) else plan
    memory = consolidating(store, lambda facts: members)
    tell(memory, "a", "hidden")
    memory.forget(ids=["hidden"], soft=True)
    store.documents().put("text", "a document")
    for options in ({}, {"dry_run": False}, {"dry_run": False, "allow_destructive": True}):
        error = refused(memory, lambda options=options: memory.consolidate(**options), field)
        if isinstance(plan, list):
            assert error.details["index"] == 1
            assert str(error).startswith("consolidation[1]: ")


def test_a_fact_merges_at_most_256_others(store):
    names = [f"n{number}" for number in range(257)]
    memory = consolidating(store, merging(*names))
    memory.remember_many([{"text": f"fact {name}", "id": name} for name in names])
    refused(memory, memory.consolidate, "sources")


def test_a_blocked_text_is_not_brought_back_by_a_plan(store):
    memory = consolidating(store, merging("a"))
    tell(memory, "a")
    memory.remember("merged", id="x")
    memory.forget(ids=["x"], block=True)
    refused(memory, lambda: memory.consolidate(dry_run=False), "text", Blocked)


def test_observers_hear_of_the_new_facts_first_and_then_of_the_removed_ones(store):
    notes = Notes()
    plan = [
        Consolidation(text="z", sources=("b",), remove_sources=True),
        Consolidation(text="y", sources=("a",), remove_sources=True),
    ]
    memory = consolidating(store, lambda facts: plan if facts[0].id == "a" else [], observers=(notes,))
    tell(memory, "a", "b")
    notes.heard.clear()
    memory.consolidate(allow_destructive=True)
    done = memory.consolidate(dry_run=False, allow_destructive=True, idempotency_key="k")
    memory.consolidate(dry_run=False, allow_destructive=True, idempotency_key="k")
    assert notes.heard == [*done.created, ("a", "b")]
    assert [memory.get(id_).text for id_ in done.created] == ["z", "y"]


def test_a_retried_key_gives_the_first_answer_until_what_it_made_is_forgotten(store):
    plans = [merging("a", text="one")([]), merging("a", text="two")([])]
    memory = consolidating(store, lambda facts: plans[0])
    tell(memory, "a")
    first = memory.consolidate(dry_run=False, idempotency_key="k")
    del plans[0]
    assert memory.consolidate(dry_run=False, idempotency_key="k") == first
    assert memory.list().total == 2
    with pytest.raises(Conflict):
        memory.consolidate(dry_run=False, allow_destructive=True, idempotency_key="k")
    memory.forget(ids=first.created)
    with pytest.raises(NotFound):
        memory.consolidate(dry_run=False, idempotency_key="k")


def test_a_preview_in_a_space_that_nobody_told_anything_creates_nothing(store):
    memory = forgetting(store, MaxFacts(1))
    assert memory.apply_forgetting().forgotten == ()
    assert memory.consolidate().created == ()
    assert store.spaces() == []


def test_maintenance_is_among_what_a_memory_says_that_it_can_do(memory):
    told = memory.capabilities()
    assert {"applyForgetting", "consolidate"} <= set(told.operations)
    assert told.features.consolidation
