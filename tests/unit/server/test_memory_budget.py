"""One budget for all tenants of a worker; it says which setting a space does not fit into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import InvalidRequest
from perdure.server.app import create_app
from perdure.server.front import Front
from perdure.server.roots import make_root
from perdure.server.settings import Limits, Settings, checked_settings
from postgres_server import fresh_address
from unit.server.databases import app_on, ask, remember, texts

TENANTS = ("acme", "beta", "gamma")
FACTS = 200


class Servers:
    """Servers of the same tenants, in a root of folders or in a database."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.made: list[Front] = []
        self._directory, self._address = directory, fresh_address() if kind == "postgres" else None
        if self._address is None:
            make_root(directory / "root")

    def __call__(self, **limits: Any) -> Front:
        if self._address is None:
            settings = Settings(self._directory / "root", auth=False, limits=Limits(**limits))
            self.made.append(create_app(settings))
        else:
            self.made.append(app_on(self._address, self._directory / "keys", limits=limits))
        return self.made[-1]


@pytest.fixture(params=["folders", "postgres"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    made = Servers(request.param, tmp_path)
    yield made
    for app in made.made:
        app.close()


def fill(app: Front, tenant: str, count: int = FACTS) -> None:
    facts = [{"text": f"heron {number} of {tenant}"} for number in range(count)]
    assert ask(app, "memory/remember", {"facts": facts}, tenant=tenant).status_code == 200


def gauges(app: Front) -> dict[str, float]:
    lines = [line for line in ask(app, "/metrics").text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_all_tenants_together_take_no_more_than_the_budget_and_each_has_its_answers(servers):
    ample = servers()
    fill(ample, "acme")
    app = servers(memory_bytes=round(gauges(ample)["perdure_memory_bytes"] * 1.5))
    for tenant in TENANTS:
        fill(app, tenant)
    for tenant in TENANTS * 2:
        reply = ask(app, "memory/recall", {"query": tenant, "k": 50}, tenant=tenant)
        assert reply.status_code == 200, reply.text
        assert len(reply.json()["results"]) == 50
        told = gauges(app)
        assert told["perdure_open_stores"] == 3
        assert told["perdure_spaces_loaded"] == 1
        assert 0 < told["perdure_memory_bytes"] <= app.engine.settings.limits.memory_bytes


def test_a_space_too_large_for_a_worker_answers_busy_and_the_other_tenants_are_served(servers):
    ample, tight = servers(), servers(memory_bytes=10_000)
    fill(ample, "acme")
    assert remember(ample, "one heron", tenant="beta").status_code == 200
    for _ in range(2):
        refused = ask(tight, "memory/list", {}, tenant="acme")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        assert "memory_bytes allows 10000 for all spaces together" in refused.json()["error"]["message"]
        assert "--memory-bytes" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"]
    assert texts(tight, tenant="beta") == ["one heron"]
    assert ask(ample, "memory/list", {}, tenant="acme").status_code == 200


def test_a_single_store_in_files_is_served_whatever_it_takes(tmp_path):
    app = create_app(Settings(tmp_path / "store", auth=False, limits=Limits(memory_bytes=0)))
    try:
        fill(app, "default")
        assert ask(app, "memory/list", {}, tenant="default").status_code == 200
    finally:
        app.close()


def test_as_many_tenants_are_open_at_once_as_was_told_and_what_one_took_is_free_when_it_is_closed(servers):
    app = servers(open_tenants=1)
    for tenant in TENANTS:
        fill(app, tenant)
    told = gauges(app)
    assert (told["perdure_open_stores"], told["perdure_spaces_loaded"]) == (1, 1)
    before = told["perdure_memory_bytes"]
    assert len(texts(app, tenant="acme")) > 1
    assert gauges(app)["perdure_memory_bytes"] < 2 * before


@pytest.mark.parametrize(
    ("field", "value"),
    [("memory_bytes", -1), ("open_tenants", 0), ("open_tenants", 65_537), ("open_tenants", 1.5)],
)
def test_the_budget_is_a_number_of_bytes_and_at_least_one_tenant_is_open(tmp_path, field, value):
    with pytest.raises(InvalidRequest, match=field):
        checked_settings(Settings(tmp_path, limits=Limits(**{field: value})))
