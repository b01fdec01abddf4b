"""The shared fixtures over HTTP: the replies of the engine, byte for byte, with the status of each error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import msgspec
import pytest

from contract.cases import FIXTURES
from contract.stores import PRINCIPAL, SCOPE, open_store
from perdure.contract.limits import BODY_BYTES_MAX, HTTP
from perdure.contract.operations import OPERATIONS
from perdure.contract.wire import error_object
from perdure.errors import BY_CODE, PerdureError
from perdure.server.app import create_app
from perdure.server.settings import Settings

from .test_fixtures import replied

ALL = json.loads(FIXTURES.read_text(encoding="utf-8"))
HEADERS = {
    "content-type": "application/json",
    "perdure-principal": PRINCIPAL,
    "perdure-scope": SCOPE,
}
LIMITS = {
    "k": HTTP.k_max,
    "queryBytes": HTTP.query_bytes_max,
    "batch": HTTP.batch_max,
    "bodyBytes": BODY_BYTES_MAX,
}


def over_http(
    case: dict[str, Any], method: str = "POST", path: str | None = None, **more: Any
) -> httpx.Response:
    """Ask a case's question of a server of its own if it writes; what reads or is refused shares one."""
    operation = OPERATIONS.get(case["op"])
    group = "memory" if operation is None else operation.group
    own = writes(case)
    app = new_app(case["store"]) if own else shared_app(case["store"])

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {**HEADERS, **more.pop("headers", {})}
            content = more.pop("content", json.dumps(case["request"]).encode())
            url = path or f"/api/v1/{group}/{case['op']}"
            return await client.request(method, url, content=content, headers=headers)

    try:
        return asyncio.run(ask())
    finally:
        if own:
            app.close()


def new_app(kind: str) -> Any:
    return create_app(Settings(store=":memory:", auth=False), open_store=lambda _: open_store(kind))


SHARED: dict[str, Any] = {}


def shared_app(kind: str) -> Any:
    return SHARED[kind] if kind in SHARED else SHARED.setdefault(kind, new_app(kind))


@pytest.fixture(scope="module", autouse=True)
def closing():
    """Closes the servers that were shared."""
    yield
    while SHARED:
        SHARED.popitem()[1].close()


def writes(case: dict[str, Any]) -> bool:
    return case["op"] in OPERATIONS and OPERATIONS[case["op"]].role != "read" and "error" not in case["reply"]


@pytest.mark.parametrize("case", ALL, ids=[case["name"] for case in ALL])
def test_the_reply_over_http_is_the_engine_s_byte_for_byte(case):
    wanted = replied(case)
    reply = over_http(case)
    if case["op"] not in OPERATIONS:  # an address, not a field, is what is wrong there
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, wanted["error"]["code"])
        return
    if case["op"] == "capabilities" and "error" not in wanted:
        wanted["limits"] = LIMITS
    assert reply.content == msgspec.json.encode(wanted)
    code = wanted.get("error", {}).get("code")
    assert reply.status_code == (200 if code is None else BY_CODE[code].status)


def of_documents(op: str) -> list[dict[str, Any]]:
    """Return the cases whose id and version an address and If-Match can tell."""
    return [
        case
        for case in ALL
        if case["op"] == op
        and isinstance(id_ := case["request"].get("id"), str)
        and id_
        and (version := case["request"].get("ifVersion", 0)) is not True
        and isinstance(version, int)
        and version >= 0
    ]


@pytest.mark.parametrize("case", of_documents("putDocument"), ids=lambda case: case["name"])
def test_put_at_a_document_s_address_is_put_document(case):
    request = {key: told for key, told in case["request"].items() if key not in ("id", "ifVersion")}
    version = case["request"].get("ifVersion")
    match = {} if version is None else {"if-match": f'"{version}"'} if version else {"if-none-match": "*"}
    path = f"/api/v1/documents/{case['request']['id']}"
    reply = over_http(case, "PUT", path, content=json.dumps(request).encode(), headers=match)
    assert reply.content == msgspec.json.encode(replied(case))
    if reply.is_success:
        assert reply.headers["etag"] == f'"{reply.json()["version"]}"'


@pytest.mark.parametrize("case", of_documents("getDocument"), ids=lambda case: case["name"])
def test_get_at_a_document_s_address_is_get_document_and_not_found_where_there_is_none(case):
    reply = over_http(case, "GET", f"/api/v1/documents/{case['request']['id']}", content=b"")
    wanted = replied(case)
    if wanted.get("document", wanted) is None:
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
    else:
        assert reply.content == msgspec.json.encode(wanted)


@pytest.mark.parametrize("case", of_documents("deleteDocument"), ids=lambda case: case["name"])
def test_delete_at_a_document_s_address_is_delete_document(case):
    request = case["request"]
    match = {"if-match": f'"{request["ifVersion"]}"'} if request.get("ifVersion") else {}
    query = "?purge=true" if request.get("purge") else ""
    reply = over_http(case, "DELETE", f"/api/v1/documents/{request['id']}{query}", content=b"", headers=match)
    found, wanted = reply.json(), replied(case)
    for told in (found, wanted):
        told.pop("certificate", None)
    assert found == wanted


def test_every_error_class_has_its_status_on_the_wire():
    for kind in BY_CODE.values():
        assert 400 <= kind.status < 600
    assert error_object(PerdureError("x"))["error"]["code"] == "internal"
