"""Processes are killed at random: nothing acknowledged is lost, nothing is half there, nothing forgotten is left."""

from __future__ import annotations

import os

import pytest

from crash import kills
from crash.children import find_texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]

SOAK = int(os.environ.get("PERDURE_KILLS", "1000"))


def check(summary: kills.Summary, count: int) -> None:
    print(summary.line())  # noqa: T201 - shown by pytest -s, and with a failure
    assert summary.wrong == []
    assert summary.kills.total() == count
    assert summary.batches > count / 2
    assert summary.purges > 0
    assert summary.forgets > count / 10


def test_killed_writers_forgetters_and_purgers_lose_nothing_and_leave_nothing(tmp_path):
    check(kills.run(tmp_path, 30, seed=20_260), 30)


@pytest.mark.soak
def test_a_thousand_kills_lose_nothing_and_leave_nothing(tmp_path):
    check(kills.run(tmp_path, SOAK, seed=SOAK), SOAK)


@pytest.mark.parametrize("text", ["xqzbcfghkmpvwbcx", "XQZBCFGHKMPVWBCX"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_scan_finds_a_marker_in_any_case_and_encoding(tmp_path, text, encoding):
    (tmp_path / "file").write_bytes(b"\1" + ("before " + text + " after").encode(encoding) + b"\2")
    assert find_texts(tmp_path, kills.PATTERN) == {"file": {text.lower()}}


def test_the_scan_finds_no_marker_where_there_is_none(tmp_path):
    (tmp_path / "file").write_bytes(b"xqzbcfghkmpvwbc xqzbcfghkmpvwbcy" + bytes(100))
    assert find_texts(tmp_path, kills.PATTERN) == {}
