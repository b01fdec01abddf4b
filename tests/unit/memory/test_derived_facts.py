"""What was made from the forgotten: receipts name it, and it goes along when that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perdure import Conflict, Memory, MemoryConfig, Store
from perdure.policies import Consolidation, FactSummary, MaxFacts
from scenarios.stores import EVERY_BACKEND, ids


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return request.param


class Planned:
    """A consolidation policy whose plan is given to it."""

    def __init__(self) -> None:
        self.plans: list[Consolidation] = []

    def plan(self, facts: Sequence[FactSummary], now: int) -> list[Consolidation]:
        return self.plans


class Notebook:
    """A memory whose facts can be merged as a test says."""

    def __init__(self, store: Store, **options: Any) -> None:
        self._policy = Planned()
        self.store = store
        self.memory = store.memory("ann", config=MemoryConfig(consolidation=self._policy, **options))

    def tell(self, *names: str) -> None:
        for name in names:
            self.memory.remember(f"a note on {name}", id=name)

    def merge(self, text: str, *sources: str, removing: bool = False) -> str:
        """Return the id of the fact that takes the place of the sources."""
        self._policy.plans = [Consolidation(text=text, sources=sources, remove_sources=removing)]
        (id_,) = self.memory.consolidate(dry_run=False, allow_destructive=True).created
        return id_


@pytest.fixture
def notes(open_store) -> Notebook:
    return Notebook(open_store())


def derived(memory: Memory, *named: str, **options: Any) -> tuple[str, ...]:
    """Return what a forget of these would leave that was made from them."""
    return memory.forget(ids=list(named), dry_run=True, **options).derived


def test_a_receipt_names_the_facts_that_were_merged_from_the_forgotten_ones(notes):
    notes.tell("a", "b", "c")
    merged = notes.merge("notes on a and b", "a", "b")
    assert derived(notes.memory, "a") == derived(notes.memory, "b") == (merged,)
    assert derived(notes.memory, "c") == derived(notes.memory, merged) == ()
    gone = notes.memory.forget(ids=["a"])
    assert (gone.forgotten, gone.derived) == (("a",), (merged,))
    assert notes.memory.get(merged).text == "notes on a and b"
    assert notes.memory.forget(ids=["b"]).derived == (merged,)


def test_what_goes_along_is_not_named_as_left(notes):
    notes.tell("a", "b")
    merged = notes.merge("notes on a and b", "a", "b")
    both = notes.memory.forget(ids=["a", merged], dry_run=True)
    assert (both.forgotten, both.derived) == (tuple(sorted(("a", merged))), ())


def test_include_derived_erases_what_was_merged_from_the_forgotten_ones(notes):
    notes.tell("a", "b", "c")
    first = notes.merge("the words of a and b", "a", "b")
    second = notes.merge("the words of all", first, "c")
    named = notes.memory.forget(ids=["a"], include_derived=True, dry_run=True)
    assert (named.forgotten, named.derived) == (tuple(sorted(("a", first, second))), ())
    gone = notes.memory.forget(ids=["a"], include_derived=True)
    assert (gone.forgotten, gone.derived, gone.certificate.facts) == (named.forgotten, (), 3)
    assert sorted(ids(notes.memory.list().items)) == ["b", "c"]
    assert notes.memory.recall("words", history="all") == []


def test_what_lies_behind_a_merged_fact_is_known_after_the_fact_between_is_gone(notes):
    notes.tell("a", "b", "c")
    between = notes.merge("notes on a and b", "a", "b")
    last = notes.merge("notes on all", between, "c")
    assert derived(notes.memory, "a") == tuple(sorted((between, last)))
    notes.memory.forget(ids=[between])
    assert derived(notes.memory, "a") == derived(notes.memory, "c") == (last,)
    notes.store.purge()
    assert derived(notes.memory, "a") == (last,)


def test_the_sources_that_a_consolidation_removes_are_no_source_of_a_later_one(notes):
    notes.tell("a", "b", "c")
    first = notes.merge("notes on a and b", "a", "b", removing=True)
    second = notes.merge("notes on all", first, "c")
    notes.tell("a")
    assert derived(notes.memory, "a") == ()
    assert derived(notes.memory, first) == (second,)


def test_a_fact_that_was_told_again_is_another_one(open_store):
    notes = Notebook(open_store(), on_id_conflict="replace")
    notes.tell("a", "b")
    merged = notes.merge("notes on a and b", "a", "b")
    notes.memory.remember("another note", id="a")
    assert derived(notes.memory, "a") == ()
    assert derived(notes.memory, "b") == (merged,)


def test_a_chain_and_what_was_made_from_it_are_followed_from_each_other(notes):
    notes.tell("a", "b", "c")
    merged = notes.merge("notes on a and b", "a", "b")
    notes.memory.remember("a later note", id="later", supersedes=[merged])
    kinds = {"include_chain": True, "include_derived": True}
    everything = tuple(sorted(("a", "b", merged, "later")))
    for named in ("a", "later"):
        assert notes.memory.forget(ids=[named], dry_run=True, **kinds).forgotten == everything
    alone = notes.memory.forget(ids=["a"], dry_run=True, include_derived=True)
    assert alone.forgotten == tuple(sorted(("a", merged)))


def test_a_soft_forget_names_what_is_still_seen_and_hides_it_when_asked(notes):
    notes.tell("a", "b", "c")
    first = notes.merge("notes on a and b", "a", "b")
    second = notes.merge("notes on all", first, "c")
    named = tuple(sorted((first, second)))
    soft = {"soft": True, "idempotency_key": "k"}
    assert notes.memory.forget(ids=["b"], **soft).derived == named
    assert notes.memory.forget(ids=["b"], **soft).derived == named
    notes.memory.forget(ids=[second], soft=True)
    assert derived(notes.memory, "a", soft=True) == (first,)
    assert derived(notes.memory, "a") == named, "hidden facts are still stored"
    hidden = notes.memory.forget(ids=["a"], soft=True, include_derived=True)
    assert (hidden.forgotten, hidden.derived) == (tuple(sorted(("a", first))), ())
    assert notes.memory.restore(["a", "b", first, second]) == tuple(sorted(("a", "b", first, second)))
    assert derived(notes.memory, "a", soft=True) == named


def test_what_was_merged_from_blocked_facts_is_blocked_when_it_goes_along(notes):
    notes.tell("a", "b")
    merged = notes.merge("notes on a and b", "a", "b")
    notes.memory.forget(ids=["a"], include_derived=True, block=True)
    assert notes.memory.unblock(ids=[merged], texts=["notes on a and b"]) == 2


def test_a_key_stands_for_a_request_with_or_without_what_was_derived(notes):
    notes.tell("a", "b")
    merged = notes.merge("notes on a and b", "a", "b")
    assert notes.memory.forget(ids=["a"], idempotency_key="k").derived == (merged,)
    again = notes.memory.forget(ids=["a"], idempotency_key="k")
    assert (again.forgotten, again.derived) == ((), ())
    with pytest.raises(Conflict):
        notes.memory.forget(ids=["a"], include_derived=True, idempotency_key="k")
    assert notes.memory.get(merged) is not None


def test_apply_forgetting_names_and_takes_what_was_derived(open_store):
    notes = Notebook(open_store(), forgetting=MaxFacts(2))
    notes.tell("a", "b", "c")
    merged = notes.merge("notes on a and b", "a", "b")
    preview = notes.memory.apply_forgetting()
    assert (preview.forgotten, preview.derived) == (("a", "b"), (merged,))
    key = {"dry_run": False, "idempotency_key": "k"}
    gone = notes.memory.apply_forgetting(include_derived=True, **key)
    assert (gone.forgotten, gone.derived) == (tuple(sorted(("a", "b", merged))), ())
    with pytest.raises(Conflict):
        notes.memory.apply_forgetting(**key)


def reopened(open_store: Callable[..., Store], store: Store) -> Store:
    if store.stats().backend == "memory":
        return store
    store.close()
    return open_store()


def purged(open_store: Callable[..., Store], store: Store) -> Store:
    store.purge()
    return reopened(open_store, store)


def moved(open_store: Callable[..., Store], store: Store) -> Store:
    lines = list(store.export_lines())
    other = open_store("other")
    other.import_(lines)
    assert list(other.export_lines())[1:] == lines[1:]
    assert other.import_(lines).created == 0
    return other


@pytest.mark.parametrize("lives_on", [reopened, purged, moved])
def test_the_relation_lives_on(open_store, lives_on):
    notes = Notebook(open_store())
    notes.tell("gone", "a", "b", "c")
    first = notes.merge("notes on two", "gone", "a")
    second = notes.merge("notes on three", first, "b")
    assert notes.memory.forget(ids=["gone"]).derived == tuple(sorted((first, second)))
    store = lives_on(open_store, notes.store)
    memory = store.memory("ann")
    assert store.verify().findings == ()
    assert derived(memory, "a") == tuple(sorted((first, second)))
    assert (derived(memory, "b"), derived(memory, "c"), derived(memory, first)) == ((second,), (), (second,))
    assert memory.forget(ids=["a"], include_derived=True).forgotten == tuple(sorted(("a", first, second)))


def test_an_import_adds_to_what_is_there_with_its_numbers(open_store):
    source = Notebook(open_store("source"))
    source.tell("a", "b")
    target = open_store("target")
    target.memory("ann").remember("a stranger", id="stranger")
    target.memory("ann").remember("a note on b", id="b")
    merged = source.merge("notes on a and b", "a", "b")
    report = target.import_(source.store.export_lines())
    assert report.created > 0
    assert derived(target.memory("ann"), "a") == derived(target.memory("ann"), "b") == (merged,)
    assert derived(target.memory("ann"), "stranger") == ()


def test_what_a_fact_was_made_from_makes_no_other_fact_of_it(open_store):
    source, target = Notebook(open_store("source")), open_store("target")
    source.tell("a", "b")
    merged = source.merge("notes on a and b", "a", "b")
    lines = list(source.store.export_lines())
    bare = [line.replace(b',"madeFrom":[0,1]', b"") for line in lines]
    assert bare != lines
    target.import_(bare)
    assert target.import_(lines).created == 0
    assert derived(target.memory("ann"), "a") == ()
    assert target.memory("ann").get(merged) is not None


@pytest.mark.parametrize("named", [b"[0,2]", b"[-1]", b'["a"]', b"[7]"])
def test_a_line_that_is_made_from_no_fact_before_it_is_refused(open_store, named):
    source, target = Notebook(open_store("source")), open_store("target")
    source.tell("a", "b")
    source.merge("notes on a and b", "a", "b")
    lines = [line.replace(b"[0,1]", named) for line in source.store.export_lines()]
    report = target.import_(lines, strict=False)
    assert report.problems[0].line == 5
    assert sorted(ids(target.memory("ann").list().items)) == ["a", "b"]


def test_a_file_may_leave_out_what_lies_behind_a_source(open_store):
    source, target = Notebook(open_store("source")), open_store("target")
    source.tell("a", "b")
    first = source.merge("notes on a", "a")
    second = source.merge("notes on all", first, "b")
    lines = [line.replace(b"[0,1,2]", b"[2,1]") for line in source.store.export_lines()]
    target.import_(lines)
    assert derived(target.memory("ann"), "a") == tuple(sorted((first, second)))
