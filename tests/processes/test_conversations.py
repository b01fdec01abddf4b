"""Processes that tell the same version of a session at once agree on what it says."""

from __future__ import annotations

import pytest

from perdure import Store
from processes.running import Child
from talks import talk

pytestmark = pytest.mark.slow  # each process takes most of a second to start

TELLER = """
import sys
from perdure import Store
from perdure.errors import Conflict
from talks import talk
with Store.open(sys.argv[1]) as store:
    conversation = store.conversation("alice")
    for line in sys.stdin:
        version, text = line.split()
        try:
            print(conversation.remember(talk(["hello", text], version=version)).outcome, flush=True)
        except Conflict as error:
            print(error.kind, flush=True)
"""


def test_one_process_stores_a_version_and_the_other_finds_it_or_is_refused(tmp_path):
    Store.open(tmp_path / "s").close()
    first, second = (Child(TELLER, tmp_path / "s") for _ in range(2))
    for n in range(10):
        texts = ("same", "same") if n % 2 else ("one", "other")
        for child, text in zip((first, second), texts, strict=True):
            child.tell(f"v{n} {text}")
        heard = {first.hear(), second.hear()}
        assert heard == ({"created", "existing"} if n % 2 else {"created", "version"})
    first.finish()
    second.finish()
    with Store.open(tmp_path / "s") as store:
        conversation = store.conversation("alice")
        assert conversation.list().total == 10
        assert all(len(conversation.get("s", f"v{n}").turns) == 2 for n in range(10))
        assert store.memory("alice", "#conversation").list().total == 20
        assert conversation.remember(talk(["hello", "same"], version="v1")).outcome == "existing"
