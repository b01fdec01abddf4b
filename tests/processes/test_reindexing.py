"""A space is reindexed while other processes have it open; killed at any step it is as before or as after."""

from __future__ import annotations

import shutil

import pytest

from erasure.killing import kill_at, steps_of
from perdure import MemoryConfig, NewFact, Store
from processes.running import servant

ROWS = ["die Häuser am See", "ein Haus im Wald", "the running dogs", "we run home"]
QUERIES = ["Haus", "Häuser", "run", "dogs", "Wälder", "see"]
REINDEX = "memory.reindex(profile='snowball:german', b=0.0)"
KILLS = 8


def answers(store: Store) -> dict[str, list[tuple[str, float]]]:
    memory = store.memory()
    return {query: [(hit.id, hit.score) for hit in memory.recall(query)] for query in QUERIES}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    path = tmp_path_factory.mktemp("planted") / "store"
    with Store.open(path) as store:
        store.memory("other").remember("the other Häuser")
        store.memory().remember_many([NewFact(text=row, id=f"{n}") for n, row in enumerate(ROWS)])
        store.memory().forget(ids=["3"])
    return path


@pytest.fixture(scope="module")
def whole(planted, tmp_path_factory):
    """The answers before, the answers after, and how many steps lie between."""
    path = shutil.copytree(planted, tmp_path_factory.mktemp("whole") / "store")
    with Store.open(path) as store:
        before = answers(store)
    steps = steps_of(path, REINDEX)
    with Store.open(path) as store:
        after = answers(store)
    assert before != after
    return before, after, steps


def check(path, whole):
    before, after, _ = whole
    with Store.open(path) as store:
        found = answers(store)
        assert found in (before, after)
        profile = store.memory().capabilities().features.analysis_profile
        assert profile == ("english.v1" if found == before else "snowball:german")
        assert store.verify().ok
        store.memory().remember("viele Bücher", id="new")
        assert bool(store.memory().recall("Buch")) is (found == after)
        # Again, or for the first time: the end is the same.
        store.memory().forget(ids=["new"])
        store.memory().reindex(profile="snowball:german", b=0.0)
        assert answers(store) == after
        assert [hit.text for hit in store.memory("other").recall("the other")] == ["the other Häuser"]


@pytest.mark.slow
@pytest.mark.parametrize("share", range(KILLS))
def test_a_reindexing_killed_at_any_step_leaves_the_old_terms_or_the_new_never_both(
    planted, tmp_path, whole, share
):
    path = shutil.copytree(planted, tmp_path / "store")
    kill_at(path, REINDEX, 1 + share * (whole[2] - 1) // (KILLS - 1))
    check(path, whole)


@pytest.mark.soak
def test_a_reindexing_killed_at_each_of_a_hundred_steps_leaves_the_old_terms_or_the_new(
    planted, tmp_path, whole
):
    for share in range(100):
        path = shutil.copytree(planted, tmp_path / f"store-{share}")
        kill_at(path, REINDEX, 1 + share * (whole[2] - 1) // 99)
        check(path, whole)


@pytest.mark.slow
def test_processes_that_have_the_space_open_find_and_write_by_the_new_profile(planted, tmp_path):
    path = shutil.copytree(planted, tmp_path / "store")
    with servant(path) as reader, servant(path) as writer, Store.open(path) as store:
        assert reader.ask("[hit.id for hit in memory.recall('Haus')]") == "['1']"
        assert writer.ask("memory.remember('noch ein Häuschen', id='4').outcome") == "'created'"
        store.memory().reindex(profile="snowball:german")
        assert writer.ask("memory.remember('andere Häuser', id='5').outcome") == "'created'"
        assert reader.ask("sorted(hit.id for hit in memory.recall('Haus'))") == "['0', '1', '5']"
        assert sorted(hit.id for hit in store.memory().recall("Haus")) == ["0", "1", "5"]
        assert reader.ask("memory.capabilities().features.analysis_profile") == "'snowball:german'"
        reader.finish()
        writer.finish()


def test_a_snapshot_of_the_old_terms_is_not_used_and_one_of_the_new_is_kept(tmp_path):
    with Store.open(tmp_path / "store", durability="normal") as store:
        memory = store.memory()
        memory.remember_many([NewFact(text=f"die Häuser {n}", id=f"{n}") for n in range(1200)])
    with Store.open(tmp_path / "store") as store:
        number = store.log.spaces()[0]
        old = store.log.get_cache(number, "state")
        store.memory().reindex(profile="snowball:german")
        new = store.log.get_cache(store.log.spaces()[0], "state")
        assert old is not None
        assert new is not None
        assert new.head.epoch > old.head.epoch
    with Store.open(tmp_path / "store") as store:
        assert (
            len(store.memory(config=MemoryConfig(profile="snowball:german")).recall("Haus", k=1000)) == 1000
        )
