"""Laws of documents: recall without time is document search, and every operation is that of a dictionary."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from effort import examples
from perdure import Blocked, Conflict, ManualClock, MemoryConfig, Store
from perdure.model.document import Put

WORDS = ["pine", "oak", "elm", "ash", "fir", "yew", "Tokyo", "東京", "C++", "the"]
FILLER = "filler " * 1_500  # three of them do not fit into one unit
IDS = ["a", "b", "c", "é"]
METADATA = [None, {"n": 1}, {"n": 1.0, "team": "x"}, {"n": True}, {"team": "x"}]
FILTERS = [{"n": 1}, {"team": "x"}, {"n": 1, "team": "x"}, {"n": True}]

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
long_texts = st.lists(words, min_size=2, max_size=5).map(tuple)
queries = words


def written(told: str | tuple[str, ...]) -> str:
    """Return a short text itself, or a long one: its parts far from each other. Keeps failures readable."""
    return told if isinstance(told, str) else f" {FILLER}".join(told)


def bits(score: float) -> bytes:
    return struct.pack("<d", score)


def opened(kind: str, folder: Path) -> Store:
    path = ":memory:" if kind == "memory" else folder / "store"
    return Store.open(path, clock=ManualClock(1_000), durability="normal")


@pytest.fixture(params=["memory", "sqlite"])
def kind(request):
    return request.param


# Recall is document search


contents = st.lists(
    st.tuples(st.sampled_from(["fact", "document", "long document", "forgotten"]), words, long_texts),
    min_size=1,
    max_size=10,
)


def fill(store: Store, parts) -> int:
    """Store the parts; return how many remain. Equal texts are told under different ids."""
    memory, documents = store.memory(), store.documents()
    for index, (what, short, long) in enumerate(parts):
        if what == "fact":
            memory.remember(short, id=f"{index}")
        else:
            documents.put(f"{index}", written(long) if what == "long document" else short)
    for index, (what, _, _) in enumerate(parts):
        if what == "forgotten":
            memory.forget(ids=[f"{index}"])
    return sum(1 for what, _, _ in parts if what != "forgotten")


def recalled(store: Store, query: str, k: int, **options) -> list[tuple[str, str, bytes]]:
    return [(hit.id, hit.text, bits(hit.score)) for hit in store.memory().recall(query, k=k, **options)]


def searched(store: Store, query: str, k: int, **options) -> list[tuple[str, str, bytes]]:
    hits = store.documents().search(query, k=k, **options)
    return [(hit.id, hit.text, bits(hit.score)) for hit in hits]


same_check = settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@same_check
@given(parts=contents, query=queries)
def test_without_time_recall_is_document_search_bit_for_bit_for_every_k(kind, parts, query):
    with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as store:
        count = fill(store, parts)
        whole = searched(store, query, count + 1)
        for k in range(1, count + 2):
            assert recalled(store, query, k) == searched(store, query, k) == whole[:k]


@same_check
@given(parts=contents, query=queries, window=st.sampled_from([(None, 500), (500, None), (2_000, 3_000)]))
def test_an_unrelated_fact_with_a_window_changes_no_bit(kind, parts, query, window):
    with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as store:
        count = fill(store, parts)
        store.memory().remember("quite elsewhere", id="dated", valid_from=window[0], valid_to=window[1])
        for k in range(1, count + 2):
            assert recalled(store, query, k) == searched(store, query, k)


@same_check
@given(parts=contents, query=queries, marked=st.sets(st.integers(0, 9)))
def test_a_filter_keeps_the_bits_of_every_score(kind, parts, query, marked):
    with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as store:
        documents = store.documents()
        for index, (_, short, long) in enumerate(parts):
            text = written(long) if index % 2 else short
            documents.put(f"{index}", text, metadata={"mark": index in marked})
        whole = searched(store, query, len(parts))
        for mark in (True, False):
            kept = [hit for hit in whole if (int(hit[0]) in marked) == mark]
            for k in (1, len(parts)):
                assert searched(store, query, k, filter={"mark": mark}) == kept[:k]
                assert recalled(store, query, k, filter={"mark": mark}) == kept[:k]


@same_check
@given(parts=contents, query=queries)
def test_a_document_scores_as_its_best_unit_would_as_a_document_of_its_own(kind, parts, query):
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(kind, Path(folder)) as store,
        Store.open(":memory:", clock=ManualClock(0)) as apart,
    ):
        fill(store, parts)
        for item in store.documents().list().items:
            for unit, text in enumerate(in_units(item.text)):
                apart.documents().put(f"{item.id} {unit}", text)
        best: dict[str, bytes] = {}
        for id_, _, score in searched(apart, query, 100):
            best.setdefault(id_.partition(" ")[0], score)
        assert {id_: score for id_, _, score in searched(store, query, 100)} == best


def in_units(text: str) -> list[str]:
    """Cut at 4,096 words, for texts of short words behind which stands one space."""
    told = [f"{word} " for word in text.split(" ")]
    told[-1] = told[-1][:-1]
    sizes = [len(word.strip()) if word.strip() == "東京" else 1 for word in told]
    units, size = [""], 0
    for word, words_in_it in zip(told, sizes, strict=True):
        if size + words_in_it > 4_096:
            units.append("")
            size = 0
        units[-1] += word
        size += words_in_it
    return units


# Every operation is that of a dictionary


def canonical(metadata) -> str:
    """JSON in which 1 and 1.0 are the same and true is neither."""

    def plain(value):
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps({key: plain(value) for key, value in (metadata or {}).items()}, sort_keys=True)


class Entry:
    def __init__(self, text, metadata, version, *, fact=False):
        self.text, self.metadata, self.version, self.fact = text, metadata or {}, version, fact
        self.hidden = False

    def matches(self, filter_) -> bool:
        held = {key: canonical({key: value}) for key, value in self.metadata.items()}
        return all(held.get(key) == canonical({key: value}) for key, value in filter_.items())


class Dictionary:
    """What a store of documents is, in a few lines. Facts take part as entries of version 1."""

    def __init__(self):
        self.entries: dict[str, Entry] = {}
        self.blocked_ids: set[str] = set()
        self.blocked_texts: set[str] = set()

    def visible(self) -> dict[str, Entry]:
        return {id_: entry for id_, entry in sorted(self.entries.items()) if not entry.hidden}

    def put(self, id_, text, metadata, if_version, *, replace_facts):
        entry = self.entries.get(id_)
        version = 0 if entry is None else entry.version
        if if_version not in (None, version):
            return "version", version
        if entry is not None and entry.fact and not replace_facts:
            return "id", None
        if (
            entry is not None
            and not entry.fact
            and not entry.hidden
            and (entry.text, canonical(entry.metadata)) == (text, canonical(metadata))
        ):
            return Put(id_, "existing", version)
        if id_ in self.blocked_ids or text in self.blocked_texts:
            return Blocked
        self.entries[id_] = Entry(text, metadata, version + 1)
        return Put(id_, "replaced" if version else "created", version + 1)

    def delete(self, id_, if_version):
        entry = self.entries.get(id_)
        version = 0 if entry is None else entry.version
        if if_version not in (None, version):
            return "version", version
        return self.entries.pop(id_, None) is not None


def answer(work):
    """Return the answer, or what tells one refusal from another."""
    try:
        return work()
    except Blocked:
        return Blocked
    except Conflict as refused:
        return refused.kind, refused.details.get("current")


ids = st.sampled_from(IDS)
texts = words | long_texts
versions = st.none() | st.integers(0, 3)


class DocumentMachine(RuleBasedStateMachine):
    """A store and a dictionary side by side."""

    kind = "memory"

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.clock = ManualClock(1_000)
        self.model = Dictionary()
        self.open()

    def open(self):
        path = ":memory:" if self.kind == "memory" else self.folder / "store"
        self.store = Store.open(path, clock=self.clock, durability="normal")
        self.documents = self.store.documents()
        self.replacing = self.store.documents(config=MemoryConfig(on_id_conflict="replace"))
        self.memory = self.store.memory()

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    @rule(id_=ids, told=texts, metadata=st.sampled_from(METADATA), if_version=versions, replace=st.booleans())
    def put(self, id_, told, metadata, if_version, replace):
        text = written(told)
        documents = self.replacing if replace else self.documents
        got = answer(lambda: documents.put(id_, text, metadata=metadata, if_version=if_version))
        assert got == self.model.put(id_, text, metadata, if_version, replace_facts=replace)

    @rule(id_=ids)
    def put_again(self, id_):
        entry = self.model.entries.get(id_)
        if entry is not None and not entry.fact:
            got = answer(lambda: self.documents.put(id_, entry.text, metadata=entry.metadata))
            assert got == self.model.put(id_, entry.text, entry.metadata, None, replace_facts=False)

    @rule(id_=ids, text=words, metadata=st.sampled_from(METADATA))
    def remember(self, id_, text, metadata):
        refused = id_ in self.model.entries or id_ in self.model.blocked_ids
        if not refused and text not in self.model.blocked_texts:
            self.memory.remember(text, id=id_, metadata=metadata)
            self.model.entries[id_] = Entry(text, metadata, 1, fact=True)

    @rule(id_=ids, if_version=versions)
    def delete(self, id_, if_version):
        got = answer(lambda: self.documents.delete(id_, if_version=if_version).deleted)
        assert got == self.model.delete(id_, if_version)

    @rule(id_=ids)
    def forget(self, id_):
        self.memory.forget(ids=[id_])
        self.model.entries.pop(id_, None)

    @rule(id_=ids)
    def forget_with_a_block(self, id_):
        entry = self.model.entries.pop(id_, None)
        self.memory.forget(ids=[id_], block=True)
        if entry is not None:
            self.model.blocked_ids.add(id_)
            self.model.blocked_texts.add(entry.text)

    @rule()
    def lift_all_blocks(self):
        if self.model.blocked_ids:
            self.memory.unblock(ids=self.model.blocked_ids, texts=self.model.blocked_texts)
            self.model.blocked_ids, self.model.blocked_texts = set(), set()

    @rule(id_=ids)
    def hide(self, id_):
        self.memory.forget(ids=[id_], soft=True)
        if id_ in self.model.entries:
            self.model.entries[id_].hidden = True

    @rule(id_=ids)
    def restore(self, id_):
        self.memory.restore([id_])
        if id_ in self.model.entries:
            self.model.entries[id_].hidden = False

    @rule(query=queries, k=st.integers(1, 6), filter_=st.none() | st.sampled_from(FILTERS))
    def search(self, query, k, filter_):
        """A store built afresh from what is visible, in the order of arrival, finds the same."""
        shown = {hit.id: hit for hit in self.documents.search(query, k=1_000)}
        with Store.open(":memory:", clock=ManualClock(0)) as fresh:
            for id_, entry in self.model.visible().items():
                fresh.documents().put(id_, entry.text, metadata=entry.metadata)
            expected = {hit.id: hit for hit in fresh.documents().search(query, k=1_000)}
        assert shown == expected
        found = self.documents.search(query, k=k, filter=filter_)
        matching = [
            hit for id_, hit in shown.items() if filter_ is None or self.model.entries[id_].matches(filter_)
        ]
        assert found == matching[:k]

    @rule(limit=st.integers(1, 3), filter_=st.none() | st.sampled_from(FILTERS))
    def list(self, limit, filter_):
        expected = [
            (id_, entry.text, canonical(entry.metadata), entry.version)
            for id_, entry in self.model.visible().items()
            if filter_ is None or entry.matches(filter_)
        ]
        listed, cursor = [], None
        while True:
            page = self.documents.list(filter=filter_, limit=limit, cursor=cursor)
            assert page.total == len(expected)
            listed += [(d.id, d.text, canonical(d.metadata), d.version) for d in page.items]
            cursor = page.cursor
            if not page.has_more:
                break
        assert listed == expected

    @rule()
    def reopen(self):
        if self.kind != "memory":
            self.store.close()
            self.open()

    @invariant()
    def each_document_reads_as_the_entry(self):
        if not hasattr(self, "store"):
            return
        visible = self.model.visible()
        for id_ in IDS:
            entry, found = visible.get(id_), self.documents.get(id_)
            assert self.documents.has(id_) == (entry is not None)
            if entry is None:
                assert found is None
            else:
                assert (found.text, canonical(found.metadata), found.version) == (
                    entry.text,
                    canonical(entry.metadata),
                    entry.version,
                )


@pytest.mark.parametrize("steps", [15])
def test_documents_behave_as_a_dictionary(kind, steps):
    machine = type("Machine", (DocumentMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(12), stateful_step_count=steps, deadline=None)
    )
