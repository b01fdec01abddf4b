"""Tables that somebody dropped or took the fence from: what is told of them, and that nothing is made in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from markdown_page import blocks
from perdure import Corrupt, Store, verify
from perdure.databases import Lookout, migrate
from perdure.log.postgres.migrating import TABLES
from postgres_server import ROLE, shared_server

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "scale-out.md"


@pytest.fixture
def owner(database):
    return shared_server().address(database)


@pytest.fixture
def keys(address, tmp_path):
    """The keystore of a tenant with one memory."""
    with Store.open(address, tenant="acme", keystore=tmp_path / "keys") as store:
        store.memory().remember("tea")
    return tmp_path / "keys"


def change(database, *statements):
    for statement in statements:
        shared_server().execute(statement, database)


def tables_of(database):
    return shared_server().execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'perdure' ORDER BY 1", database
    )


@pytest.mark.parametrize("table", ["schema_version", *TABLES])
def test_a_table_that_was_dropped_is_named_and_not_made_anew(database, address, owner, keys, table):
    change(database, f"DROP TABLE perdure.{table}")
    before, told = tables_of(database), rf"lacks perdure\.{table}, .* Restore backups"
    with pytest.raises(Corrupt, match=told):
        Store.open(address, tenant="acme", keystore=keys)
    for role in (None, ROLE):
        with pytest.raises(Corrupt, match=told):
            migrate(owner, role=role)
    with Lookout(address) as lookout, pytest.raises(Corrupt, match=told):
        lookout.check()
    assert tables_of(database) == before


def test_tables_whose_versions_were_deleted_are_not_made_anew(database, address, owner, keys):
    change(database, "DELETE FROM perdure.schema_version")
    with pytest.raises(Corrupt, match=r"lacks perdure\.schema_version, or what was in it"):
        Store.open(address, tenant="acme", keystore=keys)
    with pytest.raises(Corrupt, match=r"lacks perdure\.schema_version"):
        migrate(owner)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE perdure.{} DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE perdure.{} NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY own_rows ON perdure.{}",
        "ALTER POLICY own_rows ON perdure.{} USING (true)",
        "ALTER POLICY own_rows ON perdure.{} TO postgres",
        "CREATE POLICY all_rows ON perdure.{} USING (true)",
    ],
    ids=["off", "not for the owner", "no policy", "a policy of all rows", "for one role", "another policy"],
)
def test_a_table_that_row_level_security_does_not_hold_is_named_by_a_migration(
    database, owner, table, statement
):
    assert migrate(owner).doubt == ""
    change(database, statement.format(table))
    assert (
        f"row-level security does not hold perdure.{table} as perdure migrate left it" in migrate(owner).doubt
    )


def test_a_policy_that_only_narrows_opens_nothing(database, owner):
    change(database, "CREATE POLICY less ON perdure.record AS RESTRICTIVE USING (seq > 0)")
    assert migrate(owner).doubt == ""


def test_verifying_names_tables_that_row_level_security_does_not_hold_until_it_is_put_back(
    database, address, keys
):
    change(
        database,
        "ALTER TABLE perdure.record DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE perdure.space NO FORCE ROW LEVEL SECURITY",
    )
    for quick in (False, True):
        [found] = verify(address, tenant="acme", keystore=keys, quick=quick).findings
        assert "does not hold perdure.record, perdure.space as" in found.message
    [page] = [block.text for block in blocks(PAGE) if (block.language, block.needs) == ("sql", "tables")]
    for table in ("record", "space"):
        change(
            database, *page.replace("perdure.record", f"perdure.{table}").strip().removesuffix(";").split(";")
        )
    assert verify(address, tenant="acme", keystore=keys).ok
