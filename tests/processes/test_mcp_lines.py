"""A server of the Model Context Protocol over its standard streams, driven line by line: no SDK's client takes part.

So it holds for every SDK that the server runs on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REVISION = "2025-06-18"  # of the protocol; both generations of the SDK know it
PATIENCE_S = 60
PERDURE = [sys.executable, "-c", "from perdure.cli.main import main; main()", "mcp"]


def call(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def converse(store: Path, *messages: dict[str, Any]) -> dict[int, Any]:
    """Return the replies by the ids of their requests; each is awaited before the next message is sent."""
    with subprocess.Popen(
        [*PERDURE, "--store", str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        replies: dict[int, Any] = {}
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            while "id" in message and message["id"] not in replies:
                told = json.loads(server.stdout.readline())  # every line is one message
                if "id" in told:
                    replies[told["id"]] = told.get("result", told.get("error"))
        server.stdin.close()
        assert server.wait(PATIENCE_S) == 0
    return replies


def test_a_server_takes_lines_of_json_tells_its_tools_and_recalls_what_it_was_told(tmp_path: Path):
    replies = converse(
        tmp_path / "store",
        call(
            1,
            "initialize",
            protocolVersion=REVISION,
            capabilities={},
            clientInfo={"name": "lines", "version": "1"},
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "tools/list"),
        call(3, "tools/call", name="remember", arguments={"text": "the kettle is blue"}),
        call(4, "tools/call", name="recall", arguments={"query": "kettle", "k": 5}),
        call(5, "tools/call", name="recall", arguments={"query": " "}),
    )
    assert replies[1]["protocolVersion"] == REVISION
    assert replies[1]["serverInfo"]["name"] == "perdure"
    tools = {tool["name"]: tool for tool in replies[2]["tools"]}
    assert {"remember", "recall", "explain", "history", "forget", "correct"} <= tools.keys()
    assert tools["recall"]["annotations"]["readOnlyHint"] is True
    assert replies[3]["structuredContent"]["created"] is True
    (hit,) = replies[4]["structuredContent"]["results"]
    assert (hit["fact"]["id"], hit["fact"]["text"]) == (
        replies[3]["structuredContent"]["id"],
        "the kettle is blue",
    )
    assert replies[5]["isError"] is True
    assert replies[5]["structuredContent"]["error"]["field"] == "query"


def test_what_is_asked_before_the_session_began_is_told_to_initialize_first(tmp_path: Path):
    begin = call(
        3,
        "initialize",
        protocolVersion=REVISION,
        capabilities={},
        clientInfo={"name": "lines", "version": "1"},
    )
    replies = converse(
        tmp_path / "store",
        call(1, "tools/list"),
        call(2, "tools/call", name="recall", arguments={"query": "kettle"}),
        begin,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(4, "tools/list"),
        call(5, "resources/read", uri="perdure://nowhere"),
    )
    for refused in (replies[1], replies[2]):
        assert refused["code"] == -32602
        assert "send initialize first" in refused["message"]
    assert replies[3]["serverInfo"]["name"] == "perdure"
    assert replies[4]["tools"]
    assert "initialize" not in replies[5]["message"]
