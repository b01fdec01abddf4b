"""The page on the server does what it says."""

from __future__ import annotations

import asyncio
import re
import shlex

import httpx
import pytest

from markdown_page import run_page
from perdure.contract import limits
from perdure.server.app import create_app
from perdure.server.keys import Grant, Keyring
from perdure.server.settings import Limits, Settings
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


def asked(app, line, key):
    """Return the reply to a line of curl."""
    _, url, *options = shlex.split(line.replace("\\\n", " ").replace("$KEY", key))
    told = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in told if option == "-H")
    body = dict(told)["-d"]

    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.post(url, content=body, headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize("principal", [None, "alice", "token"])
def test_the_lines_of_curl_work_with_the_token_and_with_a_key(tmp_path, principal):
    lines = re.findall(r"^curl (?:.*\\\n)*.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 2
    app = create_app(Settings(tmp_path))
    key = app.engine.authenticator.token_path.read_text().strip()
    if principal != "token":
        with Keyring(tmp_path) as ring:
            _, key = ring.create(Grant(principal=principal))
    try:
        told, found = (asked(app, line, key) for line in lines)
        assert told.json()["outcome"] == "created"
        assert [hit["fact"]["text"] for hit in found.json()["results"]] == ["Alice lives in Lyon"]
    finally:
        app.close()
