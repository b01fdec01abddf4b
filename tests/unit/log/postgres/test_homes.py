"""A copy of a database opens for nobody until it is adopted: with the keystore of the original it would destroy its data."""

from __future__ import annotations

import shutil
from typing import NamedTuple

import psycopg
import pytest
from bench.postgres_server import Server

from perdure import Store, Unavailable, verify
from perdure.databases import Lookout, Migrated, delete_tenant, migrate
from perdure.log.postgres.migrating import grant, newest
from perdure.log.postgres.migrating import migrate as bring_up
from perdure.log.postgres.queries import migrations
from postgres_server import ROLE, await_replay, fresh_database, shared_server, standby_of
from unit.log.postgres.test_migrations import CLUSTER
from unit.server.databases import app_on, ask, ready

OWNER = "home_owner"
PATIENCE_S = 60


class Place(NamedTuple):
    """A database whose tables say that they are of it, and the keystore of its tenants."""

    server: Server
    name: str
    keys: object

    @property
    def address(self):
        return self.server.address(self.name, ROLE)

    @property
    def owner(self):
        return self.server.address(self.name)

    def open(self, keys=None):
        return Store.open(self.address, tenant="acme", keystore=keys or self.keys)

    def at(self, name):
        return self._replace(name=name)


def placed(server, keys):
    """Return a database of a server, with a tenant in it."""
    place = Place(server, fresh_database(server), keys)
    migrate(place.owner)
    with place.open() as store:
        store.memory("ann").remember_many([{"text": f"heron {n}", "id": f"h{n}"} for n in range(3)])
    return place


@pytest.fixture
def place(tmp_path):
    return placed(shared_server(), tmp_path / "keys")


def home_of(place):
    told = "SELECT version, home FROM perdure.schema_version ORDER BY version"
    [(_, home), *others] = place.server.execute(told, place.name)
    assert {other for _, other in others} <= {None}
    return home


def present_home(place):
    number = "(SELECT system_identifier FROM pg_control_system())"
    told = f"SELECT {number} || '/' || oid FROM pg_database WHERE datname = current_database()"
    return place.server.execute(told, place.name)[0][0]


def files_of(keys):
    return {file.name: file.read_bytes() for file in keys.iterdir()}


def rows_of(place):
    """Return all that a refused call might have written."""
    return {
        table: place.server.execute(f"SELECT count(*) FROM perdure.{table}", place.name)
        for table in ("tenant", "naming", "record", "key_note")
    }


def facts_of(store):
    return sorted(fact.id for fact in store.memory("ann").list().items)


def made_like(place):
    return place.at(place.server.new_database(place.name))


def dumped_and_restored(place):
    copy = place.at(f"{place.name}_restored")
    dump = str(place.server.root / f"{copy.name}.dump")
    place.server.run("pg_dump", "--format=custom", f"--file={dump}", place.owner)
    place.server.execute(f"CREATE DATABASE {copy.name}")
    place.server.run("pg_restore", f"--dbname={copy.owner}", dump)
    return copy


@pytest.fixture(params=[made_like, dumped_and_restored])
def copy(request, place):
    made = request.param(place)
    yield made
    place.server.execute(f"DROP DATABASE {made.name} WITH (FORCE)")


def refused(work):
    with pytest.raises(Unavailable, match="perdure migrate --adopt") as told:
        work()
    assert told.value.details == {"kind": "copy"}


def test_the_tables_say_which_database_they_are_of(place):
    assert home_of(place) == present_home(place)
    with place.open() as store:
        assert facts_of(store) == ["h0", "h1", "h2"]


def test_who_opens_the_first_store_notes_it_too(tmp_path):
    server = shared_server()
    place = Place(server, server.new_database(), tmp_path / "keys")
    with Store.open(place.owner, tenant="acme", keystore=place.keys):
        assert home_of(place) == present_home(place)


def test_a_copy_is_refused_and_neither_it_nor_the_keystore_is_changed(copy, tmp_path):
    keys, rows = files_of(copy.keys), rows_of(copy)
    for work in (
        copy.open,
        lambda: Store.open(copy.address, tenant="another", keystore=copy.keys),
        lambda: copy.open(tmp_path / "none"),
        lambda: delete_tenant(copy.address, "acme", keystore=copy.keys),
        lambda: delete_tenant(copy.address, "nobody", keystore=copy.keys),
        lambda: verify(copy.address, tenant="acme", keystore=copy.keys),
        lambda: Lookout(copy.address).check(),
    ):
        refused(work)
    assert (files_of(copy.keys), rows_of(copy)) == (keys, rows)
    assert not (tmp_path / "none").exists()


def test_the_original_is_not_troubled_by_its_copy(place, copy):
    refused(lambda: delete_tenant(copy.address, "acme", keystore=copy.keys))
    with place.open() as store:
        assert facts_of(store) == ["h0", "h1", "h2"]
        assert not store.memory("ann").forget(ids=["h0"]).pending
        assert store.verify().ok


def test_a_copy_that_was_adopted_opens_with_its_own_keystore_and_the_original_as_before(
    place, copy, tmp_path
):
    own = tmp_path / "own"
    shutil.copytree(place.keys, own)
    assert migrate(copy.owner) == Migrated(newest(), newest(), is_copy=True)
    refused(copy.open)
    for _ in range(2):
        assert migrate(copy.owner, adopt=True) == Migrated(newest(), newest())
    assert home_of(copy) == present_home(copy) != home_of(place)
    with copy.open(own) as store:
        assert not store.memory("ann").forget(ids=["h1"]).pending
        assert facts_of(store) == ["h0", "h2"]
    assert not delete_tenant(copy.address, "acme", keystore=own).pending
    with place.open() as store:
        assert facts_of(store) == ["h0", "h1", "h2"]
        assert store.verify().ok


def test_a_copy_of_a_copy_that_was_adopted_is_a_copy(place):
    one = made_like(place)
    migrate(one.owner, adopt=True)
    refused(made_like(one).open)


def test_to_adopt_what_is_no_copy_changes_nothing(place):
    before = home_of(place)
    assert migrate(place.owner, adopt=True) == Migrated(newest(), newest())
    assert home_of(place) == before


def test_only_the_owner_of_the_tables_may_adopt(place):
    copy = made_like(place)
    assert migrate(copy.address).is_copy
    with pytest.raises(Unavailable, match="as the role that owns the tables"):
        migrate(copy.address, adopt=True)
    refused(copy.open)


def test_a_server_of_a_copy_does_not_start_and_one_that_runs_is_not_ready(place):
    app = app_on(place.address, place.keys)
    try:
        assert ready(app) == (200, "ok")
        place.server.execute("UPDATE perdure.schema_version SET home = '7/7' WHERE version = 1", place.name)
        assert ready(app) == (503, "unavailable")
        refused(app.engine.check)
        reply = ask(app, "memory/list", {}, tenant="acme")
        assert (reply.status_code, reply.json()["error"]["details"]) == (503, {"kind": "copy"})
        assert migrate(place.owner, adopt=True).is_copy is False
        assert ask(app, "memory/list", {}, tenant="acme").status_code == 200
        assert ready(app) == (200, "ok")
    finally:
        app.close()


def test_a_database_that_is_renamed_is_the_same(place):
    renamed = place.at(f"{place.name}_renamed")
    place.server.execute(f"ALTER DATABASE {place.name} RENAME TO {renamed.name}")
    with renamed.open() as store:
        assert facts_of(store) == ["h0", "h1", "h2"]


@pytest.mark.slow
def test_a_server_that_is_started_anew_and_a_standby_that_is_promoted_are_the_same_database(tmp_path):
    primary = Server({"fsync": "off"})
    standby = None
    try:
        place = placed(primary, tmp_path / "keys")
        standby = standby_of(primary, {"fsync": "off"})
        primary.kill()
        primary.start()
        with place.open() as store:
            store.memory("ann").remember("heron 3", id="h3")
        await_replay(primary, standby, PATIENCE_S)
        with place._replace(server=standby).open() as store:
            assert facts_of(store) == ["h0", "h1", "h2", "h3"]
        primary.kill()
        standby.execute("SELECT pg_promote()")
        with place._replace(server=standby).open() as store:
            assert not store.memory("ann").forget(ids=["h0"]).pending
            assert facts_of(store) == ["h1", "h2", "h3"]
    finally:
        if standby is not None:
            standby.stop()
        primary.stop()


@pytest.fixture
def owned(tmp_path):
    """A database of an owner that is no superuser, with nothing in it."""
    server = shared_server()
    fresh_database()  # so that the role of stores is there
    name = server.new_database()
    server.execute(f"CREATE ROLE {OWNER} LOGIN")
    server.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}")
    yield Place(server, name, tmp_path / "keys")
    server.execute(f"REASSIGN OWNED BY {OWNER} TO postgres", name)
    server.execute(f"DROP OWNED BY {OWNER} CASCADE", name)
    server.execute(f"DROP ROLE {OWNER}")


ASKING = "EXECUTE ON FUNCTION pg_control_system()"


def test_an_owner_that_is_no_superuser_notes_the_home_and_adopts(owned):
    owner = owned.server.address(owned.name, OWNER)
    assert not migrate(owner, role=ROLE).is_copy
    assert home_of(owned) == present_home(owned)
    owned.server.execute("UPDATE perdure.schema_version SET home = '7/7' WHERE version = 1", owned.name)
    refused(owned.open)
    migrate(owner, adopt=True)
    with owned.open():
        assert home_of(owned) == present_home(owned)


def test_where_the_owner_may_not_ask_for_the_home_none_is_noted_until_he_may(owned):
    owner = owned.server.address(owned.name, OWNER)
    owned.server.execute(f"REVOKE {ASKING} FROM PUBLIC", owned.name)
    assert not migrate(owner, role=ROLE).is_copy
    assert home_of(owned) is None
    with pytest.raises(Unavailable, match="GRANT EXECUTE ON FUNCTION"):
        migrate(owner, adopt=True)
    with owned.open() as store:
        store.memory("ann").remember("tea")
    owned.server.execute(f"GRANT {ASKING} TO {OWNER}", owned.name)
    migrate(owner)
    assert home_of(owned) == present_home(owned)


def test_a_role_that_may_not_ask_for_the_home_opens_a_copy(place):
    copy = made_like(place)
    copy.server.execute(f"REVOKE {ASKING} FROM PUBLIC", copy.name)
    with copy.open() as store:
        assert facts_of(store) == ["h0", "h1", "h2"]
    copy.server.execute(f"GRANT {ASKING} TO {ROLE}", copy.name)
    refused(copy.open)


def test_who_may_not_note_the_home_migrates_tables_of_this_version_as_before(owned):
    owner = owned.server.address(owned.name, OWNER)
    migrate(owner, role=ROLE)
    owned.server.execute("UPDATE perdure.schema_version SET home = NULL", owned.name)
    assert migrate(owned.address) == Migrated(newest(), newest())
    assert home_of(owned) is None


@pytest.mark.parametrize("version", range(1, newest()))
def test_tables_of_every_version_before_say_it_once_they_are_migrated(owned, version):
    owner = owned.server.address(owned.name, OWNER)
    with psycopg.connect(owner) as connection:
        for number, text in migrations()[:version]:
            connection.execute(text.encode(), prepare=False)
            connection.execute("INSERT INTO perdure.schema_version (version) VALUES (%s)", (number,))
    assert migrate(owner, role=ROLE) == Migrated(version, newest(), ROLE)
    assert home_of(owned) == present_home(owned)
    with owned.open() as store:
        store.memory("ann").remember("tea")
    copy = made_like(owned)
    refused(copy.open)
    owned.server.execute(f"DROP DATABASE {copy.name} WITH (FORCE)")  # which the owner has a part of


def test_a_distributed_database_has_no_home_as_each_node_is_another_server(tmp_path):
    server = shared_server()
    place = Place(server, server.new_database(), tmp_path / "keys")
    fresh_database()  # so that the role is there
    server.execute(CLUSTER, place.name)
    extension = "oid, extname, extowner, extnamespace, extrelocatable, extversion"
    server.execute(
        f"INSERT INTO pg_extension ({extension}) VALUES (99999, 'citus', 10, 2200, false, '1')", place.name
    )
    with psycopg.connect(place.owner, autocommit=True) as connection:
        bring_up(connection)
        grant(connection, ROLE)
    assert home_of(place) is None
    server.execute("UPDATE perdure.schema_version SET home = '7/7' WHERE version = 1", place.name)
    with place.open() as store:  # of a dump that was restored there
        store.memory("ann").remember("tea")
    assert not migrate(place.owner, adopt=True).is_copy
    assert home_of(place) is None
