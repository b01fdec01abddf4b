"""Who is let in at all: no reply tells a caller without a valid key anything but that he needs one."""

from __future__ import annotations

import pytest

from perdure.contract.operations import OPERATIONS, ROLES
from perdure.server.failures import NoRoute

from .asking import code, requests, told
from .site import JSON, NOW, Site, path_of

HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json")]


def test_no_operation_is_carried_out_without_a_key(site):
    for op, request in requests().items():
        reply = site.call(op, request)
        assert (reply.status_code, code(reply)) == (401, "unauthorized"), op
        assert reply.headers["www-authenticate"].startswith("Bearer")


def test_every_way_of_having_no_valid_key_is_refused_in_the_same_words(site):
    key = site.key("a")
    revoked, expired = site.key("a"), site.key("a", expires_at=NOW + 1)
    site.keyring.revoke(revoked.split("_")[1])
    site.clock.advance(1)
    id_, secret = key.split("_")[1:]
    wrong = [
        "", "x", "pk", "pk_", f"pk_{id_}", f"pk_{id_}_", f"pk_{id_}_{'0' * 64}", f"pk_{'0' * 16}_{secret}",
        key[:-1], key + "0", key.upper(), key.replace("pk", "pt"), f"{key} {key}", f"{key},{key}",
        "pt_" + "0" * 64,
        revoked, expired, "9" * 60_000, "é", "\u2028",
    ]  # fmt: skip
    without = told(site.call("list", {}))
    for one in wrong:
        status, _, body = site.raw([*HEADERS, (b"authorization", b"Bearer " + one.encode())])
        assert (status, body) == (without[0], without[2])
    assert site.call("list", {}, key, perdure_principal="u1").status_code == 200


def test_a_valid_key_in_another_form_is_none(site):
    key = site.key("a", principal="u1")
    forms = (
        "{}",
        "Basic {}",
        "Token {}",
        "Bearer{}",
        "bearer: {}",
        "Bearer\t{}",
        'Bearer "{}"',
        "{} Bearer",
        "Bearer {},",
    )
    for form in forms:
        assert site.raw([*HEADERS, (b"authorization", form.format(key).encode())])[0] == 401, form


def test_a_key_sent_anywhere_but_in_its_header_is_none(site):
    key = site.key("a", principal="u1")
    for name in ("x-api-key", "cookie", "proxy-authorization", "x-authorization", "authorization-"):
        assert site.call("list", {}, None, **{name: f"Bearer {key}"}).status_code == 401
    for query in (f"key={key}", f"access_token={key}", f"authorization=Bearer%20{key}"):
        assert site.send("POST", f"{path_of('list')}?{query}", headers=JSON, content=b"{}").status_code == 401
    assert site.send("POST", path_of("list"), headers=JSON, json={"key": key}).status_code == 401


def test_two_keys_in_one_request_are_refused_even_if_both_are_valid(site):
    header = (b"authorization", f"Bearer {site.key('a', principal='u1')}".encode())
    assert site.raw([*HEADERS, header])[0] == 200
    status, _, body = site.raw([*HEADERS, header, header])
    assert status == 400
    assert b"items" not in body


def test_a_revoked_key_is_refused_at_its_next_request_and_an_expired_one_at_its_moment(site):
    key, short = site.key("a", principal="u1"), site.key("a", principal="u1", expires_at=NOW + 1000)
    for one in (key, short):
        assert site.call("list", {}, one).status_code == 200
    site.keyring.revoke(key.split("_")[1])
    assert site.call("list", {}, key).status_code == 401
    site.clock.advance(999)
    assert site.call("list", {}, short).status_code == 200
    site.clock.advance(1)
    assert site.call("list", {}, short).status_code == 401


def test_a_revoked_key_is_refused_by_mcp_and_by_documents_too(site):
    key = site.key("a", principal="u1")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {**JSON, "accept": "application/json, text/event-stream"}
    assert site.send("POST", "/mcp", key, json=message, headers=accepted).status_code == 200
    site.keyring.revoke(key.split("_")[1])
    assert site.send("POST", "/mcp", key, json=message, headers=accepted).status_code == 401
    assert site.send("GET", "/api/v1/documents/d", key).status_code == 401


def test_what_is_not_there_is_told_only_to_those_who_have_a_key(site):
    for path in ("/api/v1/memory/no-such", "/api/v1/", "/api/v1/documents/d/e/f"):
        assert site.send("POST", path, headers=JSON, content=b"{}").status_code == 401
        reply = site.send("POST", path, site.key("a"), headers=JSON, content=b"{}")
        assert reply.json()["error"]["message"] == NoRoute().message


@pytest.mark.parametrize("role", ROLES)
def test_a_key_does_what_its_role_allows_and_nothing_more(site, role):
    key = site.key("a", role, principal="u1")
    for op, request in requests().items():
        refused = ROLES.index(OPERATIONS[op].role) > ROLES.index(role)
        reply = site.call(op, request, key)
        if refused:
            assert (reply.status_code, code(reply)) == (403, "forbidden"), op
        else:
            assert reply.status_code != 401, op
            assert reply.status_code != 403 or op in ("verify", "purge", "import", "storeEvents"), op


def test_a_read_only_key_leaves_no_trace_of_any_write_that_it_tries(site):
    writer, reader = site.key("a", "admin", principal="u1"), site.key("a", "read", principal="u1")
    site.call("remember", {"id": "f", "text": "it stays"}, writer)
    site.call("putDocument", {"id": "d", "text": "it stays"}, writer)
    before = [
        site.call(op, {}, writer).content for op in ("list", "changes", "listDocuments", "spaces", "stats")
    ]
    for op, request in requests("f").items():
        site.call(op, request, reader)
    site.send("PUT", "/api/v1/documents/d", reader, headers=JSON, content=b'{"text":"gone"}')
    site.send("DELETE", "/api/v1/documents/d", reader)
    after = [
        site.call(op, {}, writer).content for op in ("list", "changes", "listDocuments", "spaces", "stats")
    ]
    assert after == before


@pytest.mark.parametrize("purge", [True, 1, "true", [True], {"a": 1}])
def test_a_purge_takes_an_admin_s_key_however_it_is_asked_for(site, purge):
    key = site.key("a", "write", principal="u1")
    site.call("remember", {"id": "f", "text": "it stays"}, key)
    site.call("putDocument", {"id": "f", "text": "it stays"}, key)
    for op in ("forget", "deleteDocument", "applyForgetting"):
        reply = site.call(op, {**requests("f")[op], "purge": purge}, key)
        assert reply.status_code == 403 if purge is True else reply.status_code in (403, 422)
    assert site.send("DELETE", "/api/v1/documents/f?purge=true", key).status_code == 403
    assert site.send("DELETE", "/api/v1/documents/f?purge=false&purge=true", key).status_code == 422
    assert site.call("get", {"id": "f"}, key).json()["fact"]["id"] == "f"
    assert site.call("hasDocument", {"id": "f"}, key).json() == {"exists": True}


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_from_the_first_key_on_every_page_but_health_needs_one(tmp_path, host):
    with Site(tmp_path / "near") as near:
        for page in ("/docs", "/openapi.json", "/health/live"):
            assert near.send("GET", page).status_code == 200
        assert near.send("GET", "/metrics").status_code == 401
        assert near.send("GET", "/metrics", near.token()).status_code == 200
        reader, admin = near.key(role="read"), near.key(role="admin")
        site = Site(near.directory, host=host, allow_hosts=("localhost",))
        with site:
            for page in ("/metrics", "/docs", "/openapi.json"):
                for asker in (near, site):
                    assert asker.send("GET", page).status_code == 401
                    assert asker.send("HEAD", page).status_code == 401
                    assert asker.send("GET", page, near.token()).status_code == 401
                    assert asker.send("GET", page, admin).status_code == 200
            assert site.send("GET", "/docs", reader).status_code == 200
            assert site.send("GET", "/health/live").json() == {"status": "ok"}
            assert site.send("GET", "/health/ready").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "grant",
    [
        {"role": "read"},
        {"role": "write"},
        {"role": "admin", "principal": "u1"},
        {"role": "admin", "scope": "s"},
        {"role": "admin", "principal": "", "scope": ""},
    ],
)
def test_the_metrics_are_for_admins_whose_keys_are_bounded_by_nothing(tmp_path, grant):
    with Site(tmp_path / "stores") as site:
        told = site.send("GET", "/metrics", site.key(**grant))
        assert (told.status_code, told.json()["error"]["code"]) == (403, "forbidden")
        assert "perdure_" not in told.text
        assert site.send("GET", "/metrics", site.key(role="admin")).status_code == 200


def test_of_a_root_of_tenants_no_tenant_s_key_sees_the_metrics_of_the_others(tmp_path):
    with Site(tmp_path / "stores", tenants=("acme", "beta")) as site:
        site.call("remember", {"text": "it stays"}, site.key("acme", principal="u1"))
        told = site.send("GET", "/metrics", site.key("beta", role="admin"))
        assert told.status_code == 403
        assert "perdure_" not in told.text
        owner = site.send("GET", "/metrics", site.key("default", role="admin"))
        assert "perdure_open_stores 1.0" in owner.text
