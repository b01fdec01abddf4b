"""A copy of a store answers as the store does, whatever the two are kept in."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from effort import examples
from governed_run import Governed
from perdure import (
    Busy,
    Corrupt,
    InvalidRequest,
    ManualClock,
    MemoryConfig,
    NotFound,
    Store,
    WrongKey,
    copy,
)
from perdure.copying import PASSES
from perdure.log.copying import are_equal
from postgres_server import fresh_address
from unit.space.logs import in_a_thread

NOW = "2026-01-01T00:00:00Z"
KINDS = ("sqlite", "journal", "postgres")
KEY = b"k" * 32


class Place:
    """Where a store of a kind is, how it is opened, and what is told of it as a target."""

    def __init__(self, directory: Path, kind: str, **more: Any) -> None:
        self.kind, self.at = kind, str(directory / f"a {kind}")
        self.options: dict[str, Any] = {"backend": kind, **more}
        self.source: dict[str, Any] = dict(more)
        self.target: dict[str, Any] = {
            "to_backend": kind,
            **{f"to_{name}": value for name, value in more.items() if name == "key"},
        }
        if kind == "postgres":
            self.at = fresh_address()
            self.options = self.source = {"keystore": directory / "keys"}
            self.target = {"to_keystore": directory / "keys"}

    def open(self) -> Store:
        return Store.open(self.at, clock=ManualClock(NOW), **self.options)


def live(store: Store) -> None:
    """Tell and forget something of every kind."""
    memory = store.memory("ann")
    for number in range(30):
        memory.remember(f"Cup {number} is on shelf {number % 7}", id=f"c{number}", tags=["cup"])
    memory.remember("Cup 3 is broken", id="broken", supersedes=["c3"])
    memory.forget(ids=["c5", "c6"])
    store.memory("bob").remember("Bob likes tea", id="tea")
    store.erase("bob")
    store.memory("cid").remember("Cid likes tea", id="tea")
    store.memory("bob").remember("Bob drinks water", id="water")
    store.documents("cid").put("cups", "A long text about cups. " * 50)
    memory.forget(ids=["c7"])
    memory.forget(ids=["c8"], block=True)
    store.save_config(MemoryConfig(default_k=3))
    store.events()


def shown(store: Store) -> dict[str, Any]:
    """Return what a store shows of itself."""
    spaces = store.spaces()
    return {
        "heads": [(number, store.log.head(number)) for number in store.log.spaces()],
        "epoch": store.log.epoch(),
        "export": list(store.export_lines(blocks=True)) if spaces else [],
        "hits": [
            (h.fact, h.score) for s in spaces for h in _memory(store, s).recall("cup tea shelf water", k=50)
        ],
        "changes": [_memory(store, space).changes() for space in spaces],
        "config": store.config.to_json(),
        "events": store.events().items,
        "chain": store.events_head(),
        "secret": store.log.secret,
    }


def _memory(store: Store, space: Any) -> Any:
    return store.memory(space.principal, space.scope)


def assert_equal(first: Place, second: Place) -> None:
    with first.open() as one:
        expected = shown(one)
        notes = one.log.backups()
    with second.open() as other:
        assert shown(other) == expected
        assert sorted(other.log.backups()) == sorted(notes)
        assert other.verify().ok
        assert other.verify_events() == ()
        assert not other.health().erasure_pending


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_between_any_two_backends_all_is_equal_and_stays_so_when_it_is_repeated(tmp_path, kind, to):
    (tmp_path / "one").mkdir()
    source, target = Place(tmp_path / "one", kind), Place(tmp_path, to)
    with source.open() as store:
        live(store)
    first = copy(source.at, target.at, **source.source, **target.target)
    assert first.verified
    assert first.erased > 0
    assert_equal(source, target)
    again = copy(source.at, target.at, **source.source, **target.target)
    assert (again.written, again.records) == (0, first.records)
    with source.open() as store:
        store.memory("ann").remember("Cup 99 is new", id="c99")
        store.memory("ann").forget(ids=["c9"])
        store.memory("dan").remember("Dan likes cups", id="cups")
    more = copy(source.at, target.at, **source.source, **target.target)
    assert more.written > 0
    assert_equal(source, target)


@pytest.mark.parametrize("to", KINDS)
def test_a_store_in_memory_is_copied_to_where_it_lasts(tmp_path, to):
    target = Place(tmp_path, to)
    with Store.open(":memory:", clock=ManualClock(NOW)) as store:
        live(store)
        copy(store, target.at, **target.target)
        expected = shown(store)
        with target.open() as other:
            assert shown(other) == expected


@pytest.mark.parametrize("seed", range(examples(3)))
def test_whatever_a_store_went_through_its_copy_is_as_it_is(tmp_path, seed):
    target = Place(tmp_path, KINDS[seed % 3])
    run = Governed().live(Random(seed), 60)
    copy(run.store, target.at, **target.target)
    with target.open() as other:
        assert are_equal(run.store.log, other.log)
        assert (
            list(other.export_lines())[1:] == list(run.store.export_lines())[1:]
        )  # but for the moment of the export
        assert other.verify().ok
    run.store.close()


@pytest.mark.parametrize("to", KINDS)
def test_the_copy_may_be_opened_as_the_source_may_without_a_secret_or_only_with_it(tmp_path, to):
    keeping, outside = tmp_path / "keeping", tmp_path / "outside"
    for place, told in ((keeping, {}), (outside, {"secret": b"s" * 32})):
        place.mkdir()
        with Store.open(place / "store", **told) as store:
            store.memory().remember("The kettle is blue", id="kettle")
        target = Place(place, to)
        copy(place / "store", target.at, **told, **target.target)
        if told and to != "postgres":  # a keystore keeps the secrets of all
            with pytest.raises(WrongKey, match="secret"):
                target.open()
            target.options.update(told)
        with target.open() as store:
            assert store.memory().get("kettle").text == "The kettle is blue"


def test_without_a_keystore_a_database_takes_what_keeps_no_secret_itself(tmp_path):
    address = fresh_address()
    with Store.open(tmp_path / "store", secret=b"s" * 32) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    copy(tmp_path / "store", address, secret=b"s" * 32, to_keystore="off")
    with Store.open(address, keystore="off", secret=b"s" * 32) as store:
        assert store.memory().get("kettle").text == "The kettle is blue"
    Store.open(tmp_path / "own").close()
    with pytest.raises(InvalidRequest, match="keystore") as caught:
        copy(tmp_path / "own", fresh_address(), to_keystore="off")
    assert caught.value.field == "to_keystore"


# Encryption


def test_an_encrypted_store_has_an_encrypted_copy_under_its_key_or_another(tmp_path):
    source = Place(tmp_path, "sqlite", key=KEY)
    with source.open() as store:
        live(store)
    for name, told, key in (("same", {}, KEY), ("other", {"to_key": "a passphrase"}, "a passphrase")):
        (tmp_path / name).mkdir()
        target = Place(tmp_path / name, "sqlite", key=key)
        copy(source.at, target.at, key=KEY, **told)
        assert copy(source.at, target.at, key=KEY, **told).written == 0
        files = [path for path in Path(target.at).rglob("*") if path.is_file()]
        assert not any(b"shelf" in path.read_bytes() for path in files)
        with pytest.raises(WrongKey):
            Store.open(target.at)
        assert_equal(source, target)


def test_an_encrypted_store_gets_a_plain_copy_only_where_that_is_said(tmp_path):
    with Store.open(tmp_path / "store", key=KEY) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    with pytest.raises(InvalidRequest) as caught:
        copy(tmp_path / "store", tmp_path / "plain", key=KEY, to_backend="journal")
    assert caught.value.field == "plain"
    assert not (tmp_path / "plain").exists()
    copy(tmp_path / "store", tmp_path / "plain", key=KEY, to_backend="journal", plain=True)
    with Store.open(tmp_path / "plain") as store:
        assert store.memory().get("kettle").text == "The kettle is blue"


# What is refused


@pytest.mark.parametrize("to", KINDS)
def test_a_target_that_is_another_store_is_refused_and_left_as_it_is(tmp_path, to):
    target = Place(tmp_path, to)
    with target.open() as store:
        store.memory().remember("Mine", id="mine")
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        live(store)
        with pytest.raises(WrongKey):
            copy(store, target.at, **target.target)
    with target.open() as store:
        assert [fact.text for fact in store.memory().list().items] == ["Mine"]


@pytest.mark.parametrize("to", KINDS)
def test_a_copy_that_was_written_to_is_refused_and_left_as_it_is(tmp_path, to):
    target = Place(tmp_path, to)
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        live(store)
        copy(store, target.at, **target.target)
        with target.open() as other:
            other.memory("ann").remember("Mine", id="mine")
        store.memory("ann").remember("Ours", id="ours")
        with pytest.raises(InvalidRequest, match="target"):
            copy(store, target.at, **target.target)
    with target.open() as other:
        assert other.memory("ann").get("mine").text == "Mine"
        assert other.memory("ann").get("ours") is None


def test_a_copy_of_what_was_purged_since_is_refused(tmp_path):
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        live(store)
        copy(store, tmp_path / "copy")
        store.purge()
        with pytest.raises(InvalidRequest, match="purged"):
            copy(store, tmp_path / "copy")
        copy(store, tmp_path / "second")
        with Store.open(tmp_path / "second", clock=ManualClock(NOW)) as other:
            assert shown(other) == shown(store)


def test_a_folder_that_holds_something_is_refused_and_so_is_one_within_the_other(tmp_path):
    Store.open(tmp_path / "store").close()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    for target in (tmp_path / "full", tmp_path / "store", tmp_path / "store" / "in", tmp_path, ":memory:"):
        with pytest.raises(InvalidRequest) as caught:
            copy(tmp_path / "store", target)
        assert caught.value.field == "target"
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter"]
    with pytest.raises(NotFound):
        copy(tmp_path / "none", tmp_path / "new")
    with pytest.raises(NotFound):
        copy(fresh_address(), tmp_path / "new", keystore=tmp_path / "keys")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_damaged_source_is_refused_with_what_was_found_and_nothing_is_begun(tmp_path, kind):
    source = Place(tmp_path, kind)
    with source.open() as store:
        store.memory().remember("The kettle is blue " * 20, id="kettle")
    [path] = [p for p in Path(source.at).iterdir() if p.name.startswith(("gen-1.db", "journal-1.jsonl"))][:1]
    for path in Path(source.at).iterdir():
        if path.suffix in (".db", ".db-wal", ".jsonl") or path.name.endswith("-wal"):
            path.write_bytes(path.read_bytes().replace(b"kettle is blue", b"kettle is grey"))
    with pytest.raises(Corrupt):
        copy(source.at, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


# Meanwhile


class Meddling:
    """A store's log between whose readings something is done to the store."""

    def __init__(self, log: Any) -> None:
        self._log, self.acts, self.acting = log, [], False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, *told: Any) -> Any:
        if self.acts and not self.acting:
            self.acting = True
            self.acts.pop(0)()
            self.acting = False
        return self._log.read(*told)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_what_is_told_forgotten_and_purged_meanwhile_is_followed(tmp_path, seed):
    random, clock = Random(seed), ManualClock(NOW)
    with Store.open(tmp_path / "store", clock=clock) as store:
        live(store)
        log = Meddling(store.log)
        acts = [
            lambda: store.memory("ann").remember(f"Cup {random.random()} is new"),
            lambda: store.memory("ann").forget(ids=[f"c{random.randint(10, 29)}"]),
            lambda: store.memory(f"p{random.random()}").remember("Somebody new"),
            store.purge,
            lambda: store.erase("bob"),
        ]
        with Store.open(log=log, clock=clock) as seen:
            log.acts = [random.choice(acts) for _ in range(8)]
            copy(seen, tmp_path / "copy", verify=False)
            assert not log.acts
        log.acts = []
    with (
        Store.open(tmp_path / "store", clock=clock) as store,
        Store.open(tmp_path / "copy", clock=clock) as other,
    ):
        assert are_equal(store.log, other.log)
        assert list(other.export_lines()) == list(store.export_lines())
        assert other.verify().ok


def test_a_source_that_never_rests_is_copied_while_its_writers_wait(tmp_path):
    """Each reading is followed by a write, until there have been more than passes: then the turn keeps the writer out."""
    with Store.open(tmp_path / "store", timeout_s=0.05) as store:
        store.memory().remember("The first", id="first")
        other = Store.open(tmp_path / "store", timeout_s=0.05)
        log = Meddling(store.log)
        refused = []

        def write() -> None:
            try:
                in_a_thread(lambda: other.memory().remember(f"More {len(log.acts)}"))
            except Busy as error:
                refused.append(error)

        with Store.open(log=log, audit="off") as seen:
            log.acts = [write] * (PASSES + 4)
            copy(seen, tmp_path / "copy", verify=False)
        assert refused
        other.close()


def test_a_certificate_names_the_copy(tmp_path):
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        store.memory().remember("The kettle is blue", id="kettle")
        copy(store, tmp_path / "copy")
        [noted] = store.log.backups()
        named = store.memory().forget(ids=["kettle"]).certificate.backups
        assert [round(moment.timestamp() * 1000) for moment in named] == [noted]
    with Store.open(tmp_path / "copy") as other:
        assert other.log.backups() == [noted]


def test_progress_tells_of_all_and_ends_with_it(tmp_path):
    told: list[tuple[int, int]] = []
    with Store.open(tmp_path / "store", clock=ManualClock(NOW)) as store:
        live(store)
        done = copy(store, tmp_path / "copy", progress=lambda *step: told.append(step))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == done.written


def test_reading_a_copy_and_its_events_is_no_life_of_its_own(tmp_path):
    with Store.open(tmp_path / "store") as store:
        live(store)
        store.memory("ann").remember("What no event was derived of yet", id="fresh")
        copy(store, tmp_path / "copy")
        with Store.open(tmp_path / "copy") as other:
            assert other.memory("ann").get("fresh") is not None
            assert other.events().items == store.events().items
        store.memory("ann").remember("More", id="more")
        copy(store, tmp_path / "copy")
        with Store.open(tmp_path / "copy") as other:
            assert other.events().items == store.events().items
            assert other.verify_events() == ()


def test_a_file_or_a_folder_within_another_store_is_no_target(tmp_path):
    Store.open(tmp_path / "store").close()
    Store.open(tmp_path / "other").close()
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path / "file", tmp_path / "other" / "in"):
        with pytest.raises(InvalidRequest) as caught:
            copy(tmp_path / "store", target)
        assert caught.value.field == "target"
