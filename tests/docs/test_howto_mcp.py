"""The page on MCP does what it says, and its configurations can be pasted."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import mcp.client.stdio  # before a test puts another stream in the place of standard error, which it keeps  # noqa: F401
import pytest

from markdown_page import blocks, run_page
from perdure.mcp.catalogue import TOOLS
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "mcp.md"
SERVERS = ("mcpServers", "servers", "context_servers", "mcp_servers")


@pytest.mark.slow
def test_the_example_of_the_page_gives_what_it_says(tmp_path, monkeypatch):
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    command = bin_ / "perdure"
    source = ROOT / "src"
    command.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(source)!r})\n"
        "from perdure.cli.main import main\nmain()\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE) >= 1
    assert (Path("memory")).is_dir()


def test_every_configuration_starts_one_server_of_the_command():
    found = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
    found += [tomllib.loads(block.text) for block in blocks(PAGE) if block.language == "toml"]
    assert len(found) == 6
    for configuration in found:
        ((kind, servers),) = configuration.items()
        assert kind in SERVERS
        ((name, server),) = servers.items()
        assert (name, server["command"]) == ("perdure", "perdure")
        assert server["args"] == ["mcp", "--store", "/home/alice/memory", "--principal", "alice"]


def test_the_page_names_every_tool():
    text = PAGE.read_text(encoding="utf-8")
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in text] == []
