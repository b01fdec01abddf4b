"""Several processes at one file of keys, and one that is killed in the middle of a change."""

from __future__ import annotations

import errno
import json
import os
import signal

import pytest

import forked
from perdure.errors import StorageFull
from perdure.server.keys import Grant, Keyring

PATIENCE_S = 60
CREATE = """
import sys
from pathlib import Path
from perdure.server.keys import Grant, Keyring

with Keyring(Path(sys.argv[1]), timeout_s=60) as keyring:
    for number in range(5):
        print(keyring.create(Grant(scope=f"{sys.argv[2]}-{number}"))[1])
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from perdure.server.keys import Grant, Keyring

step = sys.argv[2]
real = getattr(os, step)

def killed(*args, **options):
    if step != "write" or args[0] > 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **options)

setattr(os, step, killed)
with Keyring(Path(sys.argv[1])) as keyring:
    keyring.create(Grant())
"""


@pytest.mark.slow
def test_eight_processes_that_create_keys_at_once_lose_none(tmp_path):
    children = [forked.start(CREATE, tmp_path, number, text=True) for number in range(8)]
    told = []
    for child in children:
        out, err = child.communicate(timeout=PATIENCE_S)
        assert (child.returncode, err) == (0, "")
        told += out.split()
    with Keyring(tmp_path) as keyring:
        assert len(keyring.all_keys()) == 40
        found = {keyring.find(one).scope for one in told}
    assert found == {f"{process}-{number}" for process in range(8) for number in range(5)}


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_process_that_is_killed_before_the_rename_leaves_the_keys_as_they_were(tmp_path, step):
    with Keyring(tmp_path) as keyring:
        _, told = keyring.create(Grant())
        before = (tmp_path / "keys.json").read_bytes()
        child = forked.start(KILLED, tmp_path, step)
        child.communicate(timeout=PATIENCE_S)
        assert child.returncode == -signal.SIGKILL
        assert (tmp_path / "keys.json").read_bytes() == before
        assert (tmp_path / "keys.json.new").stat().st_mode & 0o777 == 0o600
        assert keyring.find(told)
        _, later = keyring.create(Grant())  # neither the lock nor the rest is in the way
        assert keyring.find(later)
    assert len(json.loads((tmp_path / "keys.json").read_bytes())["keys"]) == 2
    assert not (tmp_path / "keys.json.new").exists()


def test_a_full_disk_leaves_the_keys_as_they_were(tmp_path, monkeypatch):
    with Keyring(tmp_path) as keyring:
        _, told = keyring.create(Grant())

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(StorageFull):
                keyring.create(Grant())
        assert keyring.find(told)
        assert len(keyring.all_keys()) == 1
