"""Laws of time: statuses, slots, knowledge, links and corrections over random histories."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.model.status import Status
from perdure.temporal.columns import BEGINNING, FOREVER, RETRACTED
from perdure.temporal.knowledge import EndColumns, FactColumns, LinkColumns, columns_as_known
from perdure.temporal.links import (
    Link,
    LinkKind,
    against_order,
    closes_cycle,
    component,
    effective_time,
    relinks,
)
from perdure.temporal.slots import neighbours
from perdure.temporal.status import (
    STATUS_BY_CODE,
    current_mask,
    history_mask,
    status_at,
    status_codes,
    superseded_from,
    within_validity,
)
from unit.temporal.simulated_space import SimulatedSpace, Told

LAST = 8  # told times lie in 0..LAST, ingest times after NOW_FIRST
NOW_FIRST = 100
INSTANTS = range(-1, LAST + 2)

times = st.integers(0, LAST)
seeds = st.integers(0, 2**32)
edges = st.sampled_from([BEGINNING, FOREVER]) | times
thorough = settings(max_examples=examples(60), deadline=None)


@st.composite
def told(draw, *, dated: bool = False, subjects: tuple[str | None, ...] = ("s",)) -> Told:
    start = draw(times if dated else st.none() | times)
    length = draw(st.none() | st.integers(1, LAST))
    return Told(
        subject=draw(st.sampled_from(subjects)),
        valid_from=start,
        valid_to=None if length is None else (start or 0) + length,
        event_time=draw(st.none() | times),
    )


def every_instant(space: SimulatedSpace, now: int) -> list[int]:
    return [*INSTANTS, *range(NOW_FIRST - 1, now + 2)]


def grow(seed: int, steps: int, operations: str) -> tuple[SimulatedSpace, int]:
    """Run random writes, named by letter, on an empty space; return it and its newest ingest time.

    t tell, u tell undated, x tell with told links, b batch with told links in both directions, r replace,
    f forget a few, c correct any, k correct a current one, e end, n retract, h hide, w restore.
    """
    random = Random(seed)
    space, now = SimulatedSpace(), NOW_FIRST
    for _ in range(steps):
        now += random.randint(0, 2)
        write(space, now, random, random.choice(operations))
    return space, now


def write(space: SimulatedSpace, now: int, random: Random, operation: str) -> None:
    live = sorted(space.facts)
    start = random.randint(0, LAST)
    if operation == "u":
        space.tell(Told(), now)
    elif operation == "x":
        listed = tuple(random.sample(live, min(len(live), 2)))
        space.tell(Told(random.choice(["s", "o", None]), start, supersedes=listed), now)
    elif operation == "b":
        size = random.randint(1, 3)
        names = [*live, *range(space.next_number, space.next_number + size)]
        batch = [Told("s", random.randint(0, LAST), supersedes=(random.choice(names),)) for _ in range(size)]
        space.tell_batch(batch, now)
    elif operation == "w" and space.hidden:
        space.restore(random.choice(sorted(space.hidden)))
    elif operation == "t" or not live:
        space.tell(Told("s", start), now)
    elif operation == "f":
        space.forget(random.sample(live, min(len(live), random.randint(1, 3))))
    else:
        change(space, now, random, operation)


def change(space: SimulatedSpace, now: int, random: Random, operation: str) -> None:
    number = random.choice(sorted(space.facts))
    current = sorted(space.current(now))
    if operation == "r":
        space.replace(number, Told("s", random.randint(0, LAST)), now)
    elif operation == "c":
        space.correct(number, now)
    elif operation == "k" and current:
        space.correct(random.choice(current), now)
    elif operation == "e":
        space.end(number, random.randint(1, LAST), now)
    elif operation == "n":
        space.retract(number, now)
    elif operation == "h":
        space.hide(number)


# Status


@given(edges, edges | st.just(RETRACTED), edges, st.integers(-1, LAST + 1))
def test_a_fact_has_exactly_the_one_status_whose_condition_comes_first(valid_from, valid_to, superseded, at):
    is_superseded = superseded <= at
    is_retracted = valid_to == RETRACTED
    expected = [
        (is_superseded, Status.SUPERSEDED),
        (is_retracted, Status.EXPIRED),
        (at < valid_from, Status.NOT_YET_VALID),
        (at >= valid_to, Status.EXPIRED),
        (True, Status.CURRENT),
    ]
    assert status_at(valid_from, valid_to, superseded, at) is next(s for holds, s in expected if holds)
    is_current = status_at(valid_from, valid_to, superseded, at) is Status.CURRENT
    assert is_current == (within_validity(valid_from, valid_to, at) and not is_superseded)


@given(st.lists(st.tuples(edges, edges, edges), max_size=20), st.integers(-1, LAST + 1))
def test_columns_give_the_same_statuses_as_facts_one_by_one(rows, at):
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    columns = columns or [np.zeros(0, dtype=np.int64)] * 3
    one_by_one = [status_at(*row, at) for row in rows]
    assert [STATUS_BY_CODE[code] for code in status_codes(*columns, at)] == one_by_one
    mask = current_mask(*columns, at)
    assert mask.dtype == np.uint8
    assert mask.tolist() == [int(status is Status.CURRENT) for status in one_by_one]


@given(st.lists(st.tuples(edges, edges, edges), min_size=1, max_size=20), st.integers(-1, LAST + 1))
def test_current_and_historical_are_disjoint_and_together_all(rows, at):
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    current, historical, everything = (
        history_mask(history, *columns, at) for history in ("current", "historical", "all")
    )
    assert (current + historical).tolist() == everything.tolist() == [1] * len(rows)
    assert current.tolist() == current_mask(*columns, at).tolist()


@given(told(dated=True), told(dated=True))
def test_each_status_begins_at_its_instant_and_not_one_millisecond_before(older, newer):
    space = SimulatedSpace()
    a, b = space.tell(older, NOW_FIRST), space.tell(newer, NOW_FIRST + 1)
    first, last = (a, b) if space.eff(a) <= space.eff(b) else (b, a)
    assert space.status(first, space.eff(last)) is Status.SUPERSEDED
    assert space.status(first, space.eff(last) - 1) is not Status.SUPERSEDED
    assert space.status(last, space.valid_from(last)) is Status.CURRENT
    assert space.status(last, space.valid_from(last) - 1) is Status.NOT_YET_VALID
    if space.valid_to(last) != FOREVER:
        assert space.status(last, space.valid_to(last)) is Status.EXPIRED
        assert space.status(last, space.valid_to(last) - 1) is Status.CURRENT


# Slots


@given(
    st.lists(times, min_size=4, max_size=4, unique=True), st.lists(st.none() | times, min_size=4, max_size=4)
)
@settings(max_examples=examples(16), deadline=None)
def test_any_order_of_arrival_of_dated_facts_gives_the_same_current_fact_at_every_instant(starts, lengths):
    facts = [
        Told("s", start, None if length is None else start + length + 1)
        for start, length in zip(starts, lengths, strict=True)
    ]
    outcomes = set()
    for order in permutations(facts):
        space = SimulatedSpace()
        for i, fact in enumerate(order):
            space.tell(fact, NOW_FIRST + i)
        outcomes.add(tuple(frozenset(order[n] for n in space.current(at)) for at in range(-1, 20)))
    assert len(outcomes) == 1


@given(st.lists(times, max_size=12), seeds)
def test_with_equal_times_the_last_arrival_wins_whatever_the_order_of_the_others(starts, seed):
    space, shuffled = SimulatedSpace(), SimulatedSpace()
    others = Random(seed).sample(starts, len(starts))
    for i, (start, other) in enumerate(zip(starts, others, strict=True)):
        space.tell(Told("s", start), NOW_FIRST + i)
        shuffled.tell(Told("s", other), NOW_FIRST + i)
    last = max(starts, default=0)
    winner = space.tell(Told("s", last), NOW_FIRST + 50)
    assert shuffled.tell(Told("s", last), NOW_FIRST + 50) == winner
    assert space.current(last) == shuffled.current(last) == {winner}


@given(seeds, st.integers(1, 16), st.sampled_from(["tttf", "ttuf", "ttfr", "tuufr", "tttfhw", "tuhw"]))
@thorough
def test_after_arrivals_removals_and_replacements_the_last_to_begin_stands_alone(seed, steps, operations):
    space, now = grow(seed, steps, operations)
    for at in every_instant(space, now):
        assert space.standing("s", at) == space.last_begun("s", at)


@given(seeds, st.integers(1, 16), st.sampled_from(["ttkf", "ttcf", "tucf", "tuukf", "tccf"]))
@thorough
def test_a_correction_stands_in_the_place_of_its_mistake(seed, steps, operations):
    space, now = grow(seed, steps, operations)
    for at in every_instant(space, now):
        assert space.standing("s", at) == space.last_begun("s", at)


@given(seeds, st.integers(1, 16))
@thorough
def test_at_most_one_fact_of_a_slot_stands_however_corrections_and_hiding_mix(seed, steps):
    space, now = grow(seed, steps, "ttucchwf")
    for at in every_instant(space, now):
        assert len(space.standing("s", at)) == len(space.last_begun("s", at))


@given(seeds, st.integers(1, 12))
@thorough
def test_a_hidden_fact_that_is_restored_stands_where_it_stood(seed, steps):
    space, now = grow(seed, steps, "tttuf")
    before = [space.standing("s", at) for at in every_instant(space, now)]
    for number in sorted(space.facts)[:2]:
        space.hide(number)
        space.restore(number)
    assert [space.standing("s", at) for at in every_instant(space, now)] == before


@given(st.lists(times, max_size=12), times)
def test_neighbours_are_the_nearest_that_begin_no_later_and_later(starts, start):
    order = sorted(range(len(starts)), key=lambda number: (starts[number], number))
    no_later = [(starts[n], n) for n in order if starts[n] <= start]
    later = [(starts[n], n) for n in order if starts[n] > start]
    expected = (max(no_later)[1] if no_later else None, min(later)[1] if later else None)
    assert neighbours(order, starts.__getitem__, (start, len(starts))) == expected


# Knowledge


def known(space: SimulatedSpace, known_at: int, at: int) -> dict[int, Status]:
    """Statuses at `at` of the facts visible at `known_at`, by columns; every number of the space is a row."""
    rows = range(space.next_number)
    links = list(space.links.values())
    visible, valid_to, from_ = columns_as_known(
        FactColumns(
            int64(space.ingest(n) for n in rows),
            int64(space.valid_from(n) for n in rows),
            int64(FOREVER if (to := space.facts[n].told.valid_to) is None else to for n in rows),
        ),
        LinkColumns(
            int64(link.newer for link in links),
            int64(link.older for link in links),
            int64(effective_time(link, space) for link in links),
            int64(link.known_from for link in links),
        ),
        EndColumns(*(int64(end[i] for end in space.ends) for i in range(3))),
        known_at,
    )
    codes = status_codes(int64(space.valid_from(n) for n in rows), valid_to, from_, at)
    return {n: STATUS_BY_CODE[codes[n]] for n in rows if visible[n]}


def int64(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


@given(seeds, st.integers(1, 12))
@thorough
def test_what_was_known_then_is_what_the_space_held_then(seed, steps):
    random = Random(seed)
    space, now = SimulatedSpace(), NOW_FIRST
    held = []
    for _ in range(steps):
        now += random.randint(1, 2)
        write(space, now, random, random.choice("ttuxbcken"))
        held.append((now, {at: {n: space.status(n, at) for n in space.facts} for at in INSTANTS}))
    for known_at, statuses in held:
        assert {at: known(space, known_at, at) for at in INSTANTS} == statuses


@given(seeds, st.integers(1, 12), st.integers(0, 20), st.integers(0, 20))
def test_a_later_knowledge_never_hides_a_fact(seed, steps, a, b):
    space, _ = grow(seed, steps, "ttuxbc")
    earlier, later = sorted((NOW_FIRST + a, NOW_FIRST + b))
    assert known(space, earlier, 0).keys() <= known(space, later, 0).keys()


# Removal


@given(seeds, st.integers(2, 12), times)
@thorough
def test_the_end_of_a_superseder_revives_nothing_and_forgetting_it_does(seed, steps, ended_at):
    space, now = grow(seed, steps, "t")
    newest = max(space.facts, key=lambda n: (space.eff(n), n))
    others = space.facts.keys() - {newest}
    space.end(newest, LAST + ended_at + 1, now)
    assert space.current(LAST + ended_at + 1) == set()
    space.forget({newest})
    runner_up = max(others, key=lambda n: (space.eff(n), n), default=None)
    assert space.current(LAST + ended_at + 1) == ({runner_up} if others else set())


class Graph:
    """Any facts and links without a cycle: facts have ranks, and links run from greater to lesser rank."""

    is_ordered = False  # nobody counts here

    def __init__(self, effs: list[int], links: list[Link]) -> None:
        self.effs = effs
        self.links = {(link.newer, link.older, link.kind): link for link in links}

    def above(self, number):
        return [link for link in self.links.values() if link.older == number]

    def below(self, number):
        return [link for link in self.links.values() if link.newer == number]

    def eff(self, number):
        return self.effs[number]

    def ingest(self, number):
        return NOW_FIRST + number

    def remove(self, removed: set[int]) -> None:
        for link in relinks(removed, self):
            self.links[link.newer, link.older, link.kind] = link
        self.links = {k: link for k, link in self.links.items() if not removed & {link.newer, link.older}}


@st.composite
def graphs(draw, size: int = 7) -> Graph:
    effs = draw(st.lists(times, min_size=size, max_size=size))
    rank = draw(st.permutations(range(size)))
    pairs = [(rank[i], rank[j]) for i in range(size) for j in range(i)]
    links = [
        Link(newer, older, kind, at if kind is LinkKind.CORRECTS else None, NOW_FIRST + max(newer, older))
        for newer, older in draw(st.lists(st.sampled_from(pairs), max_size=14))
        for kind, at in [draw(st.tuples(st.sampled_from(LinkKind), st.none() | times | st.just(BEGINNING)))]
    ]
    return Graph(effs, links)


@given(graphs(), st.sets(st.integers(0, 6), max_size=4))
@settings(max_examples=examples(120), deadline=None)
def test_removing_a_set_leaves_the_links_of_removing_its_members_in_any_order(graph, removed):
    at_once = Graph(graph.effs, list(graph.links.values()))
    at_once.remove(removed)
    for order in permutations(sorted(removed)):
        one_by_one = Graph(graph.effs, list(graph.links.values()))
        for number in order:
            one_by_one.remove({number})
        assert one_by_one.links == at_once.links


@given(graphs(), st.sets(st.integers(0, 6), max_size=4))
@thorough
def test_a_relink_joins_survivors_with_a_path_through_removed_facts_only_and_keeps_them_ordered(
    graph, removed
):
    reach = {(link.newer, link.older) for link in graph.links.values()}
    for via in removed:  # paths whose inner facts are removed ones, in the manner of Warshall
        reach |= {(s, p) for s, r in reach if r == via for q, p in reach if q == via}
    survivors = {(s, p) for s, p in reach if not removed & {s, p}}
    written = relinks(removed, graph)
    assert written == sorted(written, key=lambda link: (link.older, link.newer, link.kind))
    graph.remove(removed)
    assert {(link.newer, link.older) for link in graph.links.values()} == survivors


@given(graphs(), st.sets(st.integers(0, 6), max_size=4))
@thorough
def test_after_removal_a_fact_is_superseded_from_the_earliest_path_to_a_survivor(graph, removed):
    expected = {
        p: min(
            (
                effective_time(path[0], graph)
                if len(path) == 1 or all(link.kind is LinkKind.CORRECTS for link in path)
                else graph.eff(path[-1].newer)
                for path in paths_to_survivors(p, removed, graph)
            ),
            default=FOREVER,
        )
        for p in set(range(7)) - removed
    }
    graph.remove(removed)
    assert {p: superseded_from(graph.above(p), graph) for p in expected} == expected


def paths_to_survivors(low: int, removed: set[int], graph: Graph) -> list[list[Link]]:
    """Every upward path from `low` through removed facts to one that is not, the lowest link first."""
    paths = []
    for link in graph.above(low):
        onward = paths_to_survivors(link.newer, removed, graph) if link.newer in removed else [[]]
        paths += [[link, *rest] for rest in onward]
    return paths


def climbs(low: int, high: int, graph: Graph) -> bool:
    return any(link.newer == high or climbs(link.newer, high, graph) for link in graph.above(low))


@given(seeds, st.integers(1, 14))
@thorough
def test_no_older_fact_of_a_slot_becomes_current_now_while_a_successor_survives(seed, steps):
    space, now = grow(seed, steps, "tttuc")
    superseded = {n for n in space.facts if space.status(n, now) is Status.SUPERSEDED}
    removed = set(Random(seed).sample(sorted(space.facts), len(space.facts) // 2))
    keeps = {n for n in superseded - removed if component_above(n, space) - removed}
    space.forget(removed)
    assert not keeps & space.current(now)


def component_above(number: int, space: SimulatedSpace) -> set[int]:
    above = {link.newer for link in space.above(number)}
    return above.union(*(component_above(newer, space) for newer in above))


# The graph


@given(seeds, st.integers(1, 16))
@thorough
def test_links_stay_free_of_cycles_under_any_mix_of_writes(seed, steps):
    space, _ = grow(seed, steps, "ttuxxbbrrfchw")
    assert space.is_acyclic()


@given(graphs(), st.integers(0, 6), st.integers(0, 6))
@thorough
def test_a_link_closes_a_cycle_exactly_when_the_older_fact_already_supersedes_the_newer(graph, newer, older):
    assert closes_cycle(newer, older, graph) == (newer == older or climbs(newer, older, graph))


@given(graphs(), st.integers(0, 6), st.integers(0, 6))
@thorough
def test_while_every_link_follows_the_order_a_link_that_follows_it_closes_no_cycle(graph, newer, older):
    kept = [link for link in graph.links.values() if not against_order(link.newer, link.older, graph)]
    ordered = Graph(graph.effs, kept)
    if newer != older and not against_order(newer, older, ordered):
        assert not closes_cycle(newer, older, ordered)


@given(graphs())
@thorough
def test_components_divide_the_facts_into_groups_that_no_link_leaves(graph):
    groups = {n: frozenset(component(n, graph, frontier_limit=100)) for n in range(7)}
    for number, group in groups.items():
        assert number in group
        assert all(groups[other] == group for other in group)
    merged = {n: {n} for n in range(7)}
    for link in graph.links.values():
        union = merged[link.newer] | merged[link.older]
        merged |= dict.fromkeys(union, union)
    assert groups == merged
