"""Several servers of one database, written to at random while its connections are cut and it is killed and started again:
nothing lost, nothing double, and every answer that of a store of what was there at its moment."""

from __future__ import annotations

import os

import pytest

from processes.server_writers import ACTS
from processes.servers_run import database, run

pytestmark = pytest.mark.slow  # it goes on for as long as it is told to

SECONDS = float(os.environ.get("PERDURE_SERVERS_S", "10"))


def test_four_servers_eight_writers_and_three_tenants_lose_nothing_whatever_the_database_suffers(tmp_path):
    with database() as server:
        summary = run(tmp_path, server, SECONDS)
    print(summary.line())  # noqa: T201
    assert not summary.problems, "\n".join(summary.problems)
    assert min(summary.counts[act] for act in ACTS) > 0
    assert min(summary.counts[name] for name in ("cut connections", "killed databases")) > 0
