"""A space whose name no longer leads to it is reported: it is not empty, it has no twin, it is not another's."""

import shutil

import apsw
import pytest

from perdure import Corrupt, Memory, MemoryConfig, Store
from perdure.contract.wire import verified_object
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch
from perdure.log.records import GoneRecord, encode
from perdure.salvaging import salvage
from perdure.verifying import verify
from unit.cli.command_line import run, store_path
from unit.space.logs import in_a_thread, together

__all__ = ["run", "store_path"]

PEOPLE = ["alice", "bob", "carol"]


@pytest.fixture
def directory(tmp_path):
    with Store.open(tmp_path / "store") as store:
        for name in PEOPLE:
            store.memory(name).remember(f"The kettle of {name} is blue", id="kettle")
    return tmp_path / "store"


def damage(directory, statement, *bindings):
    db = apsw.Connection(str(directory / "gen-1.db"))
    db.execute(statement, bindings)
    assert db.changes() == 1
    db.close()


def first_rows(directory):
    db = apsw.Connection(str(directory / "gen-1.db"))
    rows = [row[0] for row in db.execute("SELECT rid FROM rec WHERE seq = 1 ORDER BY space")]
    db.close()
    return rows


CALLS = {
    "recall": lambda memory: memory.recall("kettle"),
    "get": lambda memory: memory.get("kettle"),
    "list": lambda memory: memory.list(),
    "remember": lambda memory: memory.remember("The teapot is green"),
    "forget": lambda memory: memory.forget(all=True),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("bit", [0, 7, 64, 127])
def test_a_space_whose_key_has_a_damaged_bit_is_neither_empty_nor_made_again(directory, bit, call):
    rid = first_rows(directory)[1]
    db = apsw.Connection(str(directory / "gen-1.db"))
    hashed = bytearray(db.execute("SELECT h FROM key WHERE rid = ?", (rid,)).fetchall()[0][0])
    db.close()
    hashed[bit // 8] ^= 1 << bit % 8
    damage(directory, "UPDATE key SET h = ? WHERE rid = ?", bytes(hashed), rid)
    with Store.open(directory) as store:
        for _ in range(2):
            with pytest.raises(Corrupt, match="space 2 is not found") as caught:
                call(store.memory("bob"))
            assert caught.value.space == 2
        assert "bob" not in str(caught.value)
        assert len(store.log.spaces()) == len(PEOPLE)
        for name in ("alice", "carol"):
            assert store.memory(name).get("kettle") is not None
        assert store.memory("nobody").list().total == 0


def test_a_space_whose_key_is_gone_is_reported(directory):
    damage(directory, "DELETE FROM key WHERE rid = ?", first_rows(directory)[0])
    with Store.open(directory) as store, pytest.raises(Corrupt, match="space 1 is not found"):
        store.memory("alice").recall("kettle")


def test_a_key_that_leads_to_the_space_of_another_is_reported_and_shows_nothing_of_it(directory):
    alice, bob, _ = first_rows(directory)
    damage(directory, "UPDATE key SET rid = ? WHERE rid = ?", alice, bob)
    with Store.open(directory) as store:
        for call in CALLS.values():
            with pytest.raises(Corrupt, match="not its own"):
                call(store.memory("bob"))
        assert store.memory("alice").get("kettle") is not None


KEYS_OF_THE_CONFIGURATION = {
    "it is another": "UPDATE key SET h = CAST(substr(h, 2) || substr(h, 1, 1) AS BLOB) WHERE rid = {configuration}",
    "it is gone": "DELETE FROM key WHERE rid = {configuration}",
    "it leads to a memory": "UPDATE key SET rid = {memory} WHERE rid = {configuration}",
}


@pytest.mark.parametrize("statement", KEYS_OF_THE_CONFIGURATION.values(), ids=KEYS_OF_THE_CONFIGURATION)
def test_a_store_that_lost_the_key_to_its_configuration_is_not_whole_at_a_verify(directory, run, statement):
    with Store.open(directory) as store:
        store.save_config(MemoryConfig(supersession="latest-by-subject"))
    rows = first_rows(directory)
    damage(directory, statement.format(configuration=rows[-1], memory=rows[0]))
    found = verify(directory)
    assert not found.ok
    assert {finding.space for finding in found.findings} == {len(rows)}
    told = run("verify", "--store", str(directory), "--json")
    assert told.code == 1
    assert told.json == verified_object(found)


@pytest.mark.parametrize("statement", KEYS_OF_THE_CONFIGURATION.values(), ids=KEYS_OF_THE_CONFIGURATION)
def test_a_store_that_lost_the_key_to_its_configuration_is_not_taken_for_one_that_keeps_none(
    directory, statement
):
    config = MemoryConfig(supersession="latest-by-subject")
    with Store.open(directory) as store:
        store.save_config(config)
    rows = first_rows(directory)
    damage(directory, statement.format(configuration=rows[-1], memory=rows[0]))
    with pytest.raises(Corrupt, match="verify --salvage"):
        Store.open(directory, config=config)
    with Store.open(directory) as store:
        asked = (
            lambda: store.memory("alice"),
            lambda: store.documents("alice"),
            lambda: store.config,
            lambda: store.save_config(config),
            lambda: store.save_config(None),
        )
        for ask in asked * 2:
            with pytest.raises(Corrupt, match="verify --salvage"):
                ask()
        assert len(store.log.spaces()) == len(rows)
    found = salvage(directory, directory.parent / "saved")
    assert found.facts == len(PEOPLE)
    with Store.open(directory.parent / "saved") as store:
        assert store.config == config
        assert store.memory("alice").get("kettle") is not None


def test_a_memory_whose_first_record_is_damaged_leaves_the_others_with_the_usual_configuration(directory):
    damage(directory, "UPDATE rec SET data = zeroblob(length(data)) WHERE rid = ?", first_rows(directory)[1])
    with Store.open(directory) as store:
        assert store.config == MemoryConfig()
        assert store.memory("carol").get("kettle") is not None
        with pytest.raises(Corrupt):
            store.memory("bob").get("kettle")


def test_the_lock_of_another_store_is_not_taken_for_this_ones_own(directory, tmp_path):
    """The names of spaces are hashed with the secret, so under another one all would be missing."""
    with Memory.open(tmp_path / "other") as memory:
        memory.remember("The teapot is green")
    shutil.copy(tmp_path / "other" / "store.lock", directory / "store.lock")
    with Store.open(directory) as store:
        for name in PEOPLE:
            for call in CALLS.values():
                with pytest.raises(Corrupt):
                    call(store.memory(name))
        assert len(store.log.spaces()) == len(PEOPLE)


class Counted(MemoryLog):
    """Counts what a look at spaces asks for."""

    def __init__(self):
        super().__init__()
        self.points = self.heads = 0

    def get(self, *arguments):
        self.points += 1
        return super().get(*arguments)

    def head(self, *arguments):
        self.heads += 1
        return super().head(*arguments)


def test_the_names_of_spaces_are_read_once_in_a_process_and_then_only_those_of_new_ones():
    log = Counted()
    with Store.open(log=log) as store:
        for number in range(50):
            store.memory(f"person {number}").remember("The kettle is blue")
        with Store.open(log=log) as other:
            log.points = 0
            assert other.memory("nobody").list().total == 0
            assert log.points == 50
            log.points = log.heads = 0
            for number in range(20):
                assert other.memory(f"nobody {number}").list().total == 0
            assert log.points == 0
            assert log.heads <= 2 * 20
            store.memory("new").remember("The kettle is blue")
            log.points = 0
            assert other.memory("nobody").list().total == 0
            assert log.points == 1


def test_a_space_that_another_store_object_makes_meanwhile_is_found(directory):
    with Store.open(directory) as store, Store.open(directory) as other:
        assert store.memory("dave").list().total == 0
        assert store.memory("erin").list().total == 0
        other.memory("dave").remember("The kettle is blue")
        assert store.memory("dave").list().total == 1
        assert store.memory("erin").list().total == 0


def test_threads_that_ask_for_and_make_new_spaces_at_once_meet_no_damage(directory):
    with Store.open(directory) as store, Store.open(directory) as other:

        def work(index):
            for turn in range(10):
                memory = (store, other)[index % 2].memory(f"person {turn}")
                memory.list()
                memory.remember(f"The kettle is blue, says {index}")

        together(6, work)
        assert {store.memory(f"person {turn}").list().total for turn in range(10)} == {6}
        assert len(store.log.spaces()) == len(PEOPLE) + 10


@pytest.mark.parametrize("last", [b"", encode(GoneRecord(0))], ids=["nothing", "its end"])
def test_only_a_space_that_has_ended_may_have_no_name(last):
    log = MemoryLog()
    with Store.open(log=log) as store:
        store.memory("alice").remember("The kettle is blue")
        log.append(1, log.head(1), Batch(records=[last], erase=[1, 2]))
        if last:
            assert in_a_thread(lambda: store.memory("bob").list().total) == 0
        else:
            with pytest.raises(Corrupt):
                store.memory("bob").list()
