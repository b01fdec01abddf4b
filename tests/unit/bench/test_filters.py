"""The benchmark of filters chooses the shares it names, and reports each of them."""

from __future__ import annotations

import pytest
from bench import filters

from perdure import Memory


@pytest.mark.parametrize("share", filters.SHARES)
def test_every_filter_of_a_share_matches_the_same_facts_and_so_many_in_a_hundred(share):
    with Memory.open(":memory:") as memory:
        filters.fill(memory, [f"row {n}" for n in range(200)])
        found = [
            {fact.id for fact in memory.list(filter=asked, limit=200).items}
            for asked in filters.filters(share).values()
        ]
    assert len(found[0]) == 2 * share
    assert all(one == found[0] for one in found)


def test_a_small_run_reports_every_filter(tmp_path, monkeypatch):
    monkeypatch.setattr(filters, "QUERIES", 3)
    out = tmp_path / "results" / "filters.md"
    filters.main(["--rows", "100", "--out", str(out)])
    rows = [line for line in out.read_text().splitlines() if " % | " in line]
    assert [int(row.split("|")[2]) for row in rows] == [share for share in filters.SHARES for _ in range(5)]
