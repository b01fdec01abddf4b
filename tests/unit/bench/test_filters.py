"""The run that times filters asks what it says."""

from __future__ import annotations

from bench.corpus import Corpus
from bench.filters import FILTERS, facts, main

from perdure.filters.evaluate import matches
from perdure.filters.grammar import parse_filter


def test_each_filter_of_the_run_matches_the_share_that_its_name_says():
    stored = facts(Corpus(1_000))
    for what, asked in FILTERS.items():
        if "%" in what:
            tree = parse_filter(asked)
            found = sum(matches(tree, one["metadata"], {"@eventTime": one["event_time"]}) for one in stored)
            assert abs(found / 10 - float(what.split(" ")[0])) <= 3, what


def test_the_run_writes_a_row_for_each_filter(tmp_path, capsys):
    path = tmp_path / "filters.md"
    main(["--rows", "200", "--queries", "3", "--out", str(path)])
    written = path.read_text(encoding="utf-8")
    assert all(f"| {what} |" in written for what in FILTERS)
    assert written == capsys.readouterr().out
