"""The folder of many tenants' stores is no store."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, Store, salvage, verify


def test_a_root_of_tenants_is_not_opened_as_a_store(tmp_path):
    (tmp_path / "perdure.tenants").touch()
    with pytest.raises(InvalidRequest, match="many tenants") as caught:
        Store.open(tmp_path)
    assert caught.value.field == "path"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perdure.tenants"]


def test_a_root_of_tenants_is_not_verified_and_nothing_is_saved_of_it(tmp_path):
    (tmp_path / "perdure.tenants").touch()
    for look in (lambda: verify(tmp_path), lambda: salvage(tmp_path, tmp_path / "out")):
        with pytest.raises(InvalidRequest, match="many tenants"):
            look()
