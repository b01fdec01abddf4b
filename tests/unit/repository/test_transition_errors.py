"""A refused step of the lifecycle says what to do instead."""

from __future__ import annotations

import pytest

from perdure.repository_errors import InvalidTransition


@pytest.mark.parametrize(
    ("source", "target", "advice"),
    [
        ("active", "active", "it is active already"),
        ("candidate", "active", "activate makes a candidate active"),
        ("conflicted", "active", "resolve makes it active again"),
        ("candidate", "superseded", "activate it first"),
        ("active", "candidate", "a node is never made candidate again"),
        ("superseded", "active", "it stays so, or becomes tombstoned; create another node"),
        ("tombstoned", "active", "it stays so; create another node"),
        ("absent", "superseded", "create it as candidate or active"),
    ],
)
def test_a_refused_step_says_what_to_do(source, target, advice):
    message = InvalidTransition("n", source, target).message
    assert message == f"a node cannot go from {source} to {target}: {advice}"
