"""The folder of many tenants' stores is no store."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, Store


def test_a_root_of_tenants_is_not_opened_as_a_store(tmp_path):
    (tmp_path / "perdure.tenants").touch()
    with pytest.raises(InvalidRequest, match="many tenants") as caught:
        Store.open(tmp_path)
    assert caught.value.field == "path"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perdure.tenants"]
