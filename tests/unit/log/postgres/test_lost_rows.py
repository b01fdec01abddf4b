"""Rows that somebody deleted by hand: what is told of them, by whom, and that nothing is made in their place."""

from __future__ import annotations

import pytest

from perdure import Corrupt, Store, verify
from perdure.audit.audited_log import DIRECTORY
from perdure.databases import Lookout, delete_tenant
from perdure.log.postgres.tenants import PARTS, tenant_id
from postgres_server import identity_of, shared_server


@pytest.fixture
def open_store(address, tmp_path):
    return lambda: Store.open(address, tenant="acme", keystore=tmp_path / "keys")


@pytest.fixture
def acme(open_store):
    """A tenant with two memories and an audit, closed."""
    with open_store() as store:
        for who in ("ann", "bob"):
            store.memory(who).remember(f"tea of {who}")
        assert len(store.events().items) == 2


def delete(database, rows):
    assert shared_server().execute(f"DELETE FROM perdure.{rows} RETURNING 1", database)


def messages(found):
    assert not found.ok
    return [one.message for one in found.findings]


def rows_of(database):
    return [
        shared_server().execute(f"SELECT count(*) FROM perdure.{table}", database)
        for table in ("tenant", "naming", "space", "record")
    ]


@pytest.mark.usefixtures("acme")
def test_a_tenant_whose_row_is_missing_is_corrupt_and_nothing_is_made_or_deleted(
    database, address, open_store, tmp_path
):
    delete(database, f"tenant WHERE tenant = '{identity_of(address, 'acme')}'")
    before, keys = rows_of(database), sorted(path.name for path in (tmp_path / "keys").iterdir())
    told = "the row of perdure.tenant is missing that the tenant's name leads to: .* Restore backups"
    with pytest.raises(Corrupt, match=told):
        open_store()
    with Lookout(address) as lookout, pytest.raises(Corrupt, match=told):
        lookout.has_tenant("acme")
    assert "perdure.tenant is missing" in "".join(
        messages(verify(address, tenant="acme", keystore=tmp_path / "keys"))
    )
    assert rows_of(database) == before
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == keys


@pytest.mark.usefixtures("acme")
def test_a_tenant_that_lost_its_name_is_told_by_its_audit_and_none_is_made_in_its_place(
    database, address, open_store, tmp_path
):
    with open_store() as store:
        delete(database, f"naming WHERE tenant = '{tenant_id('acme')}'")
        before = rows_of(database)
        assert any(
            "the row of perdure.naming that leads to it is missing" in one for one in messages(store.verify())
        )
        assert len(store.memory("ann").list().items) == 1, "whoever has it open goes on"
    told = "the tenant's row of perdure.naming is missing, while that of its audit is there"
    with pytest.raises(Corrupt, match=told):
        open_store()
    assert told in messages(verify(address, tenant="acme", keystore=tmp_path / "keys"))[0]
    assert rows_of(database) == before


def test_what_is_beside_a_tenant_is_known_by_its_name():
    assert PARTS == (DIRECTORY,)


@pytest.mark.usefixtures("acme")
def test_a_tenant_that_is_deleted_leaves_nothing_that_passes_for_a_lost_name(address, open_store, tmp_path):
    delete_tenant(address, "acme", keystore=tmp_path / "keys")
    with open_store() as store:
        assert store.verify().ok
        assert store.memory("ann").list().items == ()


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(("lost", "kept"), [(1, "bob"), (2, "ann")], ids=["the first", "the last"])
def test_a_memory_whose_row_is_missing_is_found_by_verifying_and_the_others_go_on(
    database, address, open_store, lost, kept
):
    own = identity_of(address, "acme")
    delete(database, f"space WHERE tenant = '{own}' AND space = {lost}")
    with open_store() as store:
        for quick in (False, True):
            found = messages(store.verify(quick=quick))
            assert "the tenant counts 2 spaces, of which 1 is there" in found
        assert [fact.text for fact in store.memory(kept).list().items] == [f"tea of {kept}"]
