"""Planted texts, names, queries, ids and keys turn up in no log, metric, page, file of keys or error."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perdure.contract.operations import OPERATIONS
from perdure.memory.config import MemoryConfig
from perdure.server.logs import start_logging

from .asking import change, conversation, requests
from .site import JSON, Site

MARK = "zqmark"  # no word of ours, and untouched by folding, stemming and JSON
ACCEPTED = {**JSON, "accept": "application/json, text/event-stream"}


def marked(what: str) -> str:
    return f"{MARK}{what}"


FACT: dict[str, Any] = {
    "text": marked("text"),
    "subject": marked("subject"),
    "entities": [marked("entity")],
    "metadata": {marked("field"): marked("value")},
    "tags": [marked("tag")],
    "source": {"uri": marked("uri"), "quote": marked("quote"), "actor": marked("actor")},
}


class Raising:
    """A policy, embedder or observer that tells people's texts in its errors, and fails at every call."""

    model, dimension, query_task, is_identity, basis = "raising", 4, None, False, "event"
    reads_content = True

    def __init__(self) -> None:
        self.failures = 0

    def _fail(self, *told: Any, **more: Any) -> Any:
        self.failures += 1
        raise ValueError(f"{marked('raised')} {told} {more}")

    decide = select = plan = factor = parts = remembered = forgotten = embed_documents = embed_query = _fail
    resolve = order = decide_all = extract = _fail

    def __call__(self, *told: Any) -> Any:
        self._fail(*told)


@dataclass
class Log:
    """What standard error holds once the log is closed."""

    text: str = ""


@contextmanager
def log_of(form: str) -> Iterator[Log]:
    """Log as a server does at its most talkative."""
    root, ours = logging.getLogger(), logging.getLogger("perdure")
    before = root.handlers[:], root.level, ours.level
    stream, log = io.StringIO(), Log()
    kept, sys.stderr = sys.stderr, stream
    try:
        writer = start_logging("debug", as_json=form == "json")
        yield log
        writer.close()
    finally:
        sys.stderr = kept
        root.handlers[:], root.level, ours.level = before
        logging.captureWarnings(False)
        log.text = stream.getvalue()


def attack(site: Site, key: str) -> list[Any]:
    """Send markers in every place of every operation, well and badly formed; return the errors' replies."""
    replies = []
    ids = marked("id"), marked("absent")
    replies.append(
        site.call("remember", {**FACT, "id": ids[0], "idempotencyKey": marked("idempotency")}, key)
    )
    draft = {
        "id": ids[0],
        "kind": "semantic",
        "content": marked("content"),
        "labels": {marked("l"): marked("v")},
    }
    draft["subject"] = marked("subject")
    for asked in (
        change(marked("key"), marked("uri"), operation="create", draft=draft, reason=marked("reason")),
        change(marked("key"), marked("uri"), operation="create", draft=draft | {"content": marked("other")}),
        change(marked("k2"), f"perdure:turn/{marked('s')}/1/t", operation="create", draft=draft),
        change(marked("k3"), "x", operation="create", draft=draft | {"kind": marked(" kind ")}),
        change(marked("k4"), "x", operation=marked(" operation ")),
    ):
        replies.append(site.call("applyChanges", asked, key))
    for turns in (marked("said"), [], {marked("name"): 1}):
        replies.append(site.call("rememberConversation", conversation(ids[0], turns), key))
    for id_ in ids:
        for op, request in requests(id_).items():
            query = {"query": marked("query")} if "query" in request else {}
            replies.append(site.call(op, request | query, key))
            replies.append(site.send("GET", f"/api/v1/documents/{id_}?{marked('parameter')}=1", key))
    for op in OPERATIONS:
        for request in (
            {"id": [marked("wrong")]}, {"query": {marked("wrong"): 1}}, {"text": [FACT]},
            {"scope": {"kind": marked("kind")}},
            {"cursor": marked("cursor")}, {"since": marked("cursor")}, {"asOf": marked("time")},
            {"mode": marked("mode")},
            {"query": "x", "filter": {"$" + marked("operator"): 1}}, {"ids": [marked("id"), 1]},
            {"principal": [marked("name")]},
            {"text": marked("text"), "validFrom": marked("time"), "id": marked("id")},
            {"text": "", "subject": marked("subject") * 999},
            {"profile": marked("profile")}, {"order": marked("order")}, {"k": marked("k")},
            {"id": marked("long") * 400},
        ):  # fmt: skip
            replies.append(site.call(op, request, key))
    for body in (
        f'{{"text":"{marked("cut")}',
        f'"{marked("json")}"',
        f'{{"text":"{marked("a")}","text":"{marked("b")}"}}',
    ):
        replies.append(site.send("POST", "/api/v1/memory/remember", key, headers=JSON, content=body))
        replies.append(site.send("POST", "/mcp", key, headers=ACCEPTED, content=body))
    replies += mcp(site, key)
    replies += [
        site.send("POST", f"/{marked('path')}", key, headers=JSON, content=b"{}"),
        site.send(marked("METHOD"), f"/api/v1/{marked('path')}", key),
        # A host that is written as one is told by the log, since whoever runs the server may want to allow it.
        site.send("GET", "/docs", headers={"host": f"{marked('host')}/"}),
        site.send(
            "GET", "/docs", headers={"origin": f"http://{marked('origin')}/", "user-agent": marked("agent")}
        ),
        site.call("list", {}, marked("key")),
        site.call("list", {}, f"pk_{'0' * 16}_{marked('key')}"),
        site.call("list", {}, key, perdure_principal=marked("%")),
        site.call("list", {}, key, perdure_tenant=marked("/")),
        site.call("list", {}, key, x_request_id=marked(" request")),
        site.call("import", [marked("line")], key),
    ]
    return [reply for reply in replies if reply.status_code >= 400]


def mcp(site: Site, key: str) -> list[Any]:
    """Send markers in messages of the Model Context Protocol, in ones that its own package refuses too."""
    call = {"name": "remember", "arguments": {"text": marked("text"), "tags": marked("tag")}}
    messages: list[Any] = [
        {"method": "tools/call", "params": call},
        {"method": "tools/call", "params": {"name": "recall", "arguments": {"query": marked("query")}}},
        {
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"query": [marked("query")], "as_of": marked("time")}},
        },
        {"method": "tools/call", "params": {"name": marked("tool"), "arguments": {"a": marked("argument")}}},
        {"method": "tools/call", "params": {"name": ["remember"], "arguments": marked("argument")}},
        {"method": "tools/call", "params": marked("params")},
        {"method": "tools/call", "params": {"arguments": {"text": marked("text")}}},
        {"method": "resources/read", "params": {"uri": f"perdure://facts/{marked('id')}"}},
        {"method": "resources/read", "params": {"uri": marked("uri")}},
        {"method": "resources/read", "params": {"uri": [marked("uri")]}},
        {"method": marked("method"), "params": {"a": marked("param")}},
        {
            "method": "initialize",
            "params": {"protocolVersion": marked("version"), "clientInfo": marked("client")},
        },
        {"method": "notifications/progress", "params": {"progressToken": marked("token")}},
        {"method": "logging/setLevel", "params": {"level": marked("level")}},
        {"method": "completion/complete", "params": {"ref": marked("ref")}},
        {"method": "tools/list", "params": {"cursor": marked("cursor"), "_meta": marked("meta")}},
        {"result": marked("result")},
        {"error": {"message": marked("error")}},
        {"method": ["tools/call"], "params": {"text": marked("text")}},
    ]
    told = [{"jsonrpc": "2.0", "id": 1, **one} for one in messages]
    told += [
        {"jsonrpc": marked("rpc"), "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": {marked("id"): 1}, "method": "ping"},
    ]
    told += [{"jsonrpc": "2.0", **one} for one in messages]
    odd = (
        {"mcp-protocol-version": marked("version")},
        {"mcp-session-id": marked("session")},
        {"last-event-id": marked("event")},
    )
    replies = [site.send("POST", "/mcp", key, headers=ACCEPTED, json=one) for one in told]
    replies += [site.send("POST", "/mcp", key, headers={**ACCEPTED, **one}, json=told[0]) for one in odd]
    return replies


def unmarked(text: str, where: str, *secrets: str) -> None:
    for number, line in enumerate(text.lower().splitlines()):
        for one in (MARK, *secrets):
            assert one not in line, f"{where}, line {number}: {line[:600]}"


def pages_of(site: Site) -> str:
    pages = ("/metrics", "/docs", "/openapi.json", "/health/ready")
    replies = [site.send("GET", page, site.key("default", role="admin")) for page in pages]
    assert {reply.status_code for reply in replies} == {200}
    return "\n".join(reply.text for reply in replies)


@pytest.mark.parametrize("form", ["json", "console"])
def test_what_people_told_asked_or_named_is_in_no_log_metric_or_page(tmp_path: Path, form: str):
    with log_of(form) as log, Site(tmp_path / "stores", tenants=("a",)) as site:
        key = site.key("a", "admin", principal=marked("principal"), scope=marked("scope"))
        attack(site, key)
        pages = pages_of(site)
        kept = (site.directory / "keys.json").read_text()
    assert len(log.text.splitlines()) > 500
    secret = key.rpartition("_")[2]
    unmarked(log.text, "log", secret)
    unmarked(pages, "page", secret)
    assert secret not in kept
    if form == "json":
        events = [json.loads(line) for line in log.text.splitlines()]
        assert {event["tenant"] for event in events if event["event"] == "request"} == {"a", None}


@pytest.mark.parametrize(
    "raising",
    [
        "admission",
        "supersession",
        "forgetting",
        "consolidation",
        "recency",
        "ranking",
        "extractor",
        "embedder",
        "observers",
    ],
)
def test_an_error_inside_a_policy_is_told_by_its_kind_and_place_alone(tmp_path: Path, raising: str):
    failing = Raising()
    told: Any = (failing,) if raising == "observers" else failing
    config = MemoryConfig(**{raising: told})
    with log_of("json") as log, Site(tmp_path / "store", auth=False, config=config) as site:
        site.call("remember", {**FACT, "id": "f"})
        site.call("remember", {**FACT, "id": "g", "embedding": [1, 2, 3, 4], "validFrom": "2026-01-01"})
        site.call("recall", {"query": marked("text"), "history": "all"})  # finds them, where that goes well
        for id_ in ("f", "g"):
            for op, request in requests(id_).items():
                reply = site.call(
                    op, {**request, "query": marked("query")} if "query" in request else request
                )
                if reply.status_code >= 400:
                    unmarked(reply.text, op)
        for one in mcp(site, ""):
            assert marked("raised") not in one.text
        site.call("applyForgetting", {"dryRun": False})
        site.call("forget", {"scope": {"kind": "all"}})
        pages = pages_of(site)
    assert failing.failures
    unmarked(log.text, "log")
    unmarked(pages, "page")


def test_errors_repeat_no_text_no_query_and_no_value(site: Site):
    key = site.key("a", "admin", principal=marked("principal"))
    for reply in attack(site, key):
        told = reply.text.lower()
        for one in (
            "text",
            "query",
            "value",
            "subject",
            "quote",
            "tag",
            "entity",
            "key",
            "principal",
            "cut",
            "json",
            "origin",
            "host",
        ):
            assert marked(one) not in told, told[:500]


def test_a_fault_that_nobody_expected_is_told_by_where_to_look_alone(tmp_path: Path):
    def breaking(place: str) -> Any:
        raise RuntimeError(f"{marked('opening')} {place}")

    with log_of("console") as log, Site(tmp_path / "store", auth=False, open_store=breaking) as site:
        reply = site.call("remember", FACT, x_request_id="told-by-me")
        assert (reply.status_code, reply.json()["error"]["details"]) == (500, {"requestId": "told-by-me"})
    unmarked(reply.text, "reply")
    unmarked(log.text, "log")
    assert "told-by-me" in log.text
    assert "RuntimeError" in log.text


def test_a_task_that_is_left_behind_tells_nobody_s_text(tmp_path: Path):
    async def left() -> None:
        async def failing() -> None:
            raise ValueError(marked("left"))

        task = asyncio.create_task(failing())
        await asyncio.wait([task])
        del task

    with log_of("console") as log:
        asyncio.run(left())
    unmarked(log.text, "log")


def test_the_token_of_a_server_without_keys_is_in_no_reply_and_no_log(tmp_path: Path):
    with log_of("json") as log, Site(tmp_path / "store") as site:
        token = site.token()
        assert site.call("list", {}, token).status_code == 200
        replies = attack(site, token)
        for reply in replies:
            assert token not in reply.text
            assert token not in str(reply.headers)
        pages = pages_of(site)
    unmarked(log.text + pages, "log", token.removeprefix("pt_"))


def test_numbers_of_vectors_are_in_no_log(tmp_path: Path):
    with log_of("json") as log, Site(tmp_path / "store", auth=False) as site:
        vector = [float(one) for one in np.linspace(0.123456, 0.987654, 4)]
        site.call("remember", {"text": "x", "embedding": vector})
        site.call("recall", {"query": "x", "mode": "semantic", "embedding": [*vector, 1.0]})
        site.call("recall", {"query": "x", "mode": "hybrid", "embedding": vector})
    assert "0.123456" not in log.text
