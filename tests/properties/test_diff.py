"""A difference between two states of knowledge is what two listings and the links between them show."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from properties.memory_run import CONFIGS, listed
from properties.strategies import scripts
from properties.test_memory_machine import SideBySide

SCOPES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"subject": "s"},
    {"tags": ["red"]},
    {"entity": "Ann"},
    {"kind": "semantic"},
    {"pinned": False},
    {"filter": {"team": 1}},
)
spans = st.tuples(st.integers(98, 108), st.integers(1, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    st.sampled_from(CONFIGS),
    scripts(),
    spans,
    st.sampled_from((None, 0, 5, 101, 150)),
    st.sampled_from(SCOPES),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_diff_is_what_differs_between_what_was_known_at_its_ends(config, script, span, as_of, scope):
    both = SideBySide(config)
    for call in script:
        both.run(call)
    oracle, (start, end) = both.oracle, span
    before = {fact.id: fact for fact in listed(both.space.memory, known_at=start, as_of=as_of, **scope)}
    after = {fact.id: fact for fact in listed(both.space.memory, known_at=end, as_of=as_of, **scope)}
    found = both.space.memory.diff((start, end), as_of=as_of, **scope)

    def newly_ended(id_: str, *, retracted: bool) -> bool:
        known = before[id_].ends if id_ in before else ()
        return any(one not in known and (one.at is None) == retracted for one in after[id_].ends)

    known = {one.number for one in oracle.known(start)}

    def newly_linked(id_: str, *, corrects: bool) -> bool:
        number = oracle.find_live(id_).number
        return any(
            link.corrects == corrects and not {link.newer, link.older} <= known
            for link in oracle.linked(end)
            if link.older == number
        )

    expected = {
        "learnt": [id_ for id_ in after if id_ not in before],
        "ended": [id_ for id_ in after if newly_ended(id_, retracted=False)],
        "retracted": [id_ for id_ in after if newly_ended(id_, retracted=True)],
        "superseded": [id_ for id_ in after if newly_linked(id_, corrects=False)],
        "corrected": [id_ for id_ in after if newly_linked(id_, corrects=True)],
    }
    assert {name: [one.id for one in getattr(found, name)] for name in expected} == expected
    for one in (member for name in expected for member in getattr(found, name)):
        assert one.fact == after[one.id]
        assert one.before == (before[one.id].status if one.id in before else None)
        assert one.after == after[one.id].status
        assert one.by == after[one.id].superseded_by


@given(scripts(), spans)
@settings(max_examples=examples(16), deadline=None)
def test_two_diffs_in_a_row_learn_what_one_over_both_learns(script, span):
    both = SideBySide(CONFIGS[2])
    for call in script:
        both.run(call)
    (start, end), middle = span, span[0] + 1
    memory = both.space.memory
    whole = {one.id for one in memory.diff((start, end)).learnt}
    parts = [memory.diff((start, middle))] + ([memory.diff((middle, end))] if middle < end else [])
    assert whole == {one.id for part in parts for one in part.learnt}
