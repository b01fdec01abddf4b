"""What is committed is told as such: whatever fails in the step after it leaves that to the next operation, and loses no answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from perdure import ManualClock, Store
from perdure.errors import Unavailable
from perdure.log.postgres import PostgresLog
from perdure.log.postgres.sealing import Sealer
from postgres_server import ROLE, fresh_database, shared_server

FAILURES = {
    "as keys are doomed": "disk_full",
    "as a lock is waited for": "lock_not_available",
    "as the session is ended": "admin_shutdown",
}


@pytest.fixture
def database() -> str:
    return fresh_database()


@pytest.fixture
def open_store(database, tmp_path) -> Iterator[Callable[[], Store]]:
    opened = list[Store]()

    def open_one() -> Store:
        address = shared_server().address(database, ROLE)
        opened.append(Store.open(address, keystore=tmp_path / "keys", clock=ManualClock(1_000_000)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def fail(database: str, state: str) -> None:
    """Leave notes of writes that came to nothing, and have the database fail as they are doomed."""
    for statement in (
        "INSERT INTO perdure.key_note (tenant, key, doomed, space, epoch, erasures) "
        "SELECT tenant, 9999, false, 0, 0, 0 FROM perdure.tenant",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END $$",
        "CREATE TRIGGER refusing BEFORE UPDATE ON perdure.key_note FOR EACH ROW EXECUTE FUNCTION refuse()",
    ):
        shared_server().execute(statement, database)


def mend(database: str) -> None:
    shared_server().execute("DROP TRIGGER refusing ON perdure.key_note", database)


@pytest.mark.parametrize("how", FAILURES)
def test_a_forget_whose_last_step_fails_tells_that_it_is_pending_and_a_later_operation_ends_it(
    open_store, database, how
):
    store = open_store()
    memory = store.memory()
    memory.remember("The kettle is blue", id="kettle")
    memory.remember("The lamp is red", id="lamp")
    fail(database, FAILURES[how])
    certificate = memory.forget(ids=["kettle"]).certificate
    assert certificate is not None
    assert certificate.pending
    assert memory.get("kettle") is None
    assert store.check_certificate(certificate) != ()
    mend(database)
    assert store.check_certificate(certificate) == ()
    assert not store.log.scrub_pending()


@pytest.mark.parametrize("how", FAILURES)
def test_what_replaces_is_told_though_the_last_step_fails(open_store, database, how):
    store = open_store()
    documents = store.documents()
    documents.put("kettle", "The kettle is blue")
    fail(database, FAILURES[how])
    assert documents.put("kettle", "The kettle is green").pending
    mend(database)
    assert not documents.put("kettle", "The kettle is red").pending


def test_a_forget_that_cannot_be_certified_says_that_it_is_done(open_store, monkeypatch):
    is_away, backups = threading.Event(), PostgresLog.backups

    def asked(log):
        if is_away.is_set():
            raise Unavailable("the database could not be reached: try again")
        return backups(log)

    monkeypatch.setattr(PostgresLog, "backups", asked)
    memory = open_store().memory()
    memory.remember("The kettle is blue", id="kettle")
    is_away.set()
    with pytest.raises(Unavailable, match="is erased, but it could not be certified: the database"):
        memory.forget(ids=["kettle"])
    assert memory.get("kettle") is None


def test_a_tenant_that_is_deleted_meanwhile_is_said_to_be_gone(open_store):
    store, other = open_store(), open_store()
    store.memory().remember("The kettle is blue")
    other.delete_tenant()
    with pytest.raises(Unavailable) as told:
        store.log.scrub()
    assert told.value.details["kind"] == "gone"


def test_what_others_write_as_a_purge_begins_is_among_the_events(open_store, database, monkeypatch):
    store, other = open_store(), open_store()
    store.memory().remember("The kettle is blue", id="kettle")
    made, told = Sealer.keys_of_purge, threading.Event()

    def tell() -> None:
        other.memory().remember("The lamp is red", id="lamp")
        told.set()

    telling = threading.Thread(target=tell)

    def making(self, count, used):
        telling.start()
        while not (told.is_set() or is_waiting(database)):
            continue
        return made(self, count, used)

    monkeypatch.setattr(Sealer, "keys_of_purge", making)
    purged = store.purge()
    telling.join(20)
    assert told.is_set()
    assert not purged.certificate.pending
    types = [event.type for event in store.events(limit=100).items]
    assert [types.count(type_) for type_ in ("created", "purged")] == [2, 1]
    assert store.verify_events() == ()
    assert store.verify().ok


def is_waiting(database: str) -> bool:
    statement = f"SELECT 1 FROM pg_stat_activity WHERE datname = '{database}' AND wait_event_type = 'Lock'"
    return bool(shared_server().execute(statement, database))
