"""The whole application in this process: who is let in, what is answered, what is told of it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from perdure.errors import InvalidRequest, WrongKey
from perdure.server.app import create_app
from perdure.server.engine import Engine
from perdure.server.front import Front
from perdure.server.keys import Grant, Keyring
from perdure.server.logs import LogWriter
from perdure.server.roots import admit
from perdure.server.settings import Limits, Settings

CANARY = "XQZ-canary-7731"


class Server:
    """An application, asked one request after another."""

    def __init__(self, app: Front) -> None:
        self.app = app

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.ask_all([(method, path, body, headers)])[0]

    def ask_all(self, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[httpx.Response]:
        """Ask all at once."""

        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await asyncio.gather(*(self._one(client, *one) for one in requests))

        return asyncio.run(run())

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.ask("POST", f"/api/v1/{path}", {} if body is None else body, **headers)

    async def _one(
        self, client: httpx.AsyncClient, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> httpx.Response:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            told.setdefault("content-type", "application/json")
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return await client.request(method, path, content=content, headers=told)


@contextmanager
def serving(store: Path | str, **told: Any) -> Iterator[Server]:
    app = create_app(Settings(store=store, **told))
    try:
        yield Server(app)
    finally:
        app.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "store", auth=False) as found:
        yield found


def key(store: Path, **told: Any) -> str:
    grant = Grant(**told)
    admit(store, grant.tenant)
    with Keyring(store) as ring:
        return f"Bearer {ring.create(grant)[1]}"


def test_without_its_packages_the_application_says_what_to_install():
    for package in ("litestar", "prometheus_client", "opentelemetry"):
        script = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {package!r} else found(name, *rest)
import perdure.server.app
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.stderr.splitlines()[-1] == (
            "ImportError: perdure.server.app needs the server's packages: pip install 'perdure[server]'"
        )


# What is there


def test_a_fact_that_was_told_is_recalled(server):
    server.post("memory/remember", {"id": "a", "text": "Ann lives in Berlin"})
    assert [
        hit["fact"]["id"] for hit in server.post("memory/recall", {"query": "Berlin"}).json()["results"]
    ] == ["a"]


def test_capabilities_tell_the_limits_of_this_server(server):
    assert server.post("memory/capabilities").json()["limits"] == {
        "k": 100,
        "queryBytes": 16384,
        "batch": 1000,
        "bodyBytes": 16 << 20,
    }


def test_an_export_comes_as_lines_that_an_import_takes(server, tmp_path):
    for number in range(300):
        server.post("memory/remember", {"id": str(number), "text": f"fact {number} " + "x" * 500})
    lines = server.post("store/export")
    assert lines.headers["content-type"] == "application/x-ndjson"
    with serving(tmp_path / "other", auth=False) as other:
        told = other.ask("POST", "/api/v1/store/import", lines.content, content_type="application/x-ndjson")
        assert told.json()["created"] == 300
        assert other.post("memory/list", {"limit": 1}).json()["total"] == 300


def test_an_import_may_go_into_the_space_that_the_headers_name(server, tmp_path):
    server.post("memory/remember", {"id": "a", "text": "Ann lives in Berlin"})
    lines = server.post("store/export").content
    with serving(tmp_path / "other", auth=False) as other:
        told = {"content_type": "application/x-ndjson", "perdure_principal": "ada"}
        assert other.ask("POST", "/api/v1/store/import?here=true&dryRun=true", lines, **told).json()["dryRun"]
        assert other.ask("POST", "/api/v1/store/import?here=true", lines, **told).json()["created"] == 1
        assert other.post("memory/get", {"id": "a"}, perdure_principal="ada").json()["fact"]["id"] == "a"


def test_an_import_of_something_else_stores_nothing_and_says_why(server):
    told = server.ask("POST", "/api/v1/store/import", b"no export\n", content_type="application/x-ndjson")
    assert (told.status_code, told.json()["error"]["code"]) == (422, "import_failed")


def test_what_is_wrong_with_an_export_is_told_before_it_begins(server):
    told = server.post("store/export", {"spaces": [{"principal": "nobody"}], "filter": {"$no": 1}})
    assert told.status_code == 422


def test_health_is_told_to_whoever_asks(server):
    assert server.ask("GET", "/health/live").json() == {"status": "ok"}
    assert server.ask("GET", "/health/ready").json() == {"status": "ok"}


def test_a_store_that_cannot_be_opened_is_not_ready():
    def broken(place: str) -> Any:
        raise WrongKey(f"{CANARY} {place}")

    app = create_app(Settings(store=":memory:", auth=False), open_store=broken)
    told = Server(app).ask("GET", "/health/ready")
    assert (told.status_code, told.json()) == (503, {"status": "wrong_key"})
    assert Server(app).ask("GET", "/health/live").status_code == 200
    app.close()


def test_the_description_and_its_page_are_there_and_load_nothing_foreign(server):
    assert server.ask("GET", "/openapi.json").json()["openapi"] == "3.1.0"
    page = server.ask("GET", "/docs")
    assert "<script" not in page.text
    assert "http" not in page.text.replace("http-equiv", "")
    assert "/api/v1/memory/recall" in page.text
    assert "script-src" not in page.headers["content-security-policy"]


# Errors


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api", 404),
        ("POST", "/api/v1/memory/nothing", 404),
        ("GET", "/api/v1/../../etc/passwd", 404),
        ("GET", "/api/v1/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "/docs/..%2f..%2fetc/passwd", 404),
        ("POST", "/health/live", 405),
        ("DELETE", "/docs", 405),
        ("GET", "/api/v1/memory/recall", 405),
        ("PATCH", "/api/v1/documents/a", 405),
    ],
)
def test_an_error_of_http_itself_has_the_one_shape(server, method, path, status):
    told = server.ask(method, path)
    assert told.status_code == status
    assert set(told.json()["error"]) >= {"code", "message"}
    assert told.headers["x-content-type-options"] == "nosniff"
    if status == 405:
        assert told.headers["allow"]


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"perdure_tenant": "no/name"}, 400),
        ({"perdure_tenant": "x" * 65}, 400),
        ({"perdure_tenant": "acme"}, 400),
        ({"perdure_principal": "%ff"}, 422),
        ({"perdure_principal": "%0a"}, 422),
    ],
)
def test_a_header_that_is_not_right_stops_the_request(server, told, status):
    found = server.post("memory/remember", {"text": CANARY}, **told)
    assert found.status_code == status
    assert CANARY not in found.text
    assert server.post("memory/list").json()["total"] == 0


@pytest.mark.parametrize("op", ["memory/recall", "memory/list", "documents/listDocuments", "store/spaces"])
def test_a_read_for_a_tenant_that_a_server_of_one_store_does_not_keep_is_refused(server, op):
    server.post("memory/remember", {"text": CANARY})
    told = server.post(op, {"query": "canary"} if op == "memory/recall" else {}, perdure_tenant="acme")
    assert (told.status_code, told.json()["error"]["code"]) == (400, "invalid_tenant")
    assert server.post("memory/list", perdure_tenant="default").json()["total"] == 1


@pytest.mark.parametrize("host", ["10.1.2.3:8420", "memory.example.org", "evil.example", ""])
def test_health_is_told_whatever_host_is_asked_for_and_nothing_else_is(server, host):
    for path in ("/health/live", "/health/ready"):
        assert server.ask("GET", path, host=host).json() == {"status": "ok"}
        assert server.ask("GET", path, host=host, origin="http://other.example").status_code == 403
    for path in ("/metrics", "/docs", "/openapi.json", "/health/live/..", "/health/other"):
        assert server.ask("GET", path, host=host).status_code == 403


def test_no_reply_lets_another_origin_read_it(server):
    told = server.ask("OPTIONS", "/api/v1/memory/recall", access_control_request_method="POST")
    assert not [name for name in told.headers if name.startswith("access-control")]


def test_a_body_longer_than_the_limit_is_refused(tmp_path):
    with serving(tmp_path / "s", auth=False, limits=Limits(body_bytes_max=2_000)) as server:
        assert server.post("memory/remember", {"text": "x" * 1_900}).status_code == 200
        told = server.post("memory/remember", {"text": "x" * 2_000})
        assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")


def test_a_fault_of_the_server_is_told_by_its_request_id_alone(tmp_path):
    def broken(place: str) -> Any:
        raise RuntimeError(f"{CANARY} at {place}")

    app = create_app(Settings(store=":memory:", auth=False), open_store=broken)
    told = Server(app).post("memory/get", {"id": CANARY}, x_request_id="mine-1")
    assert told.status_code == 500
    assert told.json()["error"]["details"] == {"requestId": "mine-1"}
    assert CANARY not in told.text
    app.close()


# Who may come in


def test_without_a_key_or_the_token_nothing_but_health_and_the_pages_is_told(tmp_path):
    with serving(tmp_path / "store") as server:
        for told in ({}, {"authorization": "Bearer no"}, {"authorization": "Basic eDp5"}):
            found = server.post("memory/list", **told)
            assert found.status_code == 401
            assert found.headers["www-authenticate"].startswith("Bearer")
        assert server.ask("GET", "/health/live").status_code == 200
        token = (tmp_path / "store" / "server.token").read_text().strip()
        assert server.post("memory/list", authorization=f"Bearer {token}").status_code == 200


def test_who_has_no_key_is_not_told_which_operations_there_are(tmp_path):
    with serving(tmp_path / "store") as server:
        there, not_there = server.post("memory/list"), server.post("memory/nothing")
    assert (there.status_code, there.content) == (not_there.status_code, not_there.content)


def test_a_key_that_is_revoked_is_refused_at_the_next_request(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    told = key(store, principal="ada")
    with serving(store) as server, Keyring(store) as ring:
        assert server.post("memory/list", authorization=told).status_code == 200
        ring.revoke(told.split("_")[1])
        assert server.post("memory/list", authorization=told).status_code == 401


@pytest.mark.parametrize(
    ("role", "path", "body", "status"),
    [
        ("read", "memory/recall", {"query": "x"}, 200),
        ("read", "memory/remember", {"text": "x"}, 403),
        ("write", "memory/remember", {"text": "x"}, 200),
        ("write", "memory/forget", {"scope": {"kind": "all"}, "purge": True}, 403),
        ("write", "store/export", {}, 403),
        ("write", "store/purge", {}, 403),
        ("admin", "memory/forget", {"scope": {"kind": "all"}, "purge": True}, 200),
        ("admin", "store/purge", {}, 200),
    ],
)
def test_a_key_does_what_its_role_allows(tmp_path, role, path, body, status):
    store = tmp_path / "store"
    store.mkdir()
    told = key(store, role=role)
    with serving(store) as server:
        assert server.post(path, body, authorization=told, perdure_principal="ada").status_code == status


def test_a_key_of_one_principal_sees_nothing_of_another_whatever_it_asks(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    ada, bob = key(store, principal="ada", role="admin"), key(store, principal="bob", role="admin")
    with serving(store) as server:
        server.post("memory/remember", {"id": "secret", "text": CANARY}, authorization=bob)
        server.ask("PUT", "/api/v1/documents/secret", {"text": CANARY}, authorization=bob)
        probes = [
            server.post("memory/get", {"id": "secret"}, authorization=ada),
            server.post("memory/list", authorization=ada),
            server.post("memory/recall", {"query": CANARY, "history": "all"}, authorization=ada),
            server.post(
                "memory/recall", {"query": CANARY, "spaces": [{"principal": "bob"}]}, authorization=ada
            ),
            server.post("memory/list", authorization=ada, perdure_principal="bob"),
            server.ask("GET", "/api/v1/documents/secret", authorization=ada),
            server.post("store/spaces", authorization=ada),
            server.post("store/export", authorization=ada),
            server.post("store/export", {"spaces": [{"principal": "bob"}]}, authorization=ada),
            server.post("store/erase", {"principal": "bob"}, authorization=ada),
            server.post("store/verify", authorization=ada),
        ]
        for found in probes:
            assert CANARY not in found.text
            assert "bob" not in found.text
        assert server.post("memory/get", {"id": "secret"}, authorization=bob).json()["fact"]["text"] == CANARY


def test_what_is_foreign_and_what_is_absent_are_answered_alike(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    ada, bob = key(store, principal="ada"), key(store, principal="bob")
    with serving(store) as server:
        server.post("memory/remember", {"id": "theirs", "text": CANARY}, authorization=bob)
        server.ask("PUT", "/api/v1/documents/theirs", {"text": CANARY}, authorization=bob)
        for op, request in (
            ("get", {}),
            ("explain", {"query": "x"}),
            ("history", {}),
            ("end", {}),
            ("retract", {}),
            ("annotate", {"pinned": True}),
        ):
            foreign = server.post(f"memory/{op}", {"id": "theirs", **request}, authorization=ada)
            absent = server.post(f"memory/{op}", {"id": "absent", **request}, authorization=ada)
            assert (foreign.status_code, foreign.content) == (absent.status_code, absent.content)
        there = server.post("memory/list", authorization=ada, perdure_principal="bob")
        not_there = server.post("memory/list", authorization=ada, perdure_principal="nobody")
        assert (there.status_code, there.content) == (not_there.status_code, not_there.content)


def test_a_key_without_a_principal_needs_the_header_unless_a_default_is_set(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    told = key(store)
    with serving(store) as server:
        assert server.post("memory/list", authorization=told).status_code == 422
        assert server.post("memory/list", authorization=told, perdure_principal="ada").status_code == 200
    with serving(store, default_principal="ada") as server:
        assert server.post("memory/list", authorization=told).status_code == 200


def test_tenants_are_apart_and_a_read_makes_none(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    one, two = key(store, tenant="one", principal=""), key(store, tenant="two", principal="")
    with serving(store) as server:
        assert server.post("memory/list", authorization=two).json()["total"] == 0
        before = sorted(path.name for path in (store / "tenants").rglob("*.db*"))
        assert before == []
        server.post("memory/remember", {"id": "a", "text": CANARY}, authorization=one)
        assert server.post("memory/get", {"id": "a"}, authorization=two).json() == {"fact": None}
        assert server.post("memory/list", authorization=two, perdure_tenant="one").status_code == 403


def test_a_server_for_others_starts_with_keys_only_and_asks_for_one_on_every_page(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    with pytest.raises(InvalidRequest), serving(store, host="0.0.0.0"):
        pass
    told = key(store, role="admin")
    with serving(store, host="0.0.0.0", allow_hosts=("localhost",)) as server:
        for path in ("/metrics", "/docs", "/openapi.json"):
            assert server.ask("GET", path).status_code == 401
            assert server.ask("GET", path, authorization=told).status_code == 200
        assert server.ask("GET", "/health/live").status_code == 200


# How much at once


def test_a_key_beyond_its_rate_is_told_when_to_come_again(tmp_path):
    with serving(tmp_path / "s", auth=False, limits=Limits(rate=0.02, burst=2)) as server:
        found = [server.post("memory/list").status_code for _ in range(3)]
        assert found == [200, 200, 503]
        told = server.post("memory/list")
        assert told.json()["error"]["code"] == "busy"
        assert 1 <= int(told.headers["retry-after"]) <= 50
        assert server.ask("GET", "/health/live").status_code == 200


def test_more_requests_than_the_server_takes_at_once_are_busy_and_the_others_are_done(tmp_path):
    limits = Limits(write_threads=1, queue=3)
    with serving(tmp_path / "s", auth=False, limits=limits) as server:
        many = [
            ("POST", "/api/v1/memory/remember", {"text": f"fact number {number}"}, {}) for number in range(40)
        ]
        found = server.ask_all(many)
        done = [told for told in found if told.status_code == 200]
        busy = [told for told in found if told.status_code == 503]
        assert len(done) + len(busy) == 40
        assert len(done) >= 4
        assert all(told.headers["retry-after"] for told in busy)
        assert server.post("memory/list", {"limit": 1}).json()["total"] == len(done)


# What is told of it


def test_logs_metrics_and_errors_hold_no_text_no_query_and_no_key(tmp_path):
    stream = io.StringIO()
    writer = LogWriter(as_json=True, stream=stream)
    logger = logging.getLogger("perdure")
    logger.addHandler(writer)
    before, logger.level = logger.level, logging.DEBUG
    try:
        with serving(tmp_path / "store") as server:
            token = (tmp_path / "store" / "server.token").read_text().strip()
            told = {"authorization": f"Bearer {token}", "perdure_principal": CANARY}
            server.post("memory/remember", {"text": CANARY, "subject": CANARY}, **told)
            server.post("memory/recall", {"query": CANARY}, **told)
            server.post("memory/explain", {"query": CANARY, "id": CANARY}, **told)
            server.post("memory/nothing", {"query": CANARY}, **told)
            server.post("memory/recall", {CANARY: 1}, authorization=f"Bearer {CANARY}")
            server.ask("GET", f"/{CANARY}")
            metrics = server.ask("GET", "/metrics", authorization=f"Bearer {token}").text
    finally:
        logger.removeHandler(writer)
        logger.level = before
        writer.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["op"] for line in lines if line["event"] == "request"} >= {"remember", "recall", "explain"}
    assert all(
        {"request", "tenant", "op", "ms", "code"} <= set(line) for line in lines if line["event"] == "request"
    )
    for text in (stream.getvalue(), metrics):
        assert CANARY not in text
        assert token not in text
    assert 'perdure_requests_total{code="ok",op="recall"} 1.0' in metrics
    assert 'perdure_request_seconds_count{op="remember"} 1.0' in metrics


def test_metrics_tell_what_is_open_and_how_large_it_is(server):
    assert "perdure_open_stores 0.0" in server.ask("GET", "/metrics").text
    server.post("memory/remember", {"text": "Ann lives in Berlin"})
    told = dict(line.split(" ") for line in server.ask("GET", "/metrics").text.splitlines() if line[0] != "#")
    assert float(told["perdure_open_stores"]) == 1
    assert float(told["perdure_log_bytes"]) > 1_000
    assert float(told['perdure_pending_calls{line="read"}']) == 0


def metrics_of(server) -> dict[str, float]:
    lines = server.ask("GET", "/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def test_metrics_tell_what_is_in_memory_and_what_came_from_the_store_or_went_to_the_disk(server):
    before = metrics_of(server)
    assert before["perdure_facts_loaded"] == before["perdure_log_commits_total"] == 0
    server.post(
        "memory/remember", {"facts": [{"text": "Ann lives in Berlin"}, {"text": "Bob lives in Bonn"}]}
    )
    for _ in range(5):
        server.post("memory/recall", {"query": "Ann"})
    told = metrics_of(server)
    assert told["perdure_spaces_loaded"] == 1
    assert told["perdure_facts_loaded"] == 2
    assert told["perdure_cache_hits_total"] >= 5
    assert told["perdure_log_commits_total"] >= 1
    assert 0 < told["perdure_log_commit_seconds_total"] < 60
    again = metrics_of(server)
    for name in (
        "perdure_cache_misses_total",
        "perdure_log_commits_total",
        "perdure_log_commit_seconds_total",
    ):
        assert again[name] == told[name]


def test_what_a_store_counted_stays_counted_when_it_is_closed(tmp_path):
    engine = Engine(Settings(store=tmp_path / "stores", auth=False))
    with engine.tenants.writing("default") as store:
        store.memory().remember("Ann lives in Berlin")
        store.memory().recall("Ann")
    before = engine.counters()
    assert (before.spaces_loaded, before.facts_loaded) == (1, 1)
    engine.close()
    after = engine.counters()
    assert (after.spaces_loaded, after.facts_loaded) == (0, 0)
    assert after.commits >= before.commits > 0
    assert after.hits >= before.hits > 0


def test_a_request_id_that_is_one_is_kept_and_any_other_replaced(server):
    assert server.ask("GET", "/health/live", x_request_id="abc-1").headers["x-request-id"] == "abc-1"
    for odd in ("a b", "x" * 65, "a%0ab", ""):
        assert len(server.ask("GET", "/health/live", x_request_id=odd).headers["x-request-id"]) == 16


def test_spans_are_made_where_they_are_asked_for_and_hold_no_text(tmp_path):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app = create_app(Settings(store=tmp_path / "s", auth=False, tracing=True), tracer_provider=provider)
    server = Server(app)
    server.post("memory/remember", {"text": CANARY}, traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    server.post("memory/explain", {"query": CANARY, "id": CANARY})
    app.close()
    first, second = spans.get_finished_spans()
    assert (first.name, second.name) == ("perdure remember", "perdure explain")
    assert format(first.context.trace_id, "032x") == "a" * 32
    assert second.attributes["perdure.code"] == "not_found"
    assert CANARY not in first.to_json() + second.to_json()


def test_the_log_names_the_host_that_a_request_was_refused_for(server, caplog):
    with caplog.at_level(logging.INFO, logger="perdure.server"):
        server.ask("GET", "/docs", host="memory.example.org:8420")
        server.ask("GET", "/docs", origin="https://localhost")
        server.ask("GET", "/docs")
    refused = [record.fields.get("refused") for record in caplog.records if record.message == "request"]
    assert refused == ["memory.example.org", "https://localhost", None]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "0:0::0"])
def test_a_server_on_every_address_that_could_answer_nobody_does_not_start(tmp_path, host):
    told = key(tmp_path / "store", role="admin")
    with pytest.raises(InvalidRequest, match="allow_host") as caught, serving(tmp_path / "store", host=host):
        pass
    assert caught.value.field == "allow_host"
    assert host in caught.value.message
    with serving(tmp_path / "store", host=host, allow_hosts=("localhost",)) as server:
        assert server.post("store/spaces", authorization=told).status_code == 200


def test_behind_a_proxy_with_a_certificate_pages_of_the_allowed_host_are_the_server_s_own(tmp_path):
    with serving(tmp_path / "store", auth=False, allow_hosts=("memory.example.org",)) as server:
        place = {"host": "memory.example.org", "origin": "https://memory.example.org"}
        assert server.ask("GET", "/docs", **place).status_code == 200
