"""The tables are made, brought up and granted; what is wrong with them is said with what to do."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import perdure
from perdure import Store, databases
from perdure.errors import Busy, Unavailable
from perdure.log.postgres import connections, migrating
from perdure.log.postgres.failures import translated
from perdure.log.postgres.migrating import TABLES, distribute, grant, migrate, newest, present_tables
from perdure.log.postgres.queries import migrations
from postgres_server import ROLE, Server, fresh_database, shared_server

MIGRATE = """
import sys, psycopg
from perdure.log.postgres.migrating import migrate
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    print(*migrate(connection))
"""


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def database(server) -> str:
    """One with nothing in it."""
    return server.new_database()


def connect(server, database, user="postgres"):
    return psycopg.connect(server.address(database, user), autocommit=True)


def tables(server, database):
    found = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'perdure'", database)
    return sorted(name for (name,) in found)


def test_the_tables_are_made_from_nothing_and_then_are_there(server, database):
    with connect(server, database) as connection:
        assert present_tables(connection).version == 0
        assert migrate(connection) == (0, newest())
        assert present_tables(connection).version == newest()
        assert migrate(connection) == (newest(), newest())
    assert tables(server, database) == sorted((*TABLES, "schema_version"))


def test_processes_that_make_them_at_once_all_succeed(server, database):
    address = server.address(database)
    source = str(Path(perdure.__file__).parents[1])

    def run(_):
        told = [sys.executable, "-c", MIGRATE, address]
        return subprocess.run(told, capture_output=True, text=True, check=False, env={"PYTHONPATH": source})

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(run, range(4)))
    assert [one.stderr for one in done if one.returncode] == []
    assert {one.stdout.split()[1] for one in done} == {str(newest())}
    assert server.execute("SELECT version FROM perdure.schema_version ORDER BY 1", database) == [
        (number,) for number in range(1, newest() + 1)
    ]


def test_threads_that_open_stores_in_an_empty_database_all_succeed(server, database, tmp_path):
    def open_one(number):
        with Store.open(server.address(database), tenant=f"t{number}", keystore=tmp_path / "keys") as store:
            store.memory().remember("one")
            return store.stats().facts

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(open_one, range(6))) == [1] * 6


def test_one_tenant_that_many_make_at_once_is_one(server, tmp_path):
    address = server.address(fresh_database(), ROLE)

    def open_one(number):
        with Store.open(address, tenant="one", keystore=tmp_path / "keys") as store:
            store.memory().remember("one", id=str(number))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(open_one, range(6)))
    with Store.open(address, tenant="one", keystore=tmp_path / "keys") as store:
        assert store.stats().facts == 6


def test_a_migration_that_fails_leaves_nothing(server, database):
    server.execute("CREATE SCHEMA perdure", database)
    server.execute("CREATE TABLE perdure.space_name (something int8)", database)  # as an index is called
    with connect(server, database) as connection, pytest.raises(Unavailable):
        migrate(connection)
    assert tables(server, database) == ["space_name"]


def test_tables_of_a_newer_version_are_left_alone(server, tmp_path):
    database = fresh_database()
    server.execute(f"INSERT INTO perdure.schema_version VALUES ({newest() + 1})", database)
    with pytest.raises(
        Unavailable, match=rf"version {newest() + 1}, this library reads up to {newest()}: upgrade perdure"
    ):
        Store.open(server.address(database, ROLE), keystore=tmp_path / "keys")
    with connect(server, database) as connection, pytest.raises(Unavailable, match="upgrade perdure"):
        migrate(connection)
    assert server.execute("SELECT count(*) FROM perdure.tenant", database) == [(0,)]


def test_tables_of_an_older_version_are_to_be_migrated(server, tmp_path):
    database = fresh_database()
    server.execute(f"DELETE FROM perdure.schema_version WHERE version = {newest()}", database)
    with pytest.raises(Unavailable, match="run perdure migrate"):
        Store.open(server.address(database, ROLE), keystore=tmp_path / "keys")


def test_a_role_that_may_make_no_tables_is_told_what_to_do(server, database, tmp_path):
    fresh_database()  # so that the role is there
    with pytest.raises(Unavailable) as refused:
        Store.open(server.address(database, ROLE), keystore=tmp_path / "keys")
    assert "perdure migrate" in refused.value.message
    assert tables(server, database) == []


def test_a_role_that_was_granted_nothing_is_told_what_to_do(server, tmp_path):
    database = fresh_database()
    server.execute("DROP ROLE IF EXISTS stranger")
    server.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(Unavailable, match="perdure migrate --role") as refused:
        Store.open(server.address(database, "stranger"), keystore=tmp_path / "keys")
    assert "42501" in refused.value.message


@pytest.mark.parametrize("name", ["plain", "With Capitals", 'quo"te; DROP TABLE perdure.record; --'])
def test_a_role_of_any_name_can_be_granted_what_a_store_needs(server, tmp_path, name):
    database = fresh_database()
    quoted = '"' + name.replace('"', '""') + '"'
    server.execute(f"DROP ROLE IF EXISTS {quoted}")
    server.execute(f"CREATE ROLE {quoted} LOGIN")
    try:
        with connect(server, database) as connection:
            grant(connection, name)
            grant(connection, name)
        assert len(tables(server, database)) == len(TABLES) + 1
        found = server.execute(
            "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee = "
            f"'{name}' AND table_schema = 'perdure'",
            database,
        )
        assert found == [(4 * len(TABLES) + 1,)]
    finally:
        server.execute(f"DROP OWNED BY {quoted}", database)
        server.execute(f"DROP ROLE {quoted}")


@pytest.fixture
def first(server, database):
    """A database with the tables of version 1, which a role that is no superuser owns."""
    server.execute("DROP ROLE IF EXISTS first_owner")
    server.execute("CREATE ROLE first_owner LOGIN")
    server.execute(f"GRANT CREATE ON DATABASE {database} TO first_owner")
    with connect(server, database, "first_owner") as connection:
        [(version, text), *_] = migrations()
        connection.execute(text.encode(), prepare=False)
        connection.execute("INSERT INTO perdure.schema_version VALUES (%s)", (version,))
    yield database
    server.execute("DROP OWNED BY first_owner CASCADE", database)
    server.execute("DROP ROLE first_owner")


def test_a_role_that_was_granted_what_a_store_needs_has_it_after_a_migration(server, first, tmp_path):
    fresh_database()  # so that the role is there
    server.execute(f"GRANT USAGE ON SCHEMA perdure TO {ROLE}", first)
    told = f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA perdure TO {ROLE}"
    server.execute(told, first)
    with connect(server, first, "first_owner") as connection:
        assert migrate(connection) == (1, newest())
    with Store.open(server.address(first, ROLE), keystore=tmp_path / "keys") as store:
        store.memory().remember("tea")
        assert store.stats().facts == 1


def test_a_migration_that_died_before_it_granted_anew_is_made_up_for_by_the_next(
    server, first, tmp_path, monkeypatch
):
    fresh_database()  # so that the role is there
    server.execute(f"GRANT USAGE ON SCHEMA perdure TO {ROLE}", first)
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA perdure TO {ROLE}", first)
    with connect(server, first, "first_owner") as connection:
        with monkeypatch.context() as dying:
            dying.setattr(migrating, "grant", lambda *_: sys.exit())
            with pytest.raises(SystemExit):
                migrate(connection)
        assert migrate(connection) == (newest(), newest())
    with Store.open(server.address(first, ROLE), keystore=tmp_path / "keys") as store:
        store.memory().remember("tea")
        assert store.stats().facts == 1


OF_VERSION_1 = (
    "INSERT INTO perdure.condemned (tenant, key) VALUES (%s, 7) ON CONFLICT (tenant, key) DO NOTHING",
    "SELECT key FROM perdure.condemned WHERE tenant = %s ORDER BY key",
    "DELETE FROM perdure.condemned WHERE tenant = %s AND key = ANY(ARRAY[7])",
)


@pytest.mark.parametrize("statement", OF_VERSION_1, ids=lambda told: told.split()[0])
def test_a_process_of_version_1_that_runs_on_erases_nothing_and_destroys_no_key(server, first, statement):
    fresh_database()  # so that the role is there
    server.execute(f"GRANT USAGE ON SCHEMA perdure TO {ROLE}", first)
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA perdure TO {ROLE}", first)
    tenant = "00000000-0000-0000-0000-00000000000a"
    with connect(server, first, ROLE) as running:  # it looked at the version when it was started
        running.execute("SELECT set_config('app.tenant', %s, false)", (tenant,))
        running.execute(statement, (tenant,))
        with connect(server, first, "first_owner") as connection:
            migrate(connection)
        with pytest.raises(psycopg.errors.UndefinedTable) as refused:
            running.execute(statement, (tenant,))
    assert isinstance(translated(refused.value), Unavailable)


def test_a_tenant_keeps_what_stood_for_it_as_its_identity(server, first):
    told = "'x', '', true, 0, 0, 1, 1, false, false"
    own = "00000000-0000-0000-0000-000000000007"
    server.execute(f"INSERT INTO perdure.tenant VALUES ('{own}', {told})", first)
    with connect(server, first, "first_owner") as connection:
        migrate(connection)
    assert server.execute("SELECT tenant::text, own::text FROM perdure.naming", first) == [(own, own)]


CLUSTER = """
CREATE TABLE pg_dist_partition (number serial, logicalrelid regclass, told text);
CREATE FUNCTION create_distributed_table(regclass, text, colocate_with text) RETURNS void LANGUAGE sql
    AS 'INSERT INTO pg_dist_partition (logicalrelid, told) VALUES ($1, $2 || '' '' || $3)';
CREATE FUNCTION create_reference_table(regclass) RETURNS void LANGUAGE sql
    AS 'INSERT INTO pg_dist_partition (logicalrelid, told) VALUES ($1, ''reference'')'
"""  # what of the extension citus a distribution asks for


@pytest.mark.parametrize("before", [[], ["tenant", "space", "record"]], ids=["none", "those of before"])
def test_every_table_is_distributed_that_is_not_yet_and_beside_the_first(server, database, before):
    with connect(server, database) as connection:
        migrate(connection)
        connection.execute(CLUSTER)
        for table in before:
            connection.execute("SELECT create_distributed_table(%s, 'tenant', 'x')", (f"perdure.{table}",))
        for _ in range(2):
            distribute(connection)
        told = connection.execute("SELECT logicalrelid::text, told FROM pg_dist_partition ORDER BY number")
        found = told.fetchall()[len(before) :]
    beside = dict.fromkeys(TABLES, "tenant perdure.tenant") | {"tenant": "tenant none"}
    expected = [(f"perdure.{table}", beside[table]) for table in TABLES if table not in before]
    assert found == [("perdure.schema_version", "reference"), *expected]


def test_to_grant_a_role_that_there_is_not_says_so(server):
    with connect(server, fresh_database()) as connection, pytest.raises(Unavailable):
        grant(connection, "nobody knows it")


def waiting(server):
    """Return for how many ms somebody has been waiting for a table, 0 where nobody waits."""
    asked = (
        "SELECT coalesce(max((extract(epoch FROM clock_timestamp() - query_start) * 1000)::int8), 0) "
        "FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    )
    return server.execute(asked)[0][0]


def test_a_migration_may_take_longer_than_what_a_store_says(server, first, monkeypatch):
    monkeypatch.setattr(connections, "STATEMENT_S", 1)  # far more than any other of these takes
    address, done = server.address(first, "first_owner"), []
    with psycopg.connect(server.address(first)) as reading:
        reading.execute("LOCK TABLE perdure.space IN ACCESS SHARE MODE")
        thread = threading.Thread(target=lambda: done.append(databases.migrate(address)))
        thread.start()
        while waiting(server) < 1_500:
            assert thread.is_alive(), "it was ended"
        reading.rollback()
        thread.join()
    assert [(one.before, one.version) for one in done] == [(1, newest())]


def test_a_migration_waits_for_who_keeps_a_table_for_its_time_out_and_says_so(server, first, monkeypatch):
    monkeypatch.setattr(databases, "TIMEOUT_S", 0.3)
    address = server.address(first, "first_owner")
    with psycopg.connect(server.address(first)) as reading:
        reading.execute("LOCK TABLE perdure.space IN ACCESS SHARE MODE")
        with pytest.raises(Busy, match="others kept a table"):
            databases.migrate(address)
    assert databases.migrate(address).version == newest()
