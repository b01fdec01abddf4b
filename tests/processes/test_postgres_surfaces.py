"""Processes of every surface on one database at once: MCP, the command line, and a server with several workers."""

from __future__ import annotations

import json
import os
import signal
import time

import anyio
import pytest

import forked
from forked import COMMAND
from perdure import Store
from perdure.server.keys import Grant, Keyring
from postgres_server import fresh_address
from processes.test_mcp import HELLO, PATIENCE_S, over_http, over_stdio, posted
from unit.server.running_server import running

pytestmark = pytest.mark.slow  # each process takes most of a second to start


@pytest.fixture
def address():
    return fresh_address()


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


def perdure(address, keys, *told):
    """Return what the command line prints as JSON."""
    done = forked.run(
        COMMAND, *told, "--json", "--store", address, "--keystore", str(keys), timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_an_agent_remembers_the_command_line_and_a_server_recall_of_the_same_tenant_alone(address, keys):
    async def run(server) -> None:
        with anyio.fail_after(PATIENCE_S):
            told = ("--keystore", str(keys), "--tenant", "acme", "--principal", "ann")
            async with over_stdio(address, *told) as one, over_stdio(address, *told) as two:
                assert not (await one.call_tool("remember", {"text": "Ann likes tea"})).is_error
                found = (await two.call_tool("recall", {"query": "tea"})).structured_content["results"]
                assert len(found) == 1
                asked = {"perdure-tenant": "acme", "perdure-principal": "ann"}
                for headers, count in ((asked, 1), ({**asked, "perdure-tenant": "beta"}, 0)):
                    status, told = server.post("memory/recall", {"query": "tea"}, **headers)
                    assert (status, len(told["results"])) == (200, count)

    with running(address, opening={"keystore": str(keys)}, workers=2) as server:
        anyio.run(run, server)
    own = perdure(address, keys, "recall", "tea", "--tenant", "acme", "--principal", "ann")
    assert [hit["fact"]["text"] for hit in own["results"]] == ["Ann likes tea"]
    assert perdure(address, keys, "recall", "tea", "--principal", "ann")["results"] == []


def test_over_http_an_agent_of_one_tenant_is_refused_with_the_key_of_another(address, keys):
    with over_http(address, "--keystore", str(keys), "--tenant", "acme") as (url, token):
        assert posted(url, HELLO[0], authorization=f"Bearer {token}").status_code == 200
        with Keyring(keys) as ring:
            told = {tenant: ring.create(Grant(tenant=tenant))[1] for tenant in ("acme", "beta")}
        codes = {
            name: posted(url, HELLO[0], authorization=f"Bearer {key}").status_code
            for name, key in told.items()
        }
        assert codes == {"acme": 200, "beta": 403}
        assert posted(url, HELLO[0], authorization=f"Bearer {token}").status_code == 401


def test_a_worker_that_is_killed_loses_nothing_that_was_acknowledged(address, keys):
    with running(address, opening={"keystore": str(keys)}, workers=2) as server:
        acknowledged = []
        for number in range(30):
            if number == 10:
                os.kill(server.workers()[0], signal.SIGKILL)
            try:
                status, _ = server.post("memory/remember", {"id": str(number), "text": f"fact {number}"})
            except OSError:
                time.sleep(0.05)  # its worker died; the other one, and soon another, takes the next
                continue
            if status == 200:
                acknowledged.append(str(number))
        assert server.stop() == 0
    with Store.open(address, keystore=keys) as store:
        found = {fact.id for fact in store.memory().list(limit=100).items}
        assert set(acknowledged) <= found
        assert len(acknowledged) > 20
        assert store.verify().ok
