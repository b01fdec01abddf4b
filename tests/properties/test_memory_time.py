"""Laws of time: which fact is current at which instant, and who knew it when."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import MemoryConfig
from properties import strategies
from properties.memory_run import Space, listed, millis, random_script, recalled, statuses
from properties.strategies import NOW, Call, Chooser, scripts

LATEST = MemoryConfig(supersession="latest-by-subject", on_id_conflict="replace")
INSTANTS = (0, 1, 2, 3, 4, 5, 8, 9, NOW - 1, NOW, 102, 104, 110, 200)
seeds = st.integers(0, 2**32)


def current(space: Space, at: int) -> set[str]:
    return {id_ for id_, status in statuses(space.memory, as_of=at).items() if status == "current"}


# Slots


@pytest.mark.parametrize("order", list(permutations((10, 20, 30, 40))))
def test_whatever_the_order_of_arrival_the_last_fact_to_have_begun_is_current(order):
    space = Space(LATEST)
    for start in order:
        space.clock.advance(1)
        space.memory.remember(f"alpha {start}", id=str(start), subject="s", valid_from=start)
    for at in (9, 10, 11, 19, 20, 29, 30, 39, 40, 41, 1_000):
        begun = [start for start in (10, 20, 30, 40) if start <= at]
        assert current(space, at) == {str(max(begun))} if begun else current(space, at) == set()


@given(st.lists(st.sampled_from([10, 20, 30]), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_of_facts_that_begin_together_the_last_to_arrive_is_current_wherever_the_others_stand(starts, random):
    def shown(order: list[int]) -> list[set[str]]:
        space = Space(LATEST)
        for place, start in enumerate(order):
            last = start not in order[place + 1 :]
            name = f"last {start}" if last else f"{start} {place}"
            space.memory.remember("alpha", id=name, subject="s", valid_from=start, metadata={"place": place})
        return [current(space, at) for at in (9, 10, 20, 30)]

    def by_start(order: list[int]) -> list[set[str]]:
        expected = []
        for at in (9, 10, 20, 30):
            begun = [start for start in order if start <= at]
            expected.append({f"last {max(begun)}"} if begun else set())
        return expected

    shuffled = list(starts)
    random.shuffle(shuffled)
    assert shown(starts) == by_start(starts)
    assert shown(shuffled) == by_start(starts)


class Slot:
    """One subject's dated facts, and the order in which they begin: by time, ties in order of arrival.

    A correction stands where the fact that it corrects stood.
    """

    def __init__(self) -> None:
        self.space = Space(LATEST)
        self.begun: list[tuple[int, str]] = []
        self.hidden: set[str] = set()
        self.count = 0

    @property
    def shown(self) -> list[str]:
        return [id_ for _, id_ in self.begun if id_ not in self.hidden]

    def step(self, random: Random) -> None:
        self.space.clock.advance(random.choice((0, 1, 2)))
        operations = ["tell", "tell", "forget", "replace", "correct", "hide", "restore"]
        operation = random.choice(operations)
        if operation == "tell" or not self.shown:
            self.count += 1
            self._tell(f"f{self.count}", random.choice((1, 2, 3, 5, 8)))
        elif operation == "restore":
            self._restore(random)
        else:
            getattr(self, f"_{operation}")(random, random.choice(self.shown))

    def _tell(self, id_: str, start: int) -> None:
        text = f"alpha {self.space.clock.advance(0)} {self.count}"
        self.space.memory.remember(text, id=id_, subject="s", valid_from=start)
        later = [place for place, (begin, _) in enumerate(self.begun) if begin > start]
        self.begun.insert(min(later, default=len(self.begun)), (start, id_))

    def _drop(self, id_: str) -> None:
        self.begun = [one for one in self.begun if one[1] != id_]
        self.hidden.discard(id_)

    def _forget(self, random: Random, id_: str) -> None:
        named = {id_, random.choice(self.shown)}
        self.space.memory.forget(ids=named)
        for one in named:
            self._drop(one)

    def _replace(self, random: Random, id_: str) -> None:
        self._drop(id_)
        self.count += 1
        self._tell(id_, random.choice((1, 2, 3, 5, 8)))

    def _correct(self, random: Random, id_: str) -> None:
        self.count += 1
        new = f"f{self.count}"
        self.space.memory.correct(f"alpha corrected {new}", id=id_, new_id=new)
        place = next(place for place, one in enumerate(self.begun) if one[1] == id_)
        self.begun.insert(place + 1, (self.begun[place][0], new))

    def _hide(self, random: Random, id_: str) -> None:
        self.space.memory.forget(ids=[id_], soft=True)
        self.hidden.add(id_)

    def _restore(self, random: Random) -> None:
        if self.hidden:
            id_ = random.choice(sorted(self.hidden))
            assert self.space.memory.restore([id_]) == (id_,)
            self.hidden.discard(id_)

    def check(self, at: int) -> None:
        begun = [id_ for begin, id_ in self.begun if begin <= at and id_ not in self.hidden]
        assert current(self.space, at) == set(begun[-1:])


def live_through(seed: int, steps: int) -> None:
    random, slot = Random(seed), Slot()
    for _ in range(steps):
        slot.step(random)
        slot.check(random.choice((1, 2, 3, 5, 8, NOW)))
    for at in (0, 1, 2, 3, 5, 8, NOW):
        slot.check(at)


def test_after_any_interleaving_of_writes_the_last_fact_to_have_begun_is_current():
    for seed in range(examples(300)):
        live_through(seed, 12)


@pytest.mark.soak
def test_after_any_longer_interleaving_of_writes_the_last_fact_to_have_begun_is_current():
    for seed in range(10_000, 60_000):
        live_through(seed, 25)


# Boundaries


def test_a_fact_is_current_from_the_millisecond_it_begins_to_the_one_before_it_ends(open_space):
    memory = open_space.memory
    memory.remember("alpha", id="a", valid_from=10, valid_to=20)
    seen = {at: statuses(memory, as_of=at)["a"] for at in (9, 10, 19, 20)}
    assert seen == {9: "not-yet-valid", 10: "current", 19: "current", 20: "expired"}


def test_a_fact_is_superseded_from_the_millisecond_its_successor_takes_effect(open_space):
    memory = open_space.memory
    memory.remember("alpha", id="a", valid_from=10)
    memory.remember("beta", id="b", valid_from=30, supersedes=["a"])
    seen = {at: statuses(memory, as_of=at)["a"] for at in (29, 30)}
    assert seen == {29: "current", 30: "superseded"}


def test_a_fact_and_its_link_are_known_from_the_millisecond_they_were_recorded(open_space):
    memory, clock = open_space.memory, open_space.clock
    memory.remember("alpha", id="a", valid_from=1)
    clock.advance(5)
    memory.remember("beta", id="b", valid_from=2, supersedes=["a"])
    clock.advance(5)
    memory.end("b", at=3)
    assert statuses(memory, as_of=3, known_at=NOW - 1) == {}
    assert statuses(memory, as_of=3, known_at=NOW + 4) == {"a": "current"}
    assert statuses(memory, as_of=3, known_at=NOW + 5) == {"a": "superseded", "b": "current"}
    assert statuses(memory, as_of=3, known_at=NOW + 9) == {"a": "superseded", "b": "current"}
    assert statuses(memory, as_of=3, known_at=NOW + 10) == {"a": "superseded", "b": "expired"}


def test_expiry_never_revives_an_older_fact_but_forgetting_does(open_space):
    memory = open_space.memory
    memory.remember("alpha", id="a", valid_from=10)
    memory.remember("beta", id="b", valid_from=20, valid_to=30, supersedes=["a"])
    assert statuses(memory, as_of=30) == {"a": "superseded", "b": "expired"}
    memory.forget(ids=["b"])
    assert statuses(memory, as_of=30) == {"a": "current"}


def test_an_event_time_opens_no_interval(open_space):
    memory = open_space.memory
    memory.remember("alpha", id="a", event_time=10)
    memory.remember("beta", id="b", event_time=20, supersedes=["a"])
    assert statuses(memory, as_of=15) == {"a": "current", "b": "current"}
    assert statuses(memory, as_of=20) == {"a": "superseded", "b": "current"}


@pytest.fixture
def open_space() -> Space:
    return Space()


# Status


@given(scripts(), st.sampled_from(INSTANTS), st.sampled_from((None, 99, 101, 103)))
@settings(max_examples=examples(24), deadline=None)
def test_every_visible_fact_has_one_status_and_current_and_historical_make_up_all(script, as_of, known_at):
    space = Space(LATEST)
    space.run_all(script)
    times = {"as_of": as_of, "known_at": known_at}
    everyone = statuses(space.memory, **times)
    by_status = [
        statuses(space.memory, status=status, **times)
        for status in ("current", "superseded", "expired", "not-yet-valid")
    ]
    assert sum(map(len, by_status)) == len(everyone)
    now = recalled(space.memory, history="current", **times)
    before = recalled(space.memory, history="historical", **times)
    assert not now.keys() & before.keys()
    assert now | before == recalled(space.memory, history="all", **times) == everyone


# Knowledge


def appended(random: Chooser) -> Call:
    """A write that takes nothing away."""
    often = (strategies.remember,) * 3 + (strategies.remember_many, strategies.correct)
    return random.choice(
        (*often, strategies.end, strategies.retract, strategies.advance, strategies.advance)
    )(random)


def newest_moment(space: Space) -> int:
    facts = listed(space.memory)
    ends = [end.recorded_at for fact in facts for end in fact.ends]
    return max([NOW - 1, *(millis(moment) for moment in (*ends, *(fact.ingest_time for fact in facts)))])


@given(seeds, st.sampled_from(("explicit", "latest-by-subject")))
@settings(max_examples=examples(32), deadline=None)
def test_what_was_known_at_a_moment_is_what_a_store_held_that_had_heard_no_more(seed, policy):
    space = Space(MemoryConfig(supersession=policy))
    held: dict[int, list[dict[str, str]]] = {NOW - 1: [{} for _ in INSTANTS]}
    for call in random_script(seed, 25, appended):
        space.run(call)
        held[newest_moment(space)] = [statuses(space.memory, as_of=at) for at in INSTANTS]
    for moment in range(NOW - 1, max(held) + 1):
        last = max(known for known in held if known <= moment)
        assert [statuses(space.memory, as_of=at, known_at=moment) for at in INSTANTS] == held[last]


@given(scripts())
@settings(max_examples=examples(24), deadline=None)
def test_knowing_more_never_hides_a_fact(script):
    space = Space(LATEST)
    space.run_all(script)
    known = [set(statuses(space.memory, known_at=moment)) for moment in range(NOW - 1, NOW + 30)]
    assert all(earlier <= later for earlier, later in pairwise(known))
    assert known[-1] == set(statuses(space.memory))


# Removal


@given(
    scripts(), st.lists(st.sampled_from(strategies.IDS), min_size=2, max_size=4, unique=True), st.randoms()
)
@settings(max_examples=examples(32), deadline=None)
def test_forgetting_facts_together_leaves_what_forgetting_them_one_by_one_leaves(script, ids, random):
    together, apart = Space(LATEST), Space(LATEST)
    for space in (together, apart):
        space.run_all(script)
    together.memory.forget(ids=ids)
    random.shuffle(ids)
    for id_ in ids:
        apart.memory.forget(ids=[id_])
    for at in INSTANTS:
        assert listed(together.memory, as_of=at) == listed(apart.memory, as_of=at)


@given(scripts(), st.lists(st.sampled_from(strategies.IDS), min_size=1, max_size=3, unique=True))
@settings(max_examples=examples(32), deadline=None)
def test_no_older_fact_comes_back_while_one_that_superseded_it_stays(script, ids):
    space = Space(LATEST)
    space.run_all(script)
    before = {fact.id: fact for fact in listed(space.memory)}
    space.memory.forget(ids=ids)
    after = statuses(space.memory, as_of=10_000)

    def above(id_: str) -> set[str]:
        seen: set[str] = set()
        edge = {id_}
        while edge:
            edge = {newer for one in edge for newer in before[one].superseded_by} - seen
            seen |= edge
        return seen

    for id_ in after:
        if above(id_) & after.keys():
            assert after[id_] == "superseded"


@given(scripts())
@settings(max_examples=examples(24), deadline=None)
def test_no_fact_supersedes_itself_through_others(script):
    space = Space(LATEST)
    for call in script:
        space.run(call)
        above = {fact.id: set(fact.superseded_by) for fact in listed(space.memory)}
        while tops := {id_ for id_, newer in above.items() if not newer}:
            above = {id_: newer - tops for id_, newer in above.items() if id_ not in tops}
        assert above == {}


@given(scripts())
@settings(max_examples=examples(24), deadline=None)
def test_a_fact_s_history_is_what_forgetting_its_chain_would_take(script):
    space = Space(LATEST)
    space.run_all(call for call in script if not call[1].get("soft"))
    histories = {fact.id: {one.id for one in space.memory.history(fact.id)} for fact in listed(space.memory)}
    for id_, members in histories.items():
        assert space.memory.forget(ids=[id_], include_chain=True, dry_run=True).forgotten == tuple(
            sorted(members)
        )
        assert all(histories[member] == members for member in members)


@given(scripts(), st.lists(st.sampled_from(strategies.IDS), min_size=1, max_size=3, unique=True))
@settings(max_examples=examples(24), deadline=None)
def test_hiding_facts_shows_the_statuses_that_forgetting_them_shows(script, ids):
    hidden, gone = Space(LATEST), Space(LATEST)
    for space in (hidden, gone):
        space.run_all(script)
    hidden.memory.forget(ids=ids, soft=True)
    gone.memory.forget(ids=ids)
    for at in INSTANTS:
        assert listed(hidden.memory, as_of=at) == listed(gone.memory, as_of=at)
    hidden.memory.forget(ids=ids)
    assert listed(hidden.memory) == listed(gone.memory)
