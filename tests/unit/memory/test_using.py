"""Uses are counted where they are recorded, once in a context, and nowhere else."""

from __future__ import annotations

import io

import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig
from perdure.policies import Prune
from scenarios.stores import EVERY_BACKEND


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return str(request.param)


@pytest.fixture
def two(memory):
    memory.remember("alpha beta", id="a")
    memory.remember("alpha gamma", id="b")
    return memory


def uses(memory, *ids):
    return [memory.get(id_).uses for id_ in ids or ("a", "b")]


def test_reads_count_nothing(two):
    two.get("a")
    two.recall("alpha", explain=True)
    two.list()
    two.explain("alpha", "a")
    two.history("a")
    assert uses(two) == [0, 0]
    assert two.get("a").last_used_at is None


def test_a_recorded_use_shows_on_get_list_recall_and_explain(two, clock):
    clock.advance(milliseconds=5)
    assert two.record_use(["a"]) == 1
    shown = [two.get("a"), two.list().items[0], two.recall("beta")[0].fact, two.explain("beta", "a")]
    shown += [two.explain("delta", "a"), two.recall("beta", explain=True)[0].explanation]
    assert [(one.uses, one.last_used_at.microsecond) for one in shown] == [(1, 5_000)] * 6
    assert uses(two) == [1, 0]
    assert [fact.id for fact in two.list(order="last_used").items] == ["b", "a"]


def test_without_a_context_each_call_counts_and_a_fact_once_in_it(two):
    assert [two.record_use(["a", "b", "a"]), two.record_use(["a"])] == [2, 1]
    assert uses(two) == [2, 1]


def test_in_one_context_a_fact_counts_once(two):
    assert two.record_use(["a"], "turn 1") == 1
    assert two.record_use(["a", "b"], context_id="turn 1") == 1
    assert two.record_use(["a"], context_id="turn 1") == 0
    assert two.record_use(["a"], context_id="turn 2") == 1
    assert uses(two) == [2, 1]


def test_ids_of_no_visible_fact_are_ignored(two):
    two.forget(ids=["b"], soft=True)
    assert two.record_use(["a", "b", "nobody"]) == 1
    assert two.record_use(["nobody"]) == 0
    assert two.record_use([]) == 0


def test_a_use_of_a_fact_that_holds_no_more_counts(two):
    two.end("a")
    assert two.record_use(["a"]) == 1


def test_a_key_replays_the_count(two):
    assert two.record_use(["a", "b"], idempotency_key="key") == 2
    assert two.record_use(["b", "a"], idempotency_key="key") == 2
    assert uses(two) == [1, 1]
    with pytest.raises(Conflict):
        two.record_use(["a"], idempotency_key="key")


@pytest.mark.parametrize(
    ("told", "field"),
    [({"ids": "a"}, "ids"), ({"ids": [1]}, "ids[0]"), ({"ids": ["a"], "context_id": ""}, "context_id")],
)
def test_a_malformed_use_is_refused_by_name(two, told, field):
    with pytest.raises(InvalidRequest) as caught:
        two.record_use(**told)
    assert caught.value.field == field


def test_uses_and_their_contexts_survive_reopening_a_purge_and_a_move(store, open_store, backend):
    memory = store.memory()
    memory.remember("goes away", id="gone")
    memory.remember("alpha beta", id="a")
    memory.record_use(["gone", "a"], "turn 1")
    before = memory.get("a")
    memory.forget(ids=["gone"])
    exported = b"".join(store.export_lines())
    store.purge()
    assert memory.get("a") == before
    assert memory.record_use(["a"], "turn 1") == 0
    if backend != "memory":
        store.close()
        again = open_store()
        assert again.memory().get("a") == before
        assert again.memory().record_use(["a"], "turn 1") == 0
        again.close()
        assert open_store().memory().record_use(["a"], "turn 1") == 0
    if backend != "journal":
        other = open_store("other")
        other.import_(io.BytesIO(exported))
        assert other.memory().get("a") == before


def test_a_context_leaves_no_text_behind(two, store):
    two.record_use(["a"], "the context of Mr. Smith")
    assert b"Smith" not in b"".join(store.export_lines())


def test_pruning_spares_what_was_used_three_times(store, clock):
    memory = store.memory(config=MemoryConfig(forgetting=Prune()))
    for id_ in ("used", "idle"):
        memory.remember(f"alpha {id_}", id=id_, importance=0.1)
    for turn in range(3):
        memory.record_use(["used"], f"turn {turn}")
    clock.advance(milliseconds=91 * 86_400_000)
    assert memory.apply_forgetting().forgotten == ("idle",)
    assert memory.apply_forgetting(dry_run=False).forgotten == ("idle",)
    assert memory.get("used").uses == 3


def test_a_linked_fact_is_spared_by_pruning(store, clock):
    memory = store.memory(config=MemoryConfig(forgetting=Prune()))
    memory.remember("alpha", id="old", importance=0.1)
    memory.remember("beta", id="new", importance=0.1, supersedes=["old"])
    memory.remember("gamma", id="alone", importance=0.1)
    clock.advance(milliseconds=91 * 86_400_000)
    assert memory.apply_forgetting(dry_run=False).forgotten == ("alone",)
