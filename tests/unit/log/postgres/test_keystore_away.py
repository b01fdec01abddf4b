"""While the keystore is away an erasure is carried out and pending, or refused with nothing erased; never in between."""

from __future__ import annotations

import pytest

from perdure import Store, Unavailable
from postgres_server import fresh_address

NAMES = [f"fact-{number}" for number in range(6)]


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


@pytest.fixture
def store(keys):
    with Store.open(fresh_address(), keystore=keys) as store:
        for name in NAMES:
            store.memory().remember(name, id=name)
        yield store


def ids(store):
    return [fact.id for fact in store.memory().list().items]


def test_a_forget_without_a_fresh_key_is_refused_and_nothing_is_pending(store, keys):
    keys.rename(keys.with_name("away"))
    with pytest.raises(Unavailable, match="nothing was erased"):
        store.memory().forget(ids=NAMES[:1])
    with pytest.raises(Unavailable, match="nothing was purged"):
        store.purge()
    assert ids(store) == NAMES
    assert not store.health().erasure_pending
    keys.with_name("away").rename(keys)
    assert not store.memory().forget(ids=NAMES[:1]).pending


def test_a_forget_with_keys_ahead_is_carried_out_and_pending_until_the_keystore_is_back(store, keys):
    assert not store.memory().forget(ids=NAMES[:1]).pending  # has the keys of the audit made as well
    keys.rename(keys.with_name("away"))
    assert store.memory().forget(ids=NAMES[1:2]).pending
    assert ids(store) == NAMES[2:]
    assert store.health().erasure_pending
    with pytest.raises(Unavailable):
        store.purge()
    assert ids(store) == NAMES[2:]
    keys.with_name("away").rename(keys)
    assert not store.memory().forget(ids=NAMES[2:3]).pending
    assert not store.health().erasure_pending
