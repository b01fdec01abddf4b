"""Filters by bitmaps mean what the plain evaluator says, on every read, whatever happened to the facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import ManualClock, MemoryConfig, Store
from perdure.base.instants import to_millis as millis_of
from perdure.filters.evaluate import matches
from perdure.filters.grammar import parse_filter

scalars = st.sampled_from([None, True, False, 0, 1, 1.0, 2, 1.5, -3, "", "a", "ab", "10", 10, 2**53 - 1, "é"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=5,
)
keys = st.sampled_from(["a", "b", "a.b", "a[0]", "b[1].c", "c.a.b"])
fields = st.sampled_from(
    [
        "@subject",
        "@entities",
        "@tags",
        "@kind",
        "@importance",
        "@eventTime",
        "@validFrom",
        "@validTo",
        "@ingestTime",
        "@sourceUri",
    ]
)


def to_millis(value):
    return millis_of(value, field="time")


START = datetime(2024, 1, 1, tzinfo=UTC)
TIMES = [to_millis(START + timedelta(days=days)) for days in range(4)]
first_class = st.sampled_from(["s", "t", "semantic", "red", "u", 0.5, 1, None, *TIMES])


def conditions(operands):
    one = st.one_of(
        operands.filter(lambda value: not isinstance(value, dict)),
        st.fixed_dictionaries({"$eq": operands}),
        st.fixed_dictionaries({"$ne": operands}),
        st.fixed_dictionaries({"$in": st.lists(operands, max_size=3)}),
        st.fixed_dictionaries({"$nin": st.lists(operands, max_size=3)}),
        st.fixed_dictionaries({"$exists": st.booleans()}),
        st.fixed_dictionaries({"$contains": operands}),
    )
    ordered = operands.filter(
        lambda value: (
            isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool))
        )
    )
    return one | st.builds(
        lambda name, value: {name: value}, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ordered
    )


leaves = st.one_of(
    st.builds(lambda key, condition: {key: condition}, keys, conditions(values)),
    st.builds(lambda key, condition: {key: condition}, fields, conditions(first_class)),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=4,
)
facts = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": st.dictionaries(st.sampled_from("abc"), values, max_size=3),
            "subject": st.sampled_from(["s", "t"]),
            "entities": st.lists(st.sampled_from(["u", "red"]), max_size=2),
            "tags": st.lists(st.sampled_from(["red", "s"]), max_size=2),
            "kind": st.sampled_from(["semantic", "episodic"]),
            "importance": st.sampled_from([0.0, 0.5, 1.0]),
            "event_time": st.sampled_from(TIMES),
            "valid_from": st.sampled_from(TIMES[:2]),
            "valid_to": st.sampled_from(TIMES[2:]),
            "source": st.sampled_from([{"uri": "u"}, {"uri": "s"}, {"actor": "Ann"}]),
        },
    ),
    min_size=1,
    max_size=6,
)


def expected(fact, tree):
    own = {
        "@subject": fact.subject,
        "@entities": list(fact.entities) or None,
        "@tags": list(fact.tags) or None,
        "@kind": fact.kind,
        "@importance": fact.importance,
        "@eventTime": fact.event_time,
        "@validFrom": fact.valid_from,
        "@validTo": fact.valid_to,
        "@ingestTime": fact.ingest_time,
        "@sourceUri": None if fact.source is None else fact.source.uri,
    }
    told = {
        name: to_millis(value) if isinstance(value, datetime) else value
        for name, value in own.items()
        if value is not None
    }
    return matches(tree, fact.metadata, told)


@settings(max_examples=150)
@given(facts, st.lists(filters, min_size=1, max_size=4), st.data())
def test_every_read_selects_what_the_plain_evaluator_selects(told, asked, data):
    from perdure import InvalidRequest  # noqa: PLC0415

    trees = []
    for one in asked:
        try:
            trees.append((one, parse_filter(one)))
        except InvalidRequest:  # such as null or a text where a field has times
            continue
    clock = ManualClock(START)
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory(config=MemoryConfig(default_history="all"))
        for number, fields_ in enumerate(told):
            memory.remember(f"row {number}", id=str(number), **fields_)
            for one, _ in trees[:1]:
                memory.list(filter=one)  # what is kept between writes must not outlive them
        for step in data.draw(
            st.lists(st.sampled_from(["annotate", "hide", "restore", "forget", "end"]), max_size=4)
        ):
            id_ = str(data.draw(st.integers(0, len(told) - 1)))
            if step == "hide":
                memory.forget(ids=[id_], soft=True)
            elif step == "restore":
                memory.restore([id_])
            elif step == "forget" and id_ != "0":
                memory.forget(ids=[id_])
            elif step == "annotate" and memory.get(id_) is not None:
                memory.annotate(id_, metadata={"a": {"b": 1}}, tags=["s"], importance=0.5)
        for one, tree in trees:
            live = [fact.id for fact in memory.list(limit=100).items if expected(fact, tree)]
            hidden = [fact.id for fact in memory.list(limit=100, hidden=True).items if expected(fact, tree)]
            assert [fact.id for fact in memory.list(filter=one).items] == live
            assert [fact.id for fact in memory.list(filter=one, hidden=True).items] == hidden
            assert sorted(hit.id for hit in memory.recall("row", filter=one, k=100)) == live
            assert sorted(memory.forget(filter=one, dry_run=True).forgotten) == sorted(live + hidden)
            assert sorted(hit.id for hit in store.documents().search("row", filter=one, k=100)) == live
            for fact in memory.list(limit=100).items:
                why = memory.explain("row", fact.id, filter=one, k=100)
                assert why.reason == ("returned" if fact.id in live else "filtered")
