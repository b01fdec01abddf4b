"""Servers of the Model Context Protocol as real processes, driven by the client of the official SDK."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import forked
from forked import COMMAND
from perdure import Store
from perdure.mcp.catalogue import TOOLS
from tool_calls import CALLS

httpx = pytest.importorskip("httpx2")  # the HTTP client that the SDK takes

ENVIRONMENT = dict(os.environ)  # without it the SDK hands on only a few names
PATIENCE_S = 120


@asynccontextmanager
async def over_stdio(store: Path, *options: str) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, "mcp", "--store", str(store), *options], env=ENVIRONMENT
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def drive(session: Any) -> None:
    tools = {tool.name for tool in (await session.list_tools()).tools}
    assert tools == {tool.name for tool in TOOLS}
    for name, arguments, held in CALLS:
        result = await session.call_tool(name, arguments)  # the client checks it against the output schema
        assert not result.is_error, (name, result.content)
        assert held in result.structured_content
    result = await session.call_tool("recall", {"query": " "})
    assert result.is_error
    assert result.structured_content["error"]["code"] == "invalid_request"
    with pytest.raises(MCPError, match="no tool"):
        await session.call_tool("drop", {})
    (spaces,) = (await session.list_resources()).resources
    assert '"principal":"ann"' in (await session.read_resource(spaces.uri)).contents[0].text
    assert "Oslo" in (await session.read_resource("perdure://facts/oslo")).contents[0].text
    (template,) = (await session.list_resource_templates()).resource_templates
    assert template.uri_template == "perdure://facts/{id}"
    with pytest.raises(MCPError, match="no such resource"):
        await session.read_resource("perdure://facts/nobody")


@pytest.mark.slow
def test_the_sdk_drives_every_tool_over_standard_streams(tmp_path):
    async def run() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with over_stdio(tmp_path / "store", "--tools", "all", "--principal", "ann") as session:
                await drive(session)

    anyio.run(run)


@pytest.mark.slow
def test_eight_servers_on_one_store_lose_nothing_and_see_everything(tmp_path):
    servers, writes = 8, 20
    store = tmp_path / "store"

    def asked(server: forked.Process, line: str) -> Any:
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    def write(server: forked.Process, name: int) -> None:
        asked(server, HELLO[0])
        server.stdin.write(HELLO[1].encode() + b"\n")
        for number in range(writes):
            result = asked(server, call(number + 2, "remember", text=f"row {number} of {name}"))
            assert result["structuredContent"]["created"] is True

    with ExitStack() as running, ThreadPoolExecutor(servers) as threads:
        started = [
            running.enter_context(forked.start(COMMAND, "mcp", "--store", store)) for _ in range(servers)
        ]
        list(threads.map(write, started, range(servers)))
        for server in started:
            status = asked(server, call(writes + 2, "memory_status"))["structuredContent"]
            assert status["facts"] == servers * writes
            server.stdin.close()
            assert server.wait(PATIENCE_S) == 0
    with Store.open(store) as opened:
        memory = opened.memory()
        assert memory.list(limit=1).total == servers * writes
        told = {fact.text for fact in memory.list(limit=servers * writes).items}
        assert told == {f"row {number} of {server}" for server in range(servers) for number in range(writes)}


NOISY = """
import logging, os, sys, warnings
from perdure import MemoryConfig, Store
from perdure.dispatch import Caller
from perdure.mcp.service import Settings
from perdure.mcp.serving import serve_stdio
from perdure.mcp.stdio import claimed

class Noisy:
    def remembered(self, fact):
        print("printed by an observer", flush=True)
        os.write(1, b"written by a library\\n")
        warnings.warn("a warning")
        logging.getLogger("other").debug("a log line")

    def forgotten(self, ids):
        raise RuntimeError("an observer that fails")

class Failing:
    def select(self, facts, now):
        print("about to fail")
        raise RuntimeError("a policy that fails")

logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
with claimed() as wire, Store.open(sys.argv[1]) as store:
    caller = Caller(store, config=MemoryConfig(observers=(Noisy(),), forgetting=Failing()), role="write")
    serve_stdio(caller, Settings("all"), wire)
"""


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def call(number: int, name: str, **arguments: Any) -> str:
    return request(number, "tools/call", name=name, arguments=arguments)


HELLO = [
    request(
        1,
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    ),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


def said_by(lines: Sequence[str | bytes], program: str, *arguments: object) -> tuple[dict[int, Any], str]:
    """Return the replies of a program by their numbers, and what it said on standard error."""
    told = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    done = forked.run(program, *arguments, told=told, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    return {reply["id"]: reply for reply in replies if reply.get("id") is not None}, done.stderr.decode()


def test_standard_output_carries_messages_alone_whatever_plugins_print_and_log(tmp_path):
    lines = [
        *HELLO,
        call(2, "remember", text="tea", id="tea"),
        call(3, "apply_forgetting"),
        "this is no message",
        '{"jsonrpc":"2.0"}',
        "[" * 5_000,
        '{"jsonrpc":"2.0","id":4,"method":"no/such/method"}',
        call(5, "forget", ids=["nobody"]),
        call(6, "remember", text="coffee"),
    ]
    replies, error = said_by(lines, NOISY, tmp_path / "store")
    assert replies[2]["result"]["structuredContent"]["created"] is True
    assert replies[3]["result"]["structuredContent"]["error"]["code"] == "internal"
    assert replies[4]["error"]["code"] == -32601
    assert replies[6]["result"]["structuredContent"]["created"] is True
    for words in (
        "printed by an observer",
        "written by a library",
        "a warning",
        "a log line",
        "about to fail",
    ):
        assert words in error


def test_every_line_with_an_id_has_an_answer_under_it(tmp_path):
    text = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{%s}}}'
    deep = b'"text":"x","metadata":' + b'{"a":' * 300 + b"1" + b"}" * 300
    lines = [
        *(line.encode() for line in HELLO),
        text % (2, b"remember", b'"text":"\\ud800"'),
        text % (3, b"remember", deep),
        text % (4, b"recall", b'"query":"x","k":' + b"9" * 6_000),
        text % (5, b"recall", b'"query":"x","k":1e400'),
        text % (6, b"recall", b'"query":"x","k":NaN'),
        text % (7, b"remember", b'"text":"first","text":"second"'),
        text % (8, b"remember", b'"text":"caf\xe9"'),
        text % (9, b"remember", b'"text":"' + b"x" * (17 << 20) + b'"'),
        b'{"jsonrpc":"2.0","id":10}',
        b'{"jsonrpc":"2.0","id":11,"method":"ping","params":[]}',
        b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 400),
        b'{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"recall","arguments":{"\\ud800":1}}}',
        b'{"jsonrpc":"2.0","id":14,"method":"resources/read","params":{"uri":"perdure://facts/\\ud800"}}',
        call(15, "list_facts").encode(),
    ]
    replies, error = said_by(lines, COMMAND, "mcp", "--store", tmp_path / "s")
    assert set(replies) == {*range(1, 16), int("9" * 400)}
    for number in (2, 3, 4, 5, 7):
        assert replies[number]["result"]["structuredContent"]["error"]["code"] == "invalid_request", number
    assert replies[2]["result"]["structuredContent"]["error"]["field"] == "text"
    assert replies[5]["result"]["structuredContent"]["error"]["field"] == "k"
    assert [replies[number]["error"]["code"] for number in (6, 8, 9, 10, 11)] == [
        *(-32700, -32700, -32600, -32600, -32602)
    ]
    assert replies[15]["result"]["structuredContent"]["total"] == 0
    assert "Traceback" not in error


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_in_order_though_its_client_stays(tmp_path, sent, code):
    with forked.start(COMMAND, "mcp", "--store", tmp_path / "s") as server:
        for line in (*HELLO, call(2, "remember", text="a word")):
            server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
        assert [json.loads(server.stdout.readline())["id"] for _ in range(2)] == [1, 2]
        server.send_signal(sent)
        assert server.wait(PATIENCE_S) == code
        assert (server.stdout.read(), server.stderr.read()) == (b"", b"")


def test_a_client_that_closes_its_side_ends_the_server_with_code_zero(tmp_path):
    command = (COMMAND, "mcp", "--store", tmp_path / "s", "--log-level", "debug")
    replies, error = said_by([*HELLO, call(2, "remember", text="a word")], *command)
    assert replies[2]["result"]["isError"] is False
    assert "DEBUG:" in error
    assert said_by([], *command)[0] == {}


def test_no_log_holds_what_was_sent(tmp_path):
    lines = [
        *HELLO,
        call(2, "remember", text="planted"),
        call(3, "recall", query="planted", planted="planted"),
        call(4, "planted"),
        request(5, "tools/call", planted="planted"),
        request(6, "planted"),
        request(7, "resources/read", uri="perdure://facts/planted"),
        '{"planted',
        '{"jsonrpc":"2.0","method":"notifications/planted","params":{"planted":1}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"planted":1}}',
        '{"jsonrpc":"2.0","id":8,"result":"planted"}',
    ]
    replies, error = said_by(lines, COMMAND, "mcp", "--store", tmp_path / "s", "--log-level", "debug")
    assert set(replies) == {1, 2, 3, 4, 5, 6, 7}
    assert "planted" not in error


def test_where_the_sdk_is_absent_the_error_says_what_to_install(tmp_path):
    script = "import sys; sys.modules['mcp'] = None; from perdure.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "mcp", "--store", str(tmp_path / "s")],
        input=b"",
        capture_output=True,
        timeout=PATIENCE_S,
        env=ENVIRONMENT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"pip install 'perdure[mcp]'" in done.stderr


def test_a_server_that_only_reads_makes_no_store(tmp_path):
    store = tmp_path / "absent"
    done = forked.run(COMMAND, "mcp", "--store", store, "--read-only", timeout=PATIENCE_S)
    assert done.returncode == 1
    assert b"there is no store there yet" in done.stderr
    assert not store.exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--tools", "some"],
        ["--transport", "pigeon"],
        ["--log-level", "loud"],
        ["--port", "8500"],
        ["--host", "127.0.0.1"],
        ["--transport", "http", "--port", "0"],
        ["--transport", "http", "--host", "0.0.0.0"],
        ["--backend", "foo"],
        ["--config", "/dev/null/none"],
    ],
)
def test_a_wrong_option_is_told_before_anything_is_served(tmp_path, options):
    done = forked.run(COMMAND, "mcp", "--store", tmp_path / "s", *options, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1


@contextmanager
def over_http(store: Path, *options: str):
    """Yield the address and the token of a server."""
    port = free_port()
    server = forked.start(COMMAND, "mcp", "--transport", "http", "--port", port, "--store", store, *options)
    try:
        line = server.stderr.readline().decode()
        found = re.search(r"listening on (\S+); requests need the token in (\S+) as", line)
        assert found is not None, line
        for _ in range(6_000):
            if is_open(port):
                break
        yield found[1], Path(found[2]).read_text().strip()
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE_S)
        assert server.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.05)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def session_over_http(url: str, headers: dict[str, str]) -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(headers=headers) as client,
        streamable_http_client(url, http_client=client) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield session


def posted(url: str, body: str, **headers: str) -> Any:
    told = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(url, content=body, headers={**told, **named})


@pytest.mark.slow
def test_the_sdk_drives_every_tool_over_http_and_nobody_else_gets_in(tmp_path):
    async def run(url: str, token: str) -> None:
        with anyio.fail_after(PATIENCE_S):
            async with session_over_http(url, {"authorization": f"Bearer {token}"}) as session:
                await drive(session)

    async def run_newest(url: str, token: str) -> None:
        async with (
            httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client,
            Client(streamable_http_client(url, http_client=client)) as session,
        ):
            assert session.protocol_version >= "2026-07-28"
            assert len((await session.list_tools()).tools) == len(TOOLS)
            result = await session.call_tool("recall", {"query": "Oslo"})
            assert len(result.structured_content["results"]) == 1
            assert (await session.list_resources()).resources
            assert (await session.list_resource_templates()).resource_templates
            assert "Oslo" in (await session.read_resource("perdure://facts/oslo")).contents[0].text

    with over_http(tmp_path / "store", "--tools", "all", "--principal", "ann") as (url, token):
        anyio.run(run, url, token)
        anyio.run(run_newest, url, token)
        key = f"Bearer {token}"
        hello = HELLO[0]
        assert posted(url, hello, authorization=key).status_code == 200
        refused = {
            401: [{}, {"authorization": "Bearer pt_0"}, {"authorization": f"Basic {token}"}],
            403: [
                {"authorization": key, "origin": "http://example.com"},
                {"authorization": key, "host": "example.com"},
                {"authorization": key, "sec_fetch_site": "cross-site"},
            ],
            415: [{"authorization": key, "content_type": "text/plain"}],
        }
        for status, several in refused.items():
            for headers in several:
                reply = posted(url, hello, **headers)
                assert reply.status_code == status, headers
                assert "code" in reply.json()["error"]
        assert posted(url + "/other", hello, authorization=key).status_code == 404
        assert httpx.get(url, headers={"authorization": key}).status_code == 405
        # Names in headers choose no other memory.
        asked = call(2, "recall", query="Oslo")
        reply = posted(url, asked, authorization=key, perdure_principal="bob").json()
        assert len(reply["result"]["structuredContent"]["results"]) == 1
