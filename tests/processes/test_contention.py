"""Writers, readers and purges of several processes on one store at once: nothing fails and nothing is lost."""

from __future__ import annotations

import pytest
from bench.contention import Load, run

pytestmark = pytest.mark.slow  # each process takes most of a second to start


def test_writers_and_readers_go_on_through_purges_without_failure_or_loss(tmp_path):
    outcome = run(tmp_path, Load(writers=2, writes=40, readers=1, purges=3))
    assert outcome.failures == []
    assert outcome.lost == 0
    assert (len(outcome.writes), len(outcome.purges)) == (80, 3)
    assert outcome.reads


@pytest.mark.soak
def test_eight_writers_and_four_readers_go_on_through_twenty_purges(tmp_path):
    outcome = run(tmp_path, Load())
    print(f"worst wait of a write: {outcome.writes[-1]:.0f} ms, of a read: {outcome.reads[-1]:.0f} ms")  # noqa: T201
    assert outcome.failures == []
    assert outcome.lost == 0
    assert (len(outcome.writes), len(outcome.purges)) == (8000, 20)
