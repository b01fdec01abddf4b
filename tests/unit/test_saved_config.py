"""A store may keep its configuration: every handle then uses it, and a different one is refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import InvalidRequest, ManualClock, Memory, MemoryConfig, Namespace, Store, Unavailable
from perdure.errors import PerdureError
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch
from perdure.log.records import ConfigRecord, encode
from perdure.policies import ExponentialRecency, LatestBySubject
from perdure.salvaging import salvage

SECRET = bytes(range(32))
LATEST = MemoryConfig(supersession="latest-by-subject", default_k=3)
BACKENDS = ("sqlite", "journal")


class Reopening:
    """A store that can be opened again: a directory of one backend, or one log in memory."""

    def __init__(self, path: Path, backend: str) -> None:
        self.path, self.backend, self._log = path, backend, MemoryLog(SECRET)
        self.clock = ManualClock("2024-01-01")

    def open(self, **options):
        if self.backend == "memory":
            store = Store.open(log=self._log, clock=self.clock, **options)
            store.log.close = lambda: None
            return store
        return Store.open(self.path, backend=self.backend, clock=self.clock, secret=SECRET, **options)


@pytest.fixture(params=(*BACKENDS, "memory"))
def place(tmp_path, request):
    return Reopening(tmp_path / "store", request.param)


def saved(place, config=LATEST):
    with place.open(config=config, save_config=True):
        pass


def test_a_saved_configuration_is_that_of_every_handle(place):
    saved(place)
    with place.open() as store:
        assert store.config == LATEST
        memory = store.memory("ann")
        memory.remember("Ann lives in Rome", subject="home", valid_from="2020-01-01")
        memory.remember("Ann lives in Oslo", subject="home", valid_from="2021-01-01")
        assert [hit.text for hit in memory.recall("Ann lives")] == ["Ann lives in Oslo"]


def test_the_same_configuration_may_be_given_again(place):
    saved(place)
    with place.open(config=LATEST) as store:
        store.memory("ann", config=LATEST)
        store.documents("ann", config=MemoryConfig(supersession=LatestBySubject(), default_k=3))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (MemoryConfig(), "default_k"),
        (LATEST.replace(default_k=4), "default_k"),
        (LATEST.replace(recency=ExponentialRecency(half_life_ms=1000)), "recency"),
        (LATEST.replace(limits=LATEST.limits.__class__(work=7)), "limits"),
        (LATEST.replace(k1=1.2), "k1"),
        (LATEST.replace(embedder="hashing"), "embedder"),
    ],
)
def test_a_different_configuration_is_refused_and_its_field_named(place, config, field):
    saved(place)
    with pytest.raises(InvalidRequest) as opened:
        place.open(config=config)
    assert opened.value.field == field
    with place.open() as store:
        for ask in (store.memory, store.documents):
            with pytest.raises(InvalidRequest) as asked:
                ask("ann", config=config)
            assert asked.value.field == field
        assert store.config == LATEST


def test_observers_and_extractors_may_come_on_top(place):
    saved(place)
    with place.open() as store:
        memory = store.memory("ann", config=LATEST.replace(extractor=lambda text: ["Ann"]))
        assert memory.remember("she sings").outcome == "created"
        assert memory.recall("sings", entity="Ann")


def test_a_store_without_one_behaves_as_the_caller_says(place):
    with place.open() as store:
        assert store.config == MemoryConfig()
        for k in (1, 2):
            config = MemoryConfig(default_k=k)
            memory = store.memory("ann", config=config)
            memory.remember(f"fact {k}")
            assert len(memory.recall("fact")) == k
        assert len(store.memory("ann").recall("fact")) == 2
        assert store.spaces() == [Namespace("ann")]


def test_a_configuration_given_to_open_is_that_of_memories_that_name_none(place):
    with place.open(config=MemoryConfig(default_k=1)) as store:
        memory = store.memory()
        memory.remember_many(["fact one", "fact two"])
        assert len(memory.recall("fact")) == 1
        assert len(store.memory(config=MemoryConfig()).recall("fact")) == 2
    with place.open() as store:
        assert store.config == MemoryConfig()


def test_saving_again_replaces_and_saving_none_keeps_none(place):
    saved(place)
    with place.open() as store:
        store.save_config(MemoryConfig(default_k=7))
        assert store.config.default_k == 7
        store.save_config(None)
        assert store.config == MemoryConfig()
        store.save_config(None)
        store.memory(config=LATEST)
    with place.open() as store:
        assert store.config == MemoryConfig()
        store.save_config(LATEST)
        assert store.config == LATEST


def test_a_handle_that_is_open_sees_what_another_one_saves(tmp_path):
    with Store.open(tmp_path / "s") as one, Store.open(tmp_path / "s") as other:
        assert one.config == MemoryConfig()
        other.save_config(LATEST)
        assert one.config == LATEST
        with pytest.raises(InvalidRequest):
            one.memory(config=MemoryConfig())


def test_the_configuration_is_no_memory_of_the_store(place):
    saved(place)
    with place.open() as store:
        assert store.spaces() == []
        assert (store.stats().spaces, store.stats().facts) == (0, 0)
        store.memory("ann").remember("a fact")
        assert store.spaces() == [Namespace("ann")]
        lines = list(store.export_lines())
        assert not any(b"defaultK" in line or b"configuration" in line for line in lines)
        with Store.open(":memory:") as target:
            target.import_(io.BytesIO(b"".join(lines)))
            assert target.config == MemoryConfig()
            assert target.spaces() == [Namespace("ann")]


def test_it_stays_through_erasures_purges_and_reindexing(place):
    saved(place)
    with place.open() as store:
        store.memory("ann").remember("a fact")
        store.memory("ben").remember("another")
        store.purge()
        assert store.config == LATEST
        store.erase("ann")
        assert store.config == LATEST
        store.memory("ben").reindex(profile="unicode.v1")
        assert store.config == LATEST
        assert store.memory("ben", config=LATEST).recall("another")
        assert store.verify().ok
    with place.open() as store:
        assert store.config == LATEST
        assert store.verify().ok


def test_a_memory_that_is_there_keeps_its_profile_and_a_new_one_takes_the_saved_one(place):
    with place.open() as store:
        store.memory("old").remember("running")
        store.save_config(MemoryConfig(profile="unicode.v1"))
        assert store.memory("old").recall("runs")
        store.memory("new").remember("running")
        assert not store.memory("new").recall("runs")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backup_has_it(tmp_path, backend):
    place = Reopening(tmp_path / "store", backend)
    saved(place)
    with place.open() as store:
        store.backup(tmp_path / "copy")
    with Store.open(tmp_path / "copy", secret=SECRET) as copy:
        assert copy.config == LATEST


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_saved_of_a_damaged_store_has_it(tmp_path, backend):
    place = Reopening(tmp_path / "store", backend)
    saved(place)
    with place.open() as store:
        store.memory("ann").remember("a fact")
    found = salvage(tmp_path / "store", tmp_path / "out", secret=SECRET)
    assert (found.spaces, found.lost) == (1, ())
    with Store.open(tmp_path / "out", secret=SECRET) as copy:
        assert copy.config == LATEST


def has(directory: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in directory.rglob("*") if file.is_file())


def test_it_is_encrypted_with_the_store_and_stays_when_the_key_changes(tmp_path):
    config = MemoryConfig(embedder="static", default_k=5)
    plain = tmp_path / "plain"
    Store.open(plain, config=config, save_config=True).close()
    assert has(plain, '"defaultK":5')
    sealed = tmp_path / "sealed"
    with Store.open(sealed, key=bytes(32), config=config, save_config=True) as store:
        assert not has(sealed, "defaultK")
        store.rekey(bytes([1] * 32))
        assert store.config == config
    with Store.open(sealed, key=bytes([1] * 32)) as store:
        assert store.config == config
        store.rekey(None)
    with Store.open(sealed) as store:
        assert store.config == config


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_replaced_is_erased_from_every_file(tmp_path, backend):
    place = Reopening(tmp_path / "store", backend)
    saved(place, MemoryConfig(default_k=987))
    assert has(place.path, "987")
    with place.open() as store:
        store.save_config(MemoryConfig(default_k=654))
        assert not has(place.path, "987")
        assert has(place.path, "654")
        store.save_config(None)
        assert not has(place.path, "654")
        store.purge()
        assert store.log.spaces() == []


def test_a_purged_store_does_not_tell_what_was_saved_before(tmp_path):
    files = []
    for name, configs in (("a", [LATEST]), ("b", [MemoryConfig(default_k=9), None, MemoryConfig(), LATEST])):
        with Store.open(tmp_path / name, secret=SECRET, clock=ManualClock(0)) as store:
            for config in configs:
                store.save_config(config)
            store.purge()
        files.append((tmp_path / name / "gen-2.db").read_bytes())
    assert files[0] == files[1]


def test_saving_the_same_writes_nothing(place):
    saved(place)
    with place.open() as store:
        number = store.log.spaces()[0]
        before = store.log.head(number)
        store.save_config(LATEST)
        assert store.log.head(number) == before


def test_a_memory_that_a_newer_build_began_leaves_the_others_usable(place):
    with place.open() as store:
        store.memory("ann").remember("a fact")
        store.log.create_space(bytes(16), bytes([255]))
    with place.open() as store:
        assert store.config == MemoryConfig()
        assert store.memory("ann").recall("fact")


class Own:
    def decide(self, *args):
        raise NotImplementedError


@pytest.mark.parametrize(
    "config",
    [
        None,
        MemoryConfig(supersession=Own()),
        MemoryConfig(extractor=lambda text: []),
    ],
)
def test_what_cannot_be_kept_is_refused_before_a_store_is_made(tmp_path, config):
    with pytest.raises(InvalidRequest):
        Store.open(tmp_path / "s", config=config, save_config=True)
    assert not (tmp_path / "s").exists()


def test_a_policy_of_ones_own_is_different_from_what_is_kept(place):
    saved(place)
    with pytest.raises(InvalidRequest) as refused:
        place.open(config=LATEST.replace(supersession=Own()))
    assert refused.value.field == "supersession"


def test_a_memory_opened_by_its_path_saves_and_uses_it(tmp_path):
    with Memory.open(tmp_path / "s", config=LATEST, save_config=True) as memory:
        memory.remember_many(["one x", "two x", "three x", "four x"])
    with Memory.open(tmp_path / "s") as memory:
        assert len(memory.recall("x")) == 3
    with pytest.raises(InvalidRequest):
        Memory.open(tmp_path / "s", config=MemoryConfig())


def test_a_refused_opening_leaves_the_store_free_for_the_next(tmp_path):
    place = Reopening(tmp_path / "store", "journal")
    saved(place)
    with pytest.raises(InvalidRequest):
        place.open(config=MemoryConfig())
    with place.open() as store:
        assert store.config == LATEST


def test_a_setting_that_this_build_does_not_know_is_refused_and_can_be_replaced(place):
    saved(place)
    with place.open() as store:
        number = store.log.spaces()[0]
        newer = encode(ConfigRecord(b'{"colour":"blue"}', 1))
        store.log.append(number, store.log.head(number), Batch([newer]))
        with pytest.raises(Unavailable, match="colour"):
            store.memory("ann")
        store.save_config(LATEST)
        store.memory("ann")


def test_a_crash_between_making_the_place_and_keeping_something_there_keeps_nothing(place):
    with place.open() as store:
        real, store.log.append = store.log.append, _fails
        with pytest.raises(PerdureError):
            store.save_config(LATEST)
        store.log.append = real
        assert store.config == MemoryConfig()
        assert store.spaces() == []
        assert store.verify().ok
        store.save_config(LATEST)
        assert store.config == LATEST


def _fails(*args):
    raise Unavailable("pulled the plug")


configs = st.builds(
    MemoryConfig,
    default_k=st.integers(1, 9),
    supersession=st.sampled_from(["explicit", "latest-by-subject"]),
    dedup=st.sampled_from(["none", "merge-exact"]),
    receipt_days=st.integers(1, 90),
)


@settings(max_examples=25)
@given(st.lists(st.none() | configs, min_size=1, max_size=6), st.integers(0, 5))
def test_the_last_one_saved_holds_whatever_was_saved_before_and_wherever_a_purge_fell(steps, purged):
    with Store.open(":memory:", clock=ManualClock(0)) as store:
        for at, config in enumerate(steps):
            store.save_config(config)
            if at == purged:
                store.purge()
            assert store.config == (config or MemoryConfig())
            assert store.verify().ok
