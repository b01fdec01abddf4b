"""A signal that comes before anything is served ends the server in order all the same."""

from __future__ import annotations

import json
import os
import sys

import pytest

import forked

# The signal comes when the stores are open and nobody is served yet.
SCRIPT = """
import os, signal, sys
from perdure.server.engine import Engine
from perdure.server.settings import Settings
from perdure.server.starting import start
checked, closed = Engine.check, Engine.close

def check(engine):
    checked(engine)
    os.kill(os.getpid(), signal.SIGTERM)

def close(engine):
    closed(engine)
    print("closed")

if __name__ == "__main__":
    Engine.check, Engine.close = check, close
    start(Settings(sys.argv[1], port=0, workers=int(sys.argv[2]), log_format="json"))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_is_stopped_before_it_serves_closes_its_stores_and_ends_with_0(tmp_path, workers):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # workers are interpreters of their own
    done = forked.run(SCRIPT, tmp_path / "store", workers, text=True, timeout=90, env=environment)
    assert (done.returncode, done.stdout.splitlines()[:1]) == (0, ["closed"])
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert "serving" not in events
