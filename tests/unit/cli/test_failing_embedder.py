"""An embedder that cannot be reached, at the command line: the reply says so, once."""

from __future__ import annotations

import json
import logging

import pytest

# Nobody listens on the port of discard; retries would only take time.
NOWHERE = {
    "kind": "http",
    "url": "http://127.0.0.1:9/v1",
    "modelName": "none",
    "dimension": 3,
    "retries": 0,
    "timeoutMs": 1_000,
}


@pytest.fixture
def nowhere(tmp_path):
    path = tmp_path / "nowhere.json"
    path.write_text(json.dumps({"embedder": NOWHERE}))
    return ("--config", str(path))


def test_that_a_fact_has_no_vector_is_told_by_the_receipt_and_by_nothing_else(
    run, nowhere, monkeypatch, capfd
):
    # As in a process of its own, in which nobody set up logging: pytest did.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    outcome = run("remember", "a red barn", *nowhere)
    assert (outcome.code, outcome.err, capfd.readouterr().err) == (0, "", "")
    assert "perdure embed-missing" in " ".join(outcome.out.split())
    assert run("stats", "--json").json["withoutVector"] == 1
