"""Links: removal, corrections, cycles and components, by example."""

import pytest

from perdure.errors import QueryLimit
from perdure.model.status import Status
from perdure.temporal.columns import BEGINNING
from perdure.temporal.links import Link, LinkKind, closes_cycle, component, copied_links, relinks
from unit.temporal.simulated_space import SimulatedSpace, Told


def chain(*starts: int) -> tuple[SimulatedSpace, list[int]]:
    """A slot of facts valid from the given instants, told in that order at 100, 101, …"""
    space = SimulatedSpace()
    return space, [space.tell(Told(valid_from=at), ingest=100 + i) for i, at in enumerate(starts)]


def test_forgetting_the_middle_of_a_chain_keeps_the_oldest_superseded_from_the_newest_on():
    space, (a, b, c) = chain(10, 20, 30)
    assert relinks({b}, space) == [Link(c, a, LinkKind.SUPERSEDES, None, 102)]
    space.forget({b})
    assert [space.current(at) for at in (10, 20, 29, 30)] == [{a}, {a}, {a}, {c}]


def test_forgetting_the_superseder_makes_the_older_fact_current_again():
    space, (a, b) = chain(10, 20)
    assert relinks({b}, space) == []
    space.forget({b})
    assert space.current(30) == {a}


def test_forgetting_a_merged_fact_makes_all_its_sources_current_again():
    space = SimulatedSpace()
    a, b = (space.tell(Told(subject=None), ingest=1) for _ in range(2))
    merged = space.tell(Told(subject=None, supersedes=(a, b)), ingest=2)
    assert space.current(5) == {merged}
    space.forget({merged})
    assert space.current(5) == {a, b}


def test_forgetting_one_branch_gives_back_the_time_before_the_other():
    space = SimulatedSpace()
    old = space.tell(Told(subject=None), ingest=1)
    early = space.tell(Told(subject=None, valid_from=20, supersedes=(old,)), ingest=2)
    late = space.tell(Told(subject=None, valid_from=30, supersedes=(old,)), ingest=3)
    assert (space.superseded_from(old), space.current(30)) == (20, {early, late})
    space.forget({early})
    assert (space.current(20), space.current(30)) == ({old}, {late})


def test_a_relink_corrects_only_where_the_whole_path_does():
    space, (a, b) = chain(10, 20)
    other = space.tell(Told(subject=None), ingest=103)
    c = space.correct(b, ingest=104)
    space.links[other, c, LinkKind.CORRECTS] = Link(other, c, LinkKind.CORRECTS, 15, 104)
    assert relinks({c}, space) == [
        Link(other, a, LinkKind.SUPERSEDES, None, 103),
        Link(other, b, LinkKind.CORRECTS, 20, 103),
    ]


def link_up(space: SimulatedSpace, newer: int, older: int, effective_at: int) -> None:
    link = Link(newer, older, LinkKind.CORRECTS, effective_at, 200)
    space.links[newer, older, LinkKind.CORRECTS] = link


def unlinked(count: int) -> tuple[SimulatedSpace, list[int]]:
    space = SimulatedSpace()
    return space, [space.tell(Told(subject=None), ingest=200) for _ in range(count)]


def test_of_two_corrected_paths_the_earlier_correction_counts():
    space, (p, late, early, s) = unlinked(4)
    link_up(space, late, p, 9)
    link_up(space, early, p, 3)
    link_up(space, s, late, 1)
    link_up(space, s, early, 1)
    assert relinks({late, early}, space) == [Link(s, p, LinkKind.CORRECTS, 3, 200)]


def test_a_stored_correction_is_written_again_only_when_it_now_starts_earlier():
    space, (p, r, s) = unlinked(3)
    link_up(space, r, p, 5)
    link_up(space, s, r, 1)
    link_up(space, s, p, 4)
    assert relinks({r}, space) == []
    link_up(space, s, p, 6)
    assert relinks({r}, space) == [Link(s, p, LinkKind.CORRECTS, 5, 200)]


def test_a_relink_is_known_from_the_later_of_its_facts_also_where_that_is_the_older_one():
    space, (c, b, a) = chain(30, 20, 10)
    assert relinks({b}, space) == [Link(c, a, LinkKind.SUPERSEDES, None, 102)]


def test_a_link_copied_by_a_correction_is_known_from_the_correction_on():
    space, (_, b, c) = chain(10, 20, 30)
    fixed = space.correct(b, ingest=110)
    assert {link.known_from for link in [*space.above(fixed), *space.below(fixed)]} == {110}
    assert [link.newer for link in space.above(fixed)] == [c]


def test_a_correction_of_an_overtaken_fact_stays_below_what_is_told_before_it_and_forgotten():
    space, (a, b) = chain(6, 6)
    fixed = space.correct(a, ingest=110)
    space.forget({a})
    earliest = space.tell(Told(valid_from=0), ingest=111)
    space.forget({b})
    assert (space.current(3), space.current(6)) == ({earliest}, {fixed})


def test_an_arrival_supersedes_no_fact_of_another_slot():
    space, (a,) = chain(10)
    other = space.tell(Told(subject="o", valid_from=5, supersedes=(a,)), ingest=110)
    newest = space.tell(Told(valid_from=20), ingest=111)
    assert space.current(25) == {other, newest}


def test_an_arrival_below_its_told_predecessor_is_linked_over_the_one_before_that():
    space, (a,) = chain(10)
    told_over, last = space.tell_batch(
        [Told(valid_from=20, supersedes=(a + 2,)), Told(valid_from=30)], ingest=110
    )
    assert space.current(35) == {told_over}
    space.forget({told_over})
    assert space.current(35) == {last}


@pytest.mark.parametrize("decoy_first", [False, True])
def test_a_cycle_is_found_behind_a_long_side_branch_on_either_side(decoy_first):
    numbers = range(20)
    path = [(n + 1, n) for n in range(4)]
    down = [(4, 5), *((n, n + 1) for n in range(5, 12))]
    up = [(13, 0), *((n + 1, n) for n in range(13, 19))]
    for decoy in (down, up):
        space, _ = unlinked(len(numbers))
        for newer, older in [*decoy, *path] if decoy_first else [*path, *decoy]:
            link_up(space, newer, older, 0)
        assert closes_cycle(0, 4, space)
        assert not closes_cycle(4, 0, space)


def test_a_correction_takes_the_place_of_its_mistake_in_the_chain():
    space, (a, b, c) = chain(10, 20, 30)
    fixed = space.correct(b, ingest=110)
    assert space.status(b, 20) is Status.SUPERSEDED
    assert [space.current(at) for at in (10, 19, 20, 29, 30)] == [{a}, {a}, {fixed}, {fixed}, {c}]
    space.forget({b})
    assert [space.current(at) for at in (10, 19, 20, 29, 30)] == [{a}, {a}, {fixed}, {fixed}, {c}]


def test_the_mistake_of_an_undated_fact_shows_at_no_instant():
    space = SimulatedSpace()
    mistake = space.tell(Told(), ingest=50)
    fixed = space.correct(mistake, ingest=60)
    assert space.superseded_from(mistake) == BEGINNING
    assert space.current(0) == space.current(55) == {fixed}


def test_a_correction_keeps_the_effective_times_of_the_links_it_copies():
    space, (a, b, c) = chain(10, 20, 30)
    late = space.next_number
    space.facts[late] = space.facts[b]
    assert copied_links(b, late, space, dated=True) == [
        Link(late, a, LinkKind.SUPERSEDES, 20, 101),
        Link(late, b, LinkKind.CORRECTS, 20, 101),
        Link(c, late, LinkKind.SUPERSEDES, None, 102),
    ]


def test_a_fact_corrected_twice_leaves_one_correction_standing_after_the_next_arrival():
    space, (a,) = chain(10)
    first = space.correct(a, ingest=110)
    space.correct(a, ingest=111)
    assert space.current(15) == {first}
    newest = space.tell(Told(valid_from=20), ingest=112)
    assert space.current(20) == {newest}


def test_a_restored_correction_and_a_later_one_of_its_rival_do_not_both_stand():
    space, (a,) = chain(10)
    first = space.correct(a, ingest=110)
    second = space.correct(a, ingest=111)
    space.hide(first)
    third = space.correct(second, ingest=112)
    space.restore(first)
    assert space.current(15) == {third}


def test_restoring_facts_whose_links_would_now_run_in_a_circle_leaves_one_standing():
    space, (a,) = chain(10)
    first, second = space.correct(a, ingest=110), space.correct(a, ingest=111)
    space.hide(first)
    space.correct(a, ingest=112)
    space.hide(second)
    space.restore(first)
    space.restore(second)
    assert space.is_acyclic()
    assert len(space.current(15)) == 1


def test_a_told_link_stands_and_the_link_of_the_policy_that_would_close_a_cycle_is_not_written():
    space = SimulatedSpace()
    g = space.tell(Told(valid_from=2), ingest=100)
    f = space.tell(Told(valid_from=1, supersedes=(g,)), ingest=101)
    assert [(link.newer, link.older) for link in space.links.values()] == [(f, g)]
    assert space.current(5) == {f}
    later = space.tell(Told(valid_from=3), ingest=102)
    assert space.current(5) == {later}


def test_a_link_from_a_fact_to_itself_closes_a_cycle():
    space, (a,) = chain(10)
    assert closes_cycle(a, a, space)


def test_a_chain_far_longer_than_the_recursion_limit_is_walked():
    above: dict[int, Link] = {n: Link(n + 1, n, LinkKind.SUPERSEDES, n, 0) for n in range(5_000)}

    class Chain(SimulatedSpace):
        def above(self, number):
            return [above[number]] if number in above else []

        def below(self, number):
            return [above[number - 1]] if number - 1 in above else []

        def ingest(self, number):
            return 0

    space = Chain()
    assert closes_cycle(0, 5_000, space)
    assert not closes_cycle(5_000, 0, space)
    assert len(component(2_500, space, frontier_limit=5_000)) == 5_001
    assert relinks(set(range(1, 5_000)), space) == [Link(5_000, 0, LinkKind.SUPERSEDES, None, 0)]


def test_a_component_of_more_links_than_the_limit_is_refused():
    space, numbers = chain(10, 20, 30, 40)
    assert component(numbers[1], space, frontier_limit=3) == set(numbers)
    with pytest.raises(QueryLimit) as refused:
        component(numbers[1], space, frontier_limit=2)
    assert (refused.value.resource, refused.value.limit) == ("frontier", 2)
