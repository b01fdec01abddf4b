"""A worker says which setting a space of a database does not fit into."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest
from perdure.server.settings import Limits, Settings, checked_settings
from postgres_server import fresh_address
from unit.server.databases import app_on, ask, remember, texts


def test_a_space_too_large_for_a_worker_answers_busy_and_the_others_are_served(tmp_path):
    address, keys = fresh_address(), tmp_path / "keys"
    ample, tight = app_on(address, keys), app_on(address, keys, limits={"memory_bytes": 10_000})
    try:
        facts = [{"text": f"heron {number} by the lake"} for number in range(200)]
        assert ask(ample, "memory/remember", {"facts": facts}, principal="large").status_code == 200
        assert remember(ample, "one heron", principal="small").status_code == 200
        refused = ask(tight, "memory/list", {}, principal="large")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        assert "--memory-bytes" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"]
        assert texts(tight, principal="small") == ["one heron"]
        assert ask(ample, "memory/list", {}, principal="large").status_code == 200
    finally:
        ample.close()
        tight.close()


def test_the_budget_is_a_number_of_bytes(tmp_path):
    with pytest.raises(InvalidRequest, match="memory_bytes"):
        checked_settings(Settings(tmp_path, limits=Limits(memory_bytes=-1)))
