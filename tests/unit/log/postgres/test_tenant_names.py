"""No tenant is made under a name that cannot be read; one that has such a name stays usable."""

from __future__ import annotations

import pytest

from perdure import Store
from perdure.databases import Lookout, delete_tenant
from perdure.errors import InvalidRequest
from perdure.log.postgres import naming
from postgres_server import fresh_address

UNREADABLE = [
    " ",
    "acme ",
    " acme",
    "\u202eabc",
    "\u200b",
    "a\u200bb",
    "a\u00adb",
    "\u0378",
    "a\u2028b",
    "a\u00a0b",
    "\ufeffa",
]


@pytest.fixture(scope="module")
def address():
    return fresh_address()


@pytest.fixture
def keys(tmp_path):
    """An empty directory of a keystore, beside tenants that have others."""
    (tmp_path / "keys").mkdir(mode=0o700)
    return tmp_path / "keys"


@pytest.mark.parametrize("name", UNREADABLE, ids=ascii)
def test_no_tenant_is_made_under_a_name_that_cannot_be_read(address, name, keys):
    with pytest.raises(InvalidRequest, match="made under such a name") as refused:
        Store.open(address, tenant=name, keystore=keys)
    assert refused.value.field == "tenant"
    assert refused.value.message.isprintable()
    with Lookout(address) as lookout:
        assert not lookout.has_tenant(name)
    assert not any(keys.iterdir())


@pytest.mark.parametrize("name", UNREADABLE, ids=ascii)
def test_a_tenant_that_has_such_a_name_can_be_opened_and_deleted(address, name, keys, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(naming, "check_new", lambda name: None)
        Store.open(address, tenant=name, keystore=keys).close()
    with Store.open(address, tenant=name, keystore=keys) as store:
        store.memory().remember("tea", id="tea")
        assert [fact.id for fact in store.memory().list().items] == ["tea"]
    assert not delete_tenant(address, name, keystore=keys).pending


@pytest.mark.parametrize("name", ["a b", "Ärzte", "東京", "..", "🍵", "a:b/c"])
def test_a_tenant_may_have_any_name_that_can_be_read(address, name, keys):
    with Store.open(address, tenant=name, keystore=keys) as store:
        store.memory().remember("tea")
