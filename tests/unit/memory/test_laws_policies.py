"""Any object of the protocol is a policy, and none can do more than decide."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from effort import examples
from perdure import InvalidRequest, Memory, MemoryConfig, Store
from perdure.policies import (
    Arrival,
    LatestBySubject,
    RankingParts,
    RecencyContext,
    Slot,
    SlotFact,
    SupersessionDecision,
)
from properties.memory_run import Space, everything, listed, millis, statuses
from properties.strategies import IDS, scripts

# Supersession


class OverEverything:
    """Supersedes all that the slot holds."""

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        return SupersessionDecision(supersedes=tuple(slot.facts()))


class BothWays:
    """Wants every link in both directions, so that half of them would close a cycle."""

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        return SupersessionDecision(supersedes=tuple(slot.facts()), superseded_by=tuple(slot.facts()))


class ByHand:
    """What latest-by-subject decides while no fact is corrected, with the slot's neighbours alone."""

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        before, after = slot.predecessor(), slot.successor()
        return SupersessionDecision(
            supersedes=() if before is None else (before,), superseded_by=() if after is None else (after,)
        )


def test_a_policy_of_one_s_own_links_what_it_names():
    memory = Space(MemoryConfig(supersession=OverEverything())).memory
    for number in range(3):
        memory.remember(f"alpha {number}", id=str(number), subject="s", valid_from=number)
    memory.remember("alpha", id="other", subject="o")
    assert statuses(memory) == {"0": "superseded", "1": "superseded", "2": "current", "other": "current"}
    assert memory.get("2").supersedes == ("0", "1")


def test_links_that_would_close_a_cycle_are_left_out():
    memory = Space(MemoryConfig(supersession=BothWays())).memory
    for number in range(4):
        memory.remember(f"alpha {number}", id=str(number), subject="s")
    assert [fact.superseded_by for fact in listed(memory)] == [("1", "2", "3"), ("2", "3"), ("3",), ()]


def test_an_explicit_link_stands_where_the_policy_wants_the_opposite():
    memory = Space(MemoryConfig(supersession="latest-by-subject")).memory
    memory.remember("later", id="g", subject="s", valid_from=2)
    memory.remember("earlier", id="f", subject="s", valid_from=1, supersedes=["g"])
    assert statuses(memory) == {"g": "superseded", "f": "current"}


@given(scripts())
@settings(max_examples=examples(16), deadline=None)
def test_the_neighbours_of_a_slot_are_enough_while_no_fact_is_corrected_or_hidden(script):
    def keeps_neighbours(name: str, told: dict[str, object]) -> bool:
        facts = told.get("facts", [told])
        linked = any("supersedes" in fact for fact in facts)  # type: ignore[attr-defined]
        return name not in ("correct", "restore") and not linked

    plain = [call for call in script if keeps_neighbours(*call)]
    built_in, by_hand = (
        Space(MemoryConfig(supersession=policy, on_id_conflict="replace"))
        for policy in (LatestBySubject(), ByHand())
    )
    built_in.run_all(plain)
    by_hand.run_all(plain)
    assert everything(built_in.memory) == everything(by_hand.memory)


def test_a_policy_sees_the_arrival_and_its_slot_with_earlier_members_of_the_batch():
    seen: list[tuple[object, ...]] = []

    class Watching:
        def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
            facts = [(fact.id, fact.effective_at, fact.valid_to, fact.event_time) for fact in slot.facts()]
            seen.append(
                (arrival.id, arrival.effective_at, arrival.ingest_time, dict(arrival.metadata), facts)
            )
            return SupersessionDecision()

    memory = Space(MemoryConfig(supersession=Watching())).memory
    first = {"text": "alpha", "id": "a", "subject": "s", "valid_from": 5, "valid_to": 9, "metadata": {"x": 1}}
    memory.remember_many([first, {"text": "beta", "id": "b", "subject": "s", "event_time": 3}, "no subject"])
    memory.remember(**first)
    assert seen == [
        ("a", 5, 100, {"x": 1}, []),
        ("b", 3, 100, {}, [("a", 5, 9, None)]),
    ]


class Stranger:
    """Names a fact of another call's slot."""

    def __init__(self) -> None:
        self.kept: SlotFact | None = None

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        if self.kept is not None:
            return SupersessionDecision(supersedes=(self.kept,))
        self.kept = slot.predecessor()
        return SupersessionDecision()


def test_a_policy_that_names_a_fact_its_slot_did_not_give_stores_nothing():
    memory = Space(MemoryConfig(supersession=Stranger())).memory
    for number in range(2):
        memory.remember(f"alpha {number}", id=str(number), subject="s")
    before = everything(memory)
    with pytest.raises(InvalidRequest):
        memory.remember("alpha", id="x", subject="o")
    assert everything(memory) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.recall("alpha"),
        lambda memory: memory.get("a"),
        lambda memory: memory.remember("beta"),
        lambda memory: memory.forget(ids=["a"]),
    ],
    ids=["recall", "get", "remember", "forget"],
)
def test_a_policy_that_calls_the_memory_it_serves_fails_the_write(call):
    class Calling:
        memory: Memory

        def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
            call(self.memory)
            return SupersessionDecision()

    policy = Calling()
    memory = policy.memory = Space(MemoryConfig(supersession=policy)).memory
    memory.remember("alpha", id="a")
    before = everything(memory)
    with pytest.raises(InvalidRequest):
        memory.remember("beta", subject="s")
    assert everything(memory) == before


def test_what_a_policy_raises_reaches_the_caller_and_nothing_is_stored():
    class Failing:
        def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
            raise ZeroDivisionError

    memory = Space(MemoryConfig(supersession=Failing())).memory
    with pytest.raises(ZeroDivisionError):
        memory.remember_many(["alpha", {"text": "beta", "subject": "s"}])
    assert listed(memory) == ()


def test_another_policy_links_later_arrivals_against_everything_in_the_slot():
    store = Space().store
    memory = store.memory()
    for number in range(3):
        memory.remember(f"alpha {number}", id=str(number), subject="s", valid_from=number)
    latest = store.memory(config=MemoryConfig(supersession="latest-by-subject"))
    latest.remember("alpha", id="3", subject="s", valid_from=3)
    assert statuses(latest) == {"0": "current", "1": "current", "2": "superseded", "3": "current"}


# Recency and ranking


class ByImportance:
    """Weighs by importance and kind, whatever the age."""

    is_identity = False
    basis = "event"

    def factor(self, context: RecencyContext) -> float:
        return (context.importance or 0.0) * (2.0 if context.kind == "semantic" else 1.0)


def test_a_recency_of_one_s_own_multiplies_what_search_gave():
    memory = Space(MemoryConfig(recency=ByImportance())).memory
    memory.remember("alpha", id="a", importance=0.25)
    memory.remember("alpha", id="b", importance=0.5, kind="semantic")
    memory.remember("alpha", id="c")
    hits = memory.recall("alpha", explain=True)
    assert [hit.id for hit in hits] == ["b", "a", "c"]
    factors = [hit.explanation.recency_factor for hit in hits]
    assert factors == [1.0, 0.25, 0.0]
    assert [hit.score for hit in hits] == [
        hit.explanation.retrieval_score * f for hit, f in zip(hits, factors, strict=True)
    ]


def test_a_recency_policy_sees_the_fact_s_times_and_status():
    seen: list[RecencyContext] = []

    class Watching:
        is_identity = False
        basis = "ingest"

        def factor(self, context: RecencyContext) -> float:
            seen.append(context)
            return 1.0

    memory = Space(MemoryConfig(recency=Watching())).memory
    memory.remember("alpha", id="a", valid_from=3, valid_to=90, event_time=2, kind="episodic")
    memory.recall("alpha", history="all", as_of=140)
    (context,) = seen
    assert (context.as_of, context.age_ms, context.event_time, context.ingest_time) == (140, 40, 2, 100)
    assert (context.valid_from, context.valid_to, context.kind, context.status) == (
        3,
        90,
        "episodic",
        "expired",
    )


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), -0.5, "1", None, True])
def test_a_factor_that_is_no_finite_number_of_at_least_0_fails_the_recall(factor):
    class Bad(ByImportance):
        def factor(self, context: RecencyContext) -> float:
            return factor  # type: ignore[no-any-return]

    memory = Space(MemoryConfig(recency=Bad())).memory
    memory.remember("alpha")
    with pytest.raises(InvalidRequest):
        memory.recall("alpha")


class Reversed:
    """Ranks the worst match best."""

    is_identity = False

    def parts(
        self, retrieval: float, *, top: float, importance: float | None, age_ms: int | None
    ) -> RankingParts:
        return RankingParts(top - retrieval, 0.0, 0.0)


def test_a_ranking_of_one_s_own_orders_the_candidates():
    texts = ("alpha", "alpha and some other words", "alpha alpha alpha")
    found: dict[str, list[str]] = {}
    for name, ranking in (("score", "score"), ("reversed", Reversed())):
        memory = Space(MemoryConfig(ranking=ranking)).memory
        for id_, text in zip(IDS, texts, strict=False):
            memory.remember(text, id=id_)
        found[name] = [hit.id for hit in memory.recall("alpha")]
    assert found["reversed"] == found["score"][::-1]


# Extraction


def capitals(text: str) -> list[str]:
    return [word for word in text.split() if word.istitle()]


def test_an_extractor_adds_entities_that_reads_and_scopes_know():
    memory = Space(MemoryConfig(extractor=capitals)).memory
    memory.remember("met Ann in Berlin", id="a", entities=["Bob", "Ann"])
    assert memory.get("a").entities == ("Ann", "Berlin", "Bob")
    assert [hit.id for hit in memory.recall("met", entity="Berlin")] == ["a"]
    assert memory.forget(entity="Berlin").forgotten == ("a",)


def test_extracted_entities_are_no_part_of_what_was_told():
    store = Space().store
    plain = store.memory().remember("met Ann")
    extracting = store.memory(config=MemoryConfig(extractor=capitals))
    assert extracting.remember("met Ann").id == plain.id
    assert extracting.remember("met Ann").outcome == "existing"


def test_a_correction_keeps_the_told_entities_and_extracts_from_its_own_words():
    memory = Space(MemoryConfig(extractor=capitals)).memory
    memory.remember("lives in Paris", id="a", entities=["Ann"])
    memory.correct("lives in Berlin", id="a", new_id="b")
    assert memory.get("b").entities == ("Ann", "Berlin")


@pytest.mark.parametrize("found", ["Ann", [1], [""], ["x" * 1_025], {"Ann": 1}], ids=str)
def test_what_an_extractor_returns_is_checked_as_told_entities_are(found):
    memory = Space(MemoryConfig(extractor=lambda text: found)).memory
    with pytest.raises(InvalidRequest):
        memory.remember("alpha")
    assert listed(memory) == ()


# Clocks


def test_any_object_that_tells_the_time_is_a_clock():
    class Ticking:
        def __init__(self) -> None:
            self.time = 0

        def now(self) -> int:
            self.time += 10
            return self.time

    memory = Store.open(":memory:", clock=Ticking()).memory()
    replies = [memory.remember("alpha", reassert=True) for _ in range(3)]
    recorded = [millis(reply.ingest_time) for reply in replies]
    assert recorded == sorted(set(recorded))


def test_a_clock_that_goes_back_never_records_before_what_was_recorded():
    space = Space()
    memory, clock = space.memory, space.clock
    memory.remember("alpha", id="a")
    clock.advance(-50)
    memory.remember("beta", id="b", supersedes=["a"])
    assert millis(memory.get("b").ingest_time) == 100
    assert statuses(memory) == {"a": "superseded", "b": "current"}


def test_the_present_is_never_before_the_newest_record():
    space = Space()
    space.memory.remember("alpha", id="a", valid_from=100)
    space.clock.advance(-50)
    assert statuses(space.memory) == {"a": "current"}
    assert statuses(space.memory, as_of=50) == {"a": "not-yet-valid"}
