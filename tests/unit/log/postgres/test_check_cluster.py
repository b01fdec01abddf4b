"""The script that checks a cluster: what it refuses, what it explains, and what it says of one plain PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from postgres_server import fresh_database, shared_server
from source_tree import ROOT

SCRIPT = ROOT / "scripts" / "check_cluster.py"
FEW = "test_a_new_store or append"


def run(*arguments):
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_no_address_and_what_is_none_are_refused():
    assert run().returncode == 2
    refused = run("postgresql://a@b/c", "/a/folder")
    assert refused.returncode == 2
    assert "address 2 is none" in refused.stderr


def test_a_dry_run_says_what_would_be_done_and_connects_to_nothing():
    told = run("--dry", "postgresql://nobody@nowhere.invalid/x", "postgresql://nobody@elsewhere.invalid/x")
    assert told.returncode == 0
    assert "through node 2" in told.stdout
    assert "nowhere" not in told.stdout


def test_a_database_that_cannot_be_reached_is_told():
    told = run("postgresql://nobody@/x?host=/nowhere")
    assert told.returncode == 1
    assert "tables could not be made" in told.stdout


@pytest.mark.slow
def test_one_plain_postgresql_passes_and_is_said_to_be_not_distributed():
    server, name = shared_server(), fresh_database()
    told = run(server.address(name), server.address(name), "--select", FEW)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "not distributed: this PostgreSQL has no extension citus" in told.stdout
    assert told.stdout.count(" passed") == 2
    assert server.execute("SELECT count(*) FROM perdure.tenant", name) == [(0,)]
