"""A server is told of a standby by an option or the environment, and only where its store is in a database."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest
from perdure.server import starting
from perdure.server.places import places_of
from perdure.server.settings import Opening, Settings

PASSWORD = "correct-horse"
ADDRESS = "postgresql:///memory?host=nowhere"


def test_a_password_of_a_standby_may_stand_in_the_environment_alone(run, monkeypatch):
    started: list[Settings] = []
    monkeypatch.setattr(starting, "start", started.append)
    told = f"postgresql://reader:{PASSWORD}@standby.example/memory"
    refused = run("serve", "--store", ADDRESS, "--replica", told)
    assert refused.code == 2
    assert "PERDURE_REPLICA" in refused.err
    assert PASSWORD not in refused.out + refused.err
    assert run("serve", "--store", ADDRESS, "--replica", ADDRESS).code == 0
    monkeypatch.setenv("PERDURE_REPLICA", told)
    assert run("serve", "--store", ADDRESS).code == 0
    assert run("serve", "--store", "folder").code == 0  # it is of databases alone
    assert [settings.opening.replica for settings in started] == [ADDRESS, told, None]
    assert PASSWORD not in repr(started)


@pytest.mark.parametrize(
    ("store", "replica"), [("folder", "postgresql:///copy"), ("postgresql:///x", "folder")]
)
def test_a_standby_is_the_address_of_a_database_and_goes_with_one(store, replica):
    with pytest.raises(InvalidRequest) as refused:
        places_of(Settings(store, opening=Opening(keystore="off" if ":" in store else None, replica=replica)))
    assert refused.value.field == "replica"
