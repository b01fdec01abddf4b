"""Laws of forgetting: each policy equals its brute-force predicate; a cap resurrects nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.model.status import Status
from perdure.policies import ExpiredFor, FactSummary, KeepAll, MaxFacts, SupersededFor

NOW = 20
times = st.integers(0, 40)


def status_of(valid_from: int | None, valid_to: int | None, superseded_since: int | None) -> Status:
    if superseded_since is not None and superseded_since <= NOW:
        return Status.SUPERSEDED
    if valid_from is not None and valid_from > NOW:
        return Status.NOT_YET_VALID
    return Status.EXPIRED if valid_to is not None and valid_to <= NOW else Status.CURRENT


@st.composite
def histories(draw) -> tuple[list[FactSummary], dict[int, set[int]]]:
    """Draw facts, and for each the numbers of the facts that supersede it (acyclic: by a shuffled order)."""
    count = draw(st.integers(0, 9))
    height = draw(st.permutations(range(count)))
    told = [(draw(st.none() | times), draw(st.none() | times), draw(st.integers(0, 3))) for _ in range(count)]
    begins = [told[n][0] if told[n][0] is not None else told[n][2] for n in range(count)]
    above = {
        n: {m for m in range(count) if height[m] > height[n] and draw(st.integers(0, 3)) == 0}
        for n in range(count)
    }
    facts = []
    for number, (valid_from, valid_to, ingest_time) in enumerate(told):
        since = min((begins[newer] for newer in above[number]), default=None)
        facts.append(
            FactSummary(
                id=f"fact-{number}",
                number=number,
                status=status_of(valid_from, valid_to, since),
                ingest_time=ingest_time,
                valid_from=valid_from,
                valid_to=valid_to,
                superseded_since=since,
                linked=bool(above[number]) or any(number in others for others in above.values()),
            )
        )
    return facts, above


def surviving_superseders(number: int, removed: set[int], above: dict[int, set[int]]) -> set[int]:
    """Return the survivors over a fact once the removed ones are re-linked."""
    found: set[int] = set()
    waiting = list(above[number])
    while waiting:
        newer = waiting.pop()
        if newer in removed:
            waiting += above[newer]
        else:
            found.add(newer)
    return found


@given(histories())
def test_keep_all_removes_nothing(history):
    assert list(KeepAll().select(history[0], NOW)) == []


@given(histories(), st.integers(0, 25))
def test_expired_for_removes_what_ended_more_than_the_grace_ago(history, grace):
    facts, _ = history
    gone = {fact.id for fact in facts if fact.valid_to is not None and fact.valid_to + grace < NOW}
    chosen = list(ExpiredFor(grace).select(facts, NOW))
    assert set(chosen) == gone
    assert len(chosen) == len(gone)


@given(histories(), st.integers(0, 25))
def test_superseded_for_removes_what_was_first_superseded_more_than_the_age_ago(history, age_ms):
    facts, above = history
    begins = {fact.number: fact.ingest_time if fact.valid_from is None else fact.valid_from for fact in facts}
    gone = {fact.id for fact in facts if any(begins[newer] + age_ms < NOW for newer in above[fact.number])}
    assert set(SupersededFor(age_ms).select(facts, NOW)) == gone


@given(histories(), st.integers(1, 10), st.randoms())
def test_max_facts_keeps_at_most_its_limit_in_the_order_of_statuses(history, limit, random):
    facts, _ = history
    chosen = list(MaxFacts(limit).select(facts, NOW))
    assert len(facts) - len(chosen) == min(limit, len(facts))

    def place(fact: FactSummary) -> tuple[int, int, int]:
        order = ["superseded", "expired", "current", "not-yet-valid"]
        return (order.index(fact.status.value), fact.ingest_time, fact.number)

    gone = [fact for fact in facts if fact.id in chosen]
    kept = [fact for fact in facts if fact.id not in chosen]
    assert all(place(out) < place(stays) for out in gone for stays in kept)
    shuffled = list(facts)
    random.shuffle(shuffled)
    assert list(MaxFacts(limit).select(shuffled, NOW)) == chosen


@given(histories(), st.integers(1, 10))
def test_max_facts_makes_no_other_fact_current(history, limit):
    facts, above = history
    chosen = set(MaxFacts(limit).select(facts, NOW))
    removed = {fact.number for fact in facts if fact.id in chosen}
    begins = {fact.number: fact.ingest_time if fact.valid_from is None else fact.valid_from for fact in facts}
    for fact in facts:
        if fact.number in removed or fact.status is Status.CURRENT:
            continue
        over = surviving_superseders(fact.number, removed, above)
        since = min((begins[newer] for newer in over), default=None)
        assert status_of(fact.valid_from, fact.valid_to, since) is not Status.CURRENT


@given(histories(), st.integers(1, 10))
def test_a_second_run_of_max_facts_removes_nothing_more(history, limit):
    facts, _ = history
    chosen = set(MaxFacts(limit).select(facts, NOW))
    assert list(MaxFacts(limit).select([fact for fact in facts if fact.id not in chosen], NOW)) == []
