"""The part of the README on serving runs as written, on a port that is free."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from markdown_page import blocks, run_page
from perdure.server.settings import Settings
from source_tree import ROOT

README = ROOT / "README.md"
PORT = "8420"
PERDURE = str(Path(sys.executable).with_name("perdure"))


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def commands(word):
    """Return the arguments of the README's commands that begin with `perdure WORD`."""
    lines = [line for block in blocks(README) if block.language == "sh" for line in block.text.splitlines()]
    return [line for line in lines if line.startswith(f"perdure {word}")]


@contextmanager
def served(port):
    (line,) = commands("serve")
    program = [PERDURE, *line.split()[1:], "--port", str(port)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            for told in server.stderr:  # it says where it serves once it does
                if f":{port}" in told:
                    break
            yield
        finally:
            server.terminate()
            server.communicate(timeout=30)
    assert server.returncode == 0


@pytest.mark.slow
def test_the_served_example_gives_what_it_says_and_the_shell_sees_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    port = free_port()
    with served(port):
        assert httpx.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200
        assert run_page(README, needs="served", names={PORT: str(port)}) == 2
        (line,) = commands("recall")
        words = line.split('"')
        arguments = [PERDURE, "recall", words[1], *words[2].split()]
        shown = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "Alice lives in Paris" in shown.stdout
    assert "Berlin" not in shown.stdout


def test_the_port_of_the_example_is_the_one_that_serve_takes():
    assert str(Settings(":memory:").port) == PORT
