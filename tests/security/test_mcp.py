"""The Model Context Protocol below /mcp lets nobody further than the routes of the contract do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perdure.server.roots import find_directory

from .site import JSON, Site

ACCEPTED = {**JSON, "accept": "application/json, text/event-stream"}


def ask(site: Site, key: str | None, method: str, params: Any = None, **headers: str) -> Any:
    """Return the reply to one message."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}
    told = ACCEPTED | {name.replace("_", "-"): value for name, value in headers.items()}
    return site.send("POST", "/mcp", key, headers=told, content=json.dumps(message))


def use(site: Site, key: str | None, tool: str, arguments: Any, **headers: str) -> Any:
    """Return the structured result of a tool, or the error of the protocol."""
    told = ask(site, key, "tools/call", {"name": tool, "arguments": arguments}, **headers).json()
    return told["result"]["structuredContent"] if "result" in told else told["error"]


@pytest.fixture
def keys(site: Site) -> dict[str, str]:
    """Keys of people who each remember one fact of one id."""
    made = {}
    for tenant, principal in (("a", "u1"), ("a", "u2"), ("b", "u1")):
        key = made[f"{tenant}-{principal}"] = site.key(tenant, principal=principal)
        use(
            site,
            key,
            "remember",
            {"facts": [{"id": f"of-{tenant}-{principal}", "text": f"zq of {tenant} {principal}"}]},
        )
        site.call("remember", {"id": f"own-{tenant}-{principal}", "text": f"zq of {tenant} {principal}"}, key)
    return made


def test_without_a_valid_key_no_message_is_answered(site):
    for key in (None, "x", "pk_" + "0" * 16 + "_" + "0" * 64):
        for method in ("initialize", "tools/list", "tools/call", "resources/list", "ping", "nonsense"):
            assert ask(site, key, method).status_code == 401


def test_a_tool_sees_the_memory_of_its_key_and_nobody_else_s(site, keys):
    for name, key in keys.items():
        found = str(use(site, key, "recall", {"query": "zq"}))
        assert f"own-{name}" in found
        for other in keys.keys() - {name}:
            assert f"own-{other}" not in found
            foreign = use(site, key, "history", {"id": f"own-{other}"})
            absent = use(site, key, "history", {"id": f"own-{'z' * len(other)}"})
            assert foreign == absent
            foreign = ask(site, key, "resources/read", {"uri": f"perdure://facts/own-{other}"})
            absent = ask(site, key, "resources/read", {"uri": f"perdure://facts/own-{'z' * len(other)}"})
            assert (foreign.status_code, foreign.content) == (absent.status_code, absent.content)
        spaces = ask(site, key, "resources/read", {"uri": "perdure://spaces"}).text
        assert ("u2" in spaces) == (name == "a-u2")


def test_no_argument_and_no_header_widens_what_a_key_fixes(site, keys):
    key = keys["a-u1"]
    for argument in ("principal", "scope", "tenant", "namespace", "spaces", "space", "user_id", "purge"):
        for tool, told in (
            ("recall", {"query": "zq"}),
            ("list_facts", {}),
            ("forget", {"ids": ["own-a-u2"]}),
        ):
            assert "own-a-u2" not in str(use(site, key, tool, {**told, argument: "u2"}))
    for header, value in (("perdure_principal", "u2"), ("perdure_tenant", "b"), ("perdure_scope", "work")):
        asked = {header: value}
        if header == "perdure_scope":
            asked = {header: value, "perdure_principal": "u2"}
        assert ask(site, key, "tools/list", **asked).status_code == 403
    assert "own-a-u2" in str(use(site, keys["a-u2"], "recall", {"query": "zq"}))


def test_a_read_only_key_is_offered_nothing_that_writes_and_may_not_call_it_either(site, keys):
    reader = site.key("a", "read", principal="u1")
    offered = {tool["name"]: tool for tool in ask(site, reader, "tools/list").json()["result"]["tools"]}
    every = {tool["name"]: tool for tool in ask(site, keys["a-u1"], "tools/list").json()["result"]["tools"]}
    assert offered.keys() < every.keys()
    assert all(tool["annotations"]["readOnlyHint"] for tool in offered.values())
    before = site.call("changes", {}, keys["a-u1"]).content
    for name in every.keys() - offered.keys():
        for arguments in (
            {"id": "own-a-u1"},
            {"ids": ["own-a-u1"]},
            {"text": "x"},
            {"id": "own-a-u1", "new_text": "x"},
        ):
            told = ask(site, reader, "tools/call", {"name": name, "arguments": arguments}).json()
            assert "error" in told or told["result"]["isError"], name
    assert site.call("changes", {}, keys["a-u1"]).content == before


def test_a_token_of_a_preview_works_for_no_other_memory(site, keys):
    preview = use(site, keys["a-u1"], "forget", {"containing": "zq"})
    token = preview["preview"]["token"]
    for other in ("a-u2", "b-u1"):
        use(site, keys[other], "forget", {"containing": "zq", "token": token})
        use(site, keys[other], "forget", {"all": True, "token": token})
        assert site.call("get", {"id": f"own-{other}"}, keys[other]).json()["fact"] is not None
    assert site.call("get", {"id": "own-a-u1"}, keys["a-u1"]).json()["fact"] is not None
    use(site, keys["a-u1"], "forget", {"containing": "zq", "token": token})
    assert site.call("get", {"id": "own-a-u1"}, keys["a-u1"]).json()["fact"] is None


def test_a_key_that_fixes_no_principal_needs_the_header(site):
    key = site.key("a")
    assert ask(site, key, "tools/list").status_code == 422
    assert ask(site, key, "tools/list", perdure_principal="u1").status_code == 200


def test_a_tool_that_only_reads_makes_no_store_and_one_that_writes_does(site):
    key = site.key("new", principal="u1")
    place = find_directory(site.directory, "new")
    assert place is not None
    reads = {
        "recall": {"query": "x"},
        "list_facts": {},
        "memory_status": {},
        "explain": {"query": "x", "id": "x"},
    }
    for name, arguments in reads.items():
        assert "code" not in use(site, key, name, arguments)
        assert list(place.glob("*")) == [], name
    ask(site, key, "tools/call", {"name": "no such tool", "arguments": {}})
    assert list(place.glob("*")) == []
    use(site, key, "remember", {"text": "x"})
    assert list(place.glob("*")) != []


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_there_are_no_streams_and_sessions_to_take_over(site, method):
    key = site.key("a", principal="u1")
    for headers in ({}, {"mcp-session-id": "0" * 32}, {"last-event-id": "1"}):
        reply = site.send(method, "/mcp", key, headers={**ACCEPTED, **headers})
        assert reply.status_code == 405
        assert "mcp-session-id" not in reply.headers
    assert "mcp-session-id" not in ask(site, key, "tools/list").headers


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff", b"[" * 100_000, b'{"a":' * 100_000,
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":1}', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}x',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused_and_the_next_one_answered(site, body):
    key = site.key("a", principal="u1")
    reply = site.send("POST", "/mcp", key, headers=ACCEPTED, content=body)
    assert reply.status_code in (400, 422)
    assert reply.json()["error"]["code"] in ("invalid_json", "invalid_request")
    assert ask(site, key, "tools/list").status_code == 200


def test_odd_but_well_formed_messages_are_answered_within_the_protocol(site):
    key = site.key("a", principal="u1")
    for id_ in (0, -1, 2**53, 10**30, "", "x" * 10_000, "\u0000", "\ud800"):
        message = {"jsonrpc": "2.0", "id": id_, "method": "ping"}
        assert (
            site.send("POST", "/mcp", key, headers=ACCEPTED, content=json.dumps(message)).status_code < 500
        ), id_
    for params in (
        {"name": "\ud800"},
        {"name": "recall", "arguments": {"query": "\ud800"}},
        {"name": "recall", "arguments": {"\ud800": 1}},
    ):
        assert ask(site, key, "tools/call", params).status_code < 500
    for uri in (
        "perdure://facts/\ud800",
        "perdure://facts/../spaces",
        "file:///etc/passwd",
        "perdure://facts/%00",
        "x" * 100_000,
    ):
        reply = ask(site, key, "resources/read", {"uri": uri})
        assert reply.status_code < 500
        assert "root:" not in reply.text


def test_a_message_of_very_many_parts_is_refused_before_it_is_decoded(site, keys):
    key = next(iter(keys.values()))
    params = {"name": "remember", "arguments": {"text": "x", "metadata": {"a": [[]] * 600_000}}}
    told = ask(site, key, "tools/call", params)
    assert told.status_code == 422
    assert "parts" in told.json()["error"]["message"]
