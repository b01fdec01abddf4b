"""Erasures where an external key service holds the keys: pending until every holder has confirmed."""

from __future__ import annotations

import pytest

from key_service import Service, ServiceKeystore
from perdure import Store, Unavailable
from perdure.databases import delete_tenant
from perdure.log.postgres import PostgresLog
from perdure.log.postgres.sealing import RECORDS_MAX
from perdure.log.protocol import Cached
from postgres_server import fresh_address


@pytest.fixture
def service(tmp_path):
    service = Service(f"{tmp_path}/s", slow=True)
    yield service
    service.stop()


@pytest.fixture
def open_store(service):
    address, opened = fresh_address(), []

    def open_store():
        opened.append(Store.open(address, tenant="acme", keystore=ServiceKeystore(service.place)))
        return opened[-1]

    open_store.address = address
    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    store = open_store()
    memory = store.memory("ann")
    for name in ("a", "b", "c"):
        memory.remember(f"the words of {name}", id=name)
    return store


def steps(certificate):
    return {step.name: step.done for step in certificate.steps}


def test_a_forget_is_pending_until_every_holder_has_confirmed(store, service):
    memory = store.memory("ann")
    gone = memory.forget(ids=["a"])
    assert gone.pending
    assert memory.get("a") is None
    assert steps(gone.certificate) == {"replaced": True, "resealed": True, "destroyed": False}
    assert store.health().erasure_pending
    [unfinished] = store.check_certificate(gone.certificate)
    assert "has not confirmed that the data keys of what was erased are destroyed" in unfinished.message
    service.confirm()
    assert store.check_certificate(gone.certificate) == ()
    assert not store.health().erasure_pending


def test_the_next_operation_on_any_server_finishes_what_is_pending(store, service, open_store):
    assert store.memory("ann").forget(ids=["a"]).pending
    service.confirm()
    other = open_store()
    assert other.health().erasure_pending
    again = other.memory("ann").forget(ids=["a"])
    assert (again.forgotten, again.pending) == ((), False)
    assert not store.health().erasure_pending


@pytest.mark.parametrize("erase", ["purge", "forget with purge", "erase"])
def test_a_purge_is_pending_until_the_keys_of_before_are_confirmed_gone(store, service, erase):
    calls = {
        "purge": store.purge,
        "forget with purge": lambda: store.memory("ann").forget(ids=["a"], purge=True),
        "erase": lambda: store.erase("ann"),
    }
    done = calls[erase]()
    assert done.pending
    assert not steps(done.certificate)["destroyed"]
    assert steps(done.certificate)["rewritten"]
    assert store.health().erasure_pending
    service.confirm()
    assert store.check_certificate(done.certificate) == ()
    assert not store.health().erasure_pending


def test_a_tenant_that_is_deleted_stays_buried_until_every_holder_has_confirmed(store, service, open_store):
    store.close()
    log = PostgresLog.open(open_store.address, tenant="acme", keystore=ServiceKeystore(service.place))
    dropped = log.drop("audit")
    assert (dropped.existed, dropped.pending) == (True, True)
    assert service.holds() > 0
    keystore = ServiceKeystore(service.place)
    assert delete_tenant(open_store.address, "acme", keystore=keystore).pending
    service.confirm()
    assert service.holds() == 0
    assert not delete_tenant(open_store.address, "acme", keystore=keystore).pending
    assert open_store().spaces() == []


def test_a_service_that_is_down_stops_what_needs_a_key_and_nothing_else(store, service):
    memory = store.memory("ann")
    before = memory.list().items
    service.stop()
    assert (store.health().status, store.health().writable) == ("unavailable", False)
    assert "key service" in store.health().message
    assert memory.list().items == before
    assert [space.principal for space in store.spaces()] == ["ann"]
    assert memory.remember("a telling whose key was made before", id="d").outcome == "created"

    def fill():
        for number in range(40):  # more spaces than keys were made ahead
            store.memory(f"new {number}").remember("words")

    with pytest.raises(Unavailable, match="key service"):
        fill()
    service.start()
    assert store.memory("new 39").remember("words").outcome == "created"
    assert memory.get("d").text == "a telling whose key was made before"


def test_what_is_erased_while_the_service_is_down_is_erased_and_its_keys_go_later(store, service):
    memory = store.memory("ann")
    memory.forget(ids=["a"])
    service.confirm()
    service.stop()
    gone = memory.forget(ids=["b"])
    assert (gone.forgotten, gone.pending) == (("b",), True)
    assert store.health().erasure_pending
    service.start()
    service.slow = False
    assert not memory.forget(ids=["b"]).pending
    assert store.check_certificate(gone.certificate) == ()


def test_a_store_that_is_opened_while_the_service_is_down_says_so(open_store, store, service):
    service.stop()
    with pytest.raises(Unavailable, match="check that it runs"):
        open_store()
    service.start()


def test_another_server_drops_its_keys_when_it_sees_an_erasure(store, service, open_store):
    other = open_store()
    theirs = other.memory("ann")
    assert theirs.get("b").text == "the words of b"
    store.memory("ann").forget(ids=["a"])
    service.confirm()
    before = service.calls
    assert theirs.get("b").text == "the words of b"
    assert service.calls > before, "it asked for keys again, and was given none that was destroyed"
    assert theirs.get("a") is None


def test_a_data_key_is_for_256_records_at_most():
    assert RECORDS_MAX == 256


def test_a_cache_that_takes_the_place_of_another_leaves_nothing_pending(service):
    service.slow = False
    log = PostgresLog.open(fresh_address(), tenant="acme", keystore=ServiceKeystore(service.place))
    space = log.create_space(b"n" * 16, b"first")
    for blob in (b"one", b"two", b"three"):
        log.put_cache(space, "state", Cached(log.head(space), blob))
        assert not log.scrub_pending()
    assert log.get_cache(space, "state").blob == b"three"
    log.close()


def test_without_a_keystore_no_erasure_is_ever_finished_and_its_certificate_says_why():
    with Store.open(fresh_address(), tenant="acme", keystore="off", secret=b"s" * 32) as store:
        memory = store.memory("ann")
        memory.remember("the words of a", id="a")
        assert not store.health().erasure_pending
        gone = memory.forget(ids=["a"])
        assert steps(gone.certificate) == {"replaced": True, "scrubbed": False}
        assert any("nothing in them is sealed" in place for place in gone.certificate.outside)
        purged = store.purge()
        assert steps(purged.certificate) == {"rewritten": True, "overwritten": False}
        for certificate in (gone.certificate, purged.certificate):
            [told] = store.check_certificate(certificate)
            assert "lay unencrypted in the database" in told.message
        assert store.health().erasure_pending
