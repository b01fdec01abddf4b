"""The page on copying does what it says, and so do its commands."""

from __future__ import annotations

import shlex

from markdown_page import blocks, run_page
from postgres_server import fresh_address
from source_tree import ROOT
from unit.cli.command_line import (
    run,  # noqa: F401 - a fixture
    store_path,  # noqa: F401 - likewise
)

PAGE = ROOT / "docs" / "howto" / "copy.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) == 2


def test_the_commands_of_the_page_work(run, tmp_path, monkeypatch):  # noqa: F811 - the fixture
    [block] = [one for one in blocks(PAGE) if one.language == "sh"]
    text = block.text.replace("postgresql://perdure@db.example/memory", f'"{fresh_address()}"')
    text = text.replace("/srv/perdure/keys", str(tmp_path / "keys"))
    lines = [shlex.split(line) for line in text.splitlines()]
    monkeypatch.chdir(tmp_path)
    shown = [run(*line[1:]) for line in lines if line[0] == "perdure"]
    assert len(shown) == len(lines) == 4
    assert [(one.code, one.err) for one in shown] == [(0, "")] * 4
    assert all("The two are equal" in one.out for one in shown[1:3])
    assert "all is whole" in shown[3].out
