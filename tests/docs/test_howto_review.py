"""The page on review does what it says: in Python, at the command line and over HTTP."""

from __future__ import annotations

import asyncio
import re
import shlex

import httpx

from markdown_page import blocks, run_page
from perdure.server.app import create_app
from perdure.server.settings import Settings
from source_tree import ROOT
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

PAGE = ROOT / "docs" / "howto" / "review.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) >= 8


def test_the_lines_of_the_command_line_work(run, store_path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [one for one in blocks(PAGE) if one.language == "sh" and one.text.startswith("perdure ")]
    lines = block.text.splitlines()
    assert len(lines) >= 10
    for line in lines:
        name, *words = shlex.split(line)
        outcome = run(*words)
        assert (name, outcome.code) == ("perdure", 0), (line, outcome.err)
    found = run("recall", "vault", "--store", "desk", "--json").json["results"]
    assert not store_path.exists()  # the usual store is nobody's to try things in
    assert [hit["fact"]["text"] for hit in found] == ["The vault opens at nine"]


def test_the_lines_of_curl_work(tmp_path):
    lines = re.findall(r"^curl (?:.*\\\n)*.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    app = create_app(Settings(tmp_path))
    key = app.engine.authenticator.token_path.read_text().strip()

    async def ask(url, headers, body):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.post(url, content=body, headers=headers)).json()

    replies = []
    for line in lines:
        _, url, *options = shlex.split(line.replace("\\\n", " ").replace("$KEY", key))
        told = list(zip(options[::2], options[1::2], strict=True))
        headers = dict(value.split(": ", 1) for option, value in told if option == "-H")
        replies.append(asyncio.run(ask(url, headers, dict(told)["-d"])))
    app.close()
    proposed, queue, accepted = replies
    assert proposed["nodes"][0]["status"] == "candidate"
    assert [node["id"] for node in queue["items"]] == ["nine"]
    assert accepted["nodes"][0]["status"] == "active"
