"""Nothing in the package can reach a network or work behind its caller's back, but an embedder told to."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from source_tree import modules, name_of

NETWORK = {
    "aiohttp", "asyncio", "ftplib", "http", "httpx", "imaplib", "poplib", "requests", "smtplib", "socket",
    "socketserver", "ssl", "telnetlib", "urllib", "urllib3", "webbrowser", "xmlrpc",
}  # fmt: skip
BACKGROUND = {"Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "Process", "Popen", "register"}


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def _called(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr != "register" or ast.unparse(node.func) == "atexit.register":
                yield node.func.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


# These exist to speak over a network or to run threads, and are loaded only where somebody asks for them by name; so
# is the shipped suite for backends.
ASKED_BY_NAME = ("asynchronous.py", "cli/serve.py", "client/", "mcp/", "server/", "testing/")
SHIPPED = [path for path in modules() if not name_of(path).startswith(ASKED_BY_NAME)]
# A store in a database keeps snapshots on a thread where it is opened so; see the decision on it.
# The http embedder asks the endpoint that a configuration names, and an extractor the one that its caller names.
# Addresses are taken apart by urllib.parse; what connects, which ends late requests by a timer, is loaded at the first
# text.
ASKED_FOR = {
    "embedders/endpoints.py": {"urllib"},
    "embedders/transport.py": {"http", "socket", "urllib", "Timer"},
    "space/background.py": {"Thread"},
}


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_a_module_imports_nothing_that_reaches_a_network_and_starts_nothing_in_the_background(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = ASKED_FOR.get(name_of(path), set())
    assert NETWORK & set(_imported(tree)) == allowed & NETWORK
    assert BACKGROUND & set(_called(tree)) == allowed & BACKGROUND


def test_what_connects_is_loaded_by_what_asks_an_endpoint_alone_and_not_before_it_asks():
    found = {
        (name_of(path), node.col_offset > 0)
        for path in SHIPPED
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "perdure.embedders.transport"
    }
    assert found == {("embedders/http.py", True), ("extraction/openai.py", True)}


WATCHED_USE = """
import sys

seen = []
sys.addaudithook(
    lambda event, _: seen.append(event)
    if event.startswith(("socket.", "urllib.", "http.", "subprocess.", "os.fork", "os.spawn", "_thread.start"))
    else None
)
from perdure import Memory, MemoryConfig

with Memory.open(sys.argv[1], config=MemoryConfig(embedder=sys.argv[2])) as memory:
    told = memory.remember("The kettle is in the blue cupboard", tags=["kitchen"])
    assert [hit.id for hit in memory.recall("where is the kettle", explain=True)] == [told.id]
    memory.forget(ids=[told.id])
print(seen)
"""


@pytest.mark.parametrize("embedder", ["none", "static"])
def test_using_a_store_opens_no_connection_and_starts_no_thread_or_process(tmp_path, embedder):
    command = [sys.executable, "-c", WATCHED_USE, str(tmp_path / "store"), embedder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
