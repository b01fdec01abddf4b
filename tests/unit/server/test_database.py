"""A server of a database: its tenants, its keys, several servers at once, and what it says when the database fails."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import psycopg
import pytest

from perdure import InvalidRequest, Unavailable, copy
from perdure.databases import delete_tenant
from perdure.log.postgres import PostgresLog, connections
from perdure.opening import Opening as Opened
from perdure.opening import has_tenant
from perdure.server.keys import Grant, Keyring
from perdure.server.places import places_of
from perdure.server.settings import Opening, Settings
from postgres_proxy import Proxy
from postgres_server import ROLE, Server, fresh_address, give_up_soon, shared_server
from unit.server.databases import app_on, ask, ready, remember, texts
from unit.server.running_server import running

PATIENCE_S = 60


@pytest.fixture
def address():
    return fresh_address()


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


@pytest.fixture
def app(address, keys):
    made = app_on(address, keys)
    yield made
    made.close()


def database_of(address):
    return address.split("/")[3].split("?")[0]


def cut(server, database):
    """End every connection to a database but one's own."""
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def test_any_tenant_is_served_and_made_at_its_first_write(app, address):
    assert texts(app, tenant="acme") == []
    assert not has_tenant(address, Opened(tenant="acme"))
    assert remember(app, "of acme", tenant="acme").status_code == 200
    assert remember(app, "of nobody").status_code == 200
    assert (texts(app, tenant="acme"), texts(app), texts(app, tenant="beta")) == (
        ["of acme"],
        ["of nobody"],
        [],
    )
    assert [has_tenant(address, Opened(tenant=name)) for name in ("acme", "default", "beta")] == [
        True,
        True,
        False,
    ]


def test_reading_makes_no_table(keys):
    server = shared_server()
    address = server.address(server.new_database())
    app = app_on(address, keys)
    try:
        assert texts(app) == []
        assert ready(app) == (200, "ok")
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT to_regnamespace('perdure')").fetchone() == (None,)
        assert remember(app, "tea").status_code == 200
        assert texts(app) == ["tea"]
    finally:
        app.close()


def test_what_one_server_acknowledges_the_next_read_of_another_sees(app, address, keys):
    other = app_on(address, keys)
    try:
        for number in range(5):
            here, there = (app, other) if number % 2 else (other, app)
            assert remember(here, f"number {number}", tenant="acme").status_code == 200
            assert len(texts(there, tenant="acme")) == number + 1
    finally:
        other.close()


def test_keys_lie_with_the_keystore_and_count_on_every_server_at_once(address, keys):
    servers = [app_on(address, keys, auth=True) for _ in range(2)]
    try:
        token = (keys / "server.token").read_text().strip()
        assert all(remember(app, "tea", **bearer(token)).status_code == 200 for app in servers)
        with Keyring(keys) as ring:
            made, key = ring.create(Grant(tenant="acme"))
            for app in servers:
                assert ask(app, "memory/list", {}, **bearer(token)).status_code == 401
                assert remember(app, "of acme", principal="ann", **bearer(key)).status_code == 200
                assert ask(app, "memory/list", {}, tenant="beta", **bearer(key)).status_code == 403
            assert len(texts(servers[0], principal="ann", **bearer(key))) == 1
            ring.revoke(made.id)
        assert [ask(app, "memory/list", {}, **bearer(key)).status_code for app in servers] == [401, 401]
    finally:
        for app in servers:
            app.close()


def test_a_tenant_that_was_deleted_elsewhere_reads_as_an_empty_one_and_can_be_made_anew(app, address, keys):
    assert remember(app, "tea", tenant="acme").status_code == 200
    assert texts(app, tenant="acme") == ["tea"]
    delete_tenant(address, "acme", keystore=keys)
    reply = ask(app, "memory/recall", {"query": "tea"}, tenant="acme")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")
    assert "send the request again" in reply.json()["error"]["message"]
    assert "tea" not in reply.text
    assert texts(app, tenant="acme") == []
    assert remember(app, "coffee", tenant="acme").status_code == 200
    assert texts(app, tenant="acme") == ["coffee"]


def test_a_tenant_that_is_being_deleted_says_so_to_reads_as_to_writes_and_the_server_is_well(
    app, address, keys
):
    for tenant in ("acme", "beta"):
        assert remember(app, "tea", tenant=tenant).status_code == 200
    (keys / "keystore.hold").touch()
    assert delete_tenant(address, "acme", keystore=keys).pending
    fresh = app_on(address, keys)
    try:
        for reply in (ask(fresh, "memory/list", {}, tenant="acme"), remember(fresh, "milk", tenant="acme")):
            told = reply.json()["error"]
            assert (reply.status_code, told["code"], told["details"]["kind"]) == (
                503,
                "unavailable",
                "buried",
            )
        assert texts(fresh, tenant="beta") == ["tea"]
        assert ready(fresh) == (200, "ok")
        (keys / "keystore.hold").unlink()
        assert not delete_tenant(address, "acme", keystore=keys).pending
        assert texts(fresh, tenant="acme") == []
    finally:
        fresh.close()


ASKED = {
    "list": ("memory/list", {}),
    "recall": ("memory/recall", {"query": "tea"}),
    "get": ("memory/get", {"id": "drink"}),
    "history": ("memory/history", {"id": "drink"}),
    "remember": ("memory/remember", {"text": "milk"}),
    "forget": ("memory/forget", {"scope": {"kind": "ids", "ids": ["drink"]}}),
    "changes": ("memory/changes", {}),
    "export": ("store/export", {}),
    "purge": ("store/purge", {}),
    "verify": ("store/verify", {}),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_tenant_that_was_deleted_and_made_again_elsewhere_is_opened_anew_at_the_next_request(
    app, address, keys, asked
):
    other = app_on(address, keys)
    try:
        assert remember(app, "deleted tea", tenant="acme").status_code == 200
        assert texts(app, tenant="acme") == ["deleted tea"]
        delete_tenant(address, "acme", keystore=keys)
        assert remember(other, "tea of the new one", tenant="acme").status_code == 200
        path, body = ASKED[asked]
        reply = ask(app, path, body, tenant="acme")
        assert "deleted tea" not in reply.text
        assert reply.status_code in (404, 503), reply.text
        for server in (app, other, app):
            assert texts(server, tenant="acme") == ["tea of the new one"]
        assert remember(app, "milk", tenant="acme").status_code == 200
        assert sorted(texts(other, tenant="acme")) == ["milk", "tea of the new one"]
    finally:
        other.close()


@pytest.mark.parametrize("made_again", [False, True])
def test_a_tenant_that_was_deleted_elsewhere_does_not_make_a_server_unwell(app, address, keys, made_again):
    assert remember(app, "tea", tenant="acme").status_code == 200
    assert remember(app, "tea", tenant="beta").status_code == 200
    delete_tenant(address, "acme", keystore=keys)
    if made_again:
        other = app_on(address, keys)
        assert remember(other, "milk", tenant="acme").status_code == 200
        other.close()
    assert ready(app) == (200, "ok")
    assert texts(app, tenant="acme") == (["milk"] if made_again else [])
    assert ready(app) == (200, "ok")


AGAIN = """
import sys
from perdure import Store
from perdure.databases import delete_tenant
address, keys = sys.argv[1:]
delete_tenant(address, "acme", keystore=keys)
with Store.open(address, tenant="acme", keystore=keys) as store:
    store.memory().remember("tea of the new one", id="drink")
"""


def test_a_running_server_goes_over_to_the_tenant_that_another_process_has_made_anew(address, keys):
    acme = {"perdure-tenant": "acme"}
    with running(address, opening={"keystore": str(keys)}) as server:
        told = {"text": "deleted tea", "id": "drink"}
        assert server.post("memory/remember", told, **acme)[0] == 200
        for _ in range(5):  # until such reads are done at once
            status, found = server.post("memory/recall", {"query": "tea"}, **acme)
            assert (status, "deleted tea" in str(found)) == (200, True)
        command = [sys.executable, "-c", AGAIN, address, str(keys)]
        source = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run(command, check=True, env=source, timeout=PATIENCE_S)
        replies = [server.post("memory/recall", {"query": "tea"}, **acme) for _ in range(5)]
        assert [status for status, _ in replies] == [503, 200, 200, 200, 200]
        assert "deleted tea" not in str(replies)
        assert all("tea of the new one" in str(found) for _, found in replies[1:])
        status, fact = server.post("memory/get", {"id": "drink"}, **acme)
        assert (status, "tea of the new one" in str(fact)) == (200, True)


def test_settings_that_are_of_files_are_refused(address, keys, tmp_path):
    for opening, field in (
        (Opening(keystore=keys, key="secret"), "key"),
        (Opening(keystore=keys, backend="sqlite"), "backend"),
        (Opening(), "keystore"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            places_of(Settings(address, opening=opening))
        assert refused.value.field == field
    with pytest.raises(InvalidRequest, match="goes with the address"):
        places_of(Settings(tmp_path / "store", opening=Opening(keystore=keys)))
    assert address not in repr(Settings(address))


def test_without_a_keystore_only_this_machine_is_served(address):
    app = app_on(address, "off", secret=bytes(32), auth=True)
    try:
        assert ask(app, "memory/list", {}).status_code == 401
        token = app.engine.authenticator.token_path.read_text().strip()
        assert remember(app, "tea", **bearer(token)).status_code == 200
    finally:
        app.close()
    with pytest.raises(InvalidRequest, match="perdure keys create"):
        app_on(address, "off", secret=bytes(32), auth=True, host="192.0.2.1", allow_hosts=("a",))


def test_a_server_does_not_start_without_its_database(keys):
    app = app_on("postgresql://nobody:a-password@127.0.0.1:1/none", keys)
    with pytest.raises(Unavailable) as refused:
        app.engine.check()
    assert "a-password" not in str(refused.value)
    assert ready(app) == (503, "unavailable")
    app.close()


def test_connections_that_are_cut_under_load_are_no_fault_of_the_server(app, address):
    server, database = shared_server(), database_of(address)
    told, wrong = [], []
    ended = threading.Event()

    def work(name):
        number = 0
        while not ended.is_set():
            text = f"{name} {number}"
            reply = remember(app, text, tenant="acme", principal=name)
            if reply.status_code == 200:
                told.append((name, text))
                number += 1
            elif (reply.status_code, "retry-after" in reply.headers) != (503, True):
                wrong.append(reply.text)
            reply = ask(app, "memory/recall", {"query": text}, tenant="acme", principal=name)
            if reply.status_code not in (200, 503):
                wrong.append(reply.text)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            time.sleep(0.2)  # the load goes on meanwhile
            cut(server, database)
    finally:
        ended.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert wrong == []
    for name in ("ann", "bob"):
        assert sorted(texts_of_all(app, name)) == sorted(text for who, text in told if who == name)


def texts_of_all(app, principal):
    found, cursor = [], None
    while True:
        asked = {"limit": 100} if cursor is None else {"limit": 100, "cursor": cursor}
        page = ask(app, "memory/list", asked, tenant="acme", principal=principal).json()
        found += [fact["text"] for fact in page["items"]]
        cursor = page.get("cursor") or page.get("nextCursor")
        if not cursor:
            return found


@pytest.fixture
def own_server():
    server = Server({})  # which syncs: what it acknowledged outlives it
    server.execute("CREATE DATABASE own")
    yield server
    server.stop()


def test_a_database_that_stops_and_comes_back_is_served_again_without_a_start(own_server, keys, monkeypatch):
    give_up_soon(monkeypatch)
    app = app_on(own_server.address("own"), keys)
    try:
        assert remember(app, "before").status_code == 200
        assert ready(app) == (200, "ok")
        own_server.kill()
        for reply in (
            remember(app, "lost"),
            ask(app, "memory/recall", {"query": "before"}),
            ask(app, "/health/ready"),
        ):
            assert reply.status_code == 503
        reply = remember(app, "lost")
        assert (reply.json()["error"]["code"], "retry-after" in reply.headers) == ("unavailable", True)
        assert ready(app) == (503, "unavailable")
        assert ask(app, "/health/live").status_code == 200
        own_server.start()
        deadline = time.monotonic() + PATIENCE_S
        while remember(app, "after").status_code != 200:
            assert time.monotonic() < deadline
        assert sorted(texts(app)) == ["after", "before"]
        assert ready(app) == (200, "ok")
    finally:
        app.close()


def test_a_database_that_may_only_be_read_serves_reads_and_is_not_ready(app, address):
    assert remember(app, "tea").status_code == 200
    server, database = shared_server(), database_of(address)
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    cut(server, database)
    reply = remember(app, "milk")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")
    assert "read" in reply.json()["error"]["message"]
    assert texts(app) == ["tea"]
    assert ready(app) == (503, "unavailable")
    server.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    cut(server, database)
    assert remember(app, "milk").status_code == 200
    assert ready(app) == (200, "ok")


def test_a_write_that_others_hold_up_is_busy(address, keys):
    app = app_on(address, keys, limits={"request_timeout_s": 1.0})
    try:
        assert remember(app, "tea").status_code == 200
        with psycopg.connect(shared_server().address(database_of(address))) as other:
            other.execute("SELECT * FROM perdure.tenant FOR UPDATE")
            reply = remember(app, "milk")
            assert (reply.status_code, reply.json()["error"]["code"] in ("busy", "unavailable")) == (
                503,
                True,
            )
            assert "retry-after" in reply.headers
            assert texts(app) == ["tea"]
    finally:
        app.close()


def test_one_tenant_that_fails_takes_nobody_else_along(app, address, keys, caplog):
    assert remember(app, "tea", tenant="acme").status_code == 200
    assert remember(app, "tea", tenant="beta").status_code == 200
    app.close()
    (theirs, *_) = sorted(keys.glob("*.keys"))
    theirs.unlink()
    again = app_on(address, keys)
    try:
        replies = [ask(again, "memory/list", {}, tenant=name) for name in ("acme", "beta")]
        assert sorted(reply.status_code for reply in replies) == [200, 500]
        assert not any(str(keys) in reply.text for reply in replies)
        assert str(keys) in caplog.text
        assert ready(again) == (200, "degraded")
    finally:
        again.close()


def test_while_the_keystore_is_away_no_key_is_called_wrong_and_the_server_is_not_ready(address, keys):
    keys.mkdir(mode=0o700)
    with Keyring(keys) as ring:
        _, key = ring.create(Grant(tenant="acme"))
    app = app_on(address, keys, auth=True)
    try:
        assert remember(app, "tea", principal="ann", **bearer(key)).status_code == 200
        assert ready(app) == (200, "ok")
        keys.rename(keys.with_name("away"))
        reply = ask(app, "memory/list", {}, principal="ann", **bearer(key))
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")
        assert ready(app) == (503, "unavailable")
        keys.with_name("away").rename(keys)
        assert texts(app, principal="ann", **bearer(key)) == ["tea"]
        assert ready(app) == (200, "ok")
    finally:
        app.close()


def test_a_server_that_asks_for_no_key_is_not_ready_while_the_keystore_is_away_and_serves_what_it_has(
    app, address, keys
):
    assert remember(app, "tea").status_code == 200
    assert ready(app) == (200, "ok")
    keys.rename(keys.with_name("away"))
    assert ready(app) == (503, "unavailable")
    assert texts(app) == ["tea"]
    keys.with_name("away").rename(keys)
    assert ready(app) == (200, "ok")


def test_a_keystore_that_is_a_file_is_refused_as_what_it_is(address, tmp_path):
    (tmp_path / "afile").write_text("")
    with pytest.raises(InvalidRequest, match="no directory") as refused:
        places_of(Settings(address, opening=Opening(keystore=str(tmp_path / "afile"))))
    assert refused.value.field == "keystore"


def test_tables_of_another_version_keep_a_server_from_starting_and_make_a_running_one_not_ready(
    app, address, keys
):
    assert ready(app) == (200, "ok")
    shared_server().execute("DELETE FROM perdure.schema_version WHERE version > 1", database_of(address))
    assert ready(app) == (503, "unavailable")
    other = app_on(address, keys)
    try:
        with pytest.raises(Unavailable, match="run perdure migrate"):
            other.engine.check()
    finally:
        other.close()


def test_a_server_whose_role_may_make_no_tables_does_not_start_before_they_are_made(keys):
    server = shared_server()
    fresh_address()  # so that the role is there
    app = app_on(server.address(server.new_database(), ROLE), keys)
    try:
        with pytest.raises(Unavailable, match="run perdure migrate"):
            app.engine.check()
        assert ready(app) == (503, "unavailable")
    finally:
        app.close()


def test_a_keystore_that_holds_nothing_beside_a_database_of_tenants_is_doubted_and_no_key_is_asked_for(
    app, address, keys, tmp_path, caplog
):
    assert remember(app, "tea").status_code == 200
    (tmp_path / "mount").mkdir(mode=0o700)
    with pytest.raises(Unavailable, match="check that its disk is mounted"):
        app_on(address, tmp_path / "mount", auth=True, host="0.0.0.0", allow_hosts=("a.org",))
    other = app_on(address, tmp_path / "mount")
    try:
        other.engine.check()
    finally:
        other.close()
    assert len([one for one in caplog.messages if "check that its disk is mounted" in one]) == 1
    with pytest.raises(InvalidRequest, match="make one with perdure keys create"):
        app_on(address, keys, auth=True, host="0.0.0.0", allow_hosts=("a.org",))


def test_a_server_with_the_keystore_of_others_is_ready_and_what_it_makes_there_can_be_copied_to_where_it_belongs(
    app, address, keys, tmp_path
):
    assert remember(app, "tea").status_code == 200
    wrong = tmp_path / "wrong"
    others = app_on(fresh_address(), wrong)
    remember(others, "of others")
    others.close()
    other = app_on(address, wrong)
    try:
        other.engine.check()
        assert ready(other) == (200, "ok")
        refused = ask(other, "memory/list", {})
        assert (refused.status_code, refused.json()["error"]["code"]) == (500, "wrong_key")
        assert ready(other) == (200, "degraded")
        assert remember(other, "astray", tenant="acme").status_code == 200
        assert ask(app, "memory/list", {}, tenant="acme").json()["error"]["code"] == "wrong_key"
    finally:
        other.close()
    copy(address, address, tenant="acme", keystore=wrong, to_tenant="acme-2", to_keystore=keys)
    assert texts(app, tenant="acme-2") == ["astray"]


@pytest.mark.parametrize("auth", [True, False])
def test_where_the_keystore_is_not_there_and_the_database_holds_tenants_nothing_is_made(
    app, address, tmp_path, auth
):
    assert remember(app, "tea").status_code == 200
    with pytest.raises(Unavailable, match="check that its disk is mounted"):
        app_on(address, tmp_path / "unmounted", auth=auth)
    assert not (tmp_path / "unmounted").exists()


def test_for_the_first_tenants_of_a_database_the_keystore_is_made_with_the_token_and_marked_by_the_first_write(
    address, keys
):
    app = app_on(address, keys, auth=True)
    try:
        assert sorted(path.name for path in keys.iterdir()) == ["server.lock", "server.token"]
        assert keys.stat().st_mode & 0o777 == 0o700
        token = (keys / "server.token").read_text().strip()
        assert remember(app, "tea", **bearer(token)).status_code == 200
        assert (keys / "keystore.mark").is_file()
    finally:
        app.close()


def test_a_new_keystore_beside_an_empty_database_is_not_doubted(address, keys, caplog):
    app = app_on(address, keys)
    try:
        app.engine.check()
    finally:
        app.close()
    assert [one for one in caplog.messages if "mounted" in one] == []


def test_measures_of_a_database_that_says_nothing_ask_it_once_and_not_for_each_store(monkeypatch, keys):
    proxy = Proxy(shared_server().root)
    app = app_on(f"postgresql://{ROLE}@/{database_of(fresh_address())}?host={proxy.root}", keys)
    for tenant in ("acme", "beta"):
        assert remember(app, "the kettle is blue", tenant=tenant).status_code == 200
    before = app.engine.sizes()
    assert before["log_bytes"] > 0
    monkeypatch.setattr(connections, "CONNECT_S", 0.5)
    proxy.hush()
    with monkeypatch.context() as asking:
        for name in ("size_bytes", "scrub_pending"):
            asking.setattr(PostgresLog, name, lambda _: pytest.fail("a store was asked"))
        assert app.engine.sizes() == {**before, "failing": 2}
    proxy.speak()
    assert app.engine.sizes() == before
    app.close()
    proxy.close()
