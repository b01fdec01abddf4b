"""The page on erasure does what it says."""

from __future__ import annotations

from markdown_page import run_page
from postgres_server import fresh_address
from source_tree import ROOT

PAGE = ROOT / "docs" / "erasure.md"


def test_the_examples_of_the_page_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE) >= 17


def test_the_examples_on_postgresql_give_what_the_page_says(tmp_path):
    names = {
        "postgresql://perdure@db.example/memory": fresh_address(),
        "/srv/perdure/keys": f"{tmp_path}/keys",
    }
    assert run_page(PAGE, needs="postgres", names=names) == 3
