"""Laws of recall with context: neighbours' words by BM25F, whom and when the query names, and the parts of it."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Context, Memory, MemoryConfig
from perdure.lexical.profile import get_profile
from perdure.policies import combined_score

WORDS = ("red", "green", "blue", "one", "two", "boat", "zebra")
ACTORS = (None, "Ann", "Bob Lee")
START = datetime(2023, 5, 1, tzinfo=UTC)

turns = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
        st.sampled_from(["s1", "s2", None]),
        st.integers(0, 6),
        st.sampled_from(ACTORS),
        st.integers(0, 200),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)
queries = st.lists(
    st.sampled_from([*WORDS, "Ann", "Bob Lee", "May 2023", "2024"]), min_size=1, max_size=4
).map(" ".join)
contexts = st.builds(
    Context,
    neighbours=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=3).map(tuple),
    actor=st.sampled_from([1.0, 1.25, 2.0]),
    period=st.sampled_from([1.0, 1.5]),
)


def told(memory, facts):
    ids = []
    for number, (text, uri, position, actor, days, ended) in enumerate(facts):
        source = {name: value for name, value in (("uri", uri), ("actor", actor)) if value is not None}
        if uri is not None:
            source["position"] = position
        ids.append(
            memory.remember(
                text,
                id=f"f{number}",
                event_time=START + timedelta(days=days),
                valid_to=START + timedelta(days=days) if ended else None,
                source=source or None,
            ).id
        )
    return ids


def expected(facts, query, context, k1=0.9, b=0.4):
    """The scores by the formulas alone, without the product's index or pipeline."""
    profile = get_profile("english.v1")
    texts = [profile.document_terms(fact[0]) for fact in facts]
    current = [not fact[5] for fact in facts]
    average = sum(map(len, texts)) / len(texts)
    terms = profile.query_terms(query)
    frequency = {term: sum(term in text for text in texts) for term in terms}

    def share(number, term):
        tf = texts[number].count(term)
        return tf / (k1 * (1 - b + b * len(texts[number]) / average))

    scores = []
    for number, (_, uri, position, actor, days, _) in enumerate(facts):
        total = 0.0
        for term in terms:
            if not frequency[term]:
                continue
            x = share(number, term)
            for step, weight in enumerate(context.neighbours, 1):
                for at in (position - step, position + step):
                    near = [
                        share(other, term)
                        for other, fact in enumerate(facts)
                        if uri is not None and fact[1] == uri and fact[2] == at and current[other]
                    ]
                    x += weight * max(near, default=0.0)
            n = frequency[term]
            total += math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) * x / (1 + x)
        named = [
            name
            for name in {fact[3] for fact in facts} - {None}
            if set(profile.document_terms(name)) <= set(terms)
        ]
        if len(named) == 1 and actor == named[0]:
            total *= context.actor
        when = START + timedelta(days=days)
        may = "May 2023" in query and when < datetime(2023, 6, 1, tzinfo=UTC) + timedelta(days=38)
        year = "2024" in query and datetime(2024, 1, 1, tzinfo=UTC) <= when
        if may or year:
            total *= context.period
        scores.append(total if current[number] else 0.0)
    return scores


@settings(max_examples=examples(50))
@given(turns, queries, contexts)
def test_scores_are_those_of_the_formulas(facts, query, context):
    with Memory.open(":memory:") as memory:
        told(memory, facts)
        hits = memory.recall(query, k=100, context=context)
        wanted = expected(facts, query, context)
        found = {int(hit.id[1:]): hit.score for hit in hits}
        assert found.keys() == {number for number, score in enumerate(wanted) if score > 1e-12}
        np.testing.assert_allclose(
            [found[n] for n in sorted(found)], [wanted[n] for n in sorted(found)], rtol=1e-9
        )
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@settings(max_examples=examples(32))
@given(turns, queries, contexts)
def test_parts_add_up_to_the_score_bit_for_bit_and_explain_agrees(facts, query, context):
    with Memory.open(":memory:") as memory:
        ids = told(memory, facts)
        at = datetime(2030, 1, 1, tzinfo=UTC)
        hits = memory.recall(query, k=5, context=context, as_of=at, explain=True)
        shown = {hit.id: hit for hit in hits}
        everything = [hit.id for hit in memory.recall(query, k=100, context=context, as_of=at)]
        for place, id_ in enumerate(ids):
            why = memory.explain(query, id_, k=5, context=context, as_of=at)
            if id_ in shown:
                hit = shown[id_]
                assert struct.pack("d", combined_score(why.parts)) == struct.pack("d", hit.score)
                assert why == hit.explanation
                assert why.rank == hits.index(hit) + 1
            elif facts[place][5]:
                assert why.reason == "not-current"
            else:
                assert why.reason == ("below-k" if id_ in everything else "no-match")


@settings(max_examples=examples(24))
@given(turns, queries)
def test_a_context_that_counts_nothing_changes_no_bit(facts, query):
    nothing = Context(neighbours=(), actor=1.0, period=1.0)
    with Memory.open(":memory:") as memory:
        told(memory, facts)
        plain = [(hit.id, struct.pack("d", hit.score)) for hit in memory.recall(query, k=50)]
        around = [
            (hit.id, struct.pack("d", hit.score)) for hit in memory.recall(query, k=50, context=nothing)
        ]
        assert around == plain


def test_a_fact_without_a_source_scores_as_it_does_without_context():
    with Memory.open(":memory:") as memory:
        memory.remember("the red boat")
        memory.remember("a red zebra", source={"uri": "s", "position": 1})
        memory.remember("it is blue", source={"uri": "s", "position": 2})
        plain = {hit.id: hit.score for hit in memory.recall("red boat")}
        around = {hit.id: hit.score for hit in memory.recall("red boat", context=True)}
        assert {id_: around[id_] for id_ in plain} == plain
        assert len(around) == 3  # the neighbour of a match is found through it


def test_neighbours_that_may_not_be_seen_do_not_count():
    config = MemoryConfig()
    with Memory.open(":memory:", config=config) as memory:
        memory.remember("a red zebra", source={"uri": "s", "position": 1}, tags=["secret"])
        memory.remember("it is blue", source={"uri": "s", "position": 2}, tags=["open"])
        assert memory.recall("red", context=True, tags=["open"]) == []
        assert len(memory.recall("red", context=True)) == 2
        hidden = memory.list(tags=["secret"]).items[0].id
        memory.forget(ids=[hidden], soft=True)
        assert memory.recall("red", context=True) == []
        memory.restore([hidden])
        assert len(memory.recall("red", context=True)) == 2


def test_explanations_name_the_neighbours_the_actor_and_the_period():
    with Memory.open(":memory:") as memory:
        memory.remember(
            "where did you sail",
            source={"uri": "s", "position": 1, "actor": "Bob"},
            event_time="2023-05-03",
            id="q",
        )
        memory.remember(
            "to the north",
            source={"uri": "s", "position": 2, "actor": "Ann"},
            event_time="2023-05-03",
            id="a",
        )
        why = memory.explain("Where did Ann sail in May 2023?", "a", context=True)
        assert [(n.id, n.distance, n.weight, n.terms) for n in why.neighbours] == [("q", -1, 0.5, ("sail",))]
        assert (why.actor, why.period, why.reason) == ("Ann", "2023-05", "returned")
        assert [part.name for part in why.parts] == ["lexical", "smoothing", "actor", "period"]
        other = memory.explain("Where did Ann sail in May 2023?", "q", context=True)
        assert (other.actor, other.period) == (None, "2023-05")


def test_relevance_searches_labels_and_the_whole_query_with_context_too():
    config = MemoryConfig(ranking="relevance")
    with Memory.open(":memory:", config=config) as memory:
        memory.remember("the harbour", tags=["boat"], id="tagged")
        memory.remember("a red boat here", id="phrase", source={"uri": "s", "position": 1})
        memory.remember("nothing of it", id="neighbour", source={"uri": "s", "position": 2})
        at = datetime(2030, 1, 1, tzinfo=UTC)
        hits = memory.recall("red boat", context=True, explain=True, as_of=at)
        assert {hit.id for hit in hits} == {"phrase", "neighbour", "tagged"}
        named = {hit.id: [part.name for part in hit.explanation.parts] for hit in hits}
        assert named["phrase"][:2] == ["lexical", "phrase"]
        assert named["neighbour"][:2] == ["lexical", "smoothing"]
        for hit in hits:
            assert struct.pack("d", combined_score(hit.explanation.parts)) == struct.pack("d", hit.score)
            assert memory.explain("red boat", hit.id, context=True, as_of=at) == hit.explanation
