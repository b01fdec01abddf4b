"""Tenants that earlier builds wrote into a database: migrated by an owner that is no superuser, they answer as they did."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import NamedTuple

import psycopg
import pytest

from golden.answers import NOW, answers, as_json, without_the_feed
from perdure import ManualClock, Store, Unavailable
from perdure.databases import delete_tenant, migrate
from perdure.log.postgres.queries import migrations
from perdure.opening import Opening, has_tenant
from postgres_server import ROLE, fresh_database, shared_server
from source_tree import ROOT

KEPT = sorted((ROOT / "tests" / "golden").glob("postgres-*"))
SECRET = bytes(range(32))
OWNER = "golden_owner"
TENANTS = ("acme", "plain")


class Place(NamedTuple):
    """A database as the earlier build left it, and a copy of its keystore."""

    name: str
    owner: str  # the address, as the role that owns the tables
    address: str  # as the role that stores connect as
    keys: object

    def open(self, tenant):
        told = {"keystore": self.keys} if tenant == "acme" else {"keystore": "off", "secret": SECRET}
        return Store.open(self.address, tenant=tenant, clock=ManualClock(NOW), **told)


@pytest.fixture(params=KEPT, ids=lambda kept: kept.name)
def kept(request):
    return request.param


@pytest.fixture
def expected(kept):
    return json.loads(gzip.decompress((kept / "expected.json.gz").read_bytes()))


@pytest.fixture
def place(kept, tmp_path):
    """Return the database before it is migrated; git keeps no modes of the keystore's files."""
    server = shared_server()
    fresh_database()  # so that the role of stores is there
    if not server.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{OWNER}'"):
        server.execute(f"CREATE ROLE {OWNER} LOGIN")
    database = server.new_database()
    server.execute(f"GRANT CREATE ON DATABASE {database} TO {OWNER}")
    owner = server.address(database, OWNER)
    upto = int(kept.name.rpartition("-")[2])
    with psycopg.connect(owner) as connection:
        for version, text in migrations():
            if version <= upto:
                connection.execute(text.encode(), prepare=False)
                connection.execute("INSERT INTO perdure.schema_version VALUES (%s)", (version,))
        connection.execute(f"GRANT USAGE ON SCHEMA perdure TO {ROLE}")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA perdure TO {ROLE}")
    server.execute(gzip.decompress((kept / "rows.sql.gz").read_bytes()).decode(), database)
    keys = tmp_path / "keys"
    shutil.copytree(kept / "keys", keys)
    keys.chmod(0o700)
    for file in keys.iterdir():
        file.chmod(0o600)
    return Place(database, owner, server.address(database, ROLE), keys)


@pytest.fixture
def migrated(place):
    migrate(place.owner)
    return place


def told_by(store, expected):
    told = {**answers(store), "events": [line.decode() for line in store.export_events()]}
    return as_json(told, expected)


def test_until_it_is_migrated_nobody_takes_it_for_an_empty_one(kept, place):
    asked = [
        lambda: place.open("acme"),
        lambda: delete_tenant(place.address, "acme", keystore=place.keys),
    ]
    if kept.name == "postgres-1":  # which told tenants in another place
        asked.append(lambda: has_tenant(place.address, Opening(tenant="acme")))
    else:
        assert has_tenant(place.address, Opening(tenant="acme"))
    for ask in asked:
        with pytest.raises(Unavailable, match="perdure migrate"):
            ask()


def test_once_it_is_migrated_a_copy_of_it_is_known_as_one(migrated):
    copy = shared_server().address(shared_server().new_database(migrated.name), ROLE)
    with pytest.raises(Unavailable, match="a copy"):
        Store.open(copy, tenant="acme", keystore=migrated.keys)


@pytest.mark.parametrize("tenant", TENANTS)
def test_it_answers_as_the_build_did_that_wrote_it(migrated, expected, tenant):
    with migrated.open(tenant) as store:
        told = told_by(store, expected[tenant])
        # Each later answer names this build's cursors.
        for one in (told, expected[tenant]):
            for space in one["spaces"]:
                for part in space["changes"]:
                    part.pop("cursor", None)
        assert told == expected[tenant]


@pytest.mark.parametrize("tenant", TENANTS)
def test_nothing_is_found_wrong_with_it_before_or_after_a_purge(migrated, expected, tenant):
    with migrated.open(tenant) as store:
        assert store.verify().findings == ()
        assert store.verify_events() == ()
        store.purge()
        assert store.verify().findings == ()
        assert store.verify_events() == ()
        told, wanted = (without_the_feed(one) for one in (told_by(store, expected[tenant]), expected[tenant]))
        assert told == wanted


def test_it_lives_on(migrated):
    with migrated.open("acme") as store:
        assert store.log.backups() == [1_700_000_000_000]
        memory = store.memory("ada", "work")
        memory.remember("A new entry of the ledger", id="new")
        memory.forget(ids=["cup"])
        assert not store.health().erasure_pending  # also of the key that was condemned before
    with migrated.open("acme") as store:
        memory = store.memory("ada", "work")
        assert memory.get("new").text == "A new entry of the ledger"
        assert memory.get("cup") is None
        assert store.memory().get("gone") is None
        assert store.verify().findings == ()


def test_the_snapshot_that_was_kept_is_still_one(migrated):
    with migrated.open("acme") as store:
        [number] = [one for one in store.log.spaces() if store.log.get_cache(one, "state") is not None]
        assert store.log.get_cache(number, "state").head == store.log.head(number)


def test_what_was_being_deleted_can_be_brought_to_its_end_and_the_name_used_again(migrated):
    with pytest.raises(Unavailable, match="being deleted"):
        Store.open(migrated.address, tenant="buried", keystore=migrated.keys)
    assert not delete_tenant(migrated.address, "buried", keystore=migrated.keys).pending
    with Store.open(migrated.address, tenant="buried", keystore=migrated.keys) as store:
        store.memory().remember("Cid lives in Rome")
        assert store.stats().facts == 1


def test_a_tenant_of_before_can_be_deleted_and_made_anew(migrated):
    assert not delete_tenant(migrated.address, "acme", keystore=migrated.keys).pending
    with migrated.open("acme") as store:
        assert store.stats().facts == 0
        assert store.events().items == ()
