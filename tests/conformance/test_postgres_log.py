"""The PostgreSQL log keeps the contract of all logs, as a role that row-level security holds."""

from itertools import count

import pytest

from perdure import NotFound, Unavailable
from perdure.databases import delete_tenant
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.connections import acquire, release
from perdure.testing.log_suite import LogSpec
from postgres_server import fresh_address

TIMEOUT_S = 30.0  # as of a log that is told none
numbers = count(1)


@pytest.fixture(scope="module")
def address():
    """Return the address of a database in which each test has a tenant of its own; its connections stay."""
    address = fresh_address()
    database = acquire(address, TIMEOUT_S)
    yield address
    release(database)


@pytest.fixture(scope="module")
def distributed():
    """Return one to which sessions speak so that a distributed database understands."""
    address = fresh_address()
    database = acquire(address, TIMEOUT_S, distributed=True)  # all that is opened there shares it
    yield address
    release(database)


@pytest.fixture
def tenant():
    return f"acme {next(numbers)}"


class TestPostgresLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path, address, tenant):
        keystore = FileKeystore(tmp_path / "keys")
        return lambda: PostgresLog.open(address, tenant=tenant, keystore=keystore)


class TestPostgresLogWithoutKeystore(LogSpec):
    cleans = False  # what lay unencrypted in the database's files may lie in its logs and backups still

    @pytest.fixture
    def reopen(self, address, tenant):
        return lambda: PostgresLog.open(address, tenant=tenant, keystore=None, secret=b"s" * 32)


class TestPostgresLogOfDistributedSessions(LogSpec):
    """They tell the tenant in every transaction, and nothing outside of one is let through."""

    @pytest.fixture
    def reopen(self, tmp_path, distributed, tenant):
        keystore = FileKeystore(tmp_path / "keys")
        return lambda: PostgresLog.open(distributed, tenant=tenant, keystore=keystore)


def test_a_tenant_is_deleted_and_made_anew_by_distributed_sessions(tmp_path, distributed, tenant):
    keystore = FileKeystore(tmp_path / "keys")

    def made(first):
        log = PostgresLog.open(distributed, tenant=tenant, keystore=keystore)
        log.create_space(b"n" * 16, first)
        audit = log.beside("audit").open(bytes(32))
        audit.create_space(b"n" * 16, first)
        audit.close()
        return log

    old = made(b"old")
    assert not delete_tenant(distributed, tenant, keystore=keystore).pending
    with pytest.raises(NotFound):
        delete_tenant(distributed, tenant, keystore=keystore)
    new = made(b"new")
    for ask in (
        lambda: list(old.read(1, 0, 9)),
        lambda: old.note_backup(5),
        lambda: old.beside("audit").open(bytes(32)),
    ):
        with pytest.raises(Unavailable) as refused:
            ask()
        assert refused.value.details["kind"] == "gone"
    assert [entry.data for entry in new.read(1, 0, 9)] == [b"new"]
    assert (new.backups(), list(new.verify())) == ([], [])
    old.close()
    new.close()


def test_a_log_beside_and_many_tenants_are_opened_by_distributed_sessions(tmp_path, distributed, tenant):
    keystore = FileKeystore(tmp_path / "keys")
    for name in (tenant, f"not {tenant}", tenant):
        log = PostgresLog.open(distributed, tenant=name, keystore=keystore)
        beside = log.beside("audit")
        if not beside.exists():
            log.create_space(b"n" * 16, name.encode())
        audit = beside.open(bytes(32))
        assert [entry.data for entry in log.read(1, 0, 9)] == [name.encode()]
        audit.close()
        log.close()
