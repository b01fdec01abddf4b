"""The page on the server does what it says."""

from __future__ import annotations

from markdown_page import run_page
from perdure.contract import limits
from perdure.server.settings import Limits
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "server.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) >= 2


def test_the_limits_of_the_page_are_the_server_s():
    page, told = PAGE.read_text(encoding="utf-8"), Limits()
    assert f"{told.body_bytes_max >> 20} MiB, an import {told.import_bytes_max >> 30} GiB" in page
    assert f"`k` {limits.HTTP.k_max}, query {limits.HTTP.query_bytes_max >> 10} KiB" in page
    assert f"{limits.HTTP.batch_max:,} facts" in page
    assert f"within {told.head_timeout_s:g} s; a body within {told.body_timeout_s:g} s" in page
    assert f"`--request-timeout`, {told.request_timeout_s:g} s" in page
