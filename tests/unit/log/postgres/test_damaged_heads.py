"""Damage that stays is told as damage: nobody is told to try again what fails for ever."""

from __future__ import annotations

import apsw
import pytest

from perdure import Busy, Corrupt, MemoryConfig, Store, copy, verify
from perdure.errors import PerdureError
from postgres_server import ROLE, fresh_database, identity_of, shared_server

HEADS = {  # what somebody did to a space's row, or to the tenant's
    "a record less": "UPDATE perdure.space SET seq = seq - 1 WHERE tenant = '{own}' AND space = {space}",
    "the first record alone": "UPDATE perdure.space SET seq = 1 WHERE tenant = '{own}' AND space = {space}",
    "no record": "UPDATE perdure.space SET seq = 0 WHERE tenant = '{own}' AND space = {space}",
    "another epoch": "UPDATE perdure.space SET epoch = epoch + 1 WHERE tenant = '{own}' AND space = {space}",
    "its first record zeroed": "UPDATE perdure.record SET data = NULL WHERE tenant = '{own}' AND space = {space} AND seq = 1",
    "its last record zeroed": "UPDATE perdure.record SET data = NULL WHERE tenant = '{own}' AND space = {space} AND seq = 2",
}
EPOCH = "UPDATE perdure.tenant SET epoch = epoch + 1 WHERE tenant = '{own}'"
READING = {
    "recall": lambda store: store.memory().recall("tea"),
    "list": lambda store: store.memory().list(),
    "get": lambda store: store.memory().get("drink"),
    "changes": lambda store: store.memory().changes(),
    "remember": lambda store: store.memory().remember("milk"),
    "forget": lambda store: store.memory().forget(ids=["drink"], dry_run=True),
}
OTHERS = {
    "stats": lambda store: store.stats(),
    "spaces": lambda store: store.spaces(),
    "config": lambda store: store.config,
    "events": lambda store: store.events(),
    "erase": lambda store: store.erase(principal="nobody", dry_run=True),
    "save_config": lambda store: store.save_config(MemoryConfig(default_k=7)),
}


@pytest.fixture(scope="module")
def name():
    return fresh_database()


@pytest.fixture
def place(name, tmp_path, request):
    """What opens a tenant of one's own in which a memory has one fact, and another one another."""
    tenant = request.node.name[-200:]
    told = {"tenant": tenant, "keystore": tmp_path / "keys"}
    told["keystore"].mkdir(mode=0o700)
    address = shared_server().address(name, ROLE)
    with Store.open(address, **told) as store:
        store.memory().remember("tea", id="drink")
        store.memory("ann").remember("coffee")
        store.save_config(MemoryConfig(default_k=5))
    return address, told


def damage(name, place, statement, space=1):
    address, told = place
    own = identity_of(address, told["tenant"])
    shared_server().execute(statement.format(own=own, space=space), name)


def found(place, act):
    """Return the error of an act on the store, opened anew; None where there was none."""
    address, told = place
    try:
        with Store.open(address, timeout_s=2, **told) as store:
            act(store)
    except PerdureError as error:
        return error
    return None


@pytest.mark.parametrize("what", HEADS)
def test_a_memory_whose_head_or_records_were_changed_is_corrupt_to_all_that_need_it_and_to_nobody_else(
    name, place, what, tmp_path
):
    damage(name, place, HEADS[what])
    address, told = place
    for act in READING.values():
        assert isinstance(found(place, act), Corrupt)
    for act in OTHERS.values():
        assert not isinstance(found(place, act), Busy)
    assert found(place, lambda store: store.memory("ann").list()) is None
    assert not verify(address, **told).ok
    with pytest.raises(Corrupt):
        copy(address, tmp_path / "copy", verify=False, **told)
    assert isinstance(found(place, lambda store: store.purge()), Corrupt)
    exported = found(place, lambda store: store.export(tmp_path / "all.jsonl"))
    assert isinstance(exported, Corrupt) or what == "its first record zeroed"  # by which it is found


@pytest.mark.parametrize("what", HEADS)
def test_a_configuration_whose_head_or_records_were_changed_is_corrupt_and_keeps_nobody_waiting(
    name, place, what
):
    damage(name, place, HEADS[what], space=3)
    for act in (lambda store: store.config, lambda store: store.memory().list(), *OTHERS.values()):
        assert not isinstance(found(place, act), Busy)
    assert not verify(place[0], **place[1]).ok


def test_a_tenant_of_another_epoch_than_its_memories_keeps_nobody_waiting(name, place, tmp_path):
    damage(name, place, EPOCH)
    for act in (*READING.values(), *OTHERS.values()):
        assert not isinstance(found(place, act), Busy)
    assert isinstance(found(place, lambda store: store.export(tmp_path / "all.jsonl")), Corrupt)
    with pytest.raises(Corrupt):
        copy(place[0], tmp_path / "copy", verify=False, **place[1])
    assert not verify(place[0], **place[1]).ok


def test_a_record_that_somebody_zeroed_under_an_open_store_is_damage_and_no_erasure(name, place):
    address, told = place
    with Store.open(address, **told) as store:
        assert store.memory().recall("zebra") == []  # loads what is asked for, and no fact
        damage(name, place, HEADS["its last record zeroed"])
        for act in ("recall", "list", "get", "forget"):
            with pytest.raises(Corrupt, match="zeroed without a removal"):
                READING[act](store)


def test_a_first_record_that_somebody_zeroed_in_a_file_is_damage_too(tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.memory().remember("tea", id="drink")
    with apsw.Connection(str(tmp_path / "store" / "gen-1.db")) as db:
        db.execute("UPDATE rec SET data = x'', ck = zeroblob(16) WHERE space = 1 AND seq = 1")
    for act in READING.values():
        with Store.open(tmp_path / "store") as store, pytest.raises(Corrupt):
            act(store)
