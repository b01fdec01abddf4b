"""Filters that are decided by bitmaps mean what the reference says, on every surface, whatever came before."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, ManualClock, NotFound, Store
from perdure.base.instants import to_millis
from perdure.filters.evaluate import matches
from perdure.filters.grammar import parse_filter
from perdure.log.memory import MemoryLog
from perdure.model.fact import FACT_KINDS

NOW = 1_000
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, 1.0, -1, 2, 10, 1.5, -0.0, 2**53 - 1, 1e16, 1e300, -2.5e-10),
    *("", "1", "10", "true", "null", "a", "ab", "b", "A", "é", "e\u0301", "日本", "\U0001f600", "a.b"),
]
KEYS = ["a", "b", "a.b", "n", "x", ""]
TOP_PATHS = ["a", "b", "n", "a\\.b", "missing", ""]
PATHS = [*TOP_PATHS, "a.b", "a.n", "a.a\\.b", "a[0]", "a[1].b", "b[0][0]", "n.x.a", "b.a[0]"]
TEXTS = [None, "s", "t", "sub"]
NAMES = [[], ["Ann"], ["Ann", "Bob"], ["Bob"]]
TIMES = [None, 0, 5, 10, 900]

scalars = st.sampled_from(SCALARS)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=5,
)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)


def operators(operand: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    compared = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains"]
    one = (
        st.tuples(st.sampled_from(compared), operand)
        | st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(operand, max_size=3))
        | st.tuples(st.just("$exists"), st.booleans())
    )
    return st.lists(one, min_size=1, max_size=2).map(dict)


moments = st.sampled_from([0, 5, 10.0, 900, 1_000, 1_005, "1970-01-01", "1970-01-01T00:00:00.005Z"])
conditions = (
    st.tuples(st.sampled_from(PATHS), values | operators(values))
    | st.tuples(
        st.sampled_from(["@subject", "@sourceUri"]),
        operators(st.sampled_from([*TEXTS, "semantic", 1])),
    )
    | st.tuples(st.just("@kind"), operators(st.sampled_from(FACT_KINDS)))
    | st.tuples(
        st.just("@kind"),
        st.sampled_from(
            [{"$contains": "epi"}, {"$contains": 1}, {"$gt": "f"}, {"$lte": "semantic"}, {"$gt": 1}]
        ),
    )
    | st.tuples(
        st.sampled_from(["@entities", "@tags"]),
        operators(st.sampled_from(["Ann", "Bob", "An", *NAMES, ["Bob", "Ann"]])),
    )
    | st.tuples(st.just("@importance"), operators(st.sampled_from([0, 0.5, 1, 1.0, -2])))
    | st.tuples(st.just("@importance"), st.sampled_from([{"$contains": "1"}, {"$contains": None}]))
    | st.tuples(
        st.sampled_from(["@eventTime", "@validFrom", "@validTo", "@ingestTime"]), moments | operators(moments)
    )
)
filters = st.recursive(
    st.lists(conditions, min_size=1, max_size=2).map(dict),
    lambda inner: (
        st.builds(lambda part: {"$not": part}, inner)
        | st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=4,
)
facts = st.fixed_dictionaries(
    {
        "metadata": metadata,
        "subject": st.sampled_from(TEXTS),
        "entities": st.sampled_from(NAMES),
        "tags": st.sampled_from(NAMES),
        "kind": st.sampled_from([None, "semantic", "episodic"]),
        "importance": st.sampled_from([None, 0, 0.5, 1]),
        "event_time": st.sampled_from(TIMES),
        "valid_from": st.sampled_from(TIMES),
        "valid_to": st.sampled_from([None, 901, 2_000]),
        "source": st.sampled_from([None, {"uri": "s"}, {"uri": "sub", "actor": "t"}, {"actor": "s"}]),
    }
)
steps = (
    st.tuples(st.just("remember"), facts)
    | st.tuples(st.just("put"), metadata)
    | st.tuples(st.sampled_from(["hide", "restore", "forget", "end"]), st.integers(0, 9))
    | st.tuples(st.just("annotate"), st.integers(0, 9), metadata)
    | st.tuples(
        st.just("mark"),
        st.integers(0, 9),
        st.fixed_dictionaries(
            {},
            optional={
                "tags": st.sampled_from(NAMES),
                "kind": st.sampled_from([None, "semantic", "episodic"]),
                "importance": st.sampled_from([None, 0, 0.5, 1]),
            },
        ),
    )
    | st.tuples(st.just("merge"), st.integers(0, 9), st.integers(0, 9))
    | st.tuples(st.sampled_from(["purge", "reopen"]))
    | st.tuples(st.just("ask"), filters)
)


def fields_of(fact: Any) -> dict[str, Any]:
    told = {
        "@subject": fact.subject,
        "@entities": list(fact.entities) or None,
        "@tags": list(fact.tags) or None,
        "@kind": fact.kind,
        "@importance": fact.importance,
        "@sourceUri": None if fact.source is None else fact.source.uri,
    }
    for name, moment in (
        ("@eventTime", fact.event_time),
        ("@validFrom", fact.valid_from),
        ("@validTo", fact.valid_to),
        ("@ingestTime", fact.ingest_time),
    ):
        told[name] = None if moment is None else to_millis(moment, field="time")
    return {name: value for name, value in told.items() if value is not None}


class Trial:
    """A store, and every question to it asked on all surfaces."""

    def __init__(self) -> None:
        self._log, self._clock = MemoryLog(), ManualClock(NOW)
        self.count = 0
        self._open()

    def _open(self) -> None:
        self.store = Store.open(log=self._log, clock=self._clock)
        self.memory, self.documents = self.store.memory(), self.store.documents()

    def do(self, name: str, *arguments: Any) -> None:
        if name == "ask":
            self.ask(*arguments)
        elif name == "put":
            self.documents.put(self._new_id(), "a row", metadata=arguments[0])
        elif name == "purge":
            self.store.purge()
        elif name == "reopen":
            self._open()
        elif name == "remember":
            self.memory.remember(f"a row {self.count}", id=self._new_id(), **arguments[0])
        else:
            self._change(name, f"{arguments[0]}", *arguments[1:])
        self._clock.advance(milliseconds=1)

    def _new_id(self) -> str:
        self.count += 1
        return f"{self.count - 1}"

    def _change(self, name: str, id_: str, *arguments: Any) -> None:
        """Change a fact; what cannot be changed so stays as it is."""
        memory = self.memory
        calls = {
            "hide": lambda: memory.forget(ids=[id_], soft=True),
            "forget": lambda: memory.forget(ids=[id_]),
            "restore": lambda: memory.restore([id_]),
            "end": lambda: memory.end(id_),
            "annotate": lambda: memory.annotate(id_, metadata=arguments[0]),
            "mark": lambda: memory.annotate(id_, **arguments[0]),
            "merge": lambda: memory.merge(id_, [f"{arguments[0]}"]),
        }
        with suppress(InvalidRequest, NotFound):
            calls[name]()

    def ask(self, told: dict[str, Any]) -> None:
        asked = parse_filter(told)
        live = self.memory.list(limit=1_000).items
        hidden = self.memory.list(hidden=True, limit=1_000).items
        known = {fact.id for fact in live}
        plain = [d for d in self.documents.list(limit=1_000).items if d.id not in known]
        of_facts = {f.id for f in live if matches(asked, f.metadata, fields_of(f))}
        of_hidden = {f.id for f in hidden if matches(asked, f.metadata, fields_of(f))}
        of_plain = {d.id for d in plain if matches(asked, d.metadata, {})}
        memory, documents = self.memory, self.documents
        assert {f.id for f in memory.list(filter=told, limit=1_000).items} == of_facts
        assert {f.id for f in memory.list(filter=told, hidden=True).items} == of_hidden
        hits = memory.recall("row", k=1_000, history="all", filter=told)
        assert {hit.fact.id for hit in hits} == of_facts | of_plain
        gone = set(memory.forget(filter=told, dry_run=True).forgotten)
        assert of_facts | of_plain | of_hidden <= gone
        # What else would go is shown by no read: a document that is hidden.
        assert gone.isdisjoint({one.id for one in (*live, *hidden, *plain)} - of_facts - of_plain - of_hidden)
        assert {d.id for d in documents.list(filter=told).items} == of_facts | of_plain
        assert {hit.id for hit in documents.search("row", k=1_000, filter=told)} == of_facts | of_plain
        for fact in live:
            why = memory.explain("row", fact.id, history="all", filter=told)
            assert why.filtered_by == (() if fact.id in of_facts else ("filter",))
            assert why.reason == ("returned" if fact.id in of_facts else "filtered")
        assert self.exported(told) == gone

    def exported(self, told: dict[str, Any]) -> set[str]:
        lines = map(json.loads, self.store.export_lines(filter=told))
        return {line["id"] for line in lines if line.get("type") in ("fact", "document")}


@given(st.lists(steps, max_size=14), filters)
@settings(max_examples=examples(50), deadline=None)
def test_a_filter_finds_what_the_reference_matches_after_any_writes(script, told):
    trial = Trial()
    for step in script:
        trial.do(*step)
    trial.ask(told)


@given(st.lists(metadata, min_size=1, max_size=8), st.lists(filters, min_size=1, max_size=6))
@settings(max_examples=examples(24), deadline=None)
def test_every_filter_and_its_negation_share_out_the_rows(rows, told):
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember_many([{"text": f"row {n}", "metadata": row} for n, row in enumerate(rows)])
        everyone = {fact.id for fact in memory.list(limit=1_000).items}
        for one in told:
            found = {fact.id for fact in memory.list(filter=one).items}
            others = {fact.id for fact in memory.list(filter={"$not": one}).items}
            assert found | others == everyone
            assert not found & others


def test_each_value_against_each_operator_and_operand_is_as_the_reference_says():
    rows = [*SCALARS, [], [1], ["a", 1], [[1]], [None], {}, {"a": 1}, {"a": [True]}]
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember_many([{"text": f"row {n}", "metadata": {"k": row}} for n, row in enumerate(rows)])
        memory.remember("a row without the key")
        live = memory.list(limit=1_000).items
        for operator in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains", "$in", "$nin"):
            for operand in rows:
                told = {"k": {operator: [operand, "b"] if operator in ("$in", "$nin") else operand}}
                asked = parse_filter(told)
                expected = [f.id for f in live if matches(asked, f.metadata, {})]
                assert [f.id for f in memory.list(filter=told, limit=1_000).items] == expected, told


TOLD = [
    {
        "metadata": {"a": {"b": 1}, "n": [1, "x"]},
        "subject": "s",
        "tags": ["Ann"],
        "importance": 0.5,
        "event_time": 5,
    },
    {
        "metadata": {"a": {"b": 2.5}, "n": "text"},
        "subject": "s",
        "entities": ["Bob"],
        "kind": "semantic",
        "valid_from": 10,
    },
    {"metadata": {"a": {"b": "1"}, "n": None}, "subject": "t", "valid_to": 2_000, "source": {"uri": "sub"}},
    {"metadata": {"a": 1, "n": {"x": []}}, "importance": 1, "tags": ["Ann", "Bob"]},
    {"subject": "t"},
]
ASKED = [
    *({"a.b": {operator: 1}} for operator in ("$gt", "$gte", "$lt", "$lte", "$ne")),
    *({"n": {"$contains": part}} for part in ("x", 1, None)),
    {"n": {"$in": ["x", None, {"x": []}]}},
    {"n": {"$nin": ["x", "text"]}},
    {"n[1]": "x"},
    {"a": {"$exists": True}},
    {"a": 1},
    *({"@subject": test} for test in ("s", {"$gt": "s"}, {"$exists": False}, {"$in": ["s", "t"]})),
    *({field: {"$contains": "Bob"}} for field in ("@tags", "@entities")),
    {"@tags": ["Ann", "Bob"]},
    {"@kind": {"$ne": "semantic"}},
    {"@importance": {"$gte": 0.5}},
    *({f"@{field}": {"$lte": 10}} for field in ("eventTime", "validFrom")),
    {"@validTo": {"$exists": True}},
    {"@ingestTime": {"$gt": NOW + 1}},
    {"@sourceUri": {"$contains": "s"}},
    {"$or": [{"a.b": {"$gt": 1}}, {"$not": {"@subject": "s"}}], "n": {"$exists": True}},
]
WRITTEN: list[tuple[Any, ...]] = [
    ("annotate", 0, {"a": {"b": 3}, "n": "new x"}),
    ("annotate", 4, {"n": [None]}),
    ("hide", 1),
    ("annotate", 3, {}),
    ("mark", 1, {"tags": ["Bob"], "kind": "episodic", "importance": 1}),
    ("mark", 3, {"tags": []}),
    ("hide", 2),
    ("restore", 1),
    ("end", 2),
    ("end", 3),
    ("put", {"a": {"b": 7}, "n": ["x"]}),
    ("merge", 0, 4),
    ("forget", 0),
    ("remember", TOLD[0]),
    ("purge",),
    ("forget", 1),
    ("reopen",),
    ("restore", 2),
]


def test_every_kind_of_question_is_right_before_and_after_every_kind_of_write():
    trial = Trial()
    for told in TOLD:
        trial.do("remember", told)
    for step in [None, *WRITTEN]:
        if step is not None:
            trial.do(*step)
        for asked in ASKED:
            trial.ask(asked)
