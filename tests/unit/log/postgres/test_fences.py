"""One tenant of a database knows nothing of another: by what the log asks for, and by what the database lets it see."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import errors, sql

from perdure import Conflict, ManualClock, Store
from perdure.errors import InvalidRequest, NotFound, Unavailable, WrongKey
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.migrating import TABLES
from perdure.log.postgres.tenants import tenant_id
from perdure.log.protocol import Batch, Cached
from postgres_server import ROLE, Server, fresh_database, identity_of, shared_server

ADA, BOB = str(tenant_id("ada")), str(tenant_id("bob"))


@pytest.fixture(scope="module")
def server() -> Server:
    return shared_server()


@pytest.fixture
def database(server, tmp_path) -> str:
    """A database in which the tenant ada has a row in every table."""
    name = fresh_database()
    log = PostgresLog.open(server.address(name, ROLE), tenant="ada", keystore=FileKeystore(tmp_path / "keys"))
    log.create_space(b"n" * 16, b"first")
    head = log.append(1, log.head(1), Batch([b"one", b"two"], keys=[(b"k" * 16, 0)]))
    log.put_cache(1, "state", Cached(head, b"blob"))
    log.note_backup(5)
    log.close()
    # As when the keystore was away: a key that is still to be destroyed.
    server.execute("INSERT INTO perdure.key_note SELECT tenant, 2 FROM perdure.tenant", name)
    for table in TABLES:
        assert server.execute(f"SELECT count(*) FROM perdure.{table}", name) != [(0,)], table
    return name


@pytest.fixture(params=[BOB, "", None], ids=["another's", "an empty one", "none"])
def session(request, server, database) -> Iterator[psycopg.Connection]:
    """A session of the role that is set to another tenant, or to none."""
    with psycopg.connect(server.address(database, ROLE), autocommit=True) as connection:
        if request.param is not None:
            connection.execute("SELECT set_config('app.tenant', %s, false)", (request.param,))
        yield connection


@pytest.mark.parametrize("table", TABLES)
def test_a_session_of_another_tenant_or_of_none_reads_updates_and_deletes_no_row(
    session, server, database, table
):
    name = sql.Identifier("perdure", table)
    assert session.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall() == []
    own = ADA if table == "naming" else str(identity_of(server.address(database, ROLE), "ada"))
    asked = sql.SQL("SELECT * FROM {} WHERE tenant = {}").format(name, own)
    assert session.execute(asked).fetchall() == []
    assert session.execute(sql.SQL("UPDATE {} SET tenant = tenant").format(name)).rowcount == 0
    assert session.execute(sql.SQL("DELETE FROM {}").format(name)).rowcount == 0


@pytest.mark.parametrize("table", TABLES)
def test_a_session_of_another_tenant_or_of_none_inserts_no_row_of_this_one(session, server, database, table):
    columns = server.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'perdure' "
        f"AND table_name = '{table}' ORDER BY ordinal_position",
        database,
    )
    values = {"uuid": f"'{ADA}'", "bytea": "'x'", "text": "'x'", "boolean": "true", "bigint": "99"}
    told = ", ".join(values[kind] for _, kind in columns)
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        session.execute(f"INSERT INTO perdure.{table} VALUES ({told})".encode())


def test_no_row_can_be_given_to_another_tenant(server, database):
    with psycopg.connect(server.address(database, ROLE), autocommit=True) as connection:
        own = str(identity_of(server.address(database, ROLE), "ada"))
        connection.execute("SELECT set_config('app.tenant', %s, false)", (own,))
        assert connection.execute("SELECT count(*) FROM perdure.record").fetchone() == (3,)
        for table in TABLES:
            of = ADA if table == "naming" else own
            connection.execute("SELECT set_config('app.tenant', %s, false)", (of,))
            with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
                connection.execute(f"UPDATE perdure.{table} SET tenant = '{BOB}'".encode())


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE perdure.record",
        "ALTER TABLE perdure.record DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE perdure.record NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY own_rows ON perdure.record",
        "CREATE POLICY mine ON perdure.record USING (true)",
        "TRUNCATE perdure.record",
        "CREATE TABLE perdure.mine (a int8)",
        "INSERT INTO perdure.schema_version VALUES (99)",
        "DELETE FROM perdure.schema_version",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "CREATE INDEX mine ON perdure.record (seq)",
        "ALTER ROLE tenants BYPASSRLS",
    ],
)
def test_the_role_cannot_take_the_fence_down(server, database, statement):
    with psycopg.connect(server.address(database, ROLE), autocommit=True) as connection:
        connection.execute("SELECT set_config('app.tenant', %s, false)", (ADA,))
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(statement.encode())
        assert refused.value.sqlstate == "42501"


def test_the_role_has_what_a_store_needs_and_no_more(server, database):
    found = server.execute(
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants "
        f"WHERE grantee = '{ROLE}' AND table_schema = 'perdure'",
        database,
    )
    wanted = {(table, what) for table in TABLES for what in ("SELECT", "INSERT", "UPDATE", "DELETE")}
    assert set(found) == wanted | {("schema_version", "SELECT")}
    assert server.execute(f"SELECT has_schema_privilege('{ROLE}', 'perdure', 'CREATE')", database) == [
        (False,)
    ]


def test_the_fence_holds_the_owner_of_the_tables_too(server, tmp_path):
    name = server.new_database()
    server.execute("DROP ROLE IF EXISTS owner_of_tables")
    server.execute("CREATE ROLE owner_of_tables LOGIN")
    server.execute(f"GRANT CREATE ON DATABASE {name} TO owner_of_tables")
    address = server.address(name, "owner_of_tables")
    log = PostgresLog.open(address, tenant="ada", keystore=FileKeystore(tmp_path / "keys"))
    log.create_space(b"n" * 16, b"first")
    log.close()
    with psycopg.connect(address, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM perdure.record").fetchone() == (0,)


@pytest.mark.parametrize(("user", "told"), [("postgres", 1), (ROLE, 0)])
def test_a_role_that_no_fence_holds_is_warned_of(server, database, tmp_path, caplog, user, told):
    with caplog.at_level(logging.WARNING, "perdure.log"):
        PostgresLog.open(
            server.address(database, user), tenant="ada", keystore=FileKeystore(tmp_path / "keys")
        ).close()
    assert len([one for one in caplog.messages if "second fence between tenants is off" in one]) == told


# Through the public interface


@pytest.fixture
def stores(server, tmp_path) -> Iterator[tuple[Store, Store]]:
    """Two tenants of one database, with one keystore and the same clock."""
    address = server.address(fresh_database(), ROLE)
    how = {"keystore": tmp_path / "keys", "clock": ManualClock(1_000_000)}
    with Store.open(address, tenant="ada", **how) as ada, Store.open(address, tenant="bob", **how) as bob:
        yield ada, bob


def test_tenants_share_neither_ids_nor_counts_nor_statistics_nor_words(stores):
    ada, bob = stores
    ada.memory().remember("kettle kettle kettle", id="a", subject="s", idempotency_key="k")
    ada.documents().put("d", "the kettle")
    told = bob.memory().remember("a teapot", id="a", idempotency_key="k")
    assert told.created
    assert (told.supersedes, told.superseded_by) == ((), ())
    assert bob.memory().recall("kettle") == []
    assert [hit.text for hit in bob.memory().recall("teapot")] == ["a teapot"]
    assert bob.documents().get("d") is None
    assert (bob.stats().facts, bob.stats().spaces, ada.stats().facts) == (1, 1, 2)
    assert bob.memory().list().total == 1
    assert bob.memory().get("d") is None


def test_what_one_tenant_does_moves_no_sequence_score_or_epoch_of_another(stores):
    ada, bob = stores
    for store in stores:
        store.memory().remember("the kettle is blue", id="a")
    before = (
        bob.memory().recall("kettle", explain=True),
        bob.memory().changes(),
        bob.stats(),
        bob.log.epoch(),
    )
    ada.memory().remember_many([f"kettle {number}" for number in range(50)])
    ada.memory().forget(ids=["a"])
    ada.purge()
    after = (
        bob.memory().recall("kettle", explain=True),
        bob.memory().changes(),
        bob.stats(),
        bob.log.epoch(),
    )
    assert after == before
    assert bob.memory().remember("a second", id="b").created
    assert not bob.log.scrub_pending()


def test_a_cursor_of_one_tenant_is_none_of_another(stores):
    ada, bob = stores
    for store in stores:
        store.memory().remember_many([f"fact {number}" for number in range(6)])
    page = ada.memory().list(limit=2)
    feed = ada.memory().changes(limit=2)
    assert page.cursor is not None
    with pytest.raises((InvalidRequest, Conflict)):
        bob.memory().list(limit=2, cursor=page.cursor)
    with pytest.raises((InvalidRequest, Conflict)):
        bob.memory().changes(feed.cursor)


def test_events_and_erasures_of_one_tenant_are_not_those_of_another(stores):
    ada, bob = stores
    ada.memory("x").remember("one", id="one")
    bob.memory("x").remember("one", id="one")
    assert ada.erase("x").facts == 1
    assert [event.type for event in bob.events().items] == ["created"]
    assert bob.memory("x").get("one") is not None
    assert ada.verify().ok
    assert bob.verify().ok


def test_a_tenant_whose_keys_are_not_in_the_keystore_is_not_opened(server, database, tmp_path):
    for keystore in ("other keys", "third keys"):
        with pytest.raises(WrongKey):
            PostgresLog.open(
                server.address(database, ROLE), tenant="ada", keystore=FileKeystore(tmp_path / keystore)
            )


def test_a_log_beside_another_tenants_is_its_own(stores):
    ada, bob = stores
    ada.memory().remember("one", id="one")
    ada.memory().forget(ids=["one"])
    assert ada.stats().records > 0
    inner = bob.log.inner
    assert not inner.beside("audit").exists()
    with pytest.raises((NotFound, Conflict, Unavailable)):
        inner.append(1, ada.log.head(1), Batch([b"x"]))


def test_copies_that_processes_note_at_once_are_all_noted(server, database, tmp_path):
    def open_log(number):
        keystore = FileKeystore(tmp_path / "keys")
        # A pool of its own, as another process has.
        return PostgresLog.open(
            server.address(database, ROLE), tenant="ada", keystore=keystore, timeout_s=20 + number
        )

    logs, at_once = [open_log(number) for number in range(4)], threading.Barrier(4)

    def note(place):
        at_once.wait()
        for number in range(10):
            logs[place].note_backup(100 * place + number)

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(note, range(4)))
        noted = logs[0].backups()
    finally:
        for log in logs:
            log.close()
    assert sorted(noted) == sorted([5, *(100 * place + number for place in range(4) for number in range(10))])
